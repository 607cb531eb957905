"""Rows as numbers of a public range, each row by itself, and exact sums of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from hushed._ground.checks import is_a, is_one_of, read_finite
from hushed._ground.types import Floats
from hushed._ground.warned import warn_outside
from hushed._rows import _containers as containers
from hushed._rows._elements import name_type
from hushed.errors import BadRows, HushedWarning, ParameterError

_LARGEST_SPAN, _LEAST_SPAN = 1e300, 2.0**-900
_MANTISSA, _HALF = 53, 26
_OBJECTS = (
    "the column holds objects of Python, and each that is no number, such as the text '12', counts "
    "as the low end of the range, or as within every bound. Whether it holds such is private and "
    "not looked at: cast the column to numbers first, as with .astype(float)"
)


def check_range(low: Any, high: Any) -> tuple[float, float]:
    """Read a public range: two doubles whose difference leaves room for rounding."""
    ends = read_finite("low", low), read_finite("high", high)
    if ends[0] >= ends[1]:
        raise ParameterError(
            f"high must be above the low end of the range, which is {low}; got {high}",
            parameter="high",
        )
    if not _LEAST_SPAN <= ends[1] - ends[0] <= _LARGEST_SPAN:
        raise ParameterError(
            f"high must be above the low end of the range, which is {low}, by 2**-900 or more and "
            f"1e300 at most; got {high}",
            parameter="high",
        )
    return ends


def only_column(rows: Any) -> Any:
    """Take the single column of a table; refuses by types and shapes alone."""
    rows = containers.take_plain(containers.as_table(rows))
    held = containers.container(rows)
    if held == "list":
        return rows
    shape = rows.shape
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise BadRows(
            f"a statistic takes one column, got {containers.layout(rows)}; select the column first"
        )
    if held == "array":
        return rows.reshape(-1)
    return rows.iloc[:, 0] if held == "pandas" else rows[:, 0]


def read_numbers(column: Any, low: float, high: float) -> Floats:
    """Sort a column as numbers, each moved into a range; what is no number counts as its low end.

    Conversion to doubles treats each row by itself, so neighbours stay neighbours.
    """
    numbers = as_doubles(column)
    numbers[np.isnan(numbers)] = low
    np.clip(numbers, low, high, out=numbers)
    numbers += 0.0  # no negative zero: it equals zero, and would be told apart by its sign
    numbers.sort()
    return numbers


def check_numbers(column: Any) -> None:
    """Refuse a column that holds no numbers by its type; of objects say what becomes of texts.

    Lists and objects are never refused.

    The type of a column is public, as its length may be; what a list holds is told by its cells
    alone, which are private.
    """
    if isinstance(column, list):
        return
    dtype = column.dtype
    if _is_polars(column):
        allowed = dtype.is_numeric() or str(dtype) in ("Boolean", "Object", "Null")
    else:
        allowed = _may_hold_numbers(dtype)
    if not allowed:
        kind = name_type(dtype)
        told = f"type {kind}" if kind else "another type"
        raise BadRows(f"what is needed is a column of numbers, got one of {told}: cast it")
    if str(dtype) in ("object", "Object"):
        warn_outside(HushedWarning(_OBJECTS))


def _may_hold_numbers(dtype: Any) -> bool:
    """Whether a type of NumPy or pandas is one of numbers, or of any objects.

    The types of pandas for texts, periods and intervals call themselves objects, too. So does that
    of categories, whose own type pandas found from the cells: it must decide nothing.
    """
    if getattr(dtype, "kind", "O") != "O":
        return dtype.kind in "biuf"
    return isinstance(dtype, np.dtype) or str(dtype).startswith("decimal")


def as_doubles(column: Any) -> Floats:
    """Convert a column of numbers, in an array of its own."""
    if isinstance(column, list) or getattr(column.dtype, "kind", "O") == "O":
        return _doubles_of(cells_of(column))
    with np.errstate(over="ignore"):
        if isinstance(column, np.ndarray):
            return np.array(column, dtype=np.float64)
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def cells_of(column: Any) -> list[Any]:
    """Give the cells of a column as objects of Python, where its container knows how."""
    if isinstance(column, list):
        return column
    cells: list[Any] = column.to_list() if _is_polars(column) else column.tolist()
    return cells


def _is_polars(column: Any) -> bool:
    return type(column).__module__.startswith("polars")


def _doubles_of(cells: Iterable[Any]) -> Floats:
    """Convert objects one by one; what is no number becomes NaN, and no value is shown."""
    return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _number(cell: Any) -> float:
    """Read a cell as a double; no code of a class of the user's is run, and nothing fails."""
    if type(cell) is float:
        return cell
    try:
        if is_a(cell, np.integer, np.floating, np.bool_):
            cell = np.generic.item(cell)
        if is_a(cell, float):  # whatever a class of the user's makes of it
            return float.__float__(cell)
        if is_a(cell, int):
            cell = int.__index__(cell)
        elif not is_one_of(cell, Fraction, Decimal, np.longdouble):
            return math.nan
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except Exception:  # a signalling NaN
        return math.nan


def exact_sum(values: Floats) -> Fraction:
    """Sum of finite doubles, without rounding."""
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    total = Fraction(0)
    for exponent in np.unique(exponents).tolist():
        part = whole[exponents == exponent]
        high, low = int((part >> _HALF).sum()), int((part & ((1 << _HALF) - 1)).sum())
        total += ((high << _HALF) + low) * Fraction(2) ** (exponent - _MANTISSA)
    return total
