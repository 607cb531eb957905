"""Public ranges of columns, and rows moved into them: row by row, so neighbours stay neighbours."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.printing import as_given
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._elements import Cells
from hushed._rows._owned import copy_rows, strip_rows
from hushed.errors import ParameterError

_NOTHING, _NAN = "NoneType", "float"  # types of missing values
_NUMBERS = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Public range of a column.

    Raises
    ------
    ParameterError
        If the ends cross, are NaN, or none of them is finite.
    """

    column: str  # its name, or its place in an array; empty where a row is one number
    # Ends, both inside; one may be infinite.
    low: float
    high: float
    # Whether the population has missing values there. Otherwise a missing value is moved to the low
    # end, or to the high one if that alone is finite.
    missing: bool = False
    # Types of the missing values that it has, by name, where a container tells several apart, as
    # nothing and NaN; empty if it does not. Others are moved as if there were none.
    stays: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        try:
            ends = float(self.low), float(self.high)
        except (TypeError, ValueError):
            ends = (math.nan, math.nan)
        if not ends[0] <= ends[1] or not (math.isfinite(ends[0]) or math.isfinite(ends[1])):
            raise ParameterError(
                f"bounds must be (low, high) with low <= high, and one of them finite; got "
                f"({as_given(self.low)}, {as_given(self.high)})"
            )
        object.__setattr__(self, "low", ends[0])
        object.__setattr__(self, "high", ends[1])

    def keeps(self, kind: str) -> bool:
        """Whether a missing value of a type stays what it is."""
        return self.missing and (not self.stays or kind in self.stays)

    @property
    def end(self) -> float:
        """Where a missing value goes."""
        return self.low if math.isfinite(self.low) else self.high


def read_ranges(bounds: Any) -> tuple[Range, ...]:
    """Read bounds as users write them."""
    if isinstance(bounds, Mapping):
        named = {str(name): pair for name, pair in bounds.items()}
    elif _is_pair(bounds):
        named = {"": bounds}
    elif isinstance(bounds, Sequence | np.ndarray) and not isinstance(bounds, str):
        named = {str(place): pair for place, pair in enumerate(bounds)}
    else:
        named = {"": None, " ": bounds}
    for pair in named.values():
        if pair is not None and not _is_pair(pair):
            raise ParameterError(
                "bounds are a mapping of columns to pairs (low, high), one pair where a row is one "
                f"number, or a pair for each column; got {type(pair).__name__}",
                parameter="bounds",
            )
    return tuple(
        Range(column=name, low=pair[0], high=pair[1])
        for name, pair in named.items()
        if pair is not None
    )


def _is_pair(found: Any) -> bool:
    if not isinstance(found, tuple | list | np.ndarray) or len(found) != 2:
        return False
    return all(isinstance(end, int | float | np.number) for end in found)


def check_columns(ranges: tuple[Range, ...], layout: containers.Layout) -> None:
    """Refuse ranges of columns that are not there, or hold no numbers."""
    if layout.container == "list" or not ranges:
        return
    # As bounds name them: labels tell what is not a text from the text of it.
    names = [re.sub(r" \((int|str)\)$", "", name) for name in layout.columns] or [""]
    times, kinds = Counter(names), dict(zip(names, layout.kinds, strict=True))
    for each in ranges:
        if times[each.column] != 1 or kinds[each.column] != "number":
            alone = "one number a row: bounds=(low, high)"
            there = ", ".join(map(repr, names[:8])) if layout.columns else alone
            raise ParameterError(
                f"bounds were given for {each.column!r}, which is not a column of numbers, or no "
                f"single one; there is {there}"
            )


def clamp(rows: Any, ranges: tuple[Range, ...], like: containers.Layout | None = None) -> Any:
    """Move rows into ranges.

    The same types. What lies outside of a range is moved to its nearer end, infinities, too. What
    is missing among objects becomes a number as others have it there, in tables of a layout.
    """
    if not ranges or not len(rows):
        return rows
    if isinstance(rows, Bundles):
        return replace(rows, rows=clamp(rows.rows, ranges, like))
    held = containers.container(rows)
    if held == "list":
        found = None if like is None else like.types[0].cells
        ends = {each.column: (each, _end_among(each, found)) for each in ranges}
        return [_row(row, ends) for row in rows]
    if held == "array":
        return _array(rows, ranges)
    for each in ranges:
        if held == "pandas":
            place = list(rows.columns.map(str)).index(each.column)
            rows.isetitem(place, _series(rows.iloc[:, place], each))
        else:
            rows = rows.with_columns(_polars(rows[each.column], each))
    return rows


def _array(rows: NDArray[Any], ranges: tuple[Range, ...]) -> NDArray[Any]:
    if rows.dtype.names:
        for one in ranges:
            rows[one.column] = _clip(rows[one.column], one)
        return rows
    columns = rows.reshape(len(rows), -1)
    alike: dict[Range, list[int]] = {}  # columns of one range are moved together
    for one in ranges:
        alike.setdefault(replace(one, column=""), []).append(int(one.column or 0))
    for one, places in alike.items():
        columns[:, places] = _clip(columns[:, places], one)
    return rows


def _clip(values: NDArray[Any], one: Range) -> NDArray[Any]:
    if values.dtype.kind == "b":
        return _clip(values.astype(np.uint8), _among_truths(one)).astype(bool)
    if values.dtype.kind not in "iuf":
        return values
    low, high = _ends(values.dtype, one)
    moved = np.clip(values, low, high)
    if values.dtype.kind == "f" and not one.missing:
        moved[np.isnan(values)] = low if math.isfinite(one.low) else high
    return np.asarray(moved)


def _among_truths(one: Range) -> Range:
    """Range of a column of truth values, as whole numbers."""
    low, high = max(0.0, math.ceil(max(one.low, 0.0))), min(1.0, math.floor(min(one.high, 1.0)))
    if low > high:
        raise _refuse_range(one, "bool")
    return replace(one, low=low, high=high)


def _refuse_range(one: Range, kind: object) -> ParameterError:
    column = f" of column {one.column!r}" if one.column else ""
    return ParameterError(
        f"no number of type {kind} lies within the bounds ({one.low:g}, {one.high:g}){column}: "
        "give wider ones",
        parameter="bounds",
    )


def _ends(dtype: np.dtype[Any], one: Range) -> tuple[Any, Any]:
    """Find the outermost values of a type that do not leave a range; refuse one without values."""
    if dtype.kind in "iu":
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        low = max(least, math.ceil(one.low) if math.isfinite(one.low) else least)
        high = min(most, math.floor(one.high) if math.isfinite(one.high) else most)
        if low > high:
            raise _refuse_range(one, dtype)
        return dtype.type(low), dtype.type(high)
    with np.errstate(over="ignore"):
        low, high = dtype.type(one.low), dtype.type(one.high)
    if float(low) < one.low:  # as doubles: NumPy would compare in the smaller type
        low = np.nextafter(low, dtype.type(math.inf))
    if float(high) > one.high:
        high = np.nextafter(high, dtype.type(-math.inf))
    if low > high:
        raise _refuse_range(one, dtype)
    return low, high


def _series(column: Any, one: Range) -> Any:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return type(column)(_clip(column.to_numpy(copy=True), one), index=column.index)
    if getattr(dtype, "kind", "") == "b":
        held = column.astype("uint8[pyarrow]" if hasattr(dtype, "pyarrow_dtype") else "UInt8")
        return _series(held, _among_truths(one)).astype(dtype)
    ends = _find_ends(getattr(dtype, "numpy_dtype", dtype), one)
    if getattr(dtype, "kind", "") == "f":  # its NaN is not a missing value to pandas
        values, gone = column.to_numpy(dtype.numpy_dtype, na_value=math.nan), column.isna()
        moved = type(column)(_clip(np.array(values), one), index=column.index)
        moved = moved.astype(dtype)
        return moved.mask(gone) if one.missing else moved
    # Arrow takes no number beyond its signed integers.
    held = column.astype("UInt64") if str(dtype).startswith("uint64[") else column
    moved = held.clip(*ends[:2])
    return (moved if one.missing else moved.where(moved.notna(), ends[2])).astype(dtype)


def _polars(column: Any, one: Range) -> Any:
    if str(column.dtype) == "Boolean":
        import polars  # noqa: PLC0415

        return _polars(column.cast(polars.UInt8), _among_truths(one)).cast(column.dtype)
    ends = _find_ends(column.dtype, one)
    moved = column.clip(*ends[:2])
    if not one.keeps(_NOTHING):
        moved = moved.fill_null(ends[2])
    if not one.keeps(_NAN) and moved.dtype.is_float():
        moved = moved.fill_nan(ends[2])
    return moved.cast(column.dtype)


def _find_ends(dtype: Any, one: Range) -> tuple[Any, Any, Any]:
    """Find them for a type of pandas or Polars, and where a missing value goes."""
    name = str(dtype).lower()
    if name not in _NUMBERS:
        raise ParameterError(f"bounds are for columns of integers or floats, not of {name}")
    low, high = (end.item() for end in _ends(np.dtype(name), one))
    end = low if math.isfinite(one.low) else high
    kind = np.dtype(name)
    ends = np.iinfo(kind) if kind.kind in "iu" else None
    least, most = (ends.min, ends.max) if ends else (-math.inf, math.inf)  # no ends: left out
    return None if low == least else low, None if high == most else high, end


def _end_among(one: Range, found: Cells | None) -> Any:
    """Find where a missing value of a list goes: to a number of the type that others have there."""
    kinds = set() if found is None else found.numbers_at(one.column)
    if not kinds or "float" in kinds:
        return one.end
    kind = min(kinds).removeprefix("numpy.")
    if kind in ("int", "bool"):
        whole = _among_truths(one) if kind == "bool" else one
        end = math.ceil(whole.low) if math.isfinite(whole.low) else math.floor(whole.high)
        return bool(end) if kind == "bool" else end
    if np.dtype(kind).kind not in "iuf":
        return np.dtype(kind).type(one.end)
    low, high = _ends(np.dtype(kind), one)
    return low if math.isfinite(one.low) else high


def _row(row: Any, ranges: dict[str, tuple[Range, Any]]) -> Any:
    """One row of a list: a number, or numbers by place or key."""
    if isinstance(row, dict):
        for key, value in row.items():
            row[key] = _number(value, ranges.get(str(key)))
        return row
    if isinstance(row, np.ndarray):
        for name, (one, _) in ranges.items():
            flat = row.reshape(-1)
            if int(name) < len(flat):
                kept = replace(one, missing=one.keeps(_NAN))
                flat[int(name) : int(name) + 1] = _clip(flat[int(name) : int(name) + 1], kept)
        return row
    if type(row) in (list, tuple):
        return type(row)(_number(value, ranges.get(str(i))) for i, value in enumerate(row))
    return _number(row, ranges.get(""))


def _number(value: Any, place: tuple[Range, Any] | None) -> Any:
    if place is None:
        return value
    one, end = place
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return _clip(np.array([value]), replace(one, missing=one.keeps(_NAN)))[0]
    if _is_missing(value):
        return value if one.keeps(type(value).__name__) else end
    if not isinstance(value, int | float):
        return value
    if value != value:  # noqa: PLR0124  (NaN)
        return value if one.keeps(_NAN) else type(value)(one.end)
    low, high = one.low, one.high
    if isinstance(value, int):
        low = math.ceil(low) if math.isfinite(low) else low
        high = math.floor(high) if math.isfinite(high) else high
    moved = low if value < low else high if value > high else value
    return value if moved is value else type(value)(moved)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _check_places(rows: list[Any], ranges: tuple[Range, ...]) -> None:
    """Refuse ranges of places of public rows where `_row` moves nothing."""
    for each in ranges:
        held = [value for row in rows for value in _at(row, each.column)]
        kinds = {type(value) for value in held if not _is_missing(value)}
        numeric = all(
            issubclass(kind, int | float | np.integer | np.floating | np.bool_) for kind in kinds
        )
        if not (held and numeric):
            raise ParameterError(
                f"bounds were given for {each.column!r}, where rows of the list hold no numbers, "
                "or not only numbers: a row is a number, a list, tuple or array of numbers with "
                "bounds by place, or a dict with bounds by key"
            )


def _at(row: Any, column: str) -> list[Any]:
    """Give what a row holds at a place; nothing where it ends before, or lacks the key."""
    if isinstance(row, dict):
        return [value for key, value in row.items() if str(key) == column]
    if type(row) in (list, tuple) or isinstance(row, np.ndarray):
        flat = row.reshape(-1) if isinstance(row, np.ndarray) else row
        if isinstance(row, np.ndarray) and row.dtype.hasobject:
            return [row]
        return list(flat[int(column) :][:1]) if column.isdecimal() else []
    return [row] if not column else [object()]


def check_ranges(rows: Any, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Check ranges against all rows of a public table."""
    check_columns(ranges, containers.layout(rows))
    if is_within(rows, ranges):
        return ranges
    found = []
    for each in ranges:
        kept = each
        if not is_within(rows, (each,)):
            kept = replace(each, missing=True, stays=_list_missing(rows, each))
        if not is_within(rows, (kept,)):
            raise ParameterError(
                f"public rows lie outside of the bounds ({each.low:g}, {each.high:g})"
                + (f" of column {each.column!r}" if each.column else "")
                + ": give wider bounds, or leave those rows out"
            )
        found.append(kept)
    return tuple(found)


def _list_missing(rows: Any, one: Range) -> frozenset[str]:
    """List types of missing values in a column, where the container tells several apart."""
    if isinstance(rows, Bundles):
        return _list_missing(rows.rows, one)
    held = containers.container(rows)
    if held == "polars":
        column = rows[one.column]
        nan = column.dtype.is_float() and bool(column.is_nan().any())
        return frozenset([_NOTHING] * bool(column.null_count()) + [_NAN] * nan)
    if held != "list":
        return frozenset()
    cells = [value for row in rows for value in _at(row, one.column)]
    gone = {type(value).__name__ for value in cells if _is_missing(value)}
    nan = any(isinstance(value, float | np.floating) and value != value for value in cells)  # noqa: PLR0124
    return frozenset(gone | ({_NAN} if nan else set()))


def is_within(rows: Any, ranges: tuple[Range, ...]) -> bool:
    """Tell whether rows are left as they are by their ranges."""
    if isinstance(rows, Bundles):
        return is_within(rows.rows, ranges)
    if containers.container(rows) == "list":
        _check_places(rows, ranges)
    return not ranges or containers.is_same(clamp(copy_rows(rows), ranges), strip_rows(rows))
