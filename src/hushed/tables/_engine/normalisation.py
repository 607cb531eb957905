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
from typing import Any

from hushed._types import ColumnType, StoredType
from hushed.errors import ParameterError

COLUMN_TYPES: tuple[ColumnType, ...] = ("int", "float", "string", "bool", "date", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCast:
    """The total cast of a column.

    Parameters
    ----------
    type : str
        Its type; public.
    sql : str
        The cast, in the SQL of the engine.
    dtype : str
        Type of the result, in the words of Ibis.
    """

    type: StoredType
    sql: str
    dtype: str


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
_SOME_DAY = "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END"
_SOME_TIME = (
    "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01 00:00:00' "
    "AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
)
_SOME_ZONED = (
    "CASE WHEN {0} BETWEEN TIMESTAMP WITH TIME ZONE '0001-01-01 00:00:00+00' "
    "AND TIMESTAMP WITH TIME ZONE '9999-12-31 23:59:59.999999+00' THEN {0} AT TIME ZONE 'UTC' END"
)
_SOME_DECIMAL = (
    "CAST(CASE WHEN {0} = CAST('NaN' AS numeric) THEN NULL "
    "WHEN {0} > CAST('1e200' AS numeric) THEN CAST('1e200' AS numeric) "
    "WHEN {0} < CAST('-1e200' AS numeric) THEN CAST('-1e200' AS numeric) "
    "WHEN ABS({0}) < CAST('1e-200' AS numeric) THEN 0 ELSE {0} END AS double precision)"
)
_FORMS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "duckdb": MappingProxyType(
            {
                "int": "{0}",
                "unsigned": "CAST({0} AS DECIMAL(20, 0))",
                "float": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END",
                "decimal": "CAST({0} AS DOUBLE)",
                "string": "CAST({0} AS VARCHAR) COLLATE C",
                "bool": "{0}",
                "date": _SOME_DAY,
                "timestamp": _SOME_TIME.format("TRY_CAST({0} AS TIMESTAMP)"),
                # A cast would read the time zone of the session.
                "zoned": _SOME_TIME.format("make_timestamp(epoch_us({0}))"),
            }
        ),
        "postgres": MappingProxyType(
            {
                "int": "{0}",
                "unsigned": "CAST({0} AS numeric)",
                "float": "NULLIF(CAST({0} AS double precision), CAST('NaN' AS double precision))",
                # A number that is too small for a double is an error, and NaN above all others.
                "decimal": _SOME_DECIMAL.format("CAST({0} AS numeric)"),
                "string": 'CAST({0} AS text) COLLATE "C"',
                "bool": "{0}",
                "date": _SOME_DAY,
                "timestamp": _SOME_TIME,
                "zoned": _SOME_ZONED,
            }
        ),
        "pyspark": MappingProxyType(
            {
                "int": "{0}",
                "unsigned": "CAST({0} AS DECIMAL(20, 0))",
                "float": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END",
                "decimal": "CAST({0} AS DOUBLE)",
                # Through bytes, which have no collation; a key may be fetched, so it must be valid.
                "string": "make_valid_utf8(CAST(CAST(CAST({0} AS STRING) AS BINARY) AS STRING))",
                "bool": "{0}",
                "date": _SOME_DAY,
                "timestamp": _SOME_TIME,
                "zoned": _SOME_TIME,
            }
        ),
    }
)
_NUMERIC = ("int", "float", "bool")
_READINGS: Mapping[str, str] = MappingProxyType(
    {  # on DuckDB only; what cannot be read is missing, and nothing is rounded silently
        "int": "CASE WHEN TRY_CAST({0} AS DOUBLE) = floor(TRY_CAST({0} AS DOUBLE)) "
        "THEN TRY_CAST({0} AS BIGINT) END",
        "float": "TRY_CAST({0} AS DOUBLE)",
        "string": "CAST({0} AS VARCHAR)",
        "bool": "TRY_CAST({0} AS BOOLEAN)",
        "date": "TRY_CAST({0} AS DATE)",
        "timestamp": "TRY_CAST({0} AS TIMESTAMP)",
    }
)


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


def cast_sql(quoted: str, declared: ColumnType) -> str:
    """Write the SQL of DuckDB that reads a column as its declared type."""
    return _READINGS[declared].format(quoted)


def choose_cast(
    engine: str, quoted: str, dtype: Any, *, name: str, declared: ColumnType | None
) -> ColumnCast:
    """Choose the total cast of a column."""
    shape = _shape(dtype)
    if declared is not None:
        found = column_type(dtype)
        numeric = found in _NUMERIC and declared in _NUMERIC
        timely = found in ("date", "timestamp") and declared in ("date", "timestamp")
        readable = declared == "string" and found != "other"
        if not (found == "string" or numeric or timely or readable):
            raise ParameterError(
                f"column {name!r} is of type {found} and cannot be read as {declared}"
            )
        if shape != declared:
            quoted, shape = f"({cast_sql(quoted, declared)})", declared
    if shape == "other":
        return ColumnCast(type="other", sql="NULL", dtype="null")
    found_type = column_type(dtype) if declared is None else declared
    if shape == "int" and declared is None:  # a wider one would take longer to sort
        if engine == "postgres" and dtype.nbytes == 8:  # an oid says it is one, but has no sum
            quoted = f"CAST({quoted} AS bigint)"
        return ColumnCast(type=found_type, sql=quoted, dtype=str(dtype.copy(nullable=True)))
    return ColumnCast(
        type=found_type, sql=_FORMS[engine][shape].format(quoted), dtype=_DTYPES[shape]
    )
