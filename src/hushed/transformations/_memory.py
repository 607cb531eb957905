"""Try a function of one row on rows made up for it: what it was asked before must not matter.

A function with a memory joins rows that no distance joins: one person's row then moves the answers
of all rows after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice, product
from typing import Any

from hushed._functions._fingerprints import list_changes, look
from hushed._functions._row_functions import RowFunction
from hushed._functions._turns import Turn
from hushed.errors import BadFunction
from hushed.spaces import Cell, Column, Table

_TRIED = 16
_TEXTS = ("", "a", "b", "0", "1")
_NUMBERS = (0, 1, 2, -1, 10, 50)
_FRACTIONS = (0.5, -0.25, 37.5)


def check_row_memory(step: str, asked: RowFunction, domain: Column | Table) -> None:
    """Refuse a function of a row that answers by, or keeps, what it was asked before.

    A cache that was filled, or a model that was loaded, when all rows were asked once is no memory.
    """
    rows = _make_rows(domain)

    def ask(at: int) -> object:
        row = rows[at]
        return asked(dict(row) if isinstance(row, dict) else row)

    refuse_memory(step, asked.function, ask, len(rows))


def refuse_memory(
    step: str, function: Callable[..., Any], ask: Callable[[int], object], count: int
) -> None:
    """Refuse a function whose answers on so many rows, asked by number, depend on their order."""
    numbers = list(range(count))
    with Turn(function):  # another thread may be at it with its own rows
        first = _ask(ask, numbers)
        before = look(function).marks
        again = _ask(ask, numbers[::-1] + numbers[::2])
        kept = list_changes(before, look(function).marks)
    if any(first[at] != answer for at, answer in again.items()):
        raise BadFunction(
            f"{step} needs a function that looks at its own row alone and always answers the same: "
            "asked the same rows in another order, it gave other answers"
        )
    if kept:
        raise BadFunction(
            f"{step} needs a function that keeps nothing from row to row, for rows asked later may "
            f"be answered by it; asked rows again, it changed {', '.join(kept[:5])}"
        )


def _ask(ask: Callable[[int], object], order: list[int]) -> dict[int, str]:
    """Answers by row; where it fails, how. Of a row asked twice all answers count."""
    found: dict[int, str] = {}
    for at in order:
        try:
            answer = repr(ask(at))
        except (Exception, SystemExit) as failed:
            answer = f"raised {type(failed).__name__}"
        found[at] = answer if found.get(at, answer) == answer else f"{found[at]}, then {answer}"
    return found


def _make_rows(domain: Column | Table) -> list[Any]:
    """Rows of a domain, made up."""
    if isinstance(domain, Column):
        return _make_cells(domain.cell)
    names = [name for name, _ in domain.columns]
    cells = [_make_cells(cell) for _, cell in domain.columns]
    side_by_side = [
        tuple(column[at % len(column)] for column in cells) for at in range(max(map(len, cells)))
    ]
    crossed = islice(product(*cells), _TRIED)
    return [dict(zip(names, row, strict=True)) for row in (*side_by_side, *crossed)]


def _make_cells(cell: Cell) -> list[Any]:
    """Values that a cell may hold."""
    if cell.type == "string":
        return [*_TEXTS, *([None] if cell.missing else [])]
    if cell.type == "bool":
        return [False, True]
    ends = [] if cell.low is None or cell.high is None else [cell.low, cell.high]
    between = [ends[0] / 2 + ends[1] / 2] if ends else []
    plain = [*ends, *between, *_NUMBERS, *_FRACTIONS]
    held = dict.fromkeys(cell.nearest(each) for each in plain)
    return [*held, *([math.nan] if cell.missing else [])]
