"""Events: which outputs to count, chosen on the selection split alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.audit.bounds import Rectangle
from hushed.audit.claims import Claim, measure
from hushed.audit.histograms import Histograms
from hushed.audit.leaning import leaned
from hushed.audit.scores import Score
from hushed.guarantee import Guarantee

__all__ = ["Event", "Pick", "best_pick"]

Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 700.0
_THRESHOLDS = 300
_PLAUSIBLE = 2.0
_DOUBT = 2.0  # how much of the scatter of the selection split counts against an event
_NEARLY_ALL = 0.95  # an event as likely as this is no event unless it shows something
_MEDIAN_OF_NONE = math.log(2)  # hits at which none is seen half of the time


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
        What picks are ordered by: rank, bound or excess, margin.
    share, other_share : float
        Shares of the outputs inside on the likelier table and on the other one, on the selection
        split: estimates, biased by the selection.
    """

    event: Event
    predicted: float
    merit: tuple[float, float, float]
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
    lean: bool = False,
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
    lean : bool, default False
        Whether to lean on histograms where counts are few; see `hushed.audit.leaning.leaned`.

    Returns
    -------
    Pick
        The best. Bounds are taken as if from ``1 / (1/final + 2/selection)`` samples, since
        the best of many events was lucky on the selection split.
    """
    best: Pick | None = None
    goal = claim, final, alpha
    for score in scores:
        leaning = lean and isinstance(score, Histograms)
        one, other = score.of(first), score.of(second)
        for likelier in directions:
            ahead, behind = (one, other) if likelier else (-other, -one)
            pick = _best_threshold(score, (ahead, behind), likelier, goal, lean=leaning)
            if best is None or pick.merit > best.merit:
                best = pick
    if best is None:
        raise ValueError("no score was given")
    return best


def _best_threshold(
    score: Score,
    sides: tuple[Floats, Floats],
    likelier: bool,
    goal: tuple[Claim, int, float],
    *,
    lean: bool,
) -> Pick:
    claim, final, alpha = goal
    ahead, behind = (np.sort(side) for side in sides)
    cuts = _thresholds(ahead, behind)
    shares = tuple(1 - np.searchsorted(each, cuts) / len(each) for each in (ahead, behind))
    rarer = leaned(ahead, behind, cuts, (shares[0], shares[1])) if lean else shares[1]
    effective = 1 / (1 / final + _DOUBT / min(len(ahead), len(behind)))
    best = (-math.inf, -math.inf, -math.inf), 0, 0.0
    lows = _interpolated(shares[0] * effective, effective, alpha / 2)
    highs = 1 - _interpolated((1 - shares[1]) * effective, effective, alpha / 2)
    guides = _guides(claim, shares[0], rarer, effective, alpha)
    for i, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
        region = Rectangle(low=low, other_high=high)
        guide = measure(claim, region) if guides is None else float(guides[i])
        at_cut = float(shares[0][i]), float(shares[1][i])
        merit = _merit(claim, region, guide, at_cut, effective)
        if merit > best[0]:
            best = merit, i, max(0.0, guide)
    (merit, at, bound) = best
    cut = float(cuts[at])
    return Pick(
        event=Event(score=score, threshold=cut if likelier else -cut, first=likelier),
        predicted=bound,
        merit=merit,
        share=float(shares[0][at]),
        other_share=float(shares[1][at]),
    )


def _merit(
    claim: Claim, region: Rectangle, bound: float, shares: tuple[float, float], samples: float
) -> tuple[float, float, float]:
    """Order events: those that should contradict the claim, then those that might, then by bound.

    The middle rank is for claims with delta, where the event of the largest epsilon is not the
    one by which delta leaks. It is ordered by the excess over the claim in standard errors.
    """
    margin = region.low - region.other_high
    if not isinstance(claim, Guarantee):
        return 0.0, bound, margin
    weight = math.exp(min(claim.epsilon, _LARGEST_EXPONENT))
    margin = region.low - claim.delta - weight * region.other_high
    if claim.delta and bound <= claim.epsilon:
        one, other = (min(1.0, max(share, 1 / samples)) for share in shares)
        variance = one * (1 - one) + weight**2 * other * (1 - other)
        excess = (shares[0] - claim.delta - weight * shares[1]) / math.sqrt(
            max(variance, 1 / samples) / samples
        )
        if excess > _PLAUSIBLE:
            return 1.0, excess, margin
        return 0.0, bound, margin
    return 2.0, bound, margin


def _guides(
    claim: Claim, share: Floats, other: Floats, samples: float, alpha: float
) -> Floats | None:
    """Bounds on epsilon that the joint test should give; negative where the event says nothing.

    The distances of both Clopper-Pearson bounds are added as independent errors are, in squares;
    the test of both probabilities together comes close to that, the rectangle of the bounds is
    up to 1.7 times as far.
    """
    if not isinstance(claim, Guarantee):
        return None
    rare = np.maximum(other, _MEDIAN_OF_NONE / samples)
    low = _interpolated(share * samples, samples, alpha)
    high = np.maximum(rare, 1 - _interpolated((1 - other) * samples, samples, alpha))
    with np.errstate(divide="ignore", invalid="ignore"):
        here = np.log(share - claim.delta) - np.log(rare)
        nearer = np.log(share - claim.delta) - np.log(low - claim.delta)
        apart = np.sqrt(nearer**2 + (np.log(high) - np.log(rare)) ** 2)
        bounds = np.where(low > claim.delta, here - apart, -math.inf)
    return np.where((bounds <= 0) & (share > _NEARLY_ALL), -math.inf, bounds)


def _interpolated(hits: Floats, samples: float, alpha: float) -> Floats:
    """Lower bounds of Clopper and Pearson for any hits, fractions included; a guide only."""
    from scipy import special  # noqa: PLC0415

    inside = np.maximum(hits, 1e-9)
    return np.where(hits <= 0, 0.0, special.betaincinv(inside, samples - hits + 1, alpha))


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
