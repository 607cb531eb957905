"""Choosing an event on the selection split: among scores, directions and thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._bounds import Rectangle
from hushed.auditing._claims import Claim, measure
from hushed.auditing._events import Event, Pick
from hushed.auditing._histograms import Histograms
from hushed.auditing._leaning import leaned
from hushed.auditing._scores import Score
from hushed.guarantee import Guarantee

__all__ = ["best_pick"]

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]
Merit = tuple[float, float, float]

_LARGEST_EXPONENT = 700.0
_THRESHOLDS = 300
_PLAUSIBLE = 2.0
_DOUBT = 2.0  # how much of the scatter of the selection split counts against an event
_HALVED = 1_000  # runs of the selection split from which on it can be halved
_NEARLY_ALL = 0.95  # an event as likely as this is no event unless it shows something
_MEDIAN_OF_NONE = math.log(2)  # hits at which none is seen half of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """What the event is to show on the final split."""

    claim: Claim
    final: int
    alpha: float

    def samples(self, selection: int, doubt: float) -> float:
        """Size of a final split that would be as sure as both splits together."""
        return 1 / (1 / self.final + doubt / selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A threshold and what the samples say of it."""

    cut: float
    bound: float
    merit: Merit
    shares: tuple[float, float]


def best_pick(
    scores: Iterable[Score],
    first: Floats,
    second: Floats,
    *,
    claim: Claim,
    final: int,
    alpha: float,
    directions: tuple[bool, ...] = (True, False),
    last: bool = False,
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
    last : bool, default False
        Whether the next runs are those of the final split. Then what a score offers is judged on
        samples on which it was not chosen, if there are 1,000 or more, and histograms are leaned
        on where counts are few; see `hushed.auditing._leaning.leaned`.

    Returns
    -------
    Pick
        The best. Bounds are taken as if from ``1 / (1/final + 2/selection)`` samples, since
        the best of many events was lucky on the selection split.
    """
    best: Pick | None = None
    goal = _Goal(claim=claim, final=final, alpha=alpha)
    check = last and min(len(first), len(second)) >= _HALVED
    for score in scores:
        lean = last and isinstance(score, Histograms)
        one, other = score.of(first), score.of(second)
        for likelier in directions:
            sides = (one, other) if likelier else (-other, -one)
            choice = (_checked if check else _whole)(sides, goal, lean=lean)
            if best is None or choice.merit > best.merit:
                cut = choice.cut if likelier else -choice.cut
                best = Pick(
                    event=Event(score=score, threshold=cut, first=likelier),
                    predicted=choice.bound,
                    merit=choice.merit,
                    share=choice.shares[0],
                    other_share=choice.shares[1],
                )
    if best is None:
        raise ValueError("no score was given")
    return best


def _checked(sides: Sides, goal: _Goal, *, lean: bool) -> _Choice:
    """Best threshold; its merit is what thresholds of either half show on the other half.

    So the luckiest of many scores does not win: luck on one half is none on the other.
    """
    halves = [_sorted(sides, start, 2) for start in (0, 1)]
    merits = [
        _judged(there, _chosen(here, goal, lean=lean).cut, goal)
        for here, there in (halves, halves[::-1])
    ]
    rank, bound, margin = (sum(each) / 2 for each in zip(*merits, strict=True))
    return replace(_whole(sides, goal, lean=lean), merit=(rank, bound, margin))


def _whole(sides: Sides, goal: _Goal, *, lean: bool) -> _Choice:
    """Best threshold on all samples."""
    return _chosen(_sorted(sides), goal, lean=lean)


def _sorted(sides: Sides, start: int = 0, step: int = 1) -> Sides:
    return np.sort(sides[0][start::step]), np.sort(sides[1][start::step])


def _chosen(sides: Sides, goal: _Goal, *, lean: bool) -> _Choice:
    """Best threshold on sorted scores."""
    cuts = _thresholds(*sides)
    shares = _shares(sides, cuts)
    rarer = leaned(*sides, cuts, shares) if lean else shares[1]
    samples = goal.samples(min(map(len, sides)), _DOUBT)
    merits, bounds = _merits(shares, rarer, goal, samples)
    at = max(range(len(cuts)), key=merits.__getitem__)
    return _Choice(
        cut=float(cuts[at]),
        bound=max(0.0, bounds[at]),
        merit=merits[at],
        shares=(float(shares[0][at]), float(shares[1][at])),
    )


def _judged(sides: Sides, cut: float, goal: _Goal) -> Merit:
    """Merit of a threshold that was chosen on other samples, of which there are as many again."""
    shares = _shares(sides, np.array([cut]))
    samples = goal.samples(2 * min(map(len, sides)), 1.0)
    return _merits(shares, shares[1], goal, samples)[0][0]


def _shares(sides: Sides, cuts: Floats) -> Sides:
    one, other = (1 - np.searchsorted(each, cuts) / len(each) for each in sides)
    return one, other


def _merits(
    shares: Sides, rarer: Floats, goal: _Goal, samples: float
) -> tuple[list[Merit], list[float]]:
    """Merits and bounds of several thresholds."""
    lows = _interpolated(shares[0] * samples, samples, goal.alpha / 2).tolist()
    highs = (1 - _interpolated((1 - shares[1]) * samples, samples, goal.alpha / 2)).tolist()
    regions = [Rectangle(low=low, other_high=high) for low, high in zip(lows, highs, strict=True)]
    guides = _guides(goal.claim, shares[0], rarer, samples, goal.alpha)
    bounds = [measure(goal.claim, each) for each in regions] if guides is None else guides.tolist()
    at_cuts = zip(shares[0].tolist(), shares[1].tolist(), strict=True)
    return [
        _merit(goal.claim, region, bound, at_cut, samples)
        for region, bound, at_cut in zip(regions, bounds, at_cuts, strict=True)
    ], bounds


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
