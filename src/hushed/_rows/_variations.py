"""A drawn table and its neighbours, which share nothing that a function could change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._rows._bundles import Bundles, holds_numbers
from hushed._rows._containers import container, take
from hushed._rows._owned import copy_rows
from hushed._rows._people import number_users, show_rows


def variations(
    table: Any, count: int, swaps: Iterable[tuple[int, int]], *, fresh: bool = False
) -> Iterator[Any]:
    """Hand out the first ``count`` rows of a table, then the same with single rows replaced.

    A function that changes a row now and then must not change it for the next table, too: what can
    be changed within a row is another object in each table.
    """
    if isinstance(table, Bundles):
        yield from _users(table, count, swaps, fresh=fresh)
        return
    held = container(table)
    if held != "array":
        make = {"list": _list, "pandas": _pandas, "polars": _polars}[held]
        yield make(table, count, None)
        for swap in swaps:
            yield make(table, count, swap)
        return
    view = table[:count]
    view.flags.writeable = False
    handed = _handing(table, fresh=fresh)
    yield handed(view)
    for position, source in swaps:
        kept = table[position : position + 1].copy()
        table[position] = table[source]
        yield handed(view)
        table[position] = kept[0]


def _users(
    table: Bundles, count: int, swaps: Iterable[tuple[int, int]], *, fresh: bool
) -> Iterator[Any]:
    """Hand out the rows of the first users, then the same with all rows of single users replaced.

    The rows of one table are never those of another, so that nothing has to be put back.
    """
    if holds_numbers(table.rows):
        yield from _user_arrays(table, count, swaps, fresh=fresh)
        return
    plain = np.arange(count)
    yield next(variations(show_rows(table[:count]), int(table.starts[count]), (), fresh=fresh))
    for position, source in swaps:
        order = plain.copy()
        order[position] = source
        shown = show_rows(take(table, order))
        yield next(variations(shown, len(shown), (), fresh=fresh))


def _user_arrays(
    table: Bundles, count: int, swaps: Iterable[tuple[int, int]], *, fresh: bool
) -> Iterator[NDArray[Any]]:
    """Do so for arrays of numbers: the rows before and after a user are copied as they lie."""
    rows, starts, user = number_users(table).rows, table.starts, int(table.user)
    end = int(starts[count])
    base = rows[:end]
    base.flags.writeable = False
    yield base.copy() if fresh else base
    for position, source in swaps:
        own = rows[starts[source] : starts[source + 1]]
        start, stop = int(starts[position]), int(starts[position + 1])
        made = np.concatenate((rows[:start], own, rows[stop : end + 1]))
        made[start : start + len(own), user] = position
        shown = made[: end - (stop - start) + len(own)]  # a part of an array, as the first is
        shown.flags.writeable = False
        yield shown.copy() if fresh else shown


def swap_user(table: Bundles, place: int, *, fresh: bool = False) -> Iterator[Any]:
    """Hand out a table without its last user, then the same with that one in a place.

    As with rows, the second array lies where the first one lay: what is behind that place is moved.
    """
    if not holds_numbers(table.rows):
        yield from _users(table, len(table) - 1, ((place, len(table) - 1),), fresh=fresh)
        return
    rows, user, starts = table.rows, int(table.user), table.starts
    start, stop = starts[place : place + 2].tolist()
    end, last = starts[-2:].tolist()
    shown = rows[:end]
    shown.flags.writeable = False
    yield shown.copy() if fresh else shown
    own = rows[end:].copy()
    own[:, user] = place
    behind, moved = start + last - end, end + last - end - (stop - start)
    if behind != stop:
        _move(rows, stop, end, behind)
    rows[start:behind] = own
    shown = rows[:moved]
    shown.flags.writeable = False
    yield shown.copy() if fresh else shown


def _move(rows: NDArray[Any], start: int, stop: int, to: int) -> None:
    """Move rows within an array: in one dimension NumPy does so without a copy between."""
    if not rows.flags.c_contiguous:
        rows[to : to + stop - start] = rows[start:stop]
        return
    cells, width = rows.reshape(-1), rows.strides[0] // rows.itemsize
    cells[to * width : (to + stop - start) * width] = cells[start * width : stop * width]


def rearrangements(
    table: Any, orders: Iterable[NDArray[np.int64]], *, fresh: bool = False
) -> Iterator[Any]:
    """Hand out tables of the rows at given positions, which share nothing that could be changed."""
    if isinstance(table, Bundles):
        for order in orders:
            rows = show_rows(take(table, order))
            yield next(variations(rows, len(rows), (), fresh=fresh))
        return
    held = container(table)
    for order in orders:
        rows = take(table, order)
        if held == "array" and not fresh and _is_shown_in_place(rows):
            yield show_in_place(rows)
        elif held == "array":
            yield _handing(rows, fresh=fresh)(rows)
        elif held == "list":
            yield list(map(_apart, rows))
        else:
            yield copy_rows(rows)


def show_in_place(rows: NDArray[Any]) -> NDArray[Any]:
    """Lock an array, and let it be part of a larger one, as drawn tables are."""
    if _is_shown_in_place(rows):
        rows = np.concatenate([rows, rows[:1]])[: len(rows)]
    rows.flags.writeable = False
    return rows


def _is_shown_in_place(table: NDArray[Any]) -> bool:
    """Whether a function is shown a part of an array, locked, and no copy: nothing can change."""
    if not table.dtype.hasobject:
        return True
    return table.dtype.names is None and _fixed(table.ravel().tolist())


def _handing(table: NDArray[Any], *, fresh: bool) -> Callable[[NDArray[Any]], NDArray[Any]]:
    if _is_shown_in_place(table):
        return (lambda view: view.copy()) if fresh else (lambda view: view)

    def apart(view: NDArray[Any]) -> NDArray[Any]:
        made = copy.deepcopy(view)
        made.flags.writeable = fresh
        return made

    return apart


_FIXED = frozenset({str, bytes, bool, int, float, complex, type(None)})


def _fixed(values: Iterable[Any]) -> bool:
    """Whether nothing can be changed within values."""
    return all(kind in _FIXED or issubclass(kind, np.generic) for kind in set(map(type, values)))


def _apart(row: Any) -> Any:
    """Give a row that shares nothing with another one that could be changed."""
    kind = type(row)
    if kind in _FIXED:
        return row
    if kind is np.ndarray and not row.dtype.hasobject:
        return row.copy()
    if kind in (list, tuple, dict) and _fixed(row.values() if kind is dict else row):
        return row if kind is tuple else row.copy()
    return copy.deepcopy(row)


def _list(table: list[Any], count: int, swap: tuple[int, int] | None) -> list[Any]:
    rows = table[:count]
    if swap:
        rows[swap[0]] = table[swap[1]]
    return list(map(_apart, rows))


def _pandas(table: Any, count: int, swap: tuple[int, int] | None) -> Any:
    order = np.arange(count)
    if swap is not None:
        order[swap[0]] = swap[1]
    made = table.iloc[:count].copy(deep=False) if swap is None else take(table, order)
    for place, dtype in enumerate(made.dtypes):
        held = list(made.iloc[:, place]) if str(dtype) == "object" else []
        if not _fixed(held):
            cells = np.empty(count, dtype=object)
            for at, value in enumerate(held):
                cells[at] = _apart(value)
            column = type(made.iloc[:, place])(cells, dtype=object, index=made.index)
            made.isetitem(place, column)
    return made


def _polars(table: Any, count: int, swap: tuple[int, int] | None) -> Any:
    made = table[:count]
    if swap is not None:
        position, source = swap
        parts = table[:position], table[source : source + 1], table[position + 1 : count]
        made = parts[0].vstack(parts[1]).vstack(parts[2])
    objects = any(str(dtype) == "Object" for dtype in made.dtypes)
    return copy_rows(made) if objects else made.rechunk()
