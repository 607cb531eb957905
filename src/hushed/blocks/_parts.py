"""Rows dealt to parts, by chance alone: one record is in one part, and no other part knows of it.

Which row goes where follows from random numbers of the operating system and, where users are
protected, from whose row it is; never from another value. So for any two neighbours the same
numbers give parts of which one differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushed import noise
from hushed._rows import _containers as containers
from hushed._rows._apart import keep_own_categories, make_frame_anew, narrow_texts
from hushed._types import Integers
from hushed.errors import BadRows

Draw = Callable[[int, int], Integers]  # a bound, and how many whole numbers below it

_PLAIN = {str, bytes, bool, int, float}
_KEYS = 1 << 62  # that two rows get the same key has a chance of n**2 / 2**63, and does no harm


def check_rows(rows: Any, user: str | int | None) -> None:
    """Refuse a table by its types and columns; no value is looked at."""
    held = containers.container(rows)
    containers.check_texts(rows)
    if user is None or held == "list":
        return
    if held == "array" and rows.dtype.names is None:
        width = rows.shape[1] if rows.ndim == 2 else 0
        known = type(user) is int and 0 <= user < width
        what = f"the position of one of {width} columns" if width else "no column of such an array"
    else:
        columns = list(rows.dtype.names if held == "array" else rows.columns)
        known = columns.count(user) == 1
        what = "one of the columns"
    if not known:
        raise BadRows(f"user={user!r} must be {what}: it names whose each row is")


def split_rows(
    rows: Any,
    blocks: int,
    user: str | int | None = None,
    *,
    even: bool,
    draw: Draw = noise.uniform_integers,
) -> list[Any]:
    """Deal rows to parts, in a random order.

    If ``even``, of nearly equal size. Otherwise each row, or each user with all rows, goes to a
    part of its own choice, and some may be empty.
    """
    order = _shuffle(len(rows), draw)
    if even:
        return [_take(rows, places) for places in np.array_split(order, blocks)]
    if user is None:
        labels = draw(blocks, len(rows))
    else:
        labels = _label_users(_list_users(rows, user), blocks, draw)
    return [_take(rows, order[labels[order] == block]) for block in range(blocks)]


def _shuffle(count: int, draw: Draw) -> Integers:
    return np.argsort(draw(_KEYS, count), kind="stable").astype(np.int64)


def _label_users(users: list[Any], blocks: int, draw: Draw) -> Integers:
    """Draw a label for each user; a row of nobody gets -1, and is in no part."""
    named = dict.fromkeys(user for user in users if user is not None)
    known = {user: place for place, user in enumerate(named)}
    drawn = draw(blocks, len(known)).tolist()
    return np.array([-1 if user is None else drawn[known[user]] for user in users], dtype=np.int64)


def _list_users(rows: Any, user: str | int) -> list[Any]:
    """Say whose each row is, None if nobody's; each row by itself."""
    held = containers.container(rows)
    if held == "list":
        return [_read_user(row, user) for row in rows]
    if held == "pandas":
        cells = rows[user].tolist()
    elif held == "polars":
        cells = rows.get_column(user).to_list()
    else:
        cells = (rows[user] if rows.dtype.names else rows[:, user]).tolist()
    return list(map(_as_user, cells))


def _read_user(row: Any, user: str | int) -> Any:
    try:
        return _as_user(row[user])
    except Exception:  # it has no such cell, and so belongs to nobody
        return None


def _as_user(cell: Any) -> Any:
    """Make of a cell a name that can be compared; None of what is missing or has no name."""
    import cloudpickle  # noqa: PLC0415

    try:
        hash(cell)
        own: Any = type(cell).__eq__
        compared = own is not object.__eq__  # else each copy is another one
        # What holds NaN, such as a tuple, is equal to itself, and to no other of the same name.
        other = cell if type(cell) in _PLAIN else cloudpickle.loads(cloudpickle.dumps(cell))
        return cell if compared and bool(cell == other) else None  # NaN is not
    except Exception:  # a list; pandas.NA, which is neither equal to itself nor not
        return None


def _take(rows: Any, places: Integers) -> Any:
    """Copy some rows into a table that holds nothing of the others.

    What cells hold is set apart where the part is pickled.
    """
    part = containers.take(rows, places)
    return _MAKE[containers.container(part)](part)


def _with_own_categories(part: Any) -> Any:
    """Leave in a frame the categories that it holds."""
    for place, dtype in enumerate(part.dtypes):
        if getattr(dtype, "name", "") == "category":
            part.isetitem(place, keep_own_categories(part.iloc[:, place].array))
    return part


_MAKE: dict[containers.Container, Callable[[Any], Any]] = {
    "array": narrow_texts,
    "list": list,
    "pandas": _with_own_categories,
    "polars": make_frame_anew,
}
