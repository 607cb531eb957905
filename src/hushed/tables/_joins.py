"""Joins: of a private table with a public one, and with another private table of the same users."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from hushed._ground.checks import list_in_order
from hushed._ground.printing import as_given, brief, shown
from hushed._ground.types import ColumnType, StoredType
from hushed.errors import ParameterError
from hushed.tables import _engine as engine
from hushed.tables._expressions import find_column, is_sendable
from hushed.tables._requests import GROUPABLE, KEY_TYPES, is_missing, read_key, require_name

MOST_CELLS = 100_000  # of a public table: all of it is a part of the query
_NUMBERS: tuple[ColumnType, ...] = ("int", "float")
_MADE_OF: Mapping[type, ColumnType] = {bool: "bool", int: "int", float: "float", str: "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedColumn:
    """A column of a public table."""

    name: str
    type: ColumnType
    values: tuple[Any, ...]  # one for each key
    default: Any = None  # the value of rows without a match, where they are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Add the columns of a public table, which has one row for each key."""

    on: str  # the column of the private table that holds the keys
    type: ColumnType  # its type
    keys: tuple[Any, ...]  # different ones, in order
    columns: tuple[JoinedColumn, ...]  # in order of their names
    keeps_all: bool = False  # whether rows without a match are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinUsers:
    """Add columns of another private table: of one row of the same user, chosen by a keyed hash."""

    table: str  # its name in the database
    user: str  # its user column
    columns: tuple[tuple[str, ColumnType], ...]  # names and types of what is added, in order
    default: tuple[Any, ...] | None = None  # what users without a row get, if they are kept


def read_users_join(
    known: Mapping[str, StoredType],
    table: str,
    user: str,
    columns: Mapping[str, StoredType],
    default: Mapping[str, Any] | None,
) -> JoinUsers:
    """Check what is added of another private table."""
    require_name("a joined table", table)
    require_name("a user column", user)
    if not columns:
        raise ParameterError(
            "name the columns to add, such as columns=['age']", parameter="columns"
        )
    _refuse_taken(known, columns)
    typed: list[tuple[str, ColumnType]] = []
    for name, kind in sorted(columns.items()):
        if kind == "other":
            raise ParameterError(f"column {brief(name)} is of a type that cannot be used")
        typed.append((name, kind))
    values = None
    if default is not None:
        _require_defaults(default, columns)
        values = tuple(_read_default(default[name], kind, name) for name, kind in typed)
    return JoinUsers(table=table, user=user, columns=tuple(typed), default=values)


def require_columns(columns: Any) -> list[str]:
    """Refuse what is no list of names."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ParameterError(
            f"columns must list names, such as ['age'], got {as_given(columns)}",
            parameter="columns",
        )
    return [require_name("a column", each) for each in list_in_order(columns)]


def _read_default(value: Any, kind: ColumnType, name: str) -> Any:
    """Read a stated value, which must be of the type of its column."""
    if kind in ("date", "timestamp"):
        raise ParameterError(
            f"no value can be stated for {brief(name)} of type {kind}: leave default out",
            parameter="default",
        )
    _require_kind(value, _NUMBERS if kind == "float" else (kind,), name)
    _, (cell,) = read_cells([value], name)
    return float(cell) if kind == "float" else cell


def _require_kind(value: Any, kinds: Sequence[ColumnType], name: str) -> None:
    """Refuse a stated value that does not go with its column."""
    found: ColumnType | None = None
    with suppress(ParameterError):
        found, _ = read_cells([value], name)
    if found not in kinds:
        raise ParameterError(
            f"the default of {brief(name)} must be of type {' or '.join(kinds)}, as its column "
            f"is, got {as_given(value)}",
            parameter="default",
        )


def read_join(
    known: Mapping[str, StoredType], public: Any, on: str, default: Mapping[str, Any] | None
) -> Join:
    """Check a public table against the columns of the private one."""
    key_type = known[find_column(on, known)]
    if key_type == "other" or key_type not in GROUPABLE:
        raise ParameterError(f"cannot join by {brief(on)} of type {key_type}; {KEY_TYPES}")
    held = engine.read_public(public)
    for name in held:
        require_name("a column of the public table", name)
    if on not in held or len(held) == 1:
        raise ParameterError(
            f"the public table needs a column {brief(on)} with the keys, and another one to add; "
            f"its columns: {', '.join(map(brief, held)) or 'none'}",
            parameter="public",
        )
    sizes = {len(values) for values in held.values()}
    if sizes == {0} or len(sizes) > 1 or sum(map(len, held.values())) > MOST_CELLS:
        raise ParameterError(
            "the columns of the public table must have the same number of cells, at least one, "
            f"and at most {MOST_CELLS} together",
            parameter="public",
        )
    keys = tuple(_read_row(i, key, key_type, on) for i, key in enumerate(held.pop(on), start=1))
    _require_one_row(keys, on)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ordered = {name: [values[i] for i in order] for name, values in held.items()}
    return Join(
        on=on,
        type=key_type,
        keys=tuple(keys[i] for i in order),
        columns=_read_columns(known, ordered, default),
        keeps_all=default is not None,
    )


def _read_row(place: int, key: Any, kind: ColumnType, on: str) -> Any:
    """Read the key of a row of a public table, whose place an error names."""
    try:
        return read_key(key, kind, on)
    except ParameterError as error:
        rest = "; leave that row out: no private row meets it" if is_missing(key) else ""
        words = f"row {place} of the public table: {error.message}{rest}"
        raise ParameterError(words, parameter="public") from None


def _require_one_row(keys: Sequence[Any], on: str) -> None:
    """Refuse a second row of a key: one private row would become two."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            told = brief(key) if isinstance(key, str) else str(key)
            raise ParameterError(
                f"the public table has two rows for {told} in {brief(on)}, and one "
                "private row would become two: keep one row for each key",
                parameter="public",
            )
        seen.add(key)


def _read_columns(
    known: Mapping[str, StoredType], held: Mapping[str, Sequence[Any]], default: Any
) -> tuple[JoinedColumn, ...]:
    _refuse_taken(known, held)
    if default is not None:
        _require_defaults(default, held)
    found = []
    for name in sorted(held):
        column_type, values = read_cells(held[name], name)
        if default is not None:
            numbers = column_type in _NUMBERS
            _require_kind(default[name], _NUMBERS if numbers else (column_type,), name)
            column_type, values = read_cells([*held[name], default[name]], name)
        rest = None if default is None else values[-1]
        kept = values if default is None else values[:-1]
        found.append(JoinedColumn(name=name, type=column_type, values=kept, default=rest))
    return tuple(found)


def _refuse_taken(known: Iterable[str], added: Iterable[str]) -> None:
    taken = sorted(set(known) & set(added))
    if taken:
        raise ParameterError(
            f"there is a column {brief(taken[0])} already: rename that of the other table",
            parameter="columns",
        )


def _require_defaults(default: Any, added: Iterable[str]) -> None:
    if not isinstance(default, Mapping) or set(default) != set(added):
        raise ParameterError(
            "default must give the value of each added column for rows without a match: "
            f"{', '.join(map(brief, sorted(added)))}",
            parameter="default",
        )


def name_public_table(rows: int, columns: Iterable[str]) -> str:
    """Name a public table that is joined, all of which is a part of the query and of its files."""
    size = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"the joined public table ({size}; columns {', '.join(map(shown, columns))})"


def publish_warnings(joins: Iterable[Join]) -> tuple[str, ...]:
    """Say of each public table that all of it is told with the answer, and which rows are not."""
    return tuple(
        f"All of {name_public_table(len(each.keys), [each.on, *(c.name for c in each.columns)])} "
        "becomes a part of the stored answer and of its certificate, without noise: whoever reads "
        "them reads it." + " Rows without a match in it are left out." * (not each.keeps_all)
        for each in joins
    )


def read_cells(cells: Iterable[Any], name: str) -> tuple[ColumnType, tuple[Any, ...]]:
    """Read the cells of a public column, all of one type; whole numbers among others are floats.

    So are decimals, as they are in a private table.
    """
    plain = [each.item() if isinstance(each, np.generic) else each for each in cells]
    plain = [float(each) if isinstance(each, Decimal) else each for each in plain]
    kinds = {type(each) for each in plain}
    if kinds == {int, float}:
        kinds, plain = {float}, [float(each) for each in plain]
    kind = next(iter(kinds)) if len(kinds) == 1 else type(None)
    if kind not in _MADE_OF or any(not _is_whole(each) for each in plain):
        raise ParameterError(
            f"column {brief(name)} must hold numbers, strings or bools, of one type, and no "
            f"missing cell, and holds {', '.join(sorted(each.__name__ for each in kinds))}: fill "
            "or convert it, or leave the column out",
            parameter="public",
        )
    return _MADE_OF[kind], tuple(plain)


def _is_whole(cell: Any) -> bool:
    """Whether a cell is a value that a database can hold."""
    if isinstance(cell, str):
        return is_sendable(cell)
    if type(cell) is int:
        return -(2**63) <= cell < 2**63
    return math.isfinite(cell)
