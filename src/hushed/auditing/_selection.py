"""Selection of the event to judge: among scores, directions and thresholds, never on final runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._goal import Goal, Objective, Sides
from hushed.auditing._scores import (
    Event,
    Family,
    Histograms,
    fit_slope,
)

Floats = NDArray[np.float64]

_THRESHOLDS = 300
_DOUBT = 2.0  # how much of the scatter of the selection split counts against an event
_HALVED = 1_000  # runs of the selection split from which on it can be halved
_TRUST = 0.3  # relative error expected of a score that is on scale
_LUCK = 4.0  # standard errors from which on counts overrule the score
_GROUPS = 2_000  # of scores, for a slope


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectedEvent:
    """An event with what the selection split says of it.

    `predicted` is the bound that the final split can be expected to certify; `objective` is what
    the event was chosen by. The shares of outputs inside, on the likelier table and on the other
    one, are estimates, biased by the selection. `scored` are the scores of the selection split,
    `reach` the largest bound that each family of scores may be expected to give.
    """

    event: Event
    predicted: float
    objective: Objective
    share: float
    other_share: float
    scored: Sides
    reach: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Threshold:
    """A threshold and what the samples say of it."""

    cut: float
    bound: float
    objective: Objective
    shares: tuple[float, float]


def select_event(
    families: Iterable[Family],
    first: Floats,
    second: Floats,
    goal: Goal,
    *,
    directions: tuple[bool, ...] = (True, False),
    last: bool = False,
) -> SelectedEvent:
    """Choose score, direction and threshold by the bound that the final split should give.

    The scores were fitted on other samples than these. `directions` are the tables on which the
    event may be the likelier one, True for the first. `last` says that the next runs are those of
    the final split: then what a score offers is judged on samples on which it was not chosen, if
    there are 1,000 or more, and shares cut out by histograms are shrunk where counts are few
    (`shrink_shares`).

    Notes
    -----
    Bounds are taken as if from ``1 / (1/final + 2/selection)`` samples, since the best of many
    events was lucky on the selection split.
    """
    best: SelectedEvent | None = None
    parts = 2 if last and min(len(first), len(second)) >= _HALVED else 1
    reach: dict[str, float] = {}
    for family in families:
        every = zip(family.scores, family.evaluate(first), family.evaluate(second), strict=True)
        for score, *scored in every:
            shrink = last and isinstance(score, Histograms)
            sides = scored[0], scored[1]
            ordered = _sort_parts(sides, parts)
            for likelier in directions:
                turned = ordered if likelier else [_swap_sides(each) for each in ordered]
                found = _choose_checked(turned, goal, shrink=shrink)
                reach[family.name] = max(reach.get(family.name, 0.0), found.bound)
                if best is None or found.objective > best.objective:
                    cut = found.cut if likelier else -found.cut
                    best = SelectedEvent(
                        event=Event(score=score, threshold=cut, first=likelier),
                        predicted=found.bound,
                        objective=found.objective,
                        share=found.shares[0],
                        other_share=found.shares[1],
                        scored=sides,
                        reach=reach,
                    )
    if best is None:
        raise ValueError("no score was given")
    return best


def _sort_parts(scored: Sides, parts: int) -> list[Sides]:
    """Sorted scores of both tables: all of them, then those of each half if there are two parts."""
    if parts == 1:
        return [(np.sort(scored[0]), np.sort(scored[1]))]
    halves = [(np.sort(scored[0][start::2]), np.sort(scored[1][start::2])) for start in (0, 1)]
    # A stable sort only merges what is two sorted runs.
    one, other = (
        np.sort(np.concatenate(each), kind="stable") for each in zip(*halves, strict=True)
    )
    return [(one, other), *halves]


def _swap_sides(sides: Sides) -> Sides:
    """Turn sorted scores round, for an event that is likelier on the second table."""
    return -sides[1][::-1], -sides[0][::-1]


def _choose_checked(ordered: list[Sides], goal: Goal, *, shrink: bool) -> _Threshold:
    """Best threshold on all samples; of halves, what those of either half show on the other half.

    So the luckiest of many scores does not win: luck on one half is none on the other.
    """
    whole, *halves = ordered
    found = _choose_threshold(whole, goal, shrink=shrink)
    if not halves:
        return found
    objectives = [
        _evaluate_threshold(there, _choose_threshold(here, goal, shrink=shrink).cut, goal)
        for here, there in (halves, halves[::-1])
    ]
    rank, bound, margin = (sum(each) / 2 for each in zip(*objectives, strict=True))
    return replace(found, objective=(rank, bound, margin))


def _choose_threshold(sides: Sides, goal: Goal, *, shrink: bool) -> _Threshold:
    """Best threshold on sorted scores."""
    cuts = _list_thresholds(*sides)
    shares = _measure_shares(sides, cuts)
    rarer = shrink_shares(*sides, cuts, shares) if shrink else shares[1]
    samples = goal.discount_samples(min(map(len, sides)), _DOUBT)
    objectives, bounds = goal.claim.rank(shares, rarer, samples, goal.alpha)
    at = max(range(len(cuts)), key=objectives.__getitem__)
    return _Threshold(
        cut=float(cuts[at]),
        bound=max(0.0, bounds[at]),
        objective=objectives[at],
        shares=(float(shares[0][at]), float(shares[1][at])),
    )


def _evaluate_threshold(sides: Sides, cut: float, goal: Goal) -> Objective:
    """Objective of a threshold chosen on other samples, of which there are as many again."""
    shares = _measure_shares(sides, np.array([cut]))
    samples = goal.discount_samples(2 * min(map(len, sides)), 1.0)
    return goal.claim.rank(shares, shares[1], samples, goal.alpha)[0][0]


def _measure_shares(sides: Sides, cuts: Floats) -> Sides:
    one, other = (1 - np.searchsorted(each, cuts) / len(each) for each in sides)
    return one, other


def _list_thresholds(ahead: Floats, behind: Floats) -> Floats:
    """Scores to cut at: fine where few outputs lie above, and in the middle."""
    count = len(ahead)
    ranks = np.unique(
        np.concatenate(
            [np.geomspace(1, count, _THRESHOLDS // 2), np.linspace(1, count, _THRESHOLDS // 2)]
        ).astype(np.int64)
    )
    # The highest scores of the rarer table as well: above one of them it was not seen.
    cuts = np.concatenate([ahead[count - ranks], behind[-np.minimum(ranks[:20], len(behind))]])
    return np.unique(cuts)


def shrink_shares(ahead: Floats, behind: Floats, cuts: Floats, shares: Sides) -> Floats:
    """Shares above cuts on the rarer table, shrunk towards what the score says of the log ratio.

    `ahead` and `behind` are the sorted scores on the likelier table and on the other one, log
    ratios up to a factor; `shares` those of both that reach the cuts.

    Notes
    -----
    Empirical Bayes: the log ratio of the counts is weighed against that of the score as independent
    measurements are; its own scatter decides, and it wins where the two are further apart than
    luck explains. Without this, the best of some thousand events of a weak mechanism is one whose
    counts were lucky. Guides the choice only: the final split bounds what was chosen.
    """
    from scipy import special  # noqa: PLC0415

    count = len(ahead)
    one, other = (np.maximum(each, 0.5 / count) for each in shares)
    seen, said = np.log(one / other), _predict_log_ratios(ahead, behind, cuts)
    scatter = ((1 - one) / one + (1 - other) / other) / count  # variance of the log ratio seen
    # Counts against the score, as a binomial split: z squared, above what luck explains.
    split, both = special.expit(said), count * (one + other)
    luck = _LUCK**2 * both * split * (1 - split) / np.maximum((count * one - both * split) ** 2, 1)
    beyond = (seen - said) ** 2 * np.maximum(0.0, 1 - luck)
    apart = np.maximum((_TRUST * said) ** 2, beyond) + 1e-300  # variance of the log ratio said
    weight = apart / (apart + scatter)
    return np.asarray(one * np.exp(-(weight * seen + (1 - weight) * said)))


def _predict_log_ratios(ahead: Floats, behind: Floats, cuts: Floats) -> Floats:
    """Log ratio of the shares above cuts: the mean of exp(-score) over those of ``ahead``."""
    means, sizes = zip(*map(_group, (ahead, behind)), strict=True)
    nothing = [np.zeros(len(each)) for each in sizes]
    slope = fit_slope(
        np.concatenate([sizes[0], nothing[1]]),
        np.concatenate([nothing[0], sizes[1]]),
        np.concatenate(means),
    )
    at = np.minimum(np.searchsorted(ahead, cuts), len(ahead) - 1)
    likelier = np.cumsum(np.exp(-slope * ahead)[::-1])[::-1]
    return np.asarray(np.log((len(ahead) - at) / likelier[at]))


def _group(ordered: Floats) -> Sides:
    """Means and sizes of groups of neighbours, on which a slope is as good as on the scores."""
    size = -(-len(ordered) // _GROUPS)
    starts = np.arange(0, len(ordered), size)
    sizes = np.diff(starts, append=len(ordered)).astype(np.float64)
    return np.add.reduceat(ordered, starts) / sizes, sizes
