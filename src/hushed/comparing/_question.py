"""What is to be compared: a statistic or a function, and the public tables it is tried on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._kept import run_kept
from hushed._functions._turns import Turn
from hushed._ground.checks import require_count
from hushed._ground.printing import as_given
from hushed._ground.progress import Stages, show_progress
from hushed._ground.types import Floats
from hushed.blocks import Blocks
from hushed.blocks._calls import answered_with_none, ask_once
from hushed.comparing._simulated import Measure, Table, TableTrial
from hushed.engines._choice import Workers
from hushed.errors import BadFunction, ParameterError
from hushed.guarantee import Neighbours, RowUnit
from hushed.populations import Population
from hushed.populations._drawing import count_public, give_units
from hushed.populations._users import column_of_users
from hushed.runs import Keep
from hushed.statistics import Mode, Numeric, Statistic
from hushed.statistics._mode import Category
from hushed.statistics._values import as_doubles, only_column

_ANSWERS = "answers"
_LOOKED = 20  # tables, for whether they are of numbers in the range

LABELS = (
    "so give all labels that it may answer with, such as candidates=['no', 'yes']: then the ways "
    "are compared by how often they release another label than that of the whole table"
)
"""What to do about labels."""


@dataclass(frozen=True, slots=True)
class StatisticValue:
    """A statistic as a function of rows that gives a double."""

    statistic: Numeric

    def __call__(self, rows: Any) -> float:
        """Value on a table, rounded once."""
        return float(self.statistic.value(rows))


@dataclass(frozen=True, slots=True)
class PartValue:
    """A statistic as a function of any number of rows that gives a double."""

    statistic: Numeric

    def __call__(self, rows: Any) -> float:
        """Value on a part of a table, rounded once."""
        return float(replace(self.statistic, rows=len(rows)).value(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What all routes are asked; they are tried on the same tables."""

    asked: Any
    population: Population
    rows: int
    gamma: float
    delta: float
    candidates: tuple[float, ...] | None
    span: tuple[float, float] | None
    trials: int
    seed: int
    workers: Workers
    keep: str | PathLike[str] | Keep | None = None
    numbers: int = 1  # in an answer
    user: str | int | None = None  # column of users: whatever counts rows counts users
    labels: tuple[Category, ...] | None = None  # that a function answers with, if it does
    blocks: int | None = None  # that rows are dealt to; as many as are usual by default
    ball: tuple[tuple[float, ...], float] | None = None  # centre and radius, of several numbers
    shown: bool | Stages = False  # where progress is shown
    known: dict[Hashable, Any] = field(default_factory=dict)  # what several routes want

    @property
    def statistic(self) -> Statistic | None:
        """The statistic, if it is one."""
        return self.asked if isinstance(self.asked, Numeric | Mode) else None

    @property
    def numeric(self) -> Numeric | None:
        """The statistic, if it is one whose values are numbers."""
        return self.asked if isinstance(self.asked, Numeric) else None

    @property
    def function(self) -> Callable[[Any], Any]:
        """What is asked, as a function of the rows."""
        return self.asked if self.numeric is None else StatisticValue(self.numeric)

    @property
    def part_function(self) -> Callable[[Any], Any]:
        """What is asked, as a function of a part of the rows."""
        return self.asked if self.numeric is None else PartValue(self.numeric)

    @property
    def neighbours(self) -> Neighbours:
        """Relation that the question is about."""
        return "replace-one" if self.statistic is None else self.statistic.neighbours

    @property
    def unit(self) -> RowUnit:
        """What one row was declared to be."""
        return "row" if self.statistic is None else self.statistic.unit

    @property
    def drawn(self) -> Population:
        """Source of the rows, or users, of the simulated tables."""
        return give_units(self.population, self.user)

    @property
    def share(self) -> float:
        """Share of a public table that each simulated one holds; 0 of any other population."""
        known = count_public(self.drawn)
        return 0.0 if known is None else self.rows / known

    def seed_of(self, stream: int) -> int:
        """Seed of a stream that is independent of the sampler's, and of the other streams."""
        return int(np.random.SeedSequence([self.seed, stream]).generate_state(1, np.uint64)[0])

    def simulate(
        self, measures: Sequence[Measure], most: int | None = None, what: str = "trying the ways on"
    ) -> list[Floats]:
        """Measure on each simulated table, or on the first ones: for each measure a row a table.

        Where all tables are drawn, the answers of a statistic are noted, too. Progress says what is
        done.
        """
        noted = most is None and self.numeric is not None and _ANSWERS not in self.known
        found = self._run([*measures, self._measure()] if noted else measures, most, what)
        if noted:
            self.known[_ANSWERS] = found.pop()
        return found

    def answers(self) -> Floats:
        """Answers on the simulated tables, without any noise: one row for each."""
        if isinstance(self.asked, Mode):
            return np.zeros((2, 1))
        if _ANSWERS not in self.known:
            (self.known[_ANSWERS],) = self._run([self._measure()])
        found: Floats = self.known[_ANSWERS]
        return found

    def _measure(self) -> Measure:
        if self.numeric is not None:
            return partial(_measure_value, self.numeric)
        if self.labels is not None:
            return partial(_measure_place, Blocks(self.labels, aggregate="votes"), self.asked)
        return partial(_measure_answer, self.asked)

    def _run(
        self,
        measures: Sequence[Measure],
        most: int | None = None,
        what: str = "asking about whole",
    ) -> list[Floats]:
        trials = self.trials if most is None else min(self.trials, most)
        trial = TableTrial(population=self.drawn, rows=self.rows, measures=tuple(measures))
        named = getattr(self.asked, "kind", None) or getattr(self.asked, "__qualname__", "it")
        with show_progress(f"{what} public tables", trials, shown=self.shown) as report:
            found = run_kept(
                trial,
                trials,
                seed=self.seed_of(1),
                workers=self.workers,
                keep=self.keep,
                name=f"comparison of {named}",
                report=report,
            )
        return trial.separate(found)


def _measure_value(statistic: Numeric, table: Table) -> float:
    return float(statistic.value(table.read(statistic)))


def _measure_place(made: Blocks, function: Callable[[Any], Any], table: Table) -> float:
    """Place of the label of a whole table among all of them."""
    found = float(ask_once(made, function, table.rows))
    if np.isnan(found):
        raise answered_with_none(made.values)
    return found


def _measure_answer(function: Callable[[Any], Any], table: Table) -> Floats:
    found: list[Any] = []

    def noted(rows: Any) -> Any:
        with Turn(function):
            found.append(function(rows))
        return found[0]

    try:
        return answer(noted, table.rows, private=False)
    except BadFunction as failure:
        if found and isinstance(found[0], str):
            raise BadFunction(f"the function answers with a label, {LABELS}") from failure
        raise


def check_within(question: Question) -> None:
    """Refuse a population of which no row is a number in the range of the statistic.

    Every row would count as one of its ends, and each route would have no error.
    """
    asked = question.numeric
    if asked is None:
        return
    (found,) = question.simulate([partial(_find_within, asked)], _LOOKED)
    if not found.any():
        raise ParameterError(
            f"no row of the simulated tables is a number from {asked.low:g} to "
            f"{asked.high:g}: all would count as ends of that range; give another range, or a "
            "column of numbers",
            parameter="population",
        )


def _find_within(asked: Numeric, table: Table) -> float:
    numbers = as_doubles(only_column(table.rows))
    return float(np.any((numbers >= asked.low) & (numbers <= asked.high)))


def read_rows(asked: Any, rows: int | None) -> int:
    """Read the rows of a table, as given or as the statistic states them; check what is asked."""
    if isinstance(asked, Numeric | Mode):
        if asked.rows is not None and rows is not None and rows != asked.rows:
            raise ParameterError(
                f"the statistic is for {asked.rows} rows, and {rows!r} were given: leave one out",
                parameter="rows",
            )
        rows = asked.rows if rows is None else rows
    elif not callable(asked) or isinstance(asked, type):
        raise ParameterError(
            "compare takes a statistic such as hs.statistics.median(rows=1000, low=0, high=100), "
            f"or a function of the rows, got {type(asked).__name__}"
        )
    if rows is None:
        raise ParameterError("rows must be given: the rows of a table", parameter="rows")
    return require_count("rows", rows, least=2)


def check_user(asked: Any, population: Any, user: object) -> None:
    """Refuse a law of users without their column, and a column where one row is one unit."""
    named = column_of_users(population)
    if user is None and named is not None:
        raise ParameterError(f"the population draws users: say user={named!r}", parameter="user")
    if user is not None and type(user) not in (str, int):
        raise ParameterError(
            f"user must be the name or the position of a column, got {as_given(user)}",
            parameter="user",
        )
    if user is not None and isinstance(asked, Numeric | Mode):
        raise ParameterError(
            "a statistic has one row for each unit: with user= compare a function of all rows of "
            "the users, or sum each one up in a row first",
            parameter="user",
        )


def check_population(population: Any) -> None:
    """Refuse rows where a source of public rows is needed: nobody said that they are public."""
    if not isinstance(population, Population):
        raise ParameterError(
            "the population must be a public source of rows, from hs.populations, such as "
            "Uniform(low=0, high=1) or a Simulator; rows that are public are said to be so by "
            f"PublicTable(rows). Got {type(population).__name__}",
            parameter="population",
        )
