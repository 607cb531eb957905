"""Measurements: the random end of a chain, and what it loses."""

from hushed.measurements._choosing import noisy_max, top_k
from hushed.measurements._combining import compose, parallel
from hushed.measurements._exporting import to_opendp
from hushed.measurements._importing import from_opendp
from hushed.measurements._noisy import exponential, gaussian, laplace, noisy
from hushed.measurements._record import Measurement
from hushed.measurements._search import chain_sensitivity, largest_distance, smallest_scale
from hushed.measurements._statistics import (
    inverse_sensitivity,
    propose_test,
    smooth,
    stable_mode,
)

__all__ = [
    "Measurement",
    "chain_sensitivity",
    "compose",
    "exponential",
    "from_opendp",
    "gaussian",
    "inverse_sensitivity",
    "laplace",
    "largest_distance",
    "noisy",
    "noisy_max",
    "parallel",
    "propose_test",
    "smallest_scale",
    "smooth",
    "stable_mode",
    "to_opendp",
    "top_k",
]
