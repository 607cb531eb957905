"""Averages over blocks: what can be released when the public table is smaller than the private."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._functions._answer_names import refuse_other_names, split_names
from hushed._functions._calls import answer, answer_named
from hushed._ground.calls import called_as
from hushed._ground.checks import is_whole, read_count
from hushed._ground.printing import as_given
from hushed._ground.tensors import fetch
from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._people import bundle_rows, show_rows
from hushed._rows._variations import show_in_place
from hushed.errors import BadFunction, ParameterError

# An average of doubles is off by 2^-52 of its size, which must stay small beside the movement of
# the answer. So it is held to 2^40 movements, and the movement is enlarged by 2^-10.
_LARGEST = 2.0**40
_ENLARGED = 1 + 2.0**-10
_ROUNDED_AWAY = 2.0**-1073  # what two averages, and a part, may lose below the normal doubles
_DEALING = 2012  # seed of the public order in which rows are dealt to blocks


@called_as("hs.Blockwise(f, 1000)")
@dataclass(frozen=True, slots=True, repr=False)
class Blockwise:
    """A function that answers with its average over blocks of rows.

    The movement of one block of ``rows`` rows can be measured where that of the whole table
    cannot, because the public table is too small. A record is in one block only, so that it moves
    the average over B blocks by a B-th of that.

    Parameters
    ----------
    function : callable
        Takes a block, as it would take a table; returns a number or an array of numbers.
    rows : int
        Rows in a block; 1 or more. They must divide the rows of the table. Rows are dealt to
        blocks in an order that is random, fixed and public, so that a sorted table does no harm.
        A mean is its own average over blocks of one row, so that pairs of rows are enough.
    user : str or int, optional
        Column that says whose a row is, as for `sample_sensitivity`. Blocks are then of so many
        users, with all their rows.
    batch : bool, default False
        Whether the function takes an array (blocks, rows, columns) at once, and returns one answer
        for each block along the first axis: for `sample_sensitivity` with ``batch=True``.
    relative : bool, default False
        Whether the scores of each block are counted from its best one, which is then 0. Needed in
        the norm ``"range"``: what all scores have in common says nothing there, and may be large.

    Raises
    ------
    ParameterError
        If it is no function, or ``rows`` no integer of 1 or more.

    Examples
    --------
    >>> import numpy as np
    >>> largest = Blockwise(np.max, rows=50)
    >>> bool(largest(np.arange(100.0)) < 99)
    True
    """

    function: Callable[[Any], Any]
    rows: int
    user: str | int | None = None
    batch: bool = False
    relative: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, Blockwise):
            raise ParameterError(
                f"Blockwise takes a function of rows, got {type(self.function).__name__}"
            )
        if not is_whole(self.rows) or self.rows < 1:
            raise ParameterError(
                f"a block has an integer number of rows, 1 or more, got {as_given(self.rows)}"
            )
        if self.batch and self.user is not None:
            raise ParameterError(
                "batch=True stacks tables of one length, and users have different numbers of rows: "
                "leave it out",
                parameter="batch",
            )
        object.__setattr__(self, "rows", int(self.rows))

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        whose = "" if self.user is None else f", user={self.user!r}"
        return f"Blockwise({name}, rows={self.rows}{whose})"

    def __call__(self, table: Any) -> Any:
        """Answer on a table: the function's own answer if it is of one block.

        With ``batch`` on a stack of tables, of one block each, or of one table alone.
        """
        if self.batch:
            return self._answer_stack(table)
        if self.user is not None:
            table = bundle_rows(table, self.user)
        blocks = self.blocks(len(table))
        if blocks == 1:
            return self._ask(show_rows(table))
        order = np.random.default_rng(_DEALING).permutation(len(table))
        places = (order[i : i + self.rows] for i in range(0, len(order), self.rows))
        parts: Iterable[Any] = (show_rows(containers.take(table, each)) for each in places)
        held = table.rows if isinstance(table, Bundles) else table
        if isinstance(held, np.ndarray) and not held.flags.writeable:  # nor may a block be
            parts = map(show_in_place, parts)
        answers, names = zip(
            *(answer_named(self._ask, part, private=False) for part in parts), strict=True
        )
        if any(each.shape != answers[0].shape for each in answers):
            raise BadFunction("the function's answer changes shape between blocks")
        for each in names:
            refuse_other_names(each, names[0], private=True)
        average = _average(np.stack(answers))
        return dict(zip(names[0], average.tolist(), strict=True)) if names[0] else average

    def _ask(self, part: Any) -> Any:
        """Ask the function, and count scores from the best one of each block."""
        found = self.function(part)
        if not self.relative:
            return found
        plain, names = split_names(found)
        scores = np.asarray(fetch(plain), dtype=np.float64)
        axes = tuple(range(int(self.batch), scores.ndim))
        best = scores - scores.max(axis=axes, keepdims=True) if axes else scores * 0
        return dict(zip(names, best.tolist(), strict=True)) if names and not self.batch else best

    def _answer_stack(self, stack: Any) -> Any:
        """Answer on stacked tables of one block, or average over the blocks of a single one."""
        if self.blocks(stack.shape[1]) == 1:
            return self._ask(stack)
        if len(stack) != 1:
            raise BadFunction("a Blockwise function in batches takes one table of many blocks")
        order = np.random.default_rng(_DEALING).permutation(stack.shape[1])
        parts = stack[0][order].reshape(-1, self.rows, *stack.shape[2:])
        parts.flags.writeable = stack.flags.writeable  # as sampled
        answers = answer(self._ask, parts, private=False)
        if answers.shape[:1] != (len(parts),):
            raise BadFunction("with batch=True the function must give one answer for each block")
        return _average(answers)[None]

    @called_as("averaged.blocks(6000)")
    def blocks(self, rows: int) -> int:
        """Count the blocks of a table.

        Parameters
        ----------
        rows : int
            Rows of the table.

        Returns
        -------
        int
            Number of blocks.

        Raises
        ------
        ParameterError
            If the table does not fall into whole blocks; the message names sizes that divide.
        """
        rows = read_count("rows", rows, 0)
        if rows < self.rows or rows % self.rows:
            raise ParameterError(
                f"blocks of {self.rows} rows do not divide {rows} rows: every row is in one block, "
                f"and every block is full. {_advise_size(self.rows, rows)}"
            )
        return rows // self.rows


def _advise_size(size: int, rows: int) -> str:
    """Say which sizes of a block divide a table, and how many rows this size would fit."""
    fitting = [d for d in range(2, min(rows, 100_000) + 1) if rows % d == 0]
    near = sorted(sorted(fitting, key=lambda d: abs(d - size))[:4])
    told = f"Sizes that divide: {', '.join(map(str, near)) or 'none'}"
    if size > rows:
        return told
    left = rows % size
    return (
        f"{told}. Or leave {left} of the rows out, whichever they are and not by what they hold: "
        f"{rows - left} rows are {rows // size} such block{'s' * (rows >= 2 * size)}"
    )


def _average(answers: Floats) -> Floats:
    """Average along the first axis."""
    columns = answers.reshape(len(answers), -1).T.tolist()
    return np.array([_mean(column) for column in columns]).reshape(answers.shape[1:])


def _mean(numbers: list[float]) -> float:
    """Mean, rounded twice; of numbers whose sum leaves the doubles, too."""
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:  # by a power of two, so that nothing is lost beside such a sum
        scale = 2.0 ** len(numbers).bit_length()
        return math.fsum(each / scale for each in numbers) / len(numbers) * scale


def bound_average(movements: Floats, blocks: int) -> Floats:
    """Bound how far an average over blocks moves when one block's answer does.

    Their part, with room for the rounding of the average.
    """
    if blocks == 1:
        return movements
    # Beside numbers of any usual size the last term is nothing; beside the smallest it is all.
    return movements / blocks * _ENLARGED + _ROUNDED_AWAY * (movements > 0)


def limit(movement: float, blocks: int, values: int) -> float:
    """Largest average whose rounding the enlarged movement covers: private ones are held to it.

    Above 0 if the movement is; infinite with one block, where nothing is averaged.
    """
    return math.inf if blocks == 1 else movement * _LARGEST / max(1, values)
