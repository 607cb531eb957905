"""Whose each row is, by a column that names users."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushed._ground.checks import is_a
from hushed._ground.printing import as_given, name_count, suggest
from hushed._rows import _containers as containers
from hushed._rows._users import name_user
from hushed.errors import BadRows


def check_owner_column(rows: Any, user: str | int, *, public: bool = False) -> None:
    """Refuse a table without such a column, by its columns alone; those of a list are in cells.

    Of public rows it is asked which column was meant; names that private ones have are not shown.
    """
    held, meant = containers.container(rows), ""
    if held == "list":
        return
    if held == "array" and rows.dtype.names is None:
        width = rows.shape[1] if rows.ndim == 2 else 0
        known = type(user) is int and 0 <= user < width
        what = f"must be the position of one of {width} columns, counted from 0"
        what = what if width else "must be a column, and such rows have none"
    else:
        columns = list(rows.dtype.names if held == "array" else rows.columns)
        known = columns.count(user) == 1
        what = "must be one of the columns, spelled as there"
        meant = suggest(user, map(str, columns)) if public else ""
        if type(user) is int and not known:
            meant = ", and these have names (a command takes frames by --frame pandas or polars)"
    if not known:
        raise BadRows(f"user={as_given(user)} {what}: it says whose each row is{meant}")


def check_drawn(table: Any, count: int) -> None:
    """Refuse a public table of another number of rows than was asked for."""
    gave = len(table) if hasattr(table, "__len__") else "no table"
    if gave == count:
        return
    people = "; if it gives all rows of so many people, name the column of people, with "
    hint = f"{people}user=, where there is one" if isinstance(gave, int) and gave > count else ""
    raise BadRows(f"the population was asked for {name_count(count, 'row')} and gave {gave}{hint}")


def list_owners(rows: Any, user: str | int) -> list[Any]:
    """Say whose each row is, None if nobody's; each row by itself."""
    held = containers.container(rows)
    if held == "list":
        return [_read_owner(row, user) for row in rows]
    if held == "pandas":
        cells = rows[user].tolist()
    elif held == "polars":
        cells = rows.get_column(user).to_list()
    else:
        plain: Any = np.asarray(rows)  # a column of a matrix is a matrix
        cells = (plain[user] if plain.dtype.names else plain[:, user]).tolist()
    return list(map(_as_owner, cells))


def _read_owner(row: Any, user: str | int) -> Any:
    try:
        kind: Any = next((each for each in (tuple, list, dict) if is_a(row, each)), type(row))
        return _as_owner(kind.__getitem__(row, user))
    except (Exception, SystemExit, GeneratorExit):  # no such cell, and so it belongs to nobody
        return None


def _as_owner(cell: Any) -> Any:
    """Make of a cell the name of a user; None of what is missing or has no name."""
    name = name_user(cell)
    return None if isinstance(name, str) else name
