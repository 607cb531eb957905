"""Recognise private rows in a table that is said to be public, and name tables by content."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np

from hushed._rows import _containers as containers
from hushed._types import Floats

_NEARLY_ALL = 0.9
_FEW = 20
_BY_CHANCE = 0.35  # of the private rows found in the other table


def shares_rows(frame: Any, private: Any) -> bool:
    """Tell whether a table was visibly made of the private rows.

    True if it is the private table, shares its memory, holds the same rows in any order, or shares
    at least half of the rows of the smaller table (if that has 20 different rows or more; of the
    private table otherwise), if the private rows are nearly all different and so many would not be
    found by chance. Numbers that one of them kept in single precision are compared in it.

    Notes
    -----
    Rounded incomes are found in any large table of such. How often two rows are equal by chance is
    taken from both tables; where that leaves a third of the private rows to be found, nothing is
    said unless half of the other table is private.

    The answer depends on private rows and is not paid for. A table of few rows therefore tells
    nothing: whoever may try tables could otherwise ask for single people by name.
    """
    if frame is private:
        return True
    arrays = isinstance(frame, np.ndarray) and isinstance(private, np.ndarray)
    if arrays and np.shares_memory(frame, private):
        return True
    exact, short = _keys(private, frame, short=False), _keys(private, frame, short=True)
    kept_short = exact[0] == short[0] or exact[1] == short[1]
    return _is_beyond_chance(*exact) or (kept_short and _is_beyond_chance(*short))


def _keys(private: Any, frame: Any, *, short: bool) -> tuple[list[Any], list[Any]]:
    """One key for each row of both tables; of numbers as single precision keeps them, if short."""
    numbers = _matrix(private), _matrix(frame)
    if numbers[0] is not None and numbers[1] is not None:
        return _row_bytes(numbers[0], short=short), _row_bytes(numbers[1], short=short)
    return _row_keys(private, short=short), _row_keys(frame, short=short)


def _is_beyond_chance(ours: list[Any], theirs: list[Any]) -> bool:
    """Tell whether private rows, the first, are found among others more often than by chance."""
    if len(ours) == len(theirs) and sorted(ours) == sorted(theirs):
        return True
    distinct, known = set(ours), set(theirs)
    if len(distinct) < _NEARLY_ALL * len(ours):
        return False
    # A bootstrap sample of the private rows repeats some, so that half of them may be distinct.
    smaller = min(len(distinct), len(known)) if len(known) >= len(theirs) / 2 else len(distinct)
    if smaller < _FEW:
        smaller = len(distinct)
    shared = len(distinct & known)
    if shared < smaller / 2:
        return False
    return shared >= len(known) / 2 or len(theirs) * _chance(ours, theirs) < _BY_CHANCE


def _chance(ours: list[Any], theirs: list[Any]) -> float:
    """Bound how often two independent rows are equal, by the tables themselves.

    A table made of the private ones repeats rows that these do not, and the other way round: the
    smaller number counts.
    """
    return min(_equal_pairs(ours), _equal_pairs(theirs))


def _equal_pairs(rows: list[Any]) -> float:
    equal = sum(times * (times - 1) for times in Counter(rows).values()) / 2
    return (equal + 1) / max(1.0, len(rows) * (len(rows) - 1) / 2)


def _matrix(frame: Any) -> Floats | None:
    """Rows as doubles, shape (rows, columns), if all cells are numbers."""
    if containers.container(frame) == "list" or "other" in containers.layout(frame).kinds:
        return None
    columns = frame if isinstance(frame, np.ndarray) else frame.to_numpy()
    if columns.dtype.kind not in "biuf":
        return None
    return columns.reshape(len(columns), -1).astype(np.float64) + 0.0  # negative zero is zero


def _row_bytes(numbers: Floats, *, short: bool) -> list[Any]:
    """One bytes object for each row: what `_row_keys` does, thirty times faster."""
    if short:
        with np.errstate(over="ignore"):
            numbers = numbers.astype(np.float32).astype(np.float64)
    width = numbers.shape[1] * numbers.itemsize
    return list(np.ascontiguousarray(numbers).view(f"V{width}").ravel().tolist())


def _row_keys(frame: Any, *, short: bool = False) -> list[Any]:
    """One text for each row, equal for equal rows whatever container holds them."""
    held = containers.container(frame)
    cell = _short_cell if short else _cell
    if held == "polars":
        return [repr(tuple(map(cell, row))) for row in frame.iter_rows()]
    if held == "pandas":
        return [repr(tuple(map(cell, row))) for row in frame.itertuples(index=False, name=None)]
    return [repr(tuple(map(cell, np.ravel(np.asarray(row, dtype=object))))) for row in frame]


def _cell(value: Any) -> Any:
    real = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    return float(value) + 0.0 if real else str(value)  # + 0.0: negative zero is zero


def _short_cell(value: Any) -> Any:
    cell = _cell(value)
    with np.errstate(over="ignore"):
        return float(np.float32(cell)) if isinstance(cell, float) else cell


def digest(frame: Any) -> str:
    """Name a table by its content."""
    found = hashlib.sha256()
    if isinstance(frame, np.ndarray) and frame.dtype.kind in "biuf":
        found.update(repr((str(frame.dtype), frame.shape)).encode())
        found.update(np.ascontiguousarray(frame).tobytes())
    else:
        for key in _row_keys(frame):
            found.update(key.encode() + b"\n")
    return found.hexdigest()
