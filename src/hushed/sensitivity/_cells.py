"""Columns of what cells hold: values in tuples, lists, mappings, arrays and records."""

from __future__ import annotations

from typing import Any

import numpy as np

_DEPTH = 4  # of cells in cells
_ROWS = 1000  # of a table of Python's objects, evenly spread
_MOST = 1_000_000  # values that are read of such tables, and shared by what is deeper in them
_VIEWS = 1000  # columns of an array, which cost little
_NUMBERS = (bool, int, float, np.number)


def open_cells(tables: list[list[Any]], depth: int = _DEPTH, most: int = _MOST) -> list[list[Any]]:
    """Put columns of cells that hold several values apart, in the same way in all tables.

    Of very many values some are taken, evenly spread: a look at public rows must not take longer
    than sampling them.
    """
    opened: list[list[Any]] = []
    for held in _turn(tables):
        parts = _open_column(held, most) if depth else None
        if parts:
            opened += _turn(open_cells(_turn(parts), depth - 1, most // len(parts)))
        else:
            opened.append(held)
    return _turn(opened)


def _turn(lists: list[list[Any]]) -> list[list[Any]]:
    return [list(each) for each in zip(*lists, strict=True)]


def _spread(found: list[Any], most: int) -> list[Any]:
    """Take at most so many of a list, but one at least."""
    return found[:: max(1, -(-len(found) // max(1, most)))]


def _open_column(held: list[Any], most: int) -> list[list[Any]] | None:
    """Columns that a column consists of, each of all tables; None if its cells are single."""
    if all(isinstance(each, np.ndarray) and each.dtype.kind != "O" for each in held):
        names = held[0].dtype.names
        if names:
            return [[each[name] for each in held] for name in names]
        if held[0].ndim == 1 or not all(len(each) for each in held):
            return None
        flat = [each.reshape(len(each), -1) for each in held]
        places = _spread(list(range(min(one.shape[1] for one in flat))), _VIEWS)
        return [[each[:, at] for each in flat] for at in places]
    cells = [_spread(list(each), _ROWS) for each in held]
    every = [cell for each in cells for cell in each]
    if not every:
        return None
    if all(isinstance(cell, dict) for cell in every):
        names = [key for key in every[0] if all(key in cell for cell in every)]
    elif all(isinstance(cell, tuple | list) or _is_vector(cell) for cell in every):
        names = list(range(min(map(len, every))))
    else:
        return None
    names = _spread(names, most // len(every))
    sizes = [np.array([len(cell) for cell in each]) for each in cells]
    return [sizes] + [[_gather([cell[name] for cell in each]) for each in cells] for name in names]


def _is_vector(cell: Any) -> bool:
    return isinstance(cell, np.ndarray) and cell.ndim > 0


def _gather(cells: list[Any]) -> Any:
    """Hold numbers in an array, where a column that counts is known as such."""
    return np.array(cells) if all(isinstance(each, _NUMBERS) for each in cells) else cells
