"""Random differential privacy: pairs drawn from a population, a share gamma of which may fail."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._people import show_rows
from hushed.auditing._bounds import binomial_tail, clopper_pearson_high, clopper_pearson_low
from hushed.auditing._fixed import Finding, find_minimum_detectable, plan_samples, run_fixed
from hushed.auditing._goal import Goal
from hushed.auditing._pairs import Pair
from hushed.auditing._report import PopulationCount
from hushed.auditing._runs import Runs, stage_generator, stage_seed
from hushed.errors import ParameterError, TooFewPairs
from hushed.guarantee import Neighbours
from hushed.populations import Population, PublicTable
from hushed.populations._drawing import draw_rows
from hushed.populations._user_source import UserSource
from hushed.sensitivity._declarations import check_source
from hushed.sensitivity._designs import count_needed

_STATEMENTS = 3  # bounds on epsilon, on delta and on the share, each at its part of alpha
SURE = 0.95  # a pair that is caught with this probability would have been caught, in words
_FALSE_ALARM = 10  # a pair may be accused wrongly with alpha, or gamma, over this


@called_as("hs.PopulationPairs(population=population, rows=100, count=20)")
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

    More than a share gamma of pairs lose at least `epsilon_low` and `delta_low`, certified.
    `finding` is the pair that shows most, `minimum_detectable` that of its event on that pair.
    """

    count: PopulationCount
    epsilon_low: float
    delta_low: float
    finding: Finding
    minimum_detectable: float


def draws_users(source: PopulationPairs) -> bool:
    """Whether users are drawn, with all their rows, where others draw rows."""
    known = source.population
    return isinstance(known, UserSource) or isinstance(getattr(known, "frame", None), Bundles)


def draw_pairs(source: PopulationPairs, neighbours: Neighbours, seed: int) -> list[Pair]:
    """Draw all pairs of a source; see `iterate_pairs`."""
    return list(iterate_pairs(source, neighbours, seed))


def iterate_pairs(source: PopulationPairs, neighbours: Neighbours, seed: int) -> Iterator[Pair]:
    """Draw pairs one by one; a simulator whose rows are not independent is refused."""
    drawn = prepare_pairs(source, neighbours, seed)
    return (drawn.draw(number) for number in range(source.count))


# How `DrawnPairs` names a pair: number, unit, place, size, and what was done.
DRAWN = re.compile(
    r"drawn pair ([1-9]\d{0,8}) \((row|user) ([1-9]\d{0,11}) of ([1-9]\d{0,11}) "
    r"(replaced|taken away)\)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPairs:
    """Pairs by their number: a table, and a neighbour with one row replaced or taken away.

    The row stands at a random position, drawn from the pair's own stream, as in the sampling of
    a sensitivity; it is the last one if the source is declared symmetric. `order` deals the rows of
    a public table; empty for other populations. A population of users gives whole users in place
    of rows.
    """

    population: Population
    rows: int
    symmetric: bool
    neighbours: Neighbours
    seed: int
    order: NDArray[np.int64]

    def draw(self, number: int) -> Pair:
        """Draw the pair of a number."""
        rows, size = self.rows, self.rows + 1
        rng = stage_generator(self.seed, "population", str(number))
        if len(self.order):
            population: Any = self.population
            table = containers.take(population.frame, self.order[size * number :][:size])
        else:
            table = draw_rows(self.population, rng, size)
        at = rows - 1 if self.symmetric else int(rng.integers(rows))
        order = np.arange(rows)
        if self.neighbours == "add-remove":
            other, done = np.delete(order, at), "taken away"
        else:
            other, done = np.where(order == at, rows, order), "replaced"
        one = "user" if isinstance(table, Bundles) else "row"
        return Pair(
            rows=show_rows(containers.take(table, order)),
            neighbour=show_rows(containers.take(table, other)),
            name=f"drawn pair {number + 1} ({one} {at + 1} of {rows} {done})",
        )


def prepare_pairs(source: PopulationPairs, neighbours: Neighbours, seed: int) -> DrawnPairs:
    """Deal a public table to pairs; refuse a simulator whose rows are not independent."""
    check_source(source.population, source.rows, seed=stage_seed(seed, "population", "checking"))
    order = _deal_rows(source, stage_seed(seed, "population", "dealing"))
    return DrawnPairs(
        population=source.population,
        rows=source.rows,
        symmetric=source.symmetric,
        neighbours=neighbours,
        seed=seed,
        order=order,
    )


def _deal_rows(source: PopulationPairs, seed: int) -> NDArray[np.int64]:
    """Order in which tables of a public table share no row, or else they are no independent pairs.

    Empty where rows are drawn otherwise.
    """
    population, size = source.population, source.rows + 1
    if not isinstance(population, PublicTable) or population.promise == "table":
        return np.empty(0, dtype=np.int64)
    known, needed = len(population.frame), count_needed("disjoint", source.count, size)
    if population.promise == "given-the-rest" or known < needed:
        raise ParameterError(
            f"{source.count} independent pairs of tables of {source.rows} rows take "
            f"{needed} public rows with promise='population'; the public table has "
            f"{known} with promise={population.promise!r}. Give more rows, or say promise='table' "
            "for pairs drawn with replacement from these very rows"
        )
    return np.random.default_rng(seed).permutation(known)


def run_population(
    runs: Runs, pairs: list[Pair], goal: Goal, *, symmetric: bool
) -> PopulationFinding:
    """Test every independent pair on its own, and count those that are caught.

    The runs of the goal are shared out evenly among the pairs. `symmetric` says that the last row
    of each table was changed, not one at a random position.

    Notes
    -----
    A pair that keeps the promise is caught with probability at most a = min(alpha, gamma) / 10.
    Under the claim the number caught is below a Binomial(pairs, gamma + (1 - gamma) a) in law,
    whose exact tail is the test. Bounds on epsilon and delta invert it: they are the
    ``needed``-th largest of the pairs' own bounds, each at a third of
    alpha, as is the lower bound on the share of violating pairs. The upper bound holds by itself:
    if a share q of pairs is caught with probability 0.95 or more, then a pair is caught with
    probability 0.95 q at least, which Clopper and Pearson bound from above.
    """
    claim, alpha = goal.claim, goal.alpha
    slip = allow_slip(claim.gamma, alpha)
    needed = _count_needed(len(pairs), claim.gamma, slip, alpha / _STATEMENTS)
    plan = plan_samples(goal.final // len(pairs), 1, claim, slip)
    each = replace(goal, final=plan.final, alpha=slip)
    findings = []
    for number, pair in enumerate(pairs):
        part = replace(runs, span=(number / len(pairs), (number + 1) / len(pairs)))
        findings.append(run_fixed(part, [pair], plan, each))
        part.report(f"pair {number + 1} of {len(pairs)}", 1.0)
    epsilons = np.array([found.region.epsilon_low(claim.delta) for found in findings])
    deltas = np.array([found.region.delta_low(claim.epsilon) for found in findings])
    caught = int((epsilons > claim.epsilon).sum())
    leader = findings[int(np.argmax(epsilons))]
    return PopulationFinding(
        count=count_pairs(
            caught, len(pairs), claim.gamma, alpha, "last" if symmetric else "random"
        ),
        epsilon_low=float(np.sort(epsilons)[-needed]),
        delta_low=float(np.sort(deltas)[-needed]),
        finding=leader,
        minimum_detectable=find_minimum_detectable(leader, each),
    )


def count_pairs(
    caught: int, pairs: int, gamma: float, alpha: float, position: Literal["random", "last"]
) -> PopulationCount:
    """Say what follows from the number of pairs that were caught."""
    slip = allow_slip(gamma, alpha)
    low = clopper_pearson_low(caught, pairs, alpha / _STATEMENTS)
    return PopulationCount(
        drawn=pairs,
        caught=caught,
        needed=_count_needed(pairs, gamma, slip, alpha / _STATEMENTS),
        share_low=max(0.0, (low - slip) / (1 - slip)),
        share_high=min(1.0, clopper_pearson_high(caught, pairs, alpha) / SURE),
        position=position,
    )


def allow_slip(gamma: float, alpha: float) -> float:
    """Probability at which a pair that keeps the promise may be caught."""
    return min(alpha, gamma) / _FALSE_ALARM


def _count_needed(pairs: int, gamma: float, slip: float, alpha: float) -> int:
    """Pairs that have to be caught; refused if all of them together could not contradict gamma."""
    share = gamma + (1 - gamma) * slip
    counts = np.arange(1, pairs + 1, dtype=float)
    enough = counts[binomial_tail(counts, pairs, share) <= alpha]
    if not len(enough):
        raise TooFewPairs(
            given=pairs,
            needed=math.ceil(math.log(alpha) / math.log(share)),
            gamma=gamma,
            calibration="audit",
        )
    return int(enough[0])
