"""Pieces of expressions, written such that every engine gives the same answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hushed._ground.types import ColumnType
from hushed.errors import ParameterError
from hushed.tables._engine.dialect import Dialect, KeyedHash, builtin_function
from hushed.tables._engine.engines import BY_NAME
from hushed.tables._expression_parts import read_time
from hushed.tables._grid import FARTHEST, NEAREST, Grid
from hushed.tables._ladders import Ladder

Stage = Callable[[Any], Any]
_WIDE = "decimal(38, 0)"
_MOST_SMALL = 0.75  # of all rows; to rank these first and then the others takes longer than all
_KEY_TYPES = {"int": "int64", "string": "string", "bool": "boolean", "date": "date"}


def cases(*branches: tuple[Any, Any], otherwise: Any) -> Any:
    """Give the value of the first branch whose condition holds."""
    import ibis  # noqa: PLC0415

    return ibis.cases(*branches, else_=otherwise)


def constant(value: object, column_type: ColumnType) -> Any:
    """Give a constant of a type; dates and timestamps come from ISO strings.

    DuckDB and PostgreSQL read 0.5 as a decimal, and not as a double. Beside one of many digits
    DuckDB makes a decimal of a whole number, too, which fails where it is large.
    """
    import ibis  # noqa: PLC0415

    if column_type == "float":
        return ibis.literal(repr(float(value))).cast("float64")  # type: ignore[arg-type]
    if column_type == "date":
        return ibis.date(read_time(str(value)).date())
    if column_type == "timestamp":
        return ibis.timestamp(read_time(str(value)))
    return ibis.literal(value, {"int": "int64"}.get(column_type))


def constant_table(values: Sequence[object], column_type: ColumnType) -> Any:
    """Give constants of a type as the column `constant` of a table.

    They are sent as one string: Ibis takes longer to compile a thousand literals than the engine
    takes to answer the query.
    """
    import ibis  # noqa: PLC0415

    words = [_write_word(value, column_type) for value in values]
    used = set("".join(words))
    between = next((mark for mark in _marks() if mark not in used), None)
    if between is None:
        raise ParameterError(
            "keys that contain every control and private-use character cannot be sent"
        )
    text = between.join(
        [*words, words[0]]
    )  # twice, because an empty string alone would split into none
    found = ibis.literal(text).split(between).unnest().name("constant").as_table()
    return found.select(constant=found["constant"].cast(_KEY_TYPES[column_type]))


def _write_word(value: object, column_type: ColumnType) -> str:
    return str(value).lower() if column_type == "bool" else str(value)


def _marks() -> Iterator[str]:
    """Give the characters that may stand between words."""
    return map(chr, [*range(1, 32), *range(0xE000, 0xF900)])


def constant_rows(columns: Sequence[tuple[Sequence[object], ColumnType]]) -> Any:
    """Give the rows of two or more columns of constants as a table of columns j0, j1 and so on.

    They are sent as one string, as for `constant_table`. Each row is there once: a row holds a mark
    between its cells, so that no row is empty.
    """
    import ibis  # noqa: PLC0415

    words = [[_write_word(value, kind) for value in values] for values, kind in columns]
    used = set().union(*(each for column in words for each in column))
    free = (mark for mark in _marks() if mark not in used)
    between, within = next(free, None), next(free, None)
    if between is None or within is None:
        raise ParameterError(
            "rows that contain every control and private-use character cannot be sent"
        )
    text = between.join(map(within.join, zip(*words, strict=True)))
    rows = ibis.literal(text).split(between).unnest().name("constant").as_table()
    cells = rows["constant"].split(within)
    types = {**_KEY_TYPES, "float": "float64"}
    made = {f"j{i}": cells[i].cast(types[kind]) for i, (_, kind) in enumerate(columns)}
    return rows.select(**made)


def null(column_type: ColumnType) -> Any:
    """NULL of a type."""
    import ibis  # noqa: PLC0415

    names = {"int": "int64", "float": "float64", "string": "string", "bool": "boolean"}
    return ibis.null(names[column_type])


def as_double(column: Any) -> Any:
    """Convert normalised numbers or bools to doubles."""
    if column.type().is_boolean():
        return cases((column, 1.0), (~column, 0.0), otherwise=null("float"))
    return column if column.type().is_floating() else column.cast("float64")


def normalise(value: Any) -> Any:
    """Clip a double to 1e100 in size, and set it to 0 below 1e-100; NULL stays NULL."""
    return cases(
        (value > FARTHEST, FARTHEST),
        (value < -FARTHEST, -FARTHEST),
        (value.between(-NEAREST, NEAREST), 0.0),
        otherwise=value,
    )


def steps_stages(value: str, name: str, grid: Grid) -> list[Stage]:
    """Round a double (NULL if missing) to steps of a grid; missing counts as 0.

    These are the operations of `Grid.steps`. The bounds are applied twice: in doubles, so that the
    conversion cannot overflow, and in whole numbers, in the next stage, so that the sensitivity
    does not depend on how an engine reads a decimal constant.
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

    return [steps, lambda rows: _clip_whole(rows, value, name, (grid.least, grid.largest), 0)]


def squares_stages(value: str, name: str, *, most: int, shift: int) -> list[Stage]:
    """Square steps, in units of ``2**shift``, less the middle of the range; missing counts as 0."""
    top = math.floor(float(most) * float(most) * 2.0**-shift + 0.5)

    def squared(rows: Any) -> Any:
        real = rows[name].cast("float64")
        return (real * real * 2.0**-shift + 0.5).floor().cast("int64") - top // 2

    return [squared, lambda rows: _clip_whole(rows, value, name, (-(top // 2), top - top // 2), 0)]


def bins_stages(value: str, name: str, *, low: float, high: float, count: int) -> list[Stage]:
    """Find the bin of a double, among equally wide ones; -1 if it is missing."""

    def place(rows: Any) -> Any:
        offset = cases((rows[name] < NEAREST, 0.0), otherwise=rows[name])
        return (offset * (count / (high - low))).floor().cast("int64")

    return [
        lambda rows: _clip(rows[value], low, high) - low,
        place,
        lambda rows: _clip_whole(rows, value, name, (0, count - 1), -1),
    ]


def ladder_stages(value: str, name: str, rest: str, ladder: Ladder) -> dict[str, list[Stage]]:
    """Find the rung of a double on a ladder; -1 if it is missing. `rest` is what is left to climb.

    Whatever a division rounds to, a rung depends on the value of its own row alone.
    """
    rungs: list[Stage] = [lambda _: constant(0, "int")]
    rests: list[Stage] = [lambda rows: _clip_to(ladder, rows[value]) / ladder.first]
    for digit in ladder.digits():
        rungs.append(partial(_climb, name=name, rest=rest, digit=digit))
        rests.append(partial(_divide, rest=rest, digit=digit))

    def last(rows: Any) -> Any:
        return rows[name] + cases((rows[rest] > 1.0, 1), otherwise=0)

    rungs += [last, lambda rows: _clip_whole(rows, value, name, (0, ladder.rungs - 1), -1)]
    return {name: rungs, rest: rests}


def _clip_to(ladder: Ladder, value: Any) -> Any:
    """Clip to the range of a ladder; what is closer to zero counts as zero, or divisions fail."""
    signed, low, high = -value if ladder.negated else value, ladder.low, ladder.high
    least = max(low, NEAREST)
    return cases(
        (value.isnull(), low), (signed > high, high), (signed < least, low), otherwise=signed
    )


def _climb(rows: Any, *, name: str, rest: str, digit: Sequence[tuple[int, float]]) -> Any:
    found = [(rows[rest] > factor, rows[name] + number) for number, factor in digit]
    return cases(*found, otherwise=rows[name])


def _divide(rows: Any, *, rest: str, digit: Sequence[tuple[int, float]]) -> Any:
    found = [(rows[rest] > factor, rows[rest] / factor) for _, factor in digit]
    return cases(*found, otherwise=rows[rest])


def presence_stages(value: str) -> list[Stage]:
    """Give 1 for a value, 0 if it is missing."""
    return [lambda rows: cases((rows[value].isnull(), 0), otherwise=1)]


def apply_stages(rows: Any, columns: Mapping[str, Sequence[Stage]]) -> Any:
    """Compute several columns at once, each stage from the results of the stage before."""
    for i in range(max((len(stages) for stages in columns.values()), default=0)):
        rows = materialise(
            rows.mutate(
                *(stages[i](rows).name(name) for name, stages in columns.items() if i < len(stages))
            )
        )
    return rows


def materialise(rows: Any) -> Any:
    """Have a stage computed once, as an optimisation barrier.

    PostgreSQL inlines the expressions of a subquery, and DuckDB pushes conditions down through
    them, into a file, too. An expression that is used twice would double with every stage. Neither
    engine optimises across a subquery with a LIMIT.
    """
    return rows.limit(2**62) if BY_NAME[rows.get_backend().name].barrier else rows


def _clip(value: Any, low: float, high: float) -> Any:
    return cases((value.isnull(), low), (value > high, high), (value < low, low), otherwise=value)


def _clip_whole(rows: Any, value: str, name: str, ends: tuple[int, int], absent: int) -> Any:
    """Clip whole numbers to their ends."""
    least, largest = ends
    return cases(
        (rows[value].isnull(), absent),
        (rows[name] > largest, largest),
        (rows[name] < least, least),
        otherwise=rows[name],
    ).cast("int64")


def exact_sum(engine: Dialect, column: Any) -> Any:
    """Sum whole numbers exactly; nothing overflows."""
    if engine.wide is not None:
        column = column.cast(engine.wide)
    return column.sum().cast(_WIDE)


def row_rank(partition: Sequence[Any], order: Sequence[Any]) -> Any:
    """Give the rows of each partition numbers, from 0."""
    import ibis  # noqa: PLC0415

    return ibis.row_number().over(group_by=list(partition), order_by=list(order))


def dense_rank(partition: Sequence[Any], order: Sequence[Any]) -> Any:
    """Give the different values of each partition numbers, from 0."""
    import ibis  # noqa: PLC0415

    return ibis.dense_rank().over(group_by=list(partition), order_by=list(order))


def keyed_hash(engine: Dialect, key: int, columns: Sequence[Any]) -> Any:
    """Hash columns to 64 bits under a key, by the engine's own hash, which is fast.

    It is not cryptographic: some strings have the same hash under every key. It only orders the
    rows of one user, and the columns themselves break ties. How much of a user is kept, and that no
    other row depends on it, holds for any function here.
    """
    import ibis  # noqa: PLC0415

    own = engine.hash
    mixed = ibis.literal(key, own.type)
    for column in columns:
        known = cases((column, 1), otherwise=0) if column.type().is_boolean() else column
        mixed = _mix(own, known.cast(_hashed_type(known.type())), mixed)
    # Once more over all: DuckDB's own mixing ends with an exclusive or, which keeps many orders.
    return _mix(own, ibis.literal(len(columns), "int64"), mixed)


def small_hash(rows: Any, user: str, limit: int) -> Any:
    """Give the hash below which most users have as many rows as are kept, and few more.

    It is 0 where these would be most rows. How many users there are is estimated.
    """
    import ibis  # noqa: PLC0415

    wanted = limit + 1.5 * math.sqrt(limit) + 1
    told = rows.aggregate(users=rows[user].approx_nunique(), rows=rows.count())
    share = told.select(share=told["users"] * wanted / told["rows"])["share"]
    small = (ibis.least(share, _MOST_SMALL) * 2.0**64).cast("uint64")
    return cases((share < _MOST_SMALL, small), otherwise=0).name("small").as_scalar()


def _hashed_type(dtype: Any) -> str:
    if dtype.is_integer():
        return "int64"
    return "float64" if dtype.is_floating() else "string"


def _mix(own: KeyedHash, value: Any, mixed: Any) -> Any:
    """Hash an int64, a double or a string, together with the hash of what came before it."""
    kind = _hashed_type(value.type())
    name = {"int64": own.whole, "float64": own.real, "string": own.text}[kind]
    if own.value_first:
        return builtin_function(name, (kind, own.type), own.type)(value, mixed)
    return builtin_function(name, (own.type, kind), own.type)(mixed, value)


def opaque_key(engine: Dialect, key: int, columns: Sequence[Any]) -> Any:
    """Replace normalised values by an opaque key, which says nothing without the secret key.

    It is 128 bits, as a string, of SHA-256 of the secret key and of the SHA-256 of each value.
    Without the secret key, nobody can find two values with one opaque key, nor a value by it.
    """
    import ibis  # noqa: PLC0415

    whole = ibis.literal(f"{key:016x}")
    for column in columns:
        truth = column.type().is_boolean()
        text = cases((column, "1"), otherwise="0") if truth else column.cast("string")
        whole = whole + engine.sha256(text)
    return engine.sha256(whole).substr(0, 32)
