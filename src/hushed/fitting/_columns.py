"""Columns of a table as plain numbers or texts, each row by itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed.statistics._values import as_doubles, cells_of

_TIMES = ("Date", "Datetime", "Duration", "Time")  # of Polars
_ABSENT = object()
_MISSING = ("NoneType", "NAType", "NaTType")


def name_columns(rows: Any) -> tuple[str, ...]:
    """Name the columns of a public table, by place where they have no name."""
    if containers.container(rows) == "list":
        first = rows[0]
        if isinstance(first, dict):
            return tuple(map(str, first))
        return tuple(map(str, range(len(first)))) if isinstance(first, tuple | list) else ("",)
    if containers.container(rows) == "array" and rows.ndim > 1:
        return tuple(map(str, range(math.prod(rows.shape[1:]))))
    return containers.layout(rows).columns or ("",)


def split_columns(rows: Any, names: tuple[str, ...]) -> list[Any]:
    """Take a table apart into its columns."""
    held = containers.container(rows)
    if held == "list":
        return [rows] if names == ("",) else [[_cell(row, name) for row in rows] for name in names]
    if held == "pandas":
        return [rows.iloc[:, place] for place in range(rows.shape[1])]
    if held == "polars":
        return list(rows.get_columns())
    if rows.dtype.names:
        return [rows[name].reshape(-1) for name in rows.dtype.names]
    return [rows] if rows.ndim == 1 else list(rows.reshape(len(rows), -1).T)


def _cell(row: Any, name: str) -> Any:
    """Cell of a row of a list; what is not there counts as missing."""
    if isinstance(row, dict):
        return next((value for key, value in row.items() if str(key) == name), _ABSENT)
    known = isinstance(row, tuple | list) and name.isdecimal() and int(name) < len(row)
    return row[int(name)] if known else _ABSENT


def is_numeric(column: Any) -> bool:
    """Tell whether a column of a public table is one of numbers or of times."""
    if isinstance(column, list):
        return bool(np.isfinite(as_doubles(column)).any())
    if type(column).__module__.startswith("polars"):
        kind = column.dtype
        return kind.is_numeric() or str(kind) == "Boolean" or str(kind).startswith(_TIMES)
    kind = getattr(column.dtype, "kind", "O")
    if kind == "O" and not _is_text(column):
        return bool(np.isfinite(as_doubles(column)).any())
    return kind in "biufmM"


def _is_text(column: Any) -> bool:
    """Tell whether a column is one of texts or categories by its type."""
    return not isinstance(column.dtype, np.dtype)


def read_numbers(column: Any) -> Floats:
    """Read numbers as doubles; what is no number is NaN."""
    if type(column).__module__.startswith("polars") and str(column.dtype).startswith(_TIMES):
        column = column.to_physical()
    if not isinstance(column, list) and getattr(column.dtype, "kind", "O") in "mM":
        times = _read_times(column)
        found: Floats = times.astype("int64").astype(np.float64)
        found[np.isnat(times)] = np.nan
        return found
    doubles: Floats = as_doubles(column)
    return doubles


def _read_times(column: Any) -> Any:
    """Read times in their own unit, which holds them all; those of a zone as in UTC."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    unit = getattr(column.dtype, "unit", None) or column.dtype.pyarrow_dtype.unit
    return column.to_numpy(dtype=f"{column.dtype.kind}8[{unit}]")


def is_readable(column: Any) -> bool:
    """Tell whether some cell of a public column is read, if one is there at all."""
    cells = [cell for cell in cells_of(column) if type(cell).__name__ not in _MISSING]
    return not cells or any(read_texts(cells))


def read_texts(column: Any) -> list[str]:
    """Read cells as texts; what is neither text nor number is one text for all."""
    return [cell if type(cell) is str else _text(cell) for cell in cells_of(column)]


def _text(cell: Any) -> str:
    return repr(cell) if type(cell) in (bool, int, float, bytes) else ""
