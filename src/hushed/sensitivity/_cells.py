"""Columns of what cells hold: values in tuples, lists, mappings, arrays and records."""

from __future__ import annotations

from typing import Any

import numpy as np

_DEPTH = 4  # of cells in cells
_NUMBERS = (bool, int, float, np.number)


def open_cells(tables: list[list[Any]], depth: int = _DEPTH) -> list[list[Any]]:
    """Put columns of cells that hold several values apart, in the same way in all tables."""
    opened: list[list[Any]] = []
    for held in _turn(tables):
        parts = _open_column(held) if depth else None
        opened += [held] if not parts else _turn(open_cells(_turn(parts), depth - 1))
    return _turn(opened)


def _turn(lists: list[list[Any]]) -> list[list[Any]]:
    return [list(each) for each in zip(*lists, strict=True)]


def _open_column(held: list[Any]) -> list[list[Any]] | None:
    """Columns that a column consists of, each of all tables; None if its cells are single."""
    if all(isinstance(each, np.ndarray) and each.dtype.kind != "O" for each in held):
        names = held[0].dtype.names
        if names:
            return [[each[name] for each in held] for name in names]
        if held[0].ndim == 1:
            return None
        flat = [each.reshape(len(each), -1) for each in held]
        return [[each[:, at] for each in flat] for at in range(min(one.shape[1] for one in flat))]
    cells = [list(each) for each in held]
    every = [cell for each in cells for cell in each]
    if all(isinstance(cell, dict) for cell in every):
        names = [key for key in every[0] if all(key in cell for cell in every)]
    elif all(isinstance(cell, tuple | list) or _is_vector(cell) for cell in every):
        names = list(range(min(map(len, every))))
    else:
        return None
    sizes = [np.array([len(cell) for cell in each]) for each in cells]
    return [sizes] + [[_gather([cell[name] for cell in each]) for each in cells] for name in names]


def _is_vector(cell: Any) -> bool:
    return isinstance(cell, np.ndarray) and cell.ndim > 0


def _gather(cells: list[Any]) -> Any:
    """Hold numbers in an array, where a column that counts is known as such."""
    return np.array(cells) if all(isinstance(each, _NUMBERS) for each in cells) else cells
