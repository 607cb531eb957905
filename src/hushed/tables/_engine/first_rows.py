"""SQL of DuckDB that keeps the first rows of each user, in the order of a hash and then of columns.

To rank rows takes fifteen times as long as to count them. So the rows of small hashes are ranked
first. Where they hold as many of a user as are kept, these are the first ones of all, whatever
counts as small. All rows of the other users are read, and those of users who have more than are
kept are ranked. All of it keeps the same rows as one rank of all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MOST_SMALL = 0.75  # of all rows; to rank these first and then the others takes longer than all


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """The rows to choose from, and how many of each user are kept."""

    rows: str  # SQL of the rows, with their `hash` in [0, 2**64); none is without a user
    columns: Sequence[str]  # what the kept rows have; names of our own
    user: str  # the column of the users
    ties: Sequence[str]  # the columns that order rows of the same hash
    limit: int  # how many rows of each user are kept
    # SQL of the values, `constant`, that a column must have for its row to be chosen from.
    known: Mapping[str, str]
    # Whether the rows are the same when they are read again. Else they are read once, and held.
    again: bool


def choose_first(told: FirstRows) -> str:
    """Write the SQL that keeps the first rows of each user.

    Unknown values are left out late: to look a value up takes as long as to count its row. So a
    user is counted with more rows than are chosen from, and one with few rows has few to choose.
    """
    columns, user = ", ".join(map(_quote, told.columns)), _quote(told.user)
    values = "".join(
        f"hushed_known{i} AS MATERIALIZED ({sql}), " for i, sql in enumerate(told.known.values())
    )
    small = _keep_known("SELECT * FROM hushed_rows JOIN hushed_below ON hash < below", told)
    others = _keep_known(f"SELECT * FROM hushed_rows JOIN hushed_rest USING ({user})", told)  # noqa: S608
    many = _rank(f"SELECT * FROM hushed_others WHERE held > {told.limit}", told)  # noqa: S608
    return (
        f"WITH hushed_rows AS {'NOT ' if told.again else ''}MATERIALIZED ({told.rows}), {values}"  # noqa: S608
        "hushed_users AS MATERIALIZED "
        f"(SELECT {user}, count(*) AS held FROM hushed_rows GROUP BY {user}), "
        f"hushed_below AS MATERIALIZED ({small_below(told.limit)}), "
        f"hushed_small AS MATERIALIZED ({_rank(small, told)}), "
        f"hushed_whole AS MATERIALIZED "
        f"(SELECT {user} FROM hushed_small WHERE place = {told.limit - 1}), "
        "hushed_rest AS MATERIALIZED "
        f"(SELECT * FROM hushed_users ANTI JOIN hushed_whole USING ({user})), "
        f"hushed_others AS MATERIALIZED ({others}) "
        f"SELECT {columns} FROM hushed_small SEMI JOIN hushed_whole USING ({user}) "
        f"UNION ALL SELECT {columns} FROM hushed_others WHERE held <= {told.limit} "
        f"UNION ALL SELECT {columns} FROM ({many})"
    )


def small_below(limit: int) -> str:
    """Write the SQL of the hash below which most users have as many rows as are kept, and few more.

    One more row of each user is ranked for nothing; of a user who has too few, all rows are ranked.
    So the fewer have too few, the more rows a user has. Where most rows would be small, there is
    none: DuckDB joins nothing with an empty table, and reads no row for it.
    """
    wanted = f"{limit + 1} + sqrt({2 * limit} * ln(greatest(each / {limit}, 1)))"
    share = f"SELECT ({wanted}) / each AS share FROM ({_EACH})"  # noqa: S608
    small = f"CAST(least(share, {_MOST_SMALL}) * {2.0**64!r} AS UBIGINT)"
    return f"SELECT {small} AS below FROM ({share}) WHERE share < {_MOST_SMALL}"  # noqa: S608


_EACH = "SELECT sum(held) / count(*) AS each FROM hushed_users"


def _keep_known(rows: str, told: FirstRows) -> str:
    """Leave out the rows of unknown values."""
    for i, column in enumerate(told.known):
        known = f"hushed_known{i}"
        rows = f"SELECT * FROM ({rows}) SEMI JOIN {known} ON {_quote(column)} = {known}.constant"  # noqa: S608
    return rows


def _rank(rows: str, told: FirstRows) -> str:
    """Keep the first rows of each user among some."""
    order = ", ".join(["hash", *map(_quote, told.ties)])
    place = f"row_number() OVER (PARTITION BY {_quote(told.user)} ORDER BY {order}) - 1 AS place"
    return f"SELECT * FROM (SELECT *, {place} FROM ({rows})) WHERE place < {told.limit}"  # noqa: S608


def _quote(name: str) -> str:
    return f'"{name}"'
