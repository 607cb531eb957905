"""Trials whose neighbours are not evaluated: the caller's function updates the first answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._streams import Streams
from hushed._functions._turns import Turn
from hushed._ground.types import Floats, Integers
from hushed._rows import _containers as containers
from hushed._rows._variations import variations
from hushed.errors import BadFunction, ParameterError
from hushed.sensitivity._blockwise import Blockwise
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._pairs import PairTrial, check_shape, draw_table
from hushed.spaces import size

Update = Callable[[Any, Any, Integers, Any], Any]

_FIRST_PAIRS = 16  # of which both tables are evaluated
_CHECKED_SHARE = 1 / 16  # of the later ones
_CALLED = "it is called as update(answer, rows, places, new_rows)"
_AT_ONCE = 2**16  # numbers in the answers that are asked for together


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTrial(PairTrial):
    """One trial for each generator, where neighbours are answered by an update.

    Parameters
    ----------
    update : callable
        Takes the answer on a table, the table, places, and rows that come there, one for each
        place; gives the answer on the table with that one row replaced, for each, stacked.
    """

    update: Update

    def __call__(self, generators: Streams) -> Floats:
        """Return largest movement, largest number and gap of the update for each generator."""
        if self.design.together > 1:
            people = (
                (table, self.reach.list_swaps(place), 0 if _is_checked(trial, chance) else None)
                for trial, table, place, chance in self._draw_people(generators)
            )
            return np.array([self._measure(*each) for each in people])
        return np.array([self._measure(*self._draw(g, generators.trial)) for g in generators])

    def _measure(
        self, drawn: Any, swaps: Integers, checked: int | None
    ) -> tuple[float, float, float]:
        count = self.reach.size
        table = next(variations(drawn, count, (), fresh=self.fresh))
        base = answer(self.function, table, private=self.private, names=self.names)
        self._check_shape(base.shape, self.shape)
        moved, largest, gap = 0.0, float(np.abs(base).max()), 0.0
        top: tuple[int, Floats] = (0, base)
        for first, found in self._list_updated(drawn, table, base, swaps):
            sizes = self._sizes(found, base)
            largest = max(largest, float(np.abs(found).max()))
            if not first or float(sizes.max()) > moved:
                place = int(sizes.argmax())
                moved, top = float(sizes[place]), (first + place, found[place].copy())
            if checked is not None and first <= checked < first + len(found):
                known = self._evaluate(drawn, swaps[checked])
                gap = self._gap(known, found[checked - first])
                moved = max(moved, self._gap(known, base))
        if self.reach.whole and top[0] != checked:
            known = self._evaluate(drawn, swaps[top[0]])
            gap = max(gap, self._gap(known, top[1]))
            moved = max(moved, self._gap(known, base))
        return moved, largest, gap

    def _draw(self, generator: np.random.Generator, trial: int) -> tuple[Any, Integers, int | None]:
        """Draw a table with the rows that come into it; say which comes to which place.

        And which of these neighbours is evaluated, too: none for most of later pairs.
        """
        drawn = draw_table(self.design, generator, trial, self.like, private=self.private)
        if self.reach.values:
            drawn = containers.join(drawn, self.values)
        count, place = self.reach.size, 0
        if not self.reach.whole:
            place = count - 1 if self.symmetric else int(generator.random() * count)
        if self.design.rest:  # the pair's own two rows take the place in turn
            order = np.arange(count + 1)
            order[[place, count]] = count, count + 1
            drawn = containers.take(drawn, order)
        swaps = self.reach.list_swaps(place)
        if self.reach.whole:
            return drawn, swaps, int(generator.integers(len(swaps)))
        return drawn, swaps, 0 if _is_checked(trial, generator.random()) else None

    def _list_updated(
        self, drawn: Any, table: Any, base: Floats, swaps: Integers
    ) -> Iterator[tuple[int, Floats]]:
        """Ask the update for the answers on all neighbours, a part of them at a time."""
        step = max(1, _AT_ONCE // max(1, base.size))
        for first in range(0, len(swaps), step):
            places, sources = swaps[first : first + step].T
            taken = containers.take(drawn, sources)
            rows = next(variations(taken, len(taken), ()))

            given = (base.copy()[()], table, places.copy(), rows)
            try:
                with Turn(self.update):
                    found = answer(lambda given: self.update(*given), given, private=self.private)
            except BadFunction as problem:
                said = f"asked for an update, {problem}; {_CALLED}"
                raise BadFunction(said, parameter="update") from problem.__cause__
            wanted = (len(places), *self.shape)
            self._check_shape(
                found.shape, wanted, "update must give one answer for each place, stacked"
            )
            yield first, found

    def _evaluate(self, drawn: Any, swap: Integers) -> Floats:
        """Evaluate the function itself on a neighbour."""
        place, source = swap.tolist()
        tables = variations(drawn, self.reach.size, [(place, source)], fresh=self.fresh)
        for each in islice(tables, 1, None):  # to the end, where the row is put back
            found = answer(self.function, each, private=self.private, names=self.names)
        self._check_shape(found.shape, self.shape)
        return found

    def _check_shape(
        self,
        found: tuple[int, ...],
        wanted: tuple[int, ...],
        what: str = "answer changes shape between tables",
    ) -> None:
        check_shape(found, wanted, what, private=self.private)

    def _sizes(self, found: Floats, base: Floats) -> Floats:
        sizes: Floats = size((found - base).reshape(len(found), -1), self.norm)
        return sizes

    def _gap(self, first: Floats, second: Floats) -> float:
        return float(self._sizes(first[None], second)[0])


def _is_checked(trial: int, chance: float) -> bool:
    """Whether the neighbour of a pair is evaluated, too, by a number from 0 to 1."""
    return trial < _FIRST_PAIRS or chance < _CHECKED_SHARE


def add_gap(movements: Floats, gap: float) -> Floats:
    """Enlarge movements by what an update was seen to be off by, rounded up."""
    enlarged: Floats = np.nextafter(movements + gap, np.inf) if gap else movements
    return enlarged


def check_update(update: Any, function: Any, reach: Neighbourhood, *, batch: bool) -> None:
    """Refuse an update where no single row is replaced, or it does not go with the function."""
    if not callable(update):
        raise ParameterError(
            "update must be a function (answer, rows, places, new_rows) -> answers, got "
            f"{type(update).__name__}",
            parameter="update",
        )
    if not reach.swapped:
        raise ParameterError(
            "update is about one replaced row: it goes with neighbours='replace-one' and "
            "distance=1 alone",
            parameter="update",
        )
    if batch:
        raise ParameterError(
            "update spares evaluations of single tables, and batch=True makes those of many at "
            "once: one of the two",
            parameter="update",
        )
    if type(function) is Blockwise:
        raise ParameterError(
            "hs.Blockwise is measured on tables of one block, which are small: leave update out",
            parameter="update",
        )
