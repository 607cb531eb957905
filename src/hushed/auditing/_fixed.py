"""Fixed samples: train, select, and a final split that is touched once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._bounds import (
    Counts,
    Evidence,
    Rectangle,
    binomial_tail,
    clopper_pearson_high,
)
from hushed.auditing._goal import AuditedClaim, Goal
from hushed.auditing._pairs import Pair
from hushed.auditing._runs import Runs
from hushed.auditing._scores import Effort
from hushed.auditing._search import Search, find_outdone
from hushed.auditing._selection import SelectedEvent
from hushed.errors import ParameterError, TooFewSamples

Floats = NDArray[np.float64]

_ROUND, _SEARCH, _REFINE, _FINALISTS = 0.12, 0.48, 0.16, 2  # of all runs: a round, all rounds
_ONE_PAIR = 0.3
_LEAST = 20
_BINS = 48
_CAUGHT = 0.95
_SMALLEST = 1e-11  # error at which the joint test, rounded to the safe side, still rejects


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the runs on each table are spent.

    `rounds` are the runs for each pair in each round of the search, half to train and half to
    select; after a round the better half of the pairs stays, with all runs made so far. `refine`
    are more runs for each finalist, half and half; `final` those of the final split, on one pair.
    """

    rounds: tuple[int, ...]
    refine: int
    final: int

    def count_all(self, pairs: int) -> int:
        """Count the runs on each table in all, for this many pairs."""
        searched = 0
        for size in self.rounds:
            searched, pairs = searched + size * pairs, _halve(pairs)
        return searched + self.refine * pairs + self.final


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """The pair and event that were chosen, with what the final split says of them.

    `bins` are its counts by score, of shape (2, bins), the likelier table first; they serve
    estimates only.
    """

    pair: Pair
    selected: SelectedEvent
    counts: Counts
    region: Evidence
    bins: NDArray[np.int64]


def plan_samples(samples: int, pairs: int, claim: AuditedClaim, alpha: float) -> Plan:
    """Divide the samples, or refuse them if the clearest violation would not show.

    That is an event that always happens on one table and never on the other.
    """
    if alpha < _SMALLEST:
        raise ParameterError(
            f"an audit contradicts nothing at an error of {alpha:.3g}, for its own rounding is of "
            f"that size: ask for a confidence of at most 1 - {_SMALLEST:g}, and with a gamma for "
            f"one of at least {10 * _SMALLEST:g}",
            parameter="confidence",
        )
    plan = _divide_samples(samples, pairs)
    if _can_contradict(plan, claim, alpha):
        return plan
    low, high = samples, max(2 * samples, 64)
    while not _can_contradict(_divide_samples(high, pairs), claim, alpha):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = _can_contradict(_divide_samples(middle, pairs), claim, alpha)
        low, high = (low, middle) if enough else (middle, high)
    raise TooFewSamples(given=samples, needed=high, claim=claim.describe())


def _divide_samples(samples: int, pairs: int) -> Plan:
    if pairs == 1:
        refine = int(_ONE_PAIR * samples)
        return Plan(rounds=(), refine=refine, final=samples - refine)
    left = [pairs]
    while left[-1] > _FINALISTS:
        left.append(_halve(left[-1]))
    *searched, kept = left
    each = min(_ROUND, _SEARCH / max(1, len(searched))) * samples
    rounds = tuple(int(each / alive) for alive in searched)
    spent = sum(size * alive for size, alive in zip(rounds, searched, strict=True))
    refine = int(_REFINE * samples / kept)
    return Plan(rounds=rounds, refine=refine, final=samples - spent - refine * kept)


def _halve(pairs: int) -> int:
    return max(_FINALISTS, (pairs + 1) // 2)


def _can_contradict(plan: Plan, claim: AuditedClaim, alpha: float) -> bool:
    if plan.refine < 2 * _LEAST or min(plan.rounds, default=_LEAST) < _LEAST or plan.final < 1:
        return False
    clearest = Counts(hits=plan.final, samples=plan.final, other_hits=0, other_samples=plan.final)
    return claim.is_contradicted(Rectangle.from_counts(clearest, alpha))


def run_fixed(runs: Runs, pairs: list[Pair], plan: Plan, goal: Goal) -> Finding:
    """Choose pair, direction and event on the first splits, and count on the final one."""
    started = [Search(pair=pair) for pair in pairs]
    searches, spared, outdone = _halve_searches(runs, started, plan, goal)
    best: tuple[SelectedEvent, Floats, Pair] | None = None
    alive = len(searches)
    for number, search in enumerate(searches):
        effort: Effort = "bins" if number else "trees"  # trees take long: the best pair's alone
        spared += plan.refine - search.draw_more(runs, plan.refine, "refine", alive=alive)
        selected, scores = search.choose_event(runs, goal, effort=effort, without=outdone)
        runs.report(
            f"refine: {search.pair.name}, bound expected {selected.predicted:.4g}",
            1 - (plan.final + (alive - 1 - number) * plan.refine) / plan.count_all(len(pairs)),
        )
        if best is None or selected.objective > best[0].objective:
            best = selected, scores, search.pair
    if best is None:
        raise ValueError("no pair was given")
    return _certify(runs, best, plan.final + spared, goal)


def _halve_searches(
    runs: Runs, searches: list[Search], plan: Plan, goal: Goal
) -> tuple[list[Search], int, frozenset[str]]:
    """Successive halving: finalists, runs that found no room in memory, families to leave out."""
    spared, made, every = 0, 0, plan.count_all(len(searches))
    outdone: frozenset[str] = frozenset()
    for number, size in enumerate(plan.rounds, start=1):
        objectives = []
        for search in searches:
            alive = len(searches)
            spared += size - search.draw_more(runs, size, f"round {number}", alive=alive)
            made += size
            selected, _ = search.choose_event(runs, goal, effort="quick", without=outdone)
            runs.report(
                f"search, round {number}: {search.pair.name}, bound expected "
                f"{selected.predicted:.4g}",
                made / every,
            )
            objectives.append(selected.objective)
        order = sorted(range(len(searches)), key=objectives.__getitem__, reverse=True)
        searches = [searches[at] for at in order[: _halve(len(searches))]]
        outdone |= find_outdone(searches)
    return searches, spared, outdone


def _certify(
    runs: Runs, chosen: tuple[SelectedEvent, Floats, Pair], final: int, goal: Goal
) -> Finding:
    """Count the chosen event on fresh runs and bound what it shows.

    The signed scores, from which bins are made, are of other runs, as is the event.
    """
    selected, scores, pair = chosen
    event = selected.event
    threshold = event.threshold if event.first else -event.threshold
    quantiles = np.quantile(scores, np.arange(1, _BINS) / _BINS)
    edges = np.unique(np.append(quantiles, threshold))
    bins = runs.count(pair, event, edges, final, "final")
    if not event.first:
        bins = bins[::-1]
    # The threshold is an edge, and a bin holds its lower edge: the event is the bins above it.
    inside = bins[:, np.searchsorted(edges, threshold) + 1 :].sum(axis=1)
    made = bins.sum(axis=1)
    counts = Counts(
        hits=int(inside[0]),
        samples=int(made[0]),
        other_hits=int(inside[1]),
        other_samples=int(made[1]),
    )
    region = goal.claim.test(counts, goal.alpha, goal.claim.weigh(selected.predicted))
    return Finding(pair=pair, selected=selected, counts=counts, region=region, bins=bins)


def find_minimum_detectable(finding: Finding, goal: Goal) -> float:
    """Smallest violation that this event would have shown; see `compute_minimum_detectable`."""
    counts, weight = finding.counts, goal.claim.weigh(finding.selected.predicted)
    rarer, samples = counts.other_share, counts.samples
    return compute_minimum_detectable(goal.claim, rarer, samples, goal.alpha, weight)


def compute_minimum_detectable(
    claim: AuditedClaim, other_share: float, samples: int, alpha: float, weight: float | None
) -> float:
    """Compute the smallest violation that would have been caught with probability 0.95.

    Epsilon at the claimed delta, rho, or the divergence; infinite if no value is enough. Rounded
    up: both counts are taken at their unlucky 2.5 % points. `other_share` is the probability of the
    event on the table where it is rarer; `weight` that of the joint test, None for the rectangle.
    """
    from scipy import stats  # noqa: PLC0415

    rare = min(1.0, max(other_share, 1 / samples))
    unlucky = (1 - _CAUGHT) / 2
    most = int(stats.binom.ppf(1 - unlucky, samples, rare))

    def is_caught(hits: int) -> bool:
        counts = Counts(hits=hits, samples=samples, other_hits=most, other_samples=samples)
        return claim.is_contradicted(claim.test(counts, alpha, weight))

    if not is_caught(samples):
        return math.inf
    low, high = most, samples
    while high - low > max(1, high // 10_000):
        middle = (low + high) // 2
        low, high = (low, middle) if is_caught(middle) else (middle, high)
    # The probability at which a count of `high` or more is all but sure.
    likely = clopper_pearson_high(high - 1, samples, unlucky)
    while float(binomial_tail(np.array([high]), samples, likely)[0]) < 1 - unlucky and likely < 1:
        likely = min(1.0, likely * (1 + 1e-9))
    return claim.measure_coins(likely, rare)
