"""Random differential privacy: pairs drawn from a population, a share gamma of which may fail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed import rows as tables
from hushed.auditing._bounds import share_below, tail
from hushed.auditing._fixed import Finding, detectable, find, plan_for, weight_of
from hushed.auditing._pairs import Pair
from hushed.auditing._report import PopulationCount
from hushed.auditing._runs import Runs, stage_seed
from hushed.errors import ParameterError, TooFewPairs
from hushed.guarantee import Guarantee, Neighbours
from hushed.populations import Population, PublicTable

__all__ = ["PopulationFinding", "PopulationPairs", "draw_pairs", "judge"]

_STATEMENTS = 3  # bounds on epsilon, on delta and on the share, each at its part of alpha
_FALSE_ALARM = 10  # a pair may be accused wrongly with alpha, or gamma, over this


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PopulationPairs:
    """Independent pairs of neighbours drawn from a population.

    Parameters
    ----------
    population : Population
        Public source of rows.
    rows : int
        Rows of a table; 1 or more.
    count : int
        Pairs to draw; 1 or more.
    symmetric : bool, default False
        True if the order of the rows has no effect on the law of the outputs, on your word:
        then the last row of each table changes instead of one at a random position.

    Raises
    ------
    ParameterError
        If a number is below 1.
    """

    population: Population
    rows: int
    count: int
    symmetric: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or self.count < 1:
            raise ParameterError(
                f"rows and count must be 1 or more, got {self.rows} and {self.count}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PopulationFinding:
    """What the pairs of a population show together.

    Parameters
    ----------
    count : PopulationCount
        Pairs caught, and how many were needed.
    epsilon_low, delta_low : float
        Certified: more than a share gamma of pairs lose at least this much.
    finding : Finding
        The pair that shows most.
    detectable : float
        Smallest epsilon that its event could have had on that pair and been caught there with
        probability 0.95.
    """

    count: PopulationCount
    epsilon_low: float
    delta_low: float
    finding: Finding
    detectable: float


def draw_pairs(source: PopulationPairs, neighbours: Neighbours, seed: int) -> list[Pair]:
    """Draw the pairs: one table, and a neighbour with one of its rows replaced or taken away.

    The row stands at a random position, drawn from the pair's own stream, as in the sampling of
    a sensitivity; it is the last one if the source is declared symmetric.

    Parameters
    ----------
    source : PopulationPairs
        Population and sizes.
    neighbours : {"replace-one", "add-remove"}
        How the two tables differ.
    seed : int
        Seed of the audit.

    Returns
    -------
    list of Pair
        Independent pairs.

    Raises
    ------
    ParameterError
        If a public table is too small for pairs that share no row.
    """
    pairs: list[Pair] = []
    dealt = _dealt(source, stage_seed(seed, "population", "dealing"))
    for number in range(source.count):
        bits = np.random.SeedSequence(stage_seed(seed, "population", str(number)))
        rng = np.random.Generator(np.random.PCG64DXSM(bits))
        table = dealt[number] if dealt else source.population.draw(rng, source.rows + 1)
        at = source.rows - 1 if source.symmetric else int(rng.integers(source.rows))
        order = np.arange(source.rows)
        if neighbours == "add-remove":
            other, done = np.delete(order, at), "taken away"
        else:
            other, done = np.where(order == at, source.rows, order), "replaced"
        pairs.append(
            Pair(
                rows=tables.take(table, order),
                neighbour=tables.take(table, other),
                name=f"drawn pair {number + 1} (row {at + 1} of {source.rows} {done})",
            )
        )
    return pairs


def _dealt(source: PopulationPairs, seed: int) -> list[Any]:
    """Tables of a public table that share no row, or else they are no independent pairs."""
    population, size = source.population, source.rows + 1
    if not isinstance(population, PublicTable) or population.promise == "table":
        return []
    known = len(population.frame)
    if population.promise == "given-the-rest" or known < source.count * size:
        raise ParameterError(
            f"{source.count} independent pairs of tables of {source.rows} rows take "
            f"{source.count * size} public rows with promise='population'; the public table has "
            f"{known} with promise={population.promise!r}. Give more rows, or say promise='table' "
            "for pairs drawn with replacement from these very rows"
        )
    order = np.random.default_rng(seed).permutation(known)
    return [tables.take(population.frame, order[size * i :][:size]) for i in range(source.count)]


def judge(
    runs: Runs,
    pairs: list[Pair],
    claim: Guarantee,
    samples: int,
    alpha: float,
    *,
    symmetric: bool,
) -> PopulationFinding:
    """Test every pair on its own, and count those that are caught.

    Parameters
    ----------
    runs : Runs
        The mechanism.
    pairs : list of Pair
        Independent pairs from the population.
    claim : Guarantee
        Gamma above 0.
    samples : int
        Runs per table, shared out evenly among the pairs.
    alpha : float
        Probability of any wrong statement.
    symmetric : bool
        Whether the last row of each table was changed, not one at a random position.

    Returns
    -------
    PopulationFinding
        The counts and bounds.

    Raises
    ------
    TooFewPairs
        If all of them together could not contradict gamma.

    Notes
    -----
    A pair that keeps the promise is caught with probability at most a = min(alpha, gamma) / 10.
    Under the claim the number caught is below a Binomial(pairs, gamma + (1 - gamma) a) in law,
    whose exact tail is the test. Bounds on epsilon and delta invert it: they are the
    ``needed``-th largest of the pairs' own bounds, each at a third of
    alpha, as is the bound on the share of violating pairs.
    """
    slip = min(alpha, claim.gamma) / _FALSE_ALARM
    share = claim.gamma + (1 - claim.gamma) * slip
    counts = np.arange(1, len(pairs) + 1, dtype=float)
    enough = counts[tail(counts, len(pairs), share) <= alpha / _STATEMENTS]
    if not len(enough):
        raise TooFewPairs(
            given=len(pairs),
            needed=math.ceil(math.log(alpha / _STATEMENTS) / math.log(share)),
            gamma=claim.gamma,
            calibration="audit",
        )
    needed = int(enough[0])
    each = samples // len(pairs)
    findings = []
    for number, pair in enumerate(pairs):
        findings.append(find(runs, [pair], plan_for(each, 1, claim, slip), claim, slip))
        runs.tell(f"pair {number + 1} of {len(pairs)}")
    epsilons = np.array([found.region.epsilon_low(claim.delta) for found in findings])
    deltas = np.array([found.region.delta_low(claim.epsilon) for found in findings])
    caught = int((epsilons > claim.epsilon).sum())
    low = share_below(caught, len(pairs), alpha / _STATEMENTS)
    leader = findings[int(np.argmax(epsilons))]
    other = leader.counts.other_hits / leader.counts.other_samples
    weight = weight_of(claim, leader.pick)
    return PopulationFinding(
        count=PopulationCount(
            drawn=len(pairs),
            caught=caught,
            needed=needed,
            share_low=max(0.0, (low - slip) / (1 - slip)),
            position="last" if symmetric else "random",
        ),
        epsilon_low=float(np.sort(epsilons)[-needed]),
        delta_low=float(np.sort(deltas)[-needed]),
        finding=leader,
        detectable=detectable(claim, other, leader.counts.samples, slip, weight),
    )
