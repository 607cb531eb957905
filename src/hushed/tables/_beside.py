"""Join a table with another one of the same database, by their users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import brief
from hushed.errors import NotFound, ParameterError
from hushed.tables import _engine as engine
from hushed.tables._expressions import find_column
from hushed.tables._joins import require_columns

if TYPE_CHECKING:
    from hushed.tables._table import Table


def join_beside(
    table: Table, name: str, user: str, columns: Sequence[str], default: Mapping[str, Any] | None
) -> tuple[Table, tuple[str, ...]]:
    """Open the other table, check that it fits, and add its columns; give what to warn of."""
    if table.user is None:
        raise ParameterError(
            "tables are joined by their users, and this one has no user column",
            parameter="user",
            hint="open the table with user='COLUMN'",
        )
    try:
        other = engine.open_beside(table.connection, name)
    except NotFound as missing:
        missing.parameter, missing.hint = "name", ""  # not the table that was opened
        raise
    chosen = require_columns(columns)
    known = other.columns
    mine, theirs = table.columns[table.user], known[find_column(user, known)]
    if mine != theirs:
        raise ParameterError(
            f"the users are of type {mine} here and of type {theirs} in {brief(name)}: they must "
            "be of one type",
            parameter="user",
        )
    types = {each: known[find_column(each, known)] for each in chosen}
    query = table.query.join_users(name, user, types, default)
    joined = engine.add_other(table.connection, name, other)
    return replace(table, connection=joined, query=query), other.warnings
