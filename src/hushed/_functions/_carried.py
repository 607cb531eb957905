"""Whether a function carries the private rows with it, beside those that it is given."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

_MOST_WORK = 1_000_000


class _Carried(Exception):
    """The rows were met."""


def carries_rows(function: Callable[..., Any], rows: Any) -> bool:
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
        held = [getattr(column.array, "_ndarray", None) for column in columns]
        return [each for each in held if each is not None]
    return []


def _shares_memory(value: Any, parts: list[np.ndarray[Any, Any]]) -> bool:
    return any(_overlap(one, other) for one in _list_arrays(value) for other in parts)


def _overlap(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except Exception:  # strides too odd to tell in time
        return True
