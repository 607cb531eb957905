"""Which numbers a double holds as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_INT: int = 1 << 53


def is_small(read: NDArray[Any]) -> bool:
    """Whether doubles hold all whole numbers of an array as they are."""
    return read.dtype.kind == "b" or not ((read > LARGEST_INT) | (read < -LARGEST_INT)).any()


def moved_by_rounding(raw: Any, read: NDArray[Any]) -> bool:
    """Tell whether reading an answer as doubles would round it."""
    if read.dtype.kind == "f" and read.dtype.itemsize > 8:
        return True
    if read.dtype.kind in "iu":
        return not is_small(read)
    if read.dtype.kind == "b" or isinstance(raw, np.ndarray | np.generic | float):
        return False
    try:
        if hasattr(raw, "columns"):  # a frame: NumPy gives all columns one type first
            parts = [
                raw.iloc[:, i] if hasattr(raw, "iloc") else raw[:, i] for i in range(raw.shape[1])
            ]
            return any(moved_by_rounding(part, np.asarray(part)) for part in parts)
        held = np.asarray(raw, dtype=object).ravel().tolist()
        return any(map(_is_moved, held))
    except Exception:
        return True  # nobody knows what it holds


def _is_moved(number: Any) -> bool:
    """Tell it of one number, which may lie in an array without axes, or an object that is one."""
    if isinstance(number, int | np.integer):
        return abs(int(number)) > LARGEST_INT
    if isinstance(number, float | np.generic):
        return False
    return moved_by_rounding(number, np.asarray(number))
