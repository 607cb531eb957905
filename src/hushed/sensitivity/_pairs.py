"""One trial of the sampler: draw neighbours, evaluate the function on both, measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._streams import Streams
from hushed._ground.printing import name_count
from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._owned import strip_rows
from hushed._rows._owners import check_drawn
from hushed._rows._variations import rearrangements, swap_user, variations
from hushed.errors import BadFunction, BadRows, HushedError
from hushed.populations import OWN
from hushed.sensitivity._designs import Design
from hushed.sensitivity._neighbourhood import Neighbourhood, Places
from hushed.spaces import Norm, size

Function = Callable[[Any], Any]


def check_shape(
    found: tuple[int, ...], wanted: tuple[int, ...], what: str, *, private: bool
) -> None:
    """Refuse an answer of another shape, which is not told if it may hold a private value."""
    if found != wanted:
        shapes = "" if private else f": it has shape {found}, and not {wanted}"
        raise BadFunction(f"the function's {what}{shapes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What trials need, of one pair or of a block of them.

    Parameters
    ----------
    function : callable
        The user's function.
    design : Design
        Rows of every trial.
    norm : {"l1", "l2", "sup", "range"}
        Norm of the movement.
    reach : Neighbourhood
        Which neighbours are compared.
    values : array, list or frame
        Given rows that take every place in turn; empty unless the neighbourhood has some.
    symmetric : bool
        Take the last places instead of random ones.
    at_once : int
        Tables in a block.
    like : tuple
        Signature of the drawn tables.
    shape : tuple of int
        Shape of the answer.
    names : tuple of str
        Names of its numbers, which all answers have to have; empty if the first one has none.
    fresh : bool
        Hand out writable copies.
    private : bool
        Withhold what the function says.
    """

    function: Function
    design: Design
    norm: Norm
    reach: Neighbourhood
    values: Any
    symmetric: bool
    at_once: int
    like: tuple[Any, ...]
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    fresh: bool
    private: bool

    def _draw_places(
        self, generator: np.random.Generator, rows: int, tables: int
    ) -> tuple[Places, Places]:
        """Places of each table that are replaced or left out, and that where a row is put in."""
        t = self.reach.distance
        if self.symmetric or self.reach.whole:
            last = np.arange(rows - t, rows)
            return np.tile(last, (tables, 1)), np.full(tables, rows)
        if t > 1:
            chosen = np.argsort(generator.random((tables, rows)), axis=1)[:, :t]
        else:
            chosen = generator.integers(rows, size=tables)[:, None]
        added = generator.integers(rows + 1, size=tables) if self.reach.sizes else chosen[:, 0]
        return chosen, added


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTrial(_Trial):
    """One trial for each generator: the largest movement of one table and its neighbours."""

    def __call__(self, generators: Streams) -> Floats:
        """Return largest movement and largest number of each pair, one generator a pair."""
        if self.design.together > 1:
            pairs = (
                swap_user(table, place, fresh=self.fresh)
                for _, table, place, _ in self._draw_people(generators)
            )
            return np.array([self._compare((each,)) for each in pairs])
        return np.array([self._largest(each, generators.trial) for each in generators])

    def _largest(self, generator: np.random.Generator, trial: int) -> tuple[float, float]:
        table = draw_table(self.design, generator, trial, self.like, private=self.private)
        if self.reach.values:
            table = containers.join(table, self.values)
        return self._compare(
            self._list_tables(generator, table, rows) for rows in self.reach.tables
        )

    def _draw_people(self, generators: Streams) -> Iterator[tuple[int, Bundles, int, float]]:
        """Hand out tables of people, of which many are drawn together.

        Gives for each trial its number, its table with the person who comes into it, the place of
        that, and a number from 0 to 1 to decide by.
        """
        design, together = self.design, self.design.together
        for generator, begin, first, stop in generators.cut(together):
            places = generator.integers(design.rows, size=together).tolist()
            chances = generator.random(together).tolist()
            tables = design.draw_people(generator, begin)
            for number, table in enumerate(islice(tables, stop - begin)):
                if begin + number >= first:
                    place = design.rows - 1 if self.symmetric else places[number]
                    yield begin + number, table, place, chances[number]

    def _compare(self, groups: Iterable[Iterable[Any]]) -> tuple[float, float]:
        """Return largest movement between the first table of a group and the others."""
        moved, largest = 0.0, 0.0
        for tables in groups:
            base = None
            for each in tables:
                found = answer(self.function, each, private=self.private, names=self.names)
                largest = max(largest, _magnitude(found))
                if base is None:
                    base = found
                else:
                    moved = max(moved, self._distance(base, found))
        return moved, largest

    def _list_tables(self, generator: np.random.Generator, table: Any, rows: int) -> Iterator[Any]:
        """Hand out the table of so many rows, then its neighbours."""
        if not self.reach.swapped:
            places, added = self._draw_places(generator, rows, 1)
            orders = self.reach.orders(rows, places, added, symmetric=self.symmetric)
            shown = chain([np.arange(rows)], (each[0] for each in orders))
            return rearrangements(table, shown, fresh=self.fresh)
        place = 0
        if not self.reach.whole:
            place = rows - 1 if self.symmetric else int(generator.random() * rows)
        swaps: Iterable[tuple[int, int]] = self.reach.swaps(place)
        if not self.design.rest:
            return variations(table, rows, swaps, fresh=self.fresh)
        # The pair's own two rows take the place in turn: the first table is no part.
        swaps = [(place, rows), (place, rows + 1)]
        return islice(variations(table, rows, swaps, fresh=self.fresh), 1, None)

    def _distance(self, base: Floats, other: Floats) -> float:
        if base.shape != other.shape or base.shape != self.shape:
            found = base.shape if base.shape != self.shape else other.shape
            check_shape(
                found, self.shape, "answer changes shape between tables", private=self.private
            )
        if not base.shape:
            return abs(float(base) - float(other)) if self.norm != "range" else 0.0
        return float(size((base - other).ravel(), self.norm))


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTrial(_Trial):
    """One trial for each generator: the movements of a block of pairs, evaluated at once."""

    def __call__(self, generators: Streams) -> Floats:
        """Return movements and largest numbers of each block of pairs, one generator a block."""
        return np.stack([self._measured(each, generators.trial) for each in generators])

    def _measured(self, generator: np.random.Generator, block: int) -> Floats:
        drawn = draw_block(
            self.design, generator, block, self.at_once, self.like, private=self.private
        )
        if self.reach.values:
            given = np.broadcast_to(self.values, (self.at_once, *self.values.shape))
            drawn = np.concatenate([drawn, given], axis=1)
        moved, largest = np.zeros(self.at_once), np.zeros(self.at_once)
        for rows in self.reach.tables:
            base = None
            for each in self._list_stacks(generator, drawn, rows):
                found = self._answers(each)
                if base is None:
                    base = found.copy()
                change = (base - found).reshape(self.at_once, -1)
                np.maximum(moved, size(change, self.norm), out=moved)
                sizes = np.abs(found).reshape(self.at_once, -1).max(axis=1)
                np.maximum(largest, sizes, out=largest)
        return np.stack([moved, largest], axis=-1)

    def _list_stacks(
        self, generator: np.random.Generator, drawn: Floats, rows: int
    ) -> Iterator[Floats]:
        """Hand out tables of so many rows, stacked, then a neighbour of each, and so on."""
        pairs = np.arange(self.at_once)
        places, added = self._draw_places(generator, rows, self.at_once)
        view = drawn[:, :rows]
        view.flags.writeable = False
        if self.design.rest:  # the pair's own two rows take the place in turn
            drawn[pairs, places[:, 0]] = drawn[:, rows + 1]
        yield view
        if self.reach.swapped:
            for place, source in self.reach.swaps(places[:, 0]):
                kept = drawn[pairs, place].copy()
                drawn[pairs, place] = drawn[:, source]
                yield view
                drawn[pairs, place] = kept
            return
        for order in self.reach.orders(rows, places, added, symmetric=self.symmetric):
            stack = drawn[pairs[:, None], order]
            stack.flags.writeable = False
            yield stack

    def _answers(self, view: Floats) -> Floats:
        rows = view.copy() if self.fresh else view
        answers = answer(self.function, rows, private=self.private)
        wanted = (self.at_once, *self.shape)
        if self.private:
            check_shape(answers.shape, wanted, "answers change shape", private=True)
        if answers.shape != wanted:
            raise BadFunction(
                f"with batch=True the function got {self.at_once} tables in an array of shape "
                f"{view.shape} and returned shape {answers.shape}; it must return one answer of "
                f"shape {self.shape} for each table along the first axis"
            )
        return answers


def _magnitude(numbers: Floats) -> float:
    return float(np.abs(numbers).max()) if numbers.shape else abs(float(numbers))


def draw_table(
    design: Design,
    generator: np.random.Generator,
    trial: int,
    like: tuple[Any, ...] | None,
    *,
    private: bool,
    trials: int = 1,
) -> Any:
    """Draw rows of a trial that the sampler may change: first the table, then the swapped rows."""
    count = trials * design.count
    raised = ""
    try:
        table = design.draw(generator, trial, trials)
    except HushedError:
        raise
    except (Exception, SystemExit) as cause:
        raised = (
            f"the population raised {type(cause).__name__} while drawing {name_count(count, 'row')}"
        )
        if not private:
            raise BadRows(f"{raised}: {cause}") from cause
    if raised:
        raise BadRows(f"{raised}; its message is withheld, for it may contain a private value")
    table = strip_rows(table)
    found = containers.signature(table)
    check_drawn(table, count)
    if like is not None and not containers.has_same_signature(found, like):
        raise BadRows(
            "the population gave tables with different columns at different draws, or with "
            "different types in them; texts in an array must be of one width, as .astype('U50') "
            "makes them"
        )
    if isinstance(table, np.ndarray):
        flags = table.flags
        if not (flags.owndata and flags.writeable):
            return table.copy()  # its memory may be shared with another draw
    return table


def draw_block(
    design: Design,
    generator: np.random.Generator,
    block: int,
    pairs: int,
    like: tuple[Any, ...],
    *,
    private: bool,
) -> Floats:
    """Stack tables along a first axis; a population of the user is asked for one at a time."""
    first = block * pairs
    if type(design.population) not in OWN:
        each = [
            draw_table(design, generator, first + i, like, private=private) for i in range(pairs)
        ]
        return np.stack(each)
    drawn: Floats = draw_table(design, generator, first, like, private=private, trials=pairs)
    return drawn.reshape(pairs, design.count, *drawn.shape[1:])
