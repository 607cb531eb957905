"""Recognise private rows in a table that is said to be public, and name tables by content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hushed import rows as tables
from hushed._types import Floats

__all__ = ["digest", "shares_rows"]


_NEARLY_ALL = 0.9
_FEW = 20


def shares_rows(frame: Any, private: Any) -> bool:
    """Tell whether a table was visibly made of the private rows.

    Parameters
    ----------
    frame : array, list or frame
        The table that is said to be public.
    private : array, list or frame
        The private rows.

    Returns
    -------
    bool
        True if it is the private table, shares its memory, holds the same rows in any order, or
        shares at least half of the rows of the smaller table (if that has 20 different rows or
        more; of the private table otherwise), if the private rows are nearly all different.

    Notes
    -----
    The answer depends on private rows and is not paid for. A table of few rows therefore tells
    nothing: whoever may try tables could otherwise ask for single people by name.
    """
    if frame is private:
        return True
    arrays = isinstance(frame, np.ndarray) and isinstance(private, np.ndarray)
    if arrays and np.shares_memory(frame, private):
        return True
    numbers = _matrix(private), _matrix(frame)
    if numbers[0] is not None and numbers[1] is not None:
        ours, theirs = _row_bytes(numbers[0]), _row_bytes(numbers[1])
    else:
        ours, theirs = _row_keys(private), _row_keys(frame)
    if len(ours) == len(theirs) and sorted(ours) == sorted(theirs):
        return True
    distinct, known = set(ours), set(theirs)
    if len(distinct) < _NEARLY_ALL * len(ours):
        return False
    # A bootstrap sample of the private rows repeats some, so that half of them may be distinct.
    smaller = min(len(distinct), len(known)) if len(known) >= len(theirs) / 2 else len(distinct)
    if smaller < _FEW:
        smaller = len(distinct)
    return len(distinct & known) >= smaller / 2


def _matrix(frame: Any) -> Floats | None:
    """Rows as doubles, shape (rows, columns), if all cells are numbers."""
    if tables.container(frame) == "list" or "other" in tables.layout(frame).kinds:
        return None
    columns = frame if isinstance(frame, np.ndarray) else frame.to_numpy()
    if columns.dtype.kind not in "biuf":
        return None
    return columns.reshape(len(columns), -1).astype(np.float64) + 0.0  # negative zero is zero


def _row_bytes(numbers: Floats) -> list[Any]:
    """One bytes object for each row: what `_row_keys` does, thirty times faster."""
    width = numbers.shape[1] * numbers.itemsize
    return list(np.ascontiguousarray(numbers).view(f"V{width}").ravel().tolist())


def _row_keys(frame: Any) -> list[Any]:
    """One text for each row, equal for equal rows whatever container holds them."""
    held = tables.container(frame)
    if held == "polars":
        return [repr(tuple(map(_cell, row))) for row in frame.iter_rows()]
    if held == "pandas":
        return [repr(tuple(map(_cell, row))) for row in frame.itertuples(index=False, name=None)]
    return [repr(tuple(map(_cell, np.ravel(np.asarray(row, dtype=object))))) for row in frame]


def _cell(value: Any) -> Any:
    real = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    return float(value) + 0.0 if real else str(value)  # + 0.0: negative zero is zero


def digest(frame: Any) -> str:
    """Name a table by its content.

    Parameters
    ----------
    frame : array, list or frame
        A table.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    found = hashlib.sha256()
    if isinstance(frame, np.ndarray) and frame.dtype.kind in "biuf":
        found.update(repr((str(frame.dtype), frame.shape)).encode())
        found.update(np.ascontiguousarray(frame).tobytes())
    else:
        for key in _row_keys(frame):
            found.update(key.encode() + b"\n")
    return found.hexdigest()
