"""Pieces of expressions, spelled so that every engine answers alike."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from hushed.errors import ParameterError
from hushed.tables._engine.connections import EngineName
from hushed.tables._expressions import Kind, read_time
from hushed.tables._grid import FARTHEST, NEAREST, Grid

Stage = Callable[[Any], Any]
_WIDE = "decimal(38, 0)"


def cases(*branches: tuple[Any, Any], otherwise: Any) -> Any:
    """First branch whose condition holds; spelled alike on every engine."""
    import ibis  # noqa: PLC0415

    return ibis.cases(*branches, else_=otherwise)


def constant(value: object, kind: Kind) -> Any:
    """Give a constant of a kind; dates and times from ISO texts, as `read_time` reads them."""
    import ibis  # noqa: PLC0415

    if kind == "day":
        return ibis.date(read_time(str(value)).date())
    if kind == "moment":
        return ibis.timestamp(read_time(str(value)))
    return ibis.literal(value, {"whole": "int64", "real": "float64"}.get(kind))


def listed(values: Sequence[object], kind: Kind) -> Any:
    """Give constants of a kind as the column `listed` of a table.

    They travel as one text: a thousand literals take Ibis longer to write down than the query
    takes to answer.
    """
    import ibis  # noqa: PLC0415

    words = [str(value).lower() if kind == "truth" else str(value) for value in values]
    used = set("".join(words))
    marks = map(chr, [*range(1, 32), *range(0xE000, 0xF900)])
    between = next((mark for mark in marks if mark not in used), None)
    if between is None:
        raise ParameterError("keys that hold every control and private character cannot be sent")
    text = between.join([*words, words[0]])  # twice, for an empty text alone would split into none
    found = ibis.literal(text).split(between).unnest().name("listed").as_table()
    types = {"whole": "int64", "text": "string", "truth": "boolean", "day": "date"}
    return found.select(listed=found["listed"].cast(types[kind]))


def missing(kind: Kind) -> Any:
    """NULL of a kind."""
    import ibis  # noqa: PLC0415

    names = {"whole": "int64", "real": "float64", "text": "string", "truth": "boolean"}
    return ibis.null(names[kind])


def number(column: Any) -> Any:
    """Take tamed numbers or truths as doubles."""
    if column.type().is_boolean():
        return cases((column, 1.0), (~column, 0.0), otherwise=missing("real"))
    return column if column.type().is_floating() else column.cast("float64")


def tame(value: Any) -> Any:
    """Keep a double, not NaN, within 1e100, and away from zero or at it; NULL stays NULL."""
    return cases(
        (value > FARTHEST, FARTHEST),
        (value < -FARTHEST, -FARTHEST),
        (value.between(-NEAREST, NEAREST), 0.0),
        otherwise=value,
    )


def steps_stages(value: str, name: str, grid: Grid) -> list[Stage]:
    """Turn a double (NULL if missing) into steps of a grid; missing counts as 0.

    The same operations as `Grid.steps`. The bounds are applied twice: in doubles, so that the
    conversion cannot overflow, and in whole numbers, in the next stage, so that the sensitivity
    does not rest on how an engine reads a decimal constant.
    """

    def steps(rows: Any) -> Any:
        inside = rows[value] - grid.centre
        return cases(
            (rows[value].isnull(), 0),
            (rows[value] >= grid.high, grid.largest),
            (rows[value] <= grid.low, grid.least),
            (inside.between(-NEAREST, NEAREST), 0),
            otherwise=(inside * 2.0**-grid.exponent + 0.5).floor().cast("int64"),
        ).cast("int64")

    return [steps, lambda rows: _within(rows, value, name, (grid.least, grid.largest), 0)]


def squares_stages(value: str, name: str, *, most: int, shift: int) -> list[Stage]:
    """Square steps, in units of ``2**shift``, less the middle of the range; missing counts as 0."""
    top = math.floor(float(most) * float(most) * 2.0**-shift + 0.5)

    def squared(rows: Any) -> Any:
        real = rows[name].cast("float64")
        return (real * real * 2.0**-shift + 0.5).floor().cast("int64") - top // 2

    return [squared, lambda rows: _within(rows, value, name, (-(top // 2), top - top // 2), 0)]


def bins_stages(value: str, name: str, *, low: float, high: float, count: int) -> list[Stage]:
    """Tell which of equally wide bins a double falls into; -1 if it is missing."""

    def place(rows: Any) -> Any:
        offset = cases((rows[name] < NEAREST, 0.0), otherwise=rows[name])
        return (offset * (count / (high - low))).floor().cast("int64")

    return [
        lambda rows: _clipped(rows[value], low, high) - low,
        place,
        lambda rows: _within(rows, value, name, (0, count - 1), -1),
    ]


def presence_stages(value: str) -> list[Stage]:
    """Tell with 1 or 0 whether a value is there."""
    return [lambda rows: cases((rows[value].isnull(), 0), otherwise=1)]


def staged(rows: Any, columns: Mapping[str, Sequence[Stage]]) -> Any:
    """Compute several columns at once, each stage on the results of the one before."""
    for i in range(max((len(stages) for stages in columns.values()), default=0)):
        rows = fenced(
            rows.mutate(
                *(stages[i](rows).name(name) for name, stages in columns.items() if i < len(stages))
            )
        )
    return rows


def fenced(rows: Any) -> Any:
    """Have a stage computed once, where an engine would write it out at every use.

    PostgreSQL puts the expressions of a subquery in the place of its columns, and DuckDB pushes
    conditions down through them, into a file, too; what is used twice would then double with every
    stage. Both leave a subquery with a limit alone.
    """
    return rows.limit(2**62) if rows.get_backend().name in ("duckdb", "postgres") else rows


def _clipped(value: Any, low: float, high: float) -> Any:
    return cases((value.isnull(), low), (value > high, high), (value < low, low), otherwise=value)


def _within(rows: Any, value: str, name: str, ends: tuple[int, int], absent: int) -> Any:
    """Keep whole numbers within their ends, for good."""
    least, largest = ends
    return cases(
        (rows[value].isnull(), absent),
        (rows[name] > largest, largest),
        (rows[name] < least, least),
        otherwise=rows[name],
    ).cast("int64")


def total(engine: EngineName, column: Any) -> Any:
    """Exact sum of whole numbers; nothing overflows."""
    if engine == "pyspark":  # its sum of 64-bit integers would wrap
        column = column.cast("decimal(28, 0)")
    return column.sum().cast(_WIDE)


def row_rank(partition: Sequence[Any], order: Sequence[Any]) -> Any:
    """Give the rows of each partition a number, from 0 on."""
    import ibis  # noqa: PLC0415

    return ibis.row_number().over(group_by=list(partition), order_by=list(order))


def dense_rank(partition: Sequence[Any], order: Sequence[Any]) -> Any:
    """Give the different values within each partition a number, from 0 on."""
    import ibis  # noqa: PLC0415

    return ibis.dense_rank().over(group_by=list(partition), order_by=list(order))


_HASHES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {  # by engine: name for whole numbers, name for texts, type
        "duckdb": ("hash", "hash", "uint64"),
        "postgres": ("hashint8extended", "hashtextextended", "int64"),
        "pyspark": ("xxhash64", "xxhash64", "int64"),
    }
)


def hashed(engine: EngineName, key: int, columns: Sequence[Any]) -> Any:
    """Mix columns into 64 bits under a key, by the engine's own hash, which is fast.

    Not cryptographic: some texts share their number under every key. It does nothing but put the
    rows of one user into an order that nobody chose, and where it ties, the columns themselves
    decide: how much of a user is kept, and that no other row's fate depends on it, holds for any
    function here.
    """
    import ibis  # noqa: PLC0415

    on_whole, on_text, dtype = _HASHES[engine]
    mixed = ibis.literal(key, dtype)
    for column in columns:
        known = cases((column, 1), otherwise=0) if column.type().is_boolean() else column
        whole = known.type().is_integer()
        mix = _hash_function(engine, on_whole if whole else on_text, dtype, whole=whole)
        value = known.cast("int64" if whole else "string")
        mixed = mix(value, mixed) if engine == "postgres" else mix(mixed, value)
    # Once more over all: DuckDB's own mixing ends with an exclusive or, which keeps many orders.
    last = _hash_function(engine, on_whole, dtype, whole=True)
    ends = ibis.literal(len(columns), "int64")
    return last(ends, mixed) if engine == "postgres" else last(mixed, ends)


def opaque(engine: EngineName, key: int, columns: Sequence[Any]) -> Any:
    """Give different tamed values different names that tell nothing without the key.

    A hash of the key and of the hash of each value by SHA-256, 128 bits of it as text: whoever
    cannot know the key cannot find two values with one name, nor a value by its name.
    """
    import ibis  # noqa: PLC0415

    whole = ibis.literal(f"{key:016x}")
    for column in columns:
        truth = column.type().is_boolean()
        text = cases((column, "1"), otherwise="0") if truth else column.cast("string")
        whole = whole + _sha256(engine, text)
    return _sha256(engine, whole).substr(0, 32)


def _sha256(engine: EngineName, text: Any) -> Any:
    """SHA-256 of a text's bytes, in hexadecimal digits."""
    if engine == "duckdb":
        return _builtin("sha256", ("string",), "string")(text)
    if engine == "pyspark":
        return _builtin("sha2", ("string", "int32"), "string")(text, 256)
    # The bytes as they lie: to another encoding not every text can be converted.
    encoding = _builtin("getdatabaseencoding", (), "string")()
    held = _builtin("convert_to", ("string", "string"), "binary")(text, encoding)
    return _builtin("encode", ("binary", "string"), "string")(
        _builtin("sha256", ("binary",), "binary")(held), "hex"
    )


@lru_cache(maxsize=16)
def _builtin(name: str, takes: tuple[str, ...], gives: str) -> Any:
    """Give a function of the engine that Ibis does not know."""
    import ibis  # noqa: PLC0415
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    def stand(*arguments: Any) -> Any:
        """Stand for the engine's own function."""
        raise NotImplementedError(arguments)

    parameters = [
        inspect.Parameter(f"a{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for i in range(len(takes))
    ]
    stand.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    signature = (tuple(map(dt.dtype, takes)), dt.dtype(gives))
    return ibis.udf.scalar.builtin(stand, name=name, signature=signature)


@lru_cache(maxsize=16)
def _hash_function(engine: EngineName, name: str, dtype: str, *, whole: bool) -> Any:
    import ibis  # noqa: PLC0415
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    value, mixed = dt.dtype("int64" if whole else "string"), dt.dtype(dtype)
    order = (value, mixed) if engine == "postgres" else (mixed, value)

    def mix(first: Any, second: Any) -> Any:
        """Stand for the engine's own function."""
        raise NotImplementedError(first, second)

    return ibis.udf.scalar.builtin(mix, name=name, signature=(order, mixed))
