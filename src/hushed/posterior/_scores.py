"""Scores of candidates: log likelihoods of the rows in whole steps, added exactly.

A score in doubles would depend on the order of the rows and on all of them, in its last digits. So
each row's log likelihoods become whole numbers first, by a rule that looks at this row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._functions._turns import Turn
from hushed._ground.printing import name_count
from hushed._ground.stops import watch_stops
from hushed._ground.tensors import fetch
from hushed._ground.types import Floats, Integers
from hushed._rows._owned import copy_rows
from hushed._rows._owners import list_owners
from hushed._rows._parts import take_part
from hushed.errors import BadFunction

BITS = 26  # a step is this many powers of two below the range
FARTHEST = 1 << 52  # steps below the best candidate: others are moved here, so that doubles do
STEEPEST = 1 << 38  # steps between the candidates of one row; 2**24 such rows are whole numbers
MOST_ROWS = 1 << 24

LogLikelihood = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class RowLikelihood:
    """Log likelihoods of a table of one row, against that of its best candidate."""

    function: LogLikelihood
    points: Floats

    def __call__(self, row: Any) -> Floats:
        """Answer for one row; what it raises is told, for the rows that are sampled are public."""
        return read_values(_ask_in_turn(self, row), len(self.points))


@dataclass(frozen=True, slots=True)
class StackedLikelihood:
    """The same for many tables of one row at once, by a function that takes many rows."""

    function: LogLikelihood
    points: Floats

    def __call__(self, stack: Any) -> Floats:
        """Answer for an array (tables, 1, ...)."""
        count, rows = len(self.points), stack[:, 0]
        values = np.asarray(fetch(_ask_in_turn(self, rows)), dtype=np.float64)
        if values.shape != (len(rows), count):
            raise BadFunction(
                f"with batch=True log_likelihood must give {name_count(count, 'number')} for "
                f"each of {name_count(len(rows), 'row')}; got shape {values.shape}"
            )
        return np.asarray(values - values.max(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class SummedScores:
    """Scores of all candidates on a table, each of them a whole number of steps.

    ``most`` is how many steps a row, or a user, may lie below its best candidate: a row whose call
    fails then counts alike for all candidates. 0 is for no limit, where the range is a claim: then
    the whole call fails.
    """

    function: LogLikelihood
    points: Floats
    step: float
    most: int
    user: str | int | None = None

    def __call__(self, rows: Any) -> Floats:
        """Add up the rows, or the users; the best candidate has 0.

        Notes
        -----
        Taking the best one's score from all, and moving those below a public limit up to it, does
        not widen the range of what changes between neighbours: docs/posterior.md.
        """
        if len(rows) > MOST_ROWS:
            raise BadFunction(f"a posterior takes {MOST_ROWS} rows at most")
        total: Integers = np.zeros(len(self.points), dtype=np.int64)
        for each in self._units(rows):
            total += self._read_steps(each)
        return np.asarray(np.maximum(total - total.max(), -FARTHEST) * self.step)

    def count_failures(self, rows: Any) -> tuple[int, str]:
        """Count the rows of a public table that say nothing, and tell the first reason."""
        failed, reason = 0, ""
        for place in range(len(rows)):
            try:
                RowLikelihood(self.function, self.points)(_take(rows, place))
            except Exception as cause:
                failed += 1
                reason = reason or f"{type(cause).__name__}: {cause}"
        return failed, reason

    def _units(self, rows: Any) -> Iterator[Floats]:
        """Log likelihoods of each row, or of all rows of each user."""
        if self.user is None:
            yield from (self._ask(rows, place) for place in range(len(rows)))
            return
        whose: dict[Any, list[int]] = {}
        for place, name in enumerate(list_owners(rows, self.user)):
            if name is not None:
                whose.setdefault(name, []).append(place)
        for places in whose.values():
            with np.errstate(all="ignore"):
                yield np.sum([self._ask(rows, place) for place in places], axis=0)

    def _ask(self, rows: Any, place: int) -> Floats:
        count = len(self.points)
        with watch_stops() as is_stop:
            try:
                return read_values(_ask_in_turn(self, _take(rows, place)), count)
            except BaseException as cause:  # SystemExit, or a panic of a library, is no Exception
                if is_stop(cause) or not self.most:
                    raise
                return np.zeros(count)

    def _read_steps(self, values: Floats) -> Integers:
        """Round to whole steps below the best candidate, as this row alone says."""
        with np.errstate(all="ignore"):
            below = np.rint((values - values.max()) / self.step)
        if np.isnan(below).any():
            below = np.zeros(len(self.points))
        if self.most:
            below = np.maximum(below, -self.most)
        elif below.min() < -STEEPEST:
            raise BadFunction("a row tells candidates apart by far more than the claimed range")
        return np.asarray(below, dtype=np.int64)


def _ask_in_turn(asked: RowLikelihood | StackedLikelihood | SummedScores, rows: Any) -> Any:
    """Ask the function while no other thread does: it may keep the row as it works on it."""
    with Turn(asked.function):
        return asked.function(rows, asked.points)


def read_values(found: Any, count: int) -> Floats:
    """Read the log likelihoods of one row; minus infinity is one, NaN is none."""
    values = np.asarray(fetch(found), dtype=np.float64)
    if values.shape not in ((count,), (1, count)):
        raise BadFunction(
            f"log_likelihood must give {name_count(count, 'number')} for a table of one row, "
            f"one for each candidate; got shape {values.shape}"
        )
    with np.errstate(invalid="ignore"):
        below = np.asarray(values.reshape(count) - values.max())
    if np.isnan(below).any():
        raise BadFunction("log_likelihood gave NaN, infinity, or minus infinity for all candidates")
    return below


def _take(rows: Any, place: int) -> Any:
    """Copy one row, without categories, widths and memory of the others, which tell of them."""
    part = take_part(rows, np.array([place]))
    return copy_rows(part, private=True)  # cells of rows may be one object
