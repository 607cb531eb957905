"""Whether a function carries the private rows with it, beside those that it is given."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

_MOST_WORK = 1_000_000


class _Carried(Exception):
    """The rows were met."""


def carries_rows(function: Callable[[Any], Any], rows: Any) -> bool:
    """Tell whether the rows themselves, or a view of some, come along when it is sent away.

    They are in a closure, a global of a script or notebook, a default, or an attribute. Objects and
    memory are compared, never values: the answer is not paid for, and whoever knows all rows but
    one could otherwise try tables until one is refused. So copies are not seen, nor what was
    computed from the rows, nor a module's table.
    """
    import cloudpickle  # noqa: PLC0415

    parts = _list_arrays(rows)

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> None:
            if value is rows or _shares_memory(value, parts):
                raise _Carried

    try:
        Pickler(io.BytesIO()).dump(function)
    except _Carried:
        return True
    except Exception:  # it cannot be sent: that is said elsewhere
        return False
    return False


def _list_arrays(table: Any) -> list[np.ndarray[Any, Any]]:
    """Arrays that are the memory of a table; none where they would be made for the purpose."""
    if isinstance(table, np.ndarray):
        return [table]
    library = type(table).__module__.partition(".")[0]
    if library == "pandas" and type(table).__name__ in ("DataFrame", "Series"):
        columns = [table] if table.ndim == 1 else [table.iloc[:, i] for i in range(table.shape[1])]
        return [each for column in columns for each in _list_memory(column.array)]
    return []


def _list_memory(column: Any) -> list[np.ndarray[Any, Any]]:
    """Memory of a column of pandas: of NumPy, of numbers with a mask, or of Arrow."""
    if hasattr(column, "_pa_array"):
        return [each for chunk in column._pa_array.iterchunks() for each in _view_chunk(chunk)]
    held = getattr(column, "_ndarray", getattr(column, "_data", None))
    return [held] if isinstance(held, np.ndarray) else []


def _view_chunk(chunk: Any) -> list[np.ndarray[Any, Any]]:
    """Memory of the values of an Arrow array, or of the places of its texts; of its rows alone.

    Bits that say what is missing are left out: many arrays without a value share one memory.
    """
    buffers = chunk.buffers()
    if len(buffers) < 2 or buffers[1] is None:
        return []
    try:
        bits = chunk.type.bit_width
    except ValueError:  # of texts and lists
        bits = 64 if str(chunk.type).startswith("large") else 32
    first, last = chunk.offset * bits // 8, (chunk.offset + len(chunk)) * bits // 8
    return [np.frombuffer(buffers[1], dtype=np.uint8)[first:last]]


def _shares_memory(value: Any, parts: list[np.ndarray[Any, Any]]) -> bool:
    return any(_overlap(one, other) for one in _list_arrays(value) for other in parts)


def _overlap(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except Exception:  # strides too odd to tell in time
        return True
