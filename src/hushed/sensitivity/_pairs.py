"""One trial of the sampler: draw neighbours, evaluate the function on both, measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._trials import Streams
from hushed._rows import _containers as containers
from hushed._rows._owned import strip_rows
from hushed._rows._variations import variations
from hushed._types import Floats
from hushed.errors import BadFunction, BadRows, HushedError
from hushed.populations import OWN
from hushed.sensitivity._designs import Design
from hushed.spaces import Norm, size

Function = Callable[[Any], Any]


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
    symmetric : bool
        Replace the last row instead of a random one.
    at_once : int
        Tables in a block. Of a `PairTrial`, if not 0: replace all rows of each table in turn,
        each by its own draw.
    like : tuple
        Signature of the drawn tables.
    shape : tuple of int
        Shape of the answer.
    fresh : bool
        Hand out writable copies.
    private : bool
        Withhold what the function says.
    """

    function: Function
    design: Design
    norm: Norm
    symmetric: bool
    at_once: int
    like: tuple[Any, ...]
    shape: tuple[int, ...]
    fresh: bool
    private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTrial(_Trial):
    """One trial for each generator: the movement of one drawn pair, or of all n of a table."""

    def __call__(self, generators: Streams) -> Floats:
        """Return largest movement and largest number of each pair, one generator a pair."""
        return np.array([self._largest(each, generators.trial) for each in generators])

    def _largest(self, generator: np.random.Generator, trial: int) -> tuple[float, float]:
        n, function, private = self.design.rows, self.function, self.private
        table = draw_table(self.design, generator, trial, self.like, private=private)
        if self.at_once:
            swaps = [(i, n + i) for i in range(n)]
        else:
            place = n - 1 if self.symmetric else int(generator.random() * n)
            swaps = [(place, source) for source in range(n, self.design.count)]
        tried = variations(table, n, swaps, fresh=self.fresh)
        if len(swaps) == 2 and not self.at_once:
            next(tried)  # the pair's own two rows take the place in turn: the first one is no part
        base = answer(function, next(tried), private=private)
        moved, largest = 0.0, _magnitude(base)
        for rows in tried:
            other = answer(function, rows, private=private)
            moved, largest = (
                max(moved, self._distance(base, other)),
                max(largest, _magnitude(other)),
            )
        return moved, largest

    def _distance(self, base: Floats, other: Floats) -> float:
        if base.shape != other.shape or base.shape != self.shape:
            found = base.shape if base.shape != self.shape else other.shape
            raise BadFunction(
                f"the function's answer changes shape between tables: {self.shape} and {found}; "
                "it must return the same number of values for every table of the same size"
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
        n, pairs = self.design.rows, np.arange(self.at_once)
        drawn = draw_block(
            self.design, generator, block, self.at_once, self.like, private=self.private
        )
        positions = np.full(self.at_once, n - 1)
        if not self.symmetric:
            positions = generator.integers(n, size=self.at_once)
        view = drawn[:, :n]
        view.flags.writeable = False
        if self.design.count == n + 2:  # the pair's own two rows take the place in turn
            drawn[pairs, positions] = drawn[:, n + 1]
        base = self._answers(view)
        drawn[pairs, positions] = drawn[:, n]
        other = self._answers(view)
        moved = size((base - other).reshape(self.at_once, -1), self.norm)
        largest = np.maximum(np.abs(base), np.abs(other)).reshape(self.at_once, -1).max(axis=1)
        return np.stack([moved, largest], axis=-1)

    def _answers(self, view: Floats) -> Floats:
        rows = view.copy() if self.fresh else view
        answers = answer(self.function, rows, private=self.private)
        if answers.shape != (self.at_once, *self.shape):
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
    except Exception as cause:
        raised = f"the population raised {type(cause).__name__} while drawing {count} rows"
        if not private:
            raise BadRows(f"{raised}: {cause}") from cause
    if raised:
        raise BadRows(f"{raised}; its message is withheld, for it may contain a private value")
    table = strip_rows(table)
    found = containers.signature(table)
    if len(table) != count:
        raise BadRows(f"the population was asked for {count} rows and gave {len(table)}")
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
