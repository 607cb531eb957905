"""Fixed samples: train, select, and a final split that is touched once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._bounds import Counts, Evidence, Rectangle, share_above, tail
from hushed.auditing._claims import Claim, contradicts, evidence, levels_in_words, measure, stated
from hushed.auditing._events import Pick
from hushed.auditing._pairs import Pair
from hushed.auditing._runs import Runs
from hushed.auditing._scores import Effort
from hushed.auditing._search import Search
from hushed.divergences import DeltaEstimate, estimate_delta
from hushed.errors import TooFewSamples
from hushed.guarantee import Guarantee

__all__ = [
    "Finding",
    "Plan",
    "certify",
    "detectable",
    "estimated",
    "find",
    "plan_for",
    "weight_of",
]

Floats = NDArray[np.float64]

_ROUND, _SEARCH, _REFINE, _FINALISTS = 0.12, 0.48, 0.16, 2  # of all runs: a round, all rounds
_ONE_PAIR = 0.3
_LEAST = 20
_BINS = 48
_CURVE = 41
_CAUGHT = 0.95
_LARGEST_WEIGHT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the runs on each table are spent.

    Parameters
    ----------
    rounds : tuple of int
        Runs for each pair in each round of the search, half to train and half to select. After
        a round the better half of the pairs stays, with all runs made so far.
    refine : int
        More runs for each finalist, half and half.
    final : int
        Runs of the final split, on one pair.
    """

    rounds: tuple[int, ...]
    refine: int
    final: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """The pair and event that were chosen, with their counts on the final split.

    Parameters
    ----------
    pair : Pair
        The pair.
    pick : Pick
        The event, as it was chosen.
    counts : Counts
        Counts on the final split.
    region : Rectangle or JointTest
        What the counts certify.
    bins : ndarray of int, shape (2, bins)
        Final counts by score, the likelier table first.
    """

    pair: Pair
    pick: Pick
    counts: Counts
    region: Evidence
    bins: NDArray[np.int64]


def plan_for(samples: int, pairs: int, claim: Claim, alpha: float) -> Plan:
    """Divide the samples, or say that they are too few.

    Parameters
    ----------
    samples : int
        Runs per table, all in all.
    pairs : int
        Pairs to try.
    claim : Guarantee, ZeroConcentrated or Renyi
        What is to be contradicted.
    alpha : float
        Error of the final bound.

    Returns
    -------
    Plan
        The division.

    Raises
    ------
    TooFewSamples
        If the clearest violation, always on one table and never on the other, would not show.
    """
    plan = _divided(samples, pairs)
    if _tells(plan, claim, alpha):
        return plan
    low, high = samples, max(2 * samples, 64)
    while not _tells(_divided(high, pairs), claim, alpha):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = _tells(_divided(middle, pairs), claim, alpha)
        low, high = (low, middle) if enough else (middle, high)
    raise TooFewSamples(given=samples, needed=high, claim=levels_in_words(claim))


def _divided(samples: int, pairs: int) -> Plan:
    if pairs == 1:
        refine = int(_ONE_PAIR * samples)
        return Plan(rounds=(), refine=refine, final=samples - refine)
    left = [pairs]
    while left[-1] > _FINALISTS:
        left.append(_kept(left[-1]))
    *searched, kept = left
    each = min(_ROUND, _SEARCH / max(1, len(searched))) * samples
    rounds = tuple(int(each / alive) for alive in searched)
    spent = sum(size * alive for size, alive in zip(rounds, searched, strict=True))
    refine = int(_REFINE * samples / kept)
    return Plan(rounds=rounds, refine=refine, final=samples - spent - refine * kept)


def _kept(pairs: int) -> int:
    return max(_FINALISTS, (pairs + 1) // 2)


def _tells(plan: Plan, claim: Claim, alpha: float) -> bool:
    if plan.refine < 2 * _LEAST or min(plan.rounds, default=_LEAST) < _LEAST or plan.final < 1:
        return False
    clearest = Counts(hits=plan.final, samples=plan.final, other_hits=0, other_samples=plan.final)
    return measure(claim, Rectangle.of(clearest, alpha)) > stated(claim)


def find(runs: Runs, pairs: list[Pair], plan: Plan, claim: Claim, alpha: float) -> Finding:
    """Choose pair, direction and event on the first splits, and count on the final one.

    Parameters
    ----------
    runs : Runs
        The mechanism.
    pairs : list of Pair
        Pairs to try.
    plan : Plan
        How the runs are spent.
    claim : Guarantee, ZeroConcentrated or Renyi
        What is to be contradicted.
    alpha : float
        Error of the final bound.

    Returns
    -------
    Finding
        The evidence.
    """
    goal = claim, plan.final, alpha
    left = [Search(pair=pair) for pair in pairs]
    spared = 0
    for number, size in enumerate(plan.rounds, start=1):
        merits = []
        for search in left:
            spared += size - search.grow(runs, size, f"round {number}", alive=len(left))
            pick, _ = search.choose(runs, goal, effort="quick")
            runs.tell(
                f"search, round {number}: {search.pair.name}, bound expected {pick.predicted:.4g}"
            )
            merits.append(pick.merit)
        order = sorted(range(len(left)), key=lambda at: merits[at], reverse=True)
        left = [left[at] for at in order[: _kept(len(left))]]
    best: tuple[Pick, Floats, Pair] | None = None
    for number, search in enumerate(left):
        effort: Effort = "bins" if number else "trees"  # trees take long: the best pair's alone
        spared += plan.refine - search.grow(runs, plan.refine, "refine", alive=len(left))
        pick, scores = search.choose(runs, goal, effort=effort)
        runs.tell(f"refine: {search.pair.name}, bound expected {pick.predicted:.4g}")
        if best is None or pick.merit > best[0].merit:
            best = pick, scores, search.pair
    if best is None:
        raise ValueError("no pair was given")
    return certify(runs, best, plan.final + spared, claim, alpha)


def certify(
    runs: Runs, chosen: tuple[Pick, Floats, Pair], final: int, claim: Claim, alpha: float
) -> Finding:
    """Count the chosen event on fresh runs and bound what it shows.

    Parameters
    ----------
    runs : Runs
        The mechanism.
    chosen : (Pick, ndarray, Pair)
        Event, signed scores to make bins from, and pair; all from other runs.
    final : int
        Runs on each table.
    claim : Guarantee, ZeroConcentrated or Renyi
        What is to be contradicted.
    alpha : float
        Error of the bound.

    Returns
    -------
    Finding
        The evidence. The bins serve estimates only.
    """
    pick, scores, pair = chosen
    threshold = pick.event.threshold if pick.event.first else -pick.event.threshold
    quantiles = np.quantile(scores, np.arange(1, _BINS) / _BINS)
    edges = np.unique(np.append(quantiles, threshold))
    bins = runs.count(pair, pick.event, edges, final, "final")
    if not pick.event.first:
        bins = bins[::-1]
    inside = bins[:, np.searchsorted(edges, threshold) + 1 :].sum(axis=1)
    made = bins.sum(axis=1)
    counts = Counts(
        hits=int(inside[0]),
        samples=int(made[0]),
        other_hits=int(inside[1]),
        other_samples=int(made[1]),
    )
    region = evidence(claim, counts, alpha, weight_of(claim, pick))
    return Finding(pair=pair, pick=pick, counts=counts, region=region, bins=bins)


def weight_of(claim: Claim, pick: Pick) -> float | None:
    """Weight of the joint test, from the selection split.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.
    pick : Pick
        The event.

    Returns
    -------
    float or None
        exp of the epsilon expected; None for claims about divergences, judged by rectangles.
    """
    if not isinstance(claim, Guarantee):
        return None
    return math.exp(min(pick.predicted, _LARGEST_WEIGHT))


def estimated(finding: Finding, claim: Claim) -> DeltaEstimate:
    """Point estimates of the delta curve in the direction of the event.

    Parameters
    ----------
    finding : Finding
        Its bins are the alphabet.
    claim : Guarantee, ZeroConcentrated or Renyi
        Sets how far the curve goes.

    Returns
    -------
    DeltaEstimate
        Plug-in estimates on at most 49 outcomes.
    """
    at = claim.epsilon if isinstance(claim, Guarantee) else 1.0
    end = min(100.0, max(2 * at, 1.5 * finding.pick.predicted, 0.1))
    grid = np.unique(np.append(np.linspace(0.0, end, _CURVE), at))
    ahead, behind = finding.bins
    return estimate_delta(behind, ahead, grid, method="plug-in")


def detectable(
    claim: Claim, other_share: float, samples: int, alpha: float, weight: float | None
) -> float:
    """Smallest violation that would have been caught with probability 0.95.

    Parameters
    ----------
    claim : Guarantee, ZeroConcentrated or Renyi
        The claim.
    other_share : float
        Probability of the event on the table where it is rarer.
    samples : int
        Runs on each table.
    alpha : float
        Error of the bound.
    weight : float or None
        Weight of the joint test; None for the rectangle.

    Returns
    -------
    float
        Epsilon at the claimed delta, rho, or the divergence; infinite if nothing would do.
        Rounded up: both counts are taken at their unlucky 2.5 % points.
    """
    from scipy import stats  # noqa: PLC0415

    rare = min(1.0, max(other_share, 1 / samples))
    unlucky = (1 - _CAUGHT) / 2
    most = int(stats.binom.ppf(1 - unlucky, samples, rare))

    def caught(hits: int) -> bool:
        counts = Counts(hits=hits, samples=samples, other_hits=most, other_samples=samples)
        return contradicts(claim, evidence(claim, counts, alpha, weight))

    if not caught(samples):
        return math.inf
    low, high = most, samples
    while high - low > max(1, high // 10_000):
        middle = (low + high) // 2
        low, high = (low, middle) if caught(middle) else (middle, high)
    likely = share_above(high - 1, samples, unlucky)
    while float(tail(np.array([high]), samples, likely)[0]) < 1 - unlucky and likely < 1:
        likely = min(1.0, likely * (1 + 1e-9))
    if isinstance(claim, Guarantee):
        return math.log((likely - claim.delta) / rare) if likely > claim.delta else math.inf
    return measure(claim, Rectangle(low=likely, other_high=rare))
