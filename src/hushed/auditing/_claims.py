"""What a mechanism under audit says of itself, and what counts would contradict it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushed.auditing._bounds import Counts, Evidence, JointTest, Rectangle
from hushed.auditing._pairs import Relation
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours, shown_above

__all__ = [
    "Claim",
    "Renyi",
    "ZeroConcentrated",
    "check",
    "contradicts",
    "evidence",
    "in_words",
    "levels_in_words",
    "measure",
    "stated",
]

_ORDERS = tuple(float(x) for x in 1 + np.geomspace(1e-3, 1e4, 60))
_LARGEST_EPSILON = 100.0


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
        If rho leaves its range.

    Notes
    -----
    Bun and Steinke, TCC 2016, Definition 1.1.
    """

    rho: float
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        if not 0 <= self.rho < math.inf:
            raise ParameterError(f"rho must be 0 or more and finite, got {self.rho}")


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
        If a number leaves its range.

    Notes
    -----
    Mironov, *Renyi Differential Privacy*, CSF 2017, Definition 4.
    """

    order: float
    epsilon: float
    neighbours: Neighbours = "replace-one"

    def __post_init__(self) -> None:
        if not 1 < self.order < math.inf:
            raise ParameterError(f"order must be above 1 and finite, got {self.order}")
        if not 0 <= self.epsilon < math.inf:
            raise ParameterError(f"epsilon must be 0 or more and finite, got {self.epsilon}")


Claim = Guarantee | ZeroConcentrated | Renyi


def check(claim: Claim) -> None:
    """Refuse claims that no outcome could contradict.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.

    Raises
    ------
    ParameterError
        If delta is 1, epsilon too large to tell from infinity, gamma is calibrated as marginal,
        or it is no claim at all.
    """
    if isinstance(claim, Guarantee):
        if claim.delta >= 1:
            raise ParameterError(
                "a claim with delta = 1 promises nothing, so no outcome can contradict it; "
                "claim a delta below 1"
            )
        if claim.epsilon > _LARGEST_EPSILON:
            raise ParameterError(
                f"epsilon = {claim.epsilon} promises nothing that samples could contradict; "
                f"claim at most {_LARGEST_EPSILON:.0f}"
            )
        if claim.marginal and claim.gamma > 0:
            raise ParameterError(
                f"gamma = {claim.gamma:g} is calibrated as 'marginal': a probability over the "
                "sampler and the pair together, which the share of pairs under one sensitivity may "
                "exceed while the promise holds, so that auditing this sensitivity cannot "
                "contradict it. Judge the share under this sensitivity by itself, with "
                "claim=hs.Guarantee(epsilon=..., delta=..., gamma=...) in your own numbers, or "
                "sample with calibration='training-conditional'"
            )
    elif not isinstance(claim, ZeroConcentrated | Renyi):
        raise ParameterError(
            "claim must be hs.Guarantee(epsilon=...), ZeroConcentrated(rho=...) or "
            f"Renyi(order=..., epsilon=...), got {type(claim).__name__}"
        )


def measure(claim: Claim, region: Evidence) -> float:
    """Certified lower bound on what the claim bounds from above.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.
    region : Rectangle or JointTest
        Evidence; for the two claims about divergences a rectangle.

    Returns
    -------
    float
        For a `Guarantee` epsilon at its delta; for the others rho or the divergence.
    """
    if isinstance(claim, Guarantee):
        return region.epsilon_low(claim.delta)
    if not isinstance(region, Rectangle):
        raise ParameterError("claims about divergences are judged from a Rectangle")
    if isinstance(claim, Renyi):
        return region.divergence_low(claim.order)
    return max(region.divergence_low(order) / order for order in _ORDERS)


def stated(claim: Claim) -> float:
    """Tell which number the claim states.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.

    Returns
    -------
    float
        Epsilon or rho: `measure` above it contradicts the claim.
    """
    return claim.rho if isinstance(claim, ZeroConcentrated) else claim.epsilon


def contradicts(claim: Claim, region: Evidence) -> bool:
    """Tell whether evidence contradicts a claim.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.
    region : Rectangle or JointTest
        Evidence.

    Returns
    -------
    bool
        True if it does, with the error of the region.
    """
    if isinstance(region, JointTest) and isinstance(claim, Guarantee):
        return region.rejects(claim.epsilon, claim.delta)
    return measure(claim, region) > stated(claim)


def evidence(claim: Claim, counts: Counts, alpha: float, weight: float | None) -> Evidence:
    """Region of confidence for one event.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.
    counts : Counts
        Of an event chosen without these samples.
    alpha : float
        Probability of any wrong statement; in (0, 1).
    weight : float or None
        Weight of the joint test; None for the rectangle. Chosen without these samples.

    Returns
    -------
    Rectangle or JointTest
        The region.
    """
    if weight is None or not isinstance(claim, Guarantee):
        return Rectangle.of(counts, alpha)
    return JointTest(counts=counts, weight=weight, alpha=alpha)


def levels_in_words(claim: Claim) -> str:
    """Words for the numbers of a claim.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.

    Returns
    -------
    str
        Such as ``"(epsilon = 1, delta = 0)"``.
    """
    if isinstance(claim, ZeroConcentrated):
        return f"zCDP with rho = {shown_above(claim.rho)}"
    if isinstance(claim, Renyi):
        return f"Renyi divergence {shown_above(claim.epsilon)} of order {claim.order:g}"
    gamma = f", gamma = {shown_above(claim.gamma)}" if claim.gamma else ""
    return f"(epsilon = {shown_above(claim.epsilon)}, delta = {shown_above(claim.delta)}{gamma})"


def in_words(claim: Claim, relation: Relation) -> str:
    """Words for a claim, and for the neighbours on which it was judged.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.
    relation : {"replace-one", "add-remove", "answers"}
        How the inputs of the audit may differ.

    Returns
    -------
    str
        Such as ``"(epsilon = 1, delta = 0) for replace-one neighbours"``.
    """
    whom = (
        "for neighbours that are query answers, all of which may move by at most 1"
        if relation == "answers"
        else f"for {relation} neighbours"
    )
    return f"{levels_in_words(claim)} {whom}"
