"""Rows dealt to parts, by chance alone: one record is in one part, and no other part knows of it.

Which row goes where follows from random numbers of the operating system and, where users are
protected, from whose row it is; never from another value. So for any two neighbours the same
numbers give parts of which one differs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed import noise
from hushed._checks import is_a, is_one_of
from hushed._rows import _containers as containers
from hushed._rows._users import name_user
from hushed._types import Integers
from hushed.errors import BadRows

Draw = Callable[[int, int], Integers]  # a bound, and how many whole numbers below it

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
        kind: Any = next((each for each in (tuple, list, dict) if is_a(row, each)), type(row))
        return _as_user(kind.__getitem__(row, user))
    except (Exception, SystemExit, GeneratorExit):  # no such cell, and so it belongs to nobody
        return None


def _as_user(cell: Any) -> Any:
    """Make of a cell the name of a user; None of what is missing or has no name."""
    name = name_user(cell)
    return None if isinstance(name, str) else name


def _take(rows: Any, places: Integers) -> Any:
    """Copy some rows into a table that holds nothing of the others."""
    part = containers.take(rows, places)
    return _MAKE[containers.container(part)](part)


def _narrow(value: Any) -> Any:
    """Make arrays of texts as wide as their own, also within rows."""
    if is_a(value, np.ndarray) and value.dtype.hasobject and not value.dtype.names:
        made = np.empty(value.size, dtype=object)
        for place, each in enumerate(value.ravel()):  # NumPy would look into a list of arrays
            made[place] = _narrow(each)
        return made.reshape(value.shape)
    if is_a(value, np.ndarray, np.void):
        held = np.asarray(value)
        # Always copied, so that arrays share the object that is their type in no part, or in all.
        made = held.astype(_own_type(held), copy=held.dtype.kind in "USV")
        return made if made.ndim else made[()]
    if is_one_of(value, list, tuple):
        return type(value)(map(_narrow, value))
    if is_one_of(value, dict):
        return {key: _narrow(each) for key, each in value.items()}
    return value


def _made_anew(part: Any) -> Any:
    """Make a Polars frame of its values: memory of a larger one tells whether that had nulls."""
    return part.with_columns(_make_column(each) for each in part.get_columns())


def _make_column(column: Any) -> Any:
    if str(column.dtype) == "Object":  # which reaches no other process
        return column
    if column.dtype.is_temporal():  # Python's own know no nanoseconds
        held = column.to_physical()
        return type(column)(column.name, held.to_list(), dtype=held.dtype).cast(column.dtype)
    given = column.to_list()
    if column.dtype.is_numeric() and not column.dtype.is_decimal() and not column.null_count():
        given = column.to_numpy()
    return type(column)(column.name, given, dtype=column.dtype)


def _with_own_categories(part: Any) -> Any:
    """Leave in a frame the categories that it holds: those of all rows tell, and so do numbers."""
    for place, dtype in enumerate(part.dtypes):
        if getattr(dtype, "name", "") == "category":
            part.isetitem(place, _narrow_categories(part.iloc[:, place].array))
    return part


def _narrow_categories(column: Any) -> Any:
    """Leave a column its own categories; where these cannot be sorted, an array of objects."""
    try:
        found = column.remove_unused_categories()
        if not found.ordered:  # it may be the order in which they came up
            found = found.set_categories(_sort(found.categories.tolist()))
    except (Exception, SystemExit, GeneratorExit):  # of objects of a class of the user's
        return np.array(column, dtype=object)
    return found


_MAKE: dict[containers.Container, Callable[[Any], Any]] = {
    "array": _narrow,
    "list": _narrow,
    "pandas": _with_own_categories,
    "polars": _made_anew,
}


def _sort(categories: list[Any]) -> list[Any]:
    """Sort names, whatever they are, by nothing but themselves.

    Sets, and tuples of them, have an order in which some come neither before nor after others: they
    would stay as they came up, and are sorted by what they print.
    """
    if not any(is_a(each, frozenset, tuple) for each in categories):
        with suppress(TypeError):
            return sorted(categories)
    return sorted(categories, key=lambda each: (type(each).__qualname__, repr(each)))


def _own_type(part: NDArray[Any]) -> np.dtype[Any]:
    """Type of an array whose texts are as wide as its own longest one: that of all rows tells."""
    names = part.dtype.names
    if names:
        shapes = {name: part.dtype[name].shape for name in names}  # of a field that is an array
        return np.dtype([(name, _own_type(part[name]), shapes[name]) for name in names])
    if part.dtype.kind not in "US":
        return part.dtype
    longest = int(np.char.str_len(part).max()) if part.size else 1
    return np.dtype(f"{part.dtype.kind}{max(longest, 1)}")
