"""Tables of users made of rows that say nothing of users: a column of their places is put in."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushed._ground.printing import as_given
from hushed._ground.types import Integers
from hushed._rows import _containers as containers
from hushed._rows._people import check_holds_numbers, check_room
from hushed.errors import BadRows


def join_tables(tables: list[Any]) -> Any:
    """Put tables of one kind one under the other."""
    kinds = {containers.container(each) for each in tables}
    held = kinds.pop() if len(kinds) == 1 else "list"
    if held == "list":
        raise BadRows("rows of users must be arrays, or frames of one kind")
    if held == "array":
        return np.concatenate(tables)
    if held == "pandas":
        import pandas  # noqa: PLC0415

        return pandas.concat(tables, ignore_index=True)
    import polars  # noqa: PLC0415

    return polars.concat(tables)


def add_column(rows: Any, user: str | int, sizes: Integers) -> Any:
    """Put the column of users, in which their places stand, into a table."""
    if takes_position(rows, user):
        return repeat_lines(write_lines(rows, user, len(sizes)), rows, user, sizes)
    held = containers.container(rows)
    if held not in ("pandas", "polars") or not isinstance(user, str) or user in rows.columns:
        raise BadRows(
            f"user={as_given(user)} must be the position of the column in an array, or a new name "
            f"in a frame; the rows are {containers.layout(rows)}"
        )
    places = np.arange(len(sizes)).repeat(sizes)
    if held == "pandas":
        made = rows.reset_index(drop=True)
        made.insert(0, user, places)
        return made
    column = type(rows.to_series(0))(user, places)
    return rows.clone().insert_column(0, column)


def takes_position(rows: Any, user: Any) -> bool:
    """Whether the column of users has a position, and no name."""
    return isinstance(rows, np.ndarray) and rows.dtype.names is None and not isinstance(user, str)


def write_lines(rows: Any, user: Any, users: int) -> Any:
    """Write a line for each user, with the place in the column of users, and no more."""
    width = 1 if rows.ndim == 1 else rows.shape[1]
    if rows.ndim > 2 or user > width:
        raise BadRows(f"user={user} is no position among the {width} columns of the rows, and one")
    check_holds_numbers(rows)
    check_room(rows.dtype, users)
    made = np.zeros((users, width + 1), dtype=rows.dtype)
    made[:, user] = np.arange(users)
    return made


def repeat_lines(lines: Any, rows: Any, user: Any, sizes: Integers) -> Any:
    """Write rows into lines; to repeat these is quicker than to write places into a column."""
    made = lines.repeat(sizes, axis=0)
    if rows.ndim == 1:
        made[:, 1 - user] = rows
    else:
        made[:, :user] = rows[:, :user]
        made[:, user + 1 :] = rows[:, user:]
    return made
