"""Every column in one known form, before anything else touches it.

Engines disagree on what a column may hold and on when two values are equal: a text may come with a
collation that ignores case, a date may be infinite, a time may lie where another unit overflows, a
number may be too small for a double. One such value would then decide whether a query fails, or
which rows are one group. So nothing of a table is used as it lies: the innermost select of every
query gives each column an opaque name and one of six forms, by expressions that are total.

=======  ==========================================================================================
whole    a whole number of up to 64 bits (exact; unsigned ones of 64 as decimals)
real     a double; NaN is missing
text     a text that is equal to itself only, byte by byte
truth    true or false
day      a date of the years 1 to 9999; others are missing
moment   a time in whole microseconds, in UTC where it has a zone, of the same years
=======  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hushed.errors import ParameterError
from hushed.tables._expressions import Kind

DECLARED: tuple[Kind, ...] = ("whole", "real", "text", "truth", "day", "moment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How a column is read.

    Parameters
    ----------
    kind : str
        Its kind; public.
    sql : str
        Its tame form, in the language of the engine.
    dtype : str
        The type of that, as Ibis calls it.
    """

    kind: Kind
    sql: str
    dtype: str


_DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "whole": "int64",
        "unsigned": "decimal(20, 0)",
        "real": "float64",
        "decimal": "float64",
        "text": "string",
        "truth": "boolean",
        "day": "date",
        "moment": "timestamp(6)",
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
                "whole": "{0}",
                "unsigned": "CAST({0} AS DECIMAL(20, 0))",
                "real": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END",
                "decimal": "CAST({0} AS DOUBLE)",
                "text": "CAST({0} AS VARCHAR) COLLATE C",
                "truth": "{0}",
                "day": _SOME_DAY,
                "moment": _SOME_TIME.format("TRY_CAST({0} AS TIMESTAMP)"),
                # A cast would read the time zone of the session.
                "zoned": _SOME_TIME.format("make_timestamp(epoch_us({0}))"),
            }
        ),
        "postgres": MappingProxyType(
            {
                "whole": "{0}",
                "unsigned": "CAST({0} AS numeric)",
                "real": "NULLIF(CAST({0} AS double precision), CAST('NaN' AS double precision))",
                # A number that is too small for a double is an error, and NaN above all others.
                "decimal": _SOME_DECIMAL.format("CAST({0} AS numeric)"),
                "text": 'CAST({0} AS text) COLLATE "C"',
                "truth": "{0}",
                "day": _SOME_DAY,
                "moment": _SOME_TIME,
                "zoned": _SOME_ZONED,
            }
        ),
        "pyspark": MappingProxyType(
            {
                "whole": "{0}",
                "unsigned": "CAST({0} AS DECIMAL(20, 0))",
                "real": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END",
                "decimal": "CAST({0} AS DOUBLE)",
                # By way of bytes, which have no collation; a key may be fetched, so be a text.
                "text": "make_valid_utf8(CAST(CAST(CAST({0} AS STRING) AS BINARY) AS STRING))",
                "truth": "{0}",
                "day": _SOME_DAY,
                "moment": _SOME_TIME,
                "zoned": _SOME_TIME,
            }
        ),
    }
)
_NUMERIC = ("whole", "real", "truth")
_READINGS: Mapping[str, str] = MappingProxyType(
    {  # on DuckDB alone; what cannot be read is missing, and nothing is rounded in secret
        "whole": "CASE WHEN TRY_CAST({0} AS DOUBLE) = floor(TRY_CAST({0} AS DOUBLE)) "
        "THEN TRY_CAST({0} AS BIGINT) END",
        "real": "TRY_CAST({0} AS DOUBLE)",
        "text": "CAST({0} AS VARCHAR)",
        "truth": "TRY_CAST({0} AS BOOLEAN)",
        "day": "TRY_CAST({0} AS DATE)",
        "moment": "TRY_CAST({0} AS TIMESTAMP)",
    }
)


def kind_of(dtype: Any) -> Kind:
    """Kind of a column of an engine's type; public."""
    shape = _shape(dtype)
    kinds: dict[str, Kind] = {"unsigned": "whole", "decimal": "real", "zoned": "moment"}
    return kinds.get(shape, shape)  # type: ignore[arg-type]


def _shape(dtype: Any) -> str:  # noqa: PLR0911  (one for each)
    if dtype.is_boolean():
        return "truth"
    if dtype.is_integer():
        return "unsigned" if dtype.is_unsigned_integer() and dtype.nbytes == 8 else "whole"
    if dtype.is_floating():
        return "real"
    if dtype.is_decimal():
        return "decimal"
    if dtype.is_date():
        return "day"
    if dtype.is_timestamp():
        return "moment" if dtype.timezone is None else "zoned"
    return "text" if dtype.is_string() or dtype.is_uuid() else "other"


def read_as(quoted: str, declared: Kind) -> str:
    """Write the SQL of DuckDB that reads a column as the kind that was declared for it."""
    return _READINGS[declared].format(quoted)


def cell_of(engine: str, quoted: str, dtype: Any, *, name: str, declared: Kind | None) -> Cell:
    """Say how a column is read."""
    shape = _shape(dtype)
    if declared is not None:
        found = kind_of(dtype)
        numeric = found in _NUMERIC and declared in _NUMERIC
        timely = found in ("day", "moment") and declared in ("day", "moment")
        if not (found == "text" or numeric or timely or (declared == "text" and found != "other")):
            raise ParameterError(
                f"column {name!r} is of kind {found} and cannot be read as {declared}"
            )
        if shape != declared:
            quoted, shape = f"({read_as(quoted, declared)})", declared
    if shape == "other":
        return Cell(kind="other", sql="NULL", dtype="null")
    kind = kind_of(dtype) if declared is None else declared
    if shape == "whole" and declared is None:  # a wider one would take longer to sort
        if (
            engine == "postgres" and dtype.nbytes == 8
        ):  # an oid calls itself one, and adds up to none
            quoted = f"CAST({quoted} AS bigint)"
        return Cell(kind=kind, sql=quoted, dtype=str(dtype.copy(nullable=True)))
    return Cell(kind=kind, sql=_FORMS[engine][shape].format(quoted), dtype=_DTYPES[shape])
