"""Tables of rows made into tables of users, and shown to functions as rows again.

A function never sees how users are called: names would be the same in no two tables, and could
tell whose rows they are. In the column of users it finds 0, 1, 2, ..., the place of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.types import Integers
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._owners import check_owner_column, list_owners
from hushed.errors import BadRows, ParameterError


def bundle_rows(rows: Any, user: str | int, *, public: bool = False) -> Bundles:
    """Put the rows of each user together: users as they come up, rows in their order.

    Users are the same if Python takes their names for equal, as blocks do.
    """
    containers.check_texts(rows)
    check_owner_column(rows, user, public=public)
    check_holds_numbers(rows)
    codes = _number_owners(rows, user) if len(rows) else np.empty(0, dtype=np.int64)
    counts = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    sorted_already = bool((codes[1:] >= codes[:-1]).all())
    kept = rows if sorted_already else containers.take(rows, np.argsort(codes, kind="stable"))
    return Bundles(kept, starts, user)


def count_units(rows: Any, user: str | int | None) -> int:
    """Count the rows of a table, or its users."""
    return len(rows if user is None else bundle_rows(rows, user))


def _number_owners(rows: Any, user: str | int) -> Integers:
    """Give each row the number of its user, as they come up; refuse rows of nobody."""
    if not len(rows):  # a table, too, where the number of users is private
        return np.empty(0, dtype=np.int64)
    cells = _read_plain(rows, user)
    missing = False
    if cells is not None:
        missing = cells.dtype.kind == "f" and bool(np.isnan(cells).any())
        if not missing and bool((cells[1:] >= cells[:-1]).all()):
            return np.concatenate([[0], np.cumsum(cells[1:] != cells[:-1])]).astype(np.int64)
        _, first, codes = np.unique(cells, return_index=True, return_inverse=True)
        places = np.empty(len(first), dtype=np.int64)
        places[np.argsort(first)] = np.arange(len(first))
        codes = places[codes.reshape(-1)]
    else:
        owners = list_owners(rows, user)
        missing = any(each is None for each in owners)
        known = {each: place for place, each in enumerate(dict.fromkeys(owners))}
        codes = np.array([known[each] for each in owners], dtype=np.int64)
    if missing:
        raise BadRows(
            f"the column of users, {user!r}, has missing values, or values that are equal to no "
            "other: nobody knows whose such a row is. Leave such rows out, or name their users"
        )
    return codes


def _read_plain(rows: Any, user: str | int) -> NDArray[Any] | None:
    """Column of users as an array of numbers, where it is one without missing cells."""
    held = containers.container(rows)
    if held == "list":
        return None
    if held == "array":
        cells = rows[user] if rows.dtype.names else rows[:, user]
    elif held == "pandas":
        cells = rows[user].to_numpy() if isinstance(rows[user].dtype, np.dtype) else None
    else:
        column = rows.get_column(user)
        cells = column.to_numpy() if column.dtype.is_integer() and not column.null_count() else None
    plain = isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf" and cells.ndim == 1
    return cells if plain else None


def check_holds_numbers(rows: Any) -> None:
    """Refuse a table whose column of users cannot hold their places, by its types alone."""
    plain = containers.container(rows) == "array" and rows.dtype.names is None
    if plain and rows.dtype.kind not in "iufO":
        raise BadRows(
            f"the array holds elements of type {rows.dtype.type.__name__}, among which there is no "
            "place for the numbers of users: give an array of numbers, or a frame"
        )


def number_users(table: Bundles) -> Bundles:
    """Write the place of each user into the column of users, in a copy; of a frame an integer."""
    if table.numbered:
        return table
    users = len(table)
    rows, user = table.rows, table.user
    places = np.repeat(np.arange(users), np.diff(table.starts))
    held = containers.container(rows)
    if held == "list":
        made: Any = [
            _with_cell(row, user, at) for row, at in zip(rows, places.tolist(), strict=True)
        ]
    elif held == "pandas":
        made = rows.copy(deep=False)
        made.isetitem(list(rows.columns).index(user), places)
    elif held == "polars":
        column = rows.get_column(user)
        place = rows.columns.index(user)
        made = rows.clone().replace_column(place, type(column)(column.name, places))
    elif rows.dtype.names:
        kinds = [(n, np.int64 if n == user else rows.dtype[n]) for n in rows.dtype.names]
        made = np.empty(rows.shape, dtype=kinds)
        for name in rows.dtype.names:
            made[name] = places if name == user else rows[name]
    else:
        check_room(rows.dtype, users)
        made = rows.copy()
        made[:, user] = places
    return Bundles(made, table.starts, user, numbered=True)


def check_room(dtype: np.dtype[Any], users: int) -> None:
    """Refuse elements too small to hold the number of users, which is not told."""
    kind = dtype.kind
    most = (
        2**63
        if kind == "O"
        else np.iinfo(dtype).max
        if kind in "iu"
        else 2 ** np.finfo(dtype).nmant
    )
    if users > most:
        raise ParameterError(
            f"an array of {dtype} cannot hold the places of so many users in its column of users: "
            "give one of float64 or int64, or a frame"
        )


def _with_cell(row: Any, user: str | int, place: int) -> Any:
    """Give a row whose cell of the user is another one; lists hold tuples, lists and dicts."""
    if type(row) is dict and user in row:
        return {**row, user: place}
    if type(row) in (tuple, list) and type(user) is int and 0 <= user < len(row):
        return type(row)([*row[:user], place, *row[user + 1 :]])
    raise BadRows(
        "rows of users in a list must be tuples, lists or dicts, each with the column of users; "
        "others fit into a frame"
    )


def show_rows(table: Any) -> Any:
    """Make of a table of users the rows that a function is given; other tables stay as they are."""
    return number_users(table).rows if isinstance(table, Bundles) else table


def drop_users(table: Bundles) -> Any:
    """Rows without the column of users; None if there is no other one."""
    rows: Any = table.rows
    user: Any = table.user
    held = containers.container(rows)
    if held == "list":
        return [_without_cell(row, user) for row in rows] if len(rows[0]) > 1 else None
    if held == "array" and rows.dtype.names is None:
        return np.delete(rows, user, axis=1) if rows.shape[1] > 1 else None
    names = rows.dtype.names if held == "array" else rows.columns
    others = [name for name in names if name != user]
    if not others:
        return None
    return rows[others] if held != "polars" else rows.select(others)


def _without_cell(row: Any, user: Any) -> Any:
    if type(row) is dict:
        return {key: cell for key, cell in row.items() if key != user}
    return type(row)([*row[:user], *row[user + 1 :]])
