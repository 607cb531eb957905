"""What a mechanism under audit says of itself, as users write it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import is_real, require_one_of
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours


@called_as("hs.ZeroConcentrated(rho=0.5)")
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentrated:
    """The claim of zero-concentrated differential privacy.

    Parameters
    ----------
    rho : float
        Renyi divergence of every order a is claimed to be at most ``rho a``, in nats; 0 or more,
        finite.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Relation between the two tables.

    Raises
    ------
    ParameterError
        If rho leaves its range, or there is no such relation.

    Notes
    -----
    Bun and Steinke, TCC 2016, Definition 1.1.
    """

    rho: float
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        if not is_real(self.rho) or not 0 <= self.rho < math.inf:
            raise ParameterError(
                f"rho must be 0 or more and finite, got {as_given(self.rho)}", parameter="rho"
            )
        require_one_of("neighbours", self.neighbours, get_args(Neighbours))


@called_as("hs.Renyi(order=4, epsilon=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True)
class Renyi:
    """The claim that the Renyi divergence of one order is bounded.

    Parameters
    ----------
    order : float
        Order of the divergence; above 1, finite.
    epsilon : float
        Claimed bound on it, in nats; 0 or more, finite.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Relation between the two tables.

    Raises
    ------
    ParameterError
        If a number leaves its range, or there is no such relation.

    Notes
    -----
    Mironov, *Renyi Differential Privacy*, CSF 2017, Definition 4.
    """

    order: float
    epsilon: float
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        if not is_real(self.order) or not 1 < self.order < math.inf:
            raise ParameterError(
                f"order must be above 1 and finite, got {as_given(self.order)}", parameter="order"
            )
        if not is_real(self.epsilon) or not 0 <= self.epsilon < math.inf:
            raise ParameterError(
                f"epsilon must be 0 or more and finite, got {as_given(self.epsilon)}",
                parameter="epsilon",
            )
        require_one_of("neighbours", self.neighbours, get_args(Neighbours))


Claim = Guarantee | ZeroConcentrated | Renyi


def read_distance(claim: Claim) -> tuple[bool, int]:
    """Whether a claim is about all rows of users, and about how many rows, or users, at once."""
    return (claim.unit == "user", claim.distance) if type(claim) is Guarantee else (False, 1)
