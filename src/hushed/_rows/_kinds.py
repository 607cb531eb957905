"""Classes of the objects in rows: what a row does when it is asked is in its class."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._elements import list_inner

_SINGLE = frozenset({type(None), bool, int, float, complex, str, bytes})
_PLAIN = _SINGLE | {tuple, list, dict, set, frozenset}


def list_kinds(rows: Any) -> list[type]:
    """List the classes of the objects in the cells of a table, and of what these hold, by name."""
    found: set[type] = set()
    seen: dict[int, Any] = {}  # kept, so that no id is used twice
    left = _list_cells(rows)
    if set(map(type, left)) <= _SINGLE:
        return []
    while left:
        value = left.pop()
        kind = type(value)
        if kind in _SINGLE or id(value) in seen:
            continue
        seen[id(value)] = value
        if kind not in _PLAIN:
            found.add(kind)
        left += [each for _, each in list_inner(value)]
        with suppress(Exception):  # its attributes, if it has some
            left += object.__getattribute__(value, "__dict__").values()
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def _list_cells(rows: Any) -> list[Any]:
    """List the cells that are objects of Python."""
    if isinstance(rows, Bundles):
        return _list_cells(rows.rows)
    held = containers.container(rows)
    if held == "list":
        return list(rows)
    if held == "array":
        return rows.ravel().tolist() if rows.dtype.hasobject else []
    columns = [
        (rows.iloc[:, place] if held == "pandas" else rows[:, place])
        for place, dtype in enumerate(rows.dtypes)
        if str(dtype) in ("object", "Object")
    ]
    return [cell for column in columns for cell in column]
