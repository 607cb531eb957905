"""Given rows that a record may be replaced by: as the caller writes them, and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from hushed._rows import _containers as containers
from hushed._rows._ranges import Range
from hushed.errors import ParameterError

_MOST_CORNERS = 4096
_PLAIN = (bool, int, float, str)

Cell = bool | int | float | str | None
Row = tuple[Cell, ...]


def read_values(values: Any) -> tuple[Row, ...]:
    """Read given rows: a list of cells, or of lists of cells, or an array or frame."""
    if values is None:
        return ()
    if hasattr(values, "columns"):
        values = values.to_numpy()
    given = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ParameterError(
            "values are the public rows that a record may be replaced by: a list of numbers, or "
            f"of lists of cells, or an array or frame of rows; got {type(values).__name__}",
            parameter="values",
        )
    rows = tuple(tuple(row) if isinstance(row, list | tuple) else (row,) for row in given)
    if not all(_is_plain(cell) for row in rows for cell in row):
        raise ParameterError(
            "values hold numbers that are finite, truth values, texts and None", parameter="values"
        )
    return rows


def _is_plain(cell: object) -> bool:
    if isinstance(cell, float):
        return math.isfinite(cell)
    return cell is None or type(cell) in _PLAIN


def write_values(table: Any) -> tuple[Row, ...]:
    """Cells of a table of given rows."""
    if not len(table):
        return ()
    return read_values(table if hasattr(table, "columns") else table[:])


def choose_values(
    values: tuple[Row, ...], like: Any, ranges: tuple[Range, ...], *, monotone: bool
) -> Any:
    """Table of given rows, of the kind that was drawn; for a monotone function the corners."""
    if monotone:
        values = list_corners(like, ranges)
    if not values:
        return like[:0]
    try:
        table = _make_table(values, like)
        kept = write_values(table)
    except (TypeError, ValueError, OverflowError, ParameterError):
        kept = ()
    if kept != values or containers.signature(table) != containers.signature(like[:1]):
        raise ParameterError(
            f"values must be rows as the population draws them ({containers.layout(like)}, of the "
            "same types), and keep their cells when they are made so",
            parameter="values",
        )
    return table


def _make_table(values: tuple[Row, ...], like: Any) -> Any:
    held = containers.container(like)
    if held == "array":
        cells = np.array([list(row) for row in values])
        return cells.astype(like.dtype).reshape(len(values), *like.shape[1:])
    if held == "list":
        kind = type(like[0])
        return [kind(row) if kind in (list, tuple) else row[0] for row in values]
    columns = dict(zip(like.columns, zip(*values, strict=True), strict=True))
    if held == "polars":
        return type(like)(columns, schema=like.schema)
    return type(like)(columns).astype(like.dtypes.to_dict())


def list_corners(like: Any, ranges: tuple[Range, ...]) -> tuple[Row, ...]:
    """Corners of the box that all rows lie in."""
    columns = containers.layout(like).columns or ("",)
    ends = {each.column: (each.low, each.high) for each in ranges if not each.missing}
    if set(ends) != set(columns) or not all(map(math.isfinite, sum(ends.values(), ()))):
        raise ParameterError(
            "monotone=True takes the ends of the public range of every column, and the population "
            "states none for some, or has missing values there: give it bounds, or give values "
            "instead of monotone",
            parameter="monotone",
        )
    if 2 ** len(columns) > _MOST_CORNERS:
        raise ParameterError(
            f"a box of {len(columns)} columns has more than {_MOST_CORNERS} corners: give values "
            "instead of monotone",
            parameter="monotone",
        )
    return tuple(product(*(ends[name] for name in columns)))
