"""Privacy profiles: how much privacy a mechanism loses, one formula per mechanism."""

from hushed.privacy_loss._constructors import (
    approximate,
    bounded_range,
    compose,
    discrete_gaussian,
    discrete_laplace,
    gaussian,
    laplace,
    one_sided,
    pair,
    profile,
    randomised_response,
)
from hushed.privacy_loss._gaussian import gaussian_delta
from hushed.privacy_loss._pointwise import at_output
from hushed.privacy_loss._profile import Bracket, PrivacyProfile

__all__ = [
    "Bracket",
    "PrivacyProfile",
    "approximate",
    "at_output",
    "bounded_range",
    "compose",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian",
    "gaussian_delta",
    "laplace",
    "one_sided",
    "pair",
    "profile",
    "randomised_response",
]
