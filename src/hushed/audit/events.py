"""Events: which outputs to count, chosen on the selection split alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.audit.bounds import Rectangle
from hushed.audit.claims import Claim, measure, stated
from hushed.audit.scores import Score
from hushed.guarantee import Guarantee

__all__ = ["Event", "Pick", "best_pick"]

Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 700.0
_THRESHOLDS = 300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """A set of outputs: those whose score passes a threshold.

    Parameters
    ----------
    score : Score
        Fitted on training samples.
    threshold : float
        Outputs with this score are inside: ties are never split.
    first : bool
        True if the event is the likelier one on the first table (score at least the threshold),
        False if on its neighbour (score at most the threshold).
    """

    score: Score
    threshold: float
    first: bool

    def holds(self, encoded: Floats) -> NDArray[np.bool_]:
        """Tell which outputs are inside.

        Parameters
        ----------
        encoded : ndarray, shape (runs, columns)
            Encoded outputs.

        Returns
        -------
        ndarray of bool, shape (runs,)
            True inside.
        """
        scores = self.score.of(encoded)
        return scores >= self.threshold if self.first else scores <= self.threshold

    def words(self) -> str:
        """Words for the event.

        Returns
        -------
        str
            Such as ``"the output lies in [-inf, 0.5)"``.
        """
        return self.score.words(self.threshold, first=self.first)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pick:
    """An event with what the selection split says of it.

    Parameters
    ----------
    event : Event
        The event.
    predicted : float
        Bound that the final split can be expected to certify.
    merit : tuple of float
        What picks are ordered by.
    share, other_share : float
        Shares of the outputs inside on the likelier table and on the other one, on the selection
        split: estimates, biased by the selection.
    """

    event: Event
    predicted: float
    merit: tuple[float, float]
    share: float
    other_share: float


def best_pick(
    scores: Iterable[Score],
    first: Floats,
    second: Floats,
    *,
    claim: Claim,
    final: int,
    alpha: float,
    directions: tuple[bool, ...] = (True, False),
) -> Pick:
    """Choose score, direction and threshold by the bound that the final split should give.

    Parameters
    ----------
    scores : iterable of Score
        Fitted on other samples.
    first, second : ndarray, shape (runs, columns)
        Selection split on the two tables.
    claim : Guarantee, ZeroConcentrated or Renyi
        What is to be contradicted.
    final : int
        Samples per table of the final split.
    alpha : float
        Error of its bound.
    directions : tuple of bool, default (True, False)
        Tables on which the event may be the likelier one: True for the first.

    Returns
    -------
    Pick
        The best. Bounds are taken as if from ``1 / (1/final + 1/selection)`` samples, so that
        the scatter of the selection split counts as well.
    """
    best: Pick | None = None
    for score in scores:
        one, other = score.of(first), score.of(second)
        for likelier in directions:
            ahead, behind = (one, other) if likelier else (-other, -one)
            pick = _best_threshold(score, ahead, behind, likelier, (claim, final, alpha))
            if best is None or pick.merit > best.merit:
                best = pick
    if best is None:
        raise ValueError("no score was given")
    return best


def _best_threshold(
    score: Score, ahead: Floats, behind: Floats, likelier: bool, goal: tuple[Claim, int, float]
) -> Pick:
    claim, final, alpha = goal
    ahead, behind = np.sort(ahead), np.sort(behind)
    cuts = _thresholds(ahead, behind)
    shares = [1 - np.searchsorted(each, cuts) / len(each) for each in (ahead, behind)]
    effective = 1 / (1 / final + 1 / min(len(ahead), len(behind)))
    best = (-math.inf, -math.inf), 0, 0.0
    lows = _interpolated(shares[0] * effective, effective, alpha / 2)
    highs = 1 - _interpolated((1 - shares[1]) * effective, effective, alpha / 2)
    for i, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        region = Rectangle(low=low, other_high=high)
        bound = measure(claim, region)
        merit = (_worth(claim, bound), _margin(claim, region))
        if merit > best[0]:
            best = merit, i, bound
    (merit, at, bound) = best
    cut = float(cuts[at])
    return Pick(
        event=Event(score=score, threshold=cut if likelier else -cut, first=likelier),
        predicted=bound,
        merit=merit,
        share=float(shares[0][at]),
        other_share=float(shares[1][at]),
    )


def _worth(claim: Claim, bound: float) -> float:
    """Bound, or 0 if it leaves a claim with delta standing: then the margin decides.

    Otherwise an event that shows a little epsilon would hide the one by which delta leaks.
    """
    if isinstance(claim, Guarantee) and claim.delta and bound <= claim.epsilon:
        return 0.0
    return bound


def _interpolated(hits: Floats, samples: float, alpha: float) -> Floats:
    """Lower bounds of Clopper and Pearson for any hits, fractions included; a guide only."""
    from scipy import special  # noqa: PLC0415

    inside = np.maximum(hits, 1e-9)
    return np.where(hits <= 0, 0.0, special.betaincinv(inside, samples - hits + 1, alpha))


def _margin(claim: Claim, region: Rectangle) -> float:
    """How far the bounds are from contradicting the claim; orders events that show nothing."""
    if isinstance(claim, Guarantee):
        weight = math.exp(min(stated(claim), _LARGEST_EXPONENT))
        return region.low - claim.delta - weight * region.other_high
    return region.low - region.other_high


def _thresholds(ahead: Floats, behind: Floats) -> Floats:
    """Scores to cut at: fine where few outputs lie above, and in the middle."""
    count = len(ahead)
    ranks = np.unique(
        np.concatenate(
            [np.geomspace(1, count, _THRESHOLDS // 2), np.linspace(1, count, _THRESHOLDS // 2)]
        ).astype(np.int64)
    )
    cuts = np.concatenate([ahead[count - ranks], behind[-np.minimum(ranks[:20], len(behind))]])
    return np.unique(cuts)
