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
from hushed._rows._owners import check_owner_column, list_owners
from hushed._types import Integers
from hushed.errors import BadRows

Draw = Callable[[int, int], Integers]  # a bound, and how many whole numbers below it

_KEYS = 1 << 62  # that two rows get the same key has a chance of n**2 / 2**63, and does no harm


def check_rows(rows: Any, user: str | int | None) -> None:
    """Refuse a table by its types and columns; no value is looked at."""
    containers.container(rows)
    containers.check_texts(rows)
    if user is not None:
        check_owner_column(rows, user)
    _rehearse(rows)


def check_sendable(rows: Any) -> None:
    """Refuse a table by its types, if no other process can be given a part of it."""
    if containers.container(rows) == "polars" and "Object" in map(str, rows.dtypes):
        raise BadRows(
            "a Polars column of Python objects reaches no other process: make it one of a type of "
            "Polars, or give a pandas frame or a list"
        )


def _rehearse(rows: Any) -> None:
    """Take a part of no rows: what fails there fails by the types of the columns alone."""
    try:
        take_part(rows, np.empty(0, dtype=np.int64))
    except Exception:  # its text may hold categories, or names of fields
        failed = True
    else:
        failed = False
    if failed:
        raise BadRows(
            "the table holds a column of a type of which no part can be taken: make it another one"
        )


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
        return [take_part(rows, places) for places in np.array_split(order, blocks)]
    if user is None:
        labels = draw(blocks, len(rows))
    else:
        labels = _label_users(list_owners(rows, user), blocks, draw)
    return [take_part(rows, order[labels[order] == block]) for block in range(blocks)]


def _shuffle(count: int, draw: Draw) -> Integers:
    return np.argsort(draw(_KEYS, count), kind="stable").astype(np.int64)


def _label_users(users: list[Any], blocks: int, draw: Draw) -> Integers:
    """Draw a label for each user; a row of nobody gets -1, and is in no part."""
    named = dict.fromkeys(user for user in users if user is not None)
    known = {user: place for place, user in enumerate(named)}
    drawn = draw(blocks, len(known)).tolist()
    return np.array([-1 if user is None else drawn[known[user]] for user in users], dtype=np.int64)


def take_part(rows: Any, places: Integers) -> Any:
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
