"""Tables drawn from a public population, and what the routes measure on each of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushed._functions._streams import Streams
from hushed._ground.types import Floats
from hushed.populations import Population
from hushed.populations._drawing import draw_shown
from hushed.statistics import Numeric
from hushed.statistics._record import ReadRows


@dataclass(frozen=True, slots=True)
class Table:
    """One simulated table; what several routes ask of it is found out once."""

    rows: Any
    drawn: np.random.Generator  # as the draw of the rows left it
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, name: Hashable, compute: Callable[[], Any]) -> Any:
        """Give what was computed under a name, or compute it."""
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]

    def read(self, statistic: Numeric) -> ReadRows:
        """Give the rows as a statistic reads them, which takes them in place of rows."""
        found: ReadRows = self.once(statistic, lambda: ReadRows.of(statistic, self.rows))
        return found

    def generator(self) -> np.random.Generator:
        """Start random numbers for one route: what it draws moves those of no other."""
        bits: Any = type(self.drawn.bit_generator)(0)
        bits.state = self.drawn.bit_generator.state
        return np.random.Generator(bits)


def find_rooms(statistic: Numeric, rows: Any) -> Floats:
    """How far a statistic can go down and up before it meets an end of its range."""
    value, (low, high) = float(statistic.value(rows)), statistic.span
    return np.array([value - low, high - value])


Measure = Callable[[Table], Any]
"""What is measured on a simulated table: numbers, always as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTrial:
    """One simulated table for each generator."""

    population: Population
    rows: int
    measures: tuple[Measure, ...]

    def __call__(self, generators: Streams) -> Floats:
        """Return what is measured on the table of each generator: how many numbers, then these."""
        return np.stack([self._measured(each) for each in generators])

    def _measured(self, generator: np.random.Generator) -> Floats:
        rows = draw_shown(self.population, generator, self.rows)
        table = Table(rows, generator)
        found = [np.asarray(each(table), dtype=np.float64).ravel() for each in self.measures]
        return np.concatenate([[each.size for each in found], *found])

    def separate(self, found: Floats) -> list[Floats]:
        """Cut what was measured on all tables into one array for each measure, a row a table."""
        count = len(self.measures)
        sizes = found[0, :count].astype(np.int64)
        return np.split(found[:, count:], np.cumsum(sizes)[:-1], axis=1)
