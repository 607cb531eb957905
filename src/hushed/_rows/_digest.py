"""Name tables by their content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hushed._rows import _containers as containers
from hushed._rows._people import show_rows


def digest(frame: Any) -> str:
    """Name a table by its content."""
    frame = show_rows(frame)
    found = hashlib.sha256()
    if isinstance(frame, np.ndarray) and frame.dtype.kind in "biuf":
        found.update(repr((str(frame.dtype), frame.shape)).encode())
        found.update(np.ascontiguousarray(frame).tobytes())
    else:
        for key in _row_keys(frame):
            found.update(key.encode() + b"\n")
    return found.hexdigest()


def _row_keys(frame: Any) -> list[Any]:
    """One text for each row, equal for equal rows whatever container holds them."""
    return list(map(repr, _rows(frame)))


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    """Cells of each row: a double for a number, a text for all else."""
    held = containers.container(frame)
    if held == "polars":
        return [tuple(map(_cell, row)) for row in frame.iter_rows()]
    if held == "pandas":
        return [tuple(map(_cell, row)) for row in frame.itertuples(index=False, name=None)]
    return [tuple(map(_cell, np.ravel(np.asarray(row, dtype=object)))) for row in frame]


def _cell(value: Any) -> Any:
    real = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    if not real or isinstance(value, np.timedelta64):  # which NumPy calls an integer
        return _describe_object(value)
    try:
        return float(value) + 0.0  # negative zero is zero
    except OverflowError:  # a whole number beyond the doubles
        return hex(value)


def _describe_object(value: Any) -> str:
    """Text of what is not a number; of an object that shows only its address, of its content."""
    kind: Any = type(value)
    if kind.__repr__ is not object.__repr__ or kind.__str__ is not object.__str__:
        return str(value)
    try:
        return f"{kind.__qualname__} {value.__reduce_ex__(4)[1:3]!r}"
    except Exception:  # pickle keeps nothing of it
        return str(value)
