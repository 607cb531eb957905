"""Copies of bounded rows, which the queries with the same contribution bounds share.

Most of the time of a query with users goes into choosing the rows of every user. A copy holds the
chosen rows, and the next query that chooses in the same way reads the copy.

One secret for all queries on a copy is enough. Whatever the secret is, adding or removing a user
adds or removes the rows of this user in the copy, within the bounds, and leaves all others as they
were: so every query on the copy keeps its promise for every fixed secret, whatever was asked before
and whoever knows the secret. The secret is drawn without looking at the rows, and a mixture of such
mechanisms by chances that no row decides keeps the promise, also of all queries together.

A copy lives in a table of this process's own session, which nobody else can read; its engine may
write a part of it to a private folder. It is made where the rows cannot change unnoticed only: in
DuckDB, for tables of a file, files, and frames; not for a view, which may read what is outside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hushed.tables._engine.clock import Clock
from hushed.tables._engine.connections import Connection
from hushed.tables._engine.execution import plan, run_command

MOST_COPIES = 2  # copies of one table


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A copy of the rows that the contribution bounds keep, made or still to be made."""

    name: str  # its table, the same for the same selection and columns
    selection: str  # digest of what chooses the rows
    columns: tuple[str, ...]  # columns of the query whose values it holds, in this order
    # The query that fills it, under the secret of this copy.
    sql: str = field(repr=False, compare=False)
    schema: tuple[tuple[str, str], ...]  # its columns and their types, in the words of Ibis


def find_copy(connection: Connection, selection: str, columns: Sequence[str]) -> Copy | None:
    """Find a copy of these rows that holds these columns."""
    held = [each for each in connection.copies or () if each.selection == selection]
    return next((each for each in held if set(columns) <= set(each.columns)), None)


def join_columns(connection: Connection, selection: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Add the columns of a copy of the same rows, which a new copy will replace."""
    held = [each.columns for each in connection.copies or () if each.selection == selection]
    return tuple(sorted({*columns, *(column for each in held for column in each)}))


def plan_copy(
    connection: Connection, selection: str, columns: Sequence[str], rows: Any, clock: Clock
) -> Copy:
    """Let the engine plan the query that fills a copy, and make its table; no row is read."""
    planned = plan(connection, rows, clock)
    schema = tuple((name, str(dtype)) for name, dtype in rows.schema().items())
    told = repr((selection, tuple(columns))).encode()
    copy = Copy(
        name=f"temp.main.hushed_{hashlib.sha256(told).hexdigest()[:32]}",
        selection=selection,
        columns=tuple(columns),
        sql=planned.sql,
        schema=schema,
    )
    mapper = rows.get_backend().compiler.type_mapper
    types = ", ".join(f"{name} {mapper.to_string(kind)}" for name, kind in rows.schema().items())
    run_command(connection, f"CREATE TEMP TABLE IF NOT EXISTS {copy.name} ({types})", clock)
    return copy


def fill_copy(connection: Connection, copy: Copy, clock: Clock) -> None:
    """Fill a copy, unless it is filled; older ones make room for it, before."""
    held = connection.copies
    if held is None:
        raise NotImplementedError("no copies are kept of this table")
    if copy in held:
        held.append(held.pop(held.index(copy)))  # the one that was used last
        return
    for each in [each for each in held if each.selection == copy.selection]:
        _drop(connection, each, clock)  # the new one holds its columns, too
    while len(held) >= MOST_COPIES:
        _drop(connection, held[0], clock)
    run_command(connection, f"CREATE OR REPLACE TEMP TABLE {copy.name} AS {copy.sql}", clock)
    held.append(copy)


def read_copy(connection: Connection, copy: Copy) -> Any:
    """Give the rows of a copy."""
    chosen = ", ".join(name for name, _ in copy.schema)
    query = f"SELECT {chosen} FROM {copy.name}"  # noqa: S608  (names of our own)
    return connection.rows.get_backend().sql(query, schema=dict(copy.schema))


def _drop(connection: Connection, copy: Copy, clock: Clock) -> None:
    if connection.copies is not None:
        connection.copies.remove(copy)
    run_command(connection, f"DROP TABLE IF EXISTS {copy.name}", clock)
