"""Normalise every column by a total cast, before anything else uses it.

Engines disagree on what a column may hold and on when two values are equal: a string may have a
collation that ignores case, a date may be infinite, a timestamp may overflow in another unit, a
number may be too small for a double. One such value would then decide whether a query
fails, or which rows form a group. So no stored value is used directly: the innermost select of
every query gives each column a new name and casts it to one of six types, by expressions that
cannot fail.

=========  ========================================================================================
int        an integer of up to 64 bits (exact; unsigned ones of 64 bits as decimals)
float      a double; NaN is missing
string     a string that is equal to itself only, byte by byte
bool       true or false
date       a date of the years 1 to 9999; others are missing
timestamp  a time in whole microseconds, in UTC if it has a zone, of the same years
=========  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from hushed._ground.printing import suggest
from hushed._ground.types import ColumnType, StoredType
from hushed.errors import ParameterError
from hushed.tables._engine.dialect import Dialect

COLUMN_TYPES: tuple[ColumnType, ...] = ("int", "float", "string", "bool", "date", "timestamp")

_OTHER_NAMES: Mapping[str, ColumnType] = MappingProxyType(
    {
        "bigint": "int",
        "boolean": "bool",
        "datetime": "timestamp",
        "decimal": "float",
        "double": "float",
        "float64": "float",
        "int64": "int",
        "integer": "int",
        "number": "float",
        "numeric": "float",
        "str": "string",
        "text": "string",
        "time": "timestamp",
        "varchar": "string",
    }
)

Held = Literal["", "zoned", "single"]


def say_no_type(column: str, declared: object) -> str:
    """Say that there is no such type of a column, and which one was meant, if that is clear."""
    known = _OTHER_NAMES.get(str(declared).lower())
    hint = f"; did you mean {known!r}?" if known else suggest(declared, COLUMN_TYPES)
    return f"{column!r} cannot be of type {declared!r}; types are {', '.join(COLUMN_TYPES)}{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCast:
    """The total cast of a column."""

    type: StoredType  # its type; public
    sql: str  # the cast, in the SQL of the engine
    dtype: str  # type of the result, in the words of Ibis
    # What the type of its cells is beside that: times with a zone, which are read in UTC, or
    # doubles of single precision.
    held: Held = ""


_DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "int": "int64",
        "unsigned": "decimal(20, 0)",
        "float": "float64",
        "decimal": "float64",
        "string": "string",
        "bool": "boolean",
        "date": "date",
        "timestamp": "timestamp(6)",
        "zoned": "timestamp(6)",
    }
)
_NUMERIC = ("int", "float", "bool")


def column_type(dtype: Any) -> StoredType:
    """Column type for a type of the engine; public."""
    shape = _shape(dtype)
    types: dict[str, StoredType] = {"unsigned": "int", "decimal": "float", "zoned": "timestamp"}
    return types.get(shape, shape)  # type: ignore[arg-type]


def _shape(dtype: Any) -> str:  # noqa: PLR0911  (one for each)
    if dtype.is_boolean():
        return "bool"
    if dtype.is_integer():
        return "unsigned" if dtype.is_unsigned_integer() and dtype.nbytes == 8 else "int"
    if dtype.is_floating():
        return "float"
    if dtype.is_decimal():
        return "decimal"
    if dtype.is_date():
        return "date"
    if dtype.is_timestamp():
        return "timestamp" if dtype.timezone is None else "zoned"
    return "string" if dtype.is_string() or dtype.is_uuid() else "other"


def describe_held(dtype: Any, read: StoredType, *, zoned: bool) -> Held:
    """Tell what users may not expect of a column, by its types alone."""
    if read in ("date", "timestamp"):
        return "zoned" if zoned or _shape(dtype) == "zoned" else ""
    single = read == "float" and dtype.is_floating() and dtype.nbytes < 8
    return "single" if single else ""


def choose_cast(
    engine: Dialect, quoted: str, dtype: Any, *, name: str, declared: ColumnType | None
) -> ColumnCast:
    """Choose the total cast of a column."""
    shape, quoted = _shape(dtype), engine.read_stored(quoted, dtype)
    if declared is not None and engine.readings is not None:
        found = column_type(dtype)
        numeric = found in _NUMERIC and declared in _NUMERIC
        timely = found in ("date", "timestamp") and declared in ("date", "timestamp")
        readable = declared == "string" and found != "other"
        spelled = found == "string" and not dtype.is_uuid()  # which spells none of the others
        if not (spelled or numeric or timely or readable):
            kind = "uuid" if dtype.is_uuid() else found
            raise ParameterError(
                f"column {name!r} is of type {kind} and cannot be read as {declared}"
            )
        if found != declared:  # of its own type it is read as it is: of 64 bits without a sign, too
            text = quoted
            if declared in ("int", "string") and dtype.is_decimal():  # the least has no spelling
                text = f"(CASE WHEN CAST({quoted} AS DOUBLE) > {-(2.0**127)!r} THEN {quoted} END)"
            if declared == "int" and dtype.is_decimal():  # in doubles it would be rounded to one
                found, text = "string", f"CAST({text} AS VARCHAR)"
            elif declared == "string" and found == "timestamp":  # a far one has no spelling
                some = engine.forms[shape].format(quoted)
                text = f"(CASE WHEN ({some}) IS NOT NULL THEN {quoted} END)"
            read = engine.read_spelling(text, declared) if found == "string" else None
            quoted, shape = f"({read or engine.readings[declared].format(text)})", declared
    if shape == "other":
        return ColumnCast(type="other", sql="NULL", dtype="null")
    found_type = column_type(dtype) if declared is None else declared
    if shape == "int" and declared is None:  # a wider one would take longer to sort
        whole = engine.read_whole(quoted, dtype)
        return ColumnCast(type=found_type, sql=whole, dtype=str(dtype.copy(nullable=True)))
    return ColumnCast(type=found_type, sql=engine.forms[shape].format(quoted), dtype=_DTYPES[shape])
