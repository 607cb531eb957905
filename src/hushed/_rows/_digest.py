"""Name tables by their content."""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hushed._rows import _containers as containers
from hushed._rows._people import show_rows

_DEEPEST = 20
# Whose objects, if they hold no others, are told by their texts.
_TOLD_BY_TEXT = frozenset(
    {"builtins", "datetime", "decimal", "fractions", "ipaddress", "numpy", "pandas", "uuid"}
)


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
    return [_list_cells(row) for row in frame]


def _list_cells(row: Any) -> tuple[Any, ...]:
    """Cells of a row of an array or a list: of an array of rows, or a list of plain cells."""
    flat = row if isinstance(row, list | tuple) else [row]
    if isinstance(row, np.ndarray):
        flat = row.ravel().tolist() if row.dtype.kind in "biufO" else list(row.ravel())
    return tuple(map(_cell, flat))


def _cell(value: Any, depth: int = 0) -> Any:
    """Plain values that say what a cell holds, all of it, and are equal for equal cells."""
    real = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    if not real or isinstance(value, np.timedelta64):  # which NumPy calls an integer
        return str(value) if isinstance(value, str) else _describe_object(value, depth)
    exact = value.item() if isinstance(value, np.generic) else value
    try:
        number = float(value) + 0.0  # negative zero is zero
    except OverflowError:
        number = math.inf
    same = number == exact or number != number  # noqa: PLR0124  (NaN)
    return number if same else f"{'' if isinstance(exact, int) else type(exact).__name__} {exact}"


def _describe_object(value: Any, depth: int) -> tuple[Any, ...]:
    """Say what is neither number nor text, and no text can be mistaken for."""
    if depth > _DEEPEST:
        return "deep", type(value).__qualname__
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        held = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return "array", value.dtype.str, value.shape, held
    parts = _list_parts(value)
    if parts is None and type(value).__module__.partition(".")[0] not in _TOLD_BY_TEXT:
        parts = _reduce(value)
    if parts is None:
        return "object", str(value)
    return type(value).__qualname__, *(_cell(each, depth + 1) for each in parts)


def _list_parts(value: Any) -> list[Any] | None:
    """List what a cell holds, if it is known to be nothing else than that."""
    found = None
    if isinstance(value, np.ndarray):
        found = [value.shape, *value.ravel().tolist()]
    elif isinstance(value, dict):
        found = [*value, *value.values()]
    elif isinstance(value, set | frozenset):
        found = sorted(value, key=repr)
    elif isinstance(value, np.void) and value.dtype.names:
        found = list(value.item())
    elif isinstance(value, list | tuple):
        found = list(value)
    elif is_dataclass(value) and not isinstance(value, type):
        found = [getattr(value, each.name, None) for each in fields(value)]
    elif hasattr(value, "__array__") and not isinstance(value, np.generic | type):
        with suppress(Exception):  # as a tensor that lies elsewhere
            found = [np.asarray(value)]
    return found


def _reduce(value: Any) -> list[Any] | None:
    """List what pickle keeps of an object, and what it says of itself, unless that is its address.

    None if pickle keeps nothing of it.
    """
    kind: Any = type(value)
    if isinstance(value, type) or callable(value):
        return [getattr(value, "__module__", ""), getattr(value, "__qualname__", "")]
    told = kind.__repr__ is not object.__repr__ or kind.__str__ is not object.__str__
    try:
        given, state = value.__reduce_ex__(4)[1:3]
    except Exception:
        return None
    if isinstance(state, tuple) and len(state) == 2:  # attributes, and slots
        parts = [each or {} for each in state]
        state = parts[0] | parts[1] if all(type(each) is dict for each in parts) else state
    return [given, state, str(value) if told else ""]
