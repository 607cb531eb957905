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
from hushed._ground.types import Integers
from hushed._rows import _containers as containers
from hushed._rows._owners import list_owners
from hushed._rows._parts import take_part
from hushed.errors import BadRows

Draw = Callable[[int, int], Integers]  # a bound, and how many whole numbers below it

_KEYS = 1 << 62  # that two rows get the same key has a chance of n**2 / 2**63, and does no harm


def check_sendable(rows: Any) -> None:
    """Refuse a table by its types, if no other process can be given a part of it."""
    if containers.container(rows) == "polars" and "Object" in map(str, rows.dtypes):
        raise BadRows(
            "a Polars column of Python objects reaches no other process: make it one of a type of "
            "Polars, or give a pandas frame or a list"
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
    return np.argsort(draw(_KEYS, count)).astype(np.int64)


def _label_users(users: list[Any], blocks: int, draw: Draw) -> Integers:
    """Draw a label for each user; a row of nobody gets -1, and is in no part."""
    named = dict.fromkeys(user for user in users if user is not None)
    known = {user: place for place, user in enumerate(named)}
    drawn = draw(blocks, len(known)).tolist()
    return np.array([-1 if user is None else drawn[known[user]] for user in users], dtype=np.int64)
