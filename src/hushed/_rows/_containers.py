"""Tables of rows, whatever holds them: NumPy array, list, pandas frame or Polars frame."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._rows._bundles import Bundles, find_rows, find_starts, holds_numbers
from hushed._rows._elements import Element, alike, cells
from hushed.errors import BadRows

Container = Literal["array", "list", "pandas", "polars"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The public shape of a table: what holds it and which columns it has, but not its values."""

    container: Container  # what holds the rows
    # Names, or ``"0", "1", ...`` for the columns of an array; empty for a list and for an array of
    # scalars.
    columns: tuple[str, ...] = ()
    # For each column ``"number"`` or ``"other"``; for an array of scalars one entry.
    kinds: tuple[str, ...] = ()
    # Shape of one row of an array: six columns may come as two by three.
    inner: tuple[int, ...] = ()
    # Type of each column of a frame; one entry for an array or a list. Not compared: what converts
    # to them without loss is as good.
    types: tuple[Element, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        """Words for messages."""
        what = _WHAT[self.container]
        if self.container == "list":
            return what
        if not self.columns:
            return f"{what} of scalars"
        if self.container == "array":
            return f"{what} with {len(self.columns)} columns"
        few = ", ".join(self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")
        return f"{what} with columns {few}"

    def difference(self, other: Layout) -> str:
        """Say where another layout departs from this one, without naming its columns."""
        if other.container != self.container:
            return f"the data is {_WHAT[other.container]}"
        if len(other.columns) != len(self.columns):
            ours, theirs = (
                "scalars" if not n else f"{n} columns"
                for n in map(len, (self.columns, other.columns))
            )
            return f"the data has {theirs} where {ours} were sampled"
        for place, (name, theirs) in enumerate(zip(self.columns, other.columns, strict=True)):
            if name != theirs:
                return f"column {place + 1} of the data has another name than {name!r}"
        for name, kind, theirs in zip(self.columns, self.kinds, other.kinds, strict=False):
            if kind != theirs:
                sampled, given = _KINDS[kind], _KINDS[theirs]
                return f"column {name!r} holds {sampled} in the sample and {given} in the data"
        if other.inner != self.inner:
            return f"a row of the data has shape {other.inner} where {self.inner} was sampled"
        return "the data holds another kind of values"


_KINDS = {"number": "numbers", "other": "no numbers (texts, for example)"}
_WHAT = {
    "array": "a NumPy array",
    "list": "a list of rows",
    "pandas": "a pandas frame",
    "polars": "a Polars frame",
}


def container(rows: object) -> Container:
    """Name what holds the rows."""
    if type(rows) is np.ndarray and rows.ndim:  # the common case, and the hot one
        return "array"
    kind = type(rows)  # and not what an object says that it is
    if issubclass(kind, np.ma.MaskedArray):
        raise BadRows("rows must not be a masked array: fill the missing cells or drop their rows")
    if issubclass(kind, np.ndarray):
        if take_plain(rows).ndim == 0:
            raise BadRows("rows must be a table, got an array without dimensions")
        return "array"
    if issubclass(kind, list):
        return "list"
    if isinstance(rows, Bundles):
        return container(rows.rows)
    library = kind.__module__.partition(".")[0]
    if kind.__name__ == "DataFrame" and library in ("pandas", "polars"):
        return "pandas" if library == "pandas" else "polars"
    cure = ": series.to_frame() makes a table of it" if is_series(rows) else ""
    raise BadRows(
        "rows must be a NumPy array, a list, a pandas DataFrame or a Polars DataFrame, "
        f"got {kind.__module__}.{kind.__qualname__}{cure}"
    )


def is_series(rows: object) -> bool:
    """Tell a pandas or Polars series."""
    library = type(rows).__module__.partition(".")[0]
    return type(rows).__name__ == "Series" and library in ("pandas", "polars")


def as_table(rows: Any) -> Any:
    """Make a frame of one column of a series; anything else stays what it is."""
    return rows.to_frame() if is_series(rows) else rows


def take_plain(rows: Any) -> Any:
    """Take the rows out of a list or array of a class of the caller's, whose code could tell them.

    Anything else stays what it is. Whether something holds these rows is asked of the list itself.
    """
    kind = type(rows)
    if kind is not list and issubclass(kind, list):
        return list.__getitem__(rows, slice(None))
    own = kind is not np.ndarray and issubclass(kind, np.ndarray)
    return np.ndarray.view(rows, np.ndarray) if own else rows


_NUMBERED = {
    "polars": (
        "a Polars Categorical",
        "Categorical",
        "polars.Enum with public categories, or to polars.String",
    ),
    "pandas": (
        "an Arrow dictionary",
        "dictionary<",
        "pandas.CategoricalDtype with public categories, or to str",
    ),
}


def layout(rows: Any) -> Layout:
    """Describe a table without its values; one of users by its rows."""
    if isinstance(rows, Bundles):
        return layout(rows.rows)
    held = container(rows)
    found = types(rows)
    if held == "list":
        return Layout(container=held, types=found)
    if held == "array" and rows.dtype.names:
        fields = [rows.dtype[name].kind in "biuf" for name in rows.dtype.names]
        kinds = tuple("number" if flag else "other" for flag in fields)
        names, inner = rows.dtype.names, rows.shape[1:]
        return Layout(container=held, columns=names, kinds=kinds, inner=inner, types=found)
    if held == "array":
        kind = "number" if rows.dtype.kind in "biuf" else "other"
        columns = tuple(str(i) for i in range(int(np.prod(rows.shape[1:])))) * (rows.ndim > 1)
        kinds = (kind,) * max(1, len(columns))
        inner = rows.shape[1:]
        return Layout(container=held, columns=columns, kinds=kinds, inner=inner, types=found)
    if held == "pandas":
        numeric = [dtype.kind in "biuf" for dtype in rows.dtypes]
    else:
        numeric = [dtype.is_numeric() or str(dtype) == "Boolean" for dtype in rows.dtypes]
    return Layout(
        container=held,
        columns=tuple(map(_label, rows.columns)),
        kinds=tuple("number" if flag else "other" for flag in numeric),
        types=found,
    )


def holds_numbers_alone(rows: Any) -> bool:
    """Tell whether a table holds numbers, and no other objects, at any depth."""
    found = layout(rows)
    held = [each.cells.others for each in found.types if each.cells is not None]
    return "other" not in found.kinds and not any(held)


_LOOKS_TYPED = re.compile(
    r" \((bool|bytes|date|datetime|float|int|Interval|NoneType|Period|Timedelta|Timestamp|tuple)\)$"
)


def _label(name: object) -> str:
    """Name of a column; one that is not a text is told apart from the text of it."""
    odd = type(name) is not str or _LOOKS_TYPED.search(name)
    return f"{name} ({type(name).__name__})" if odd else str(name)


def types(rows: Any) -> tuple[Element, ...]:
    """Types of the elements of a table."""
    held = container(rows)
    if held == "list":
        return (Element(cells=cells(rows, column=False)),)
    if held == "array":
        objects = cells(rows.ravel().tolist(), column=True) if rows.dtype.hasobject else None
        return (Element(rows.dtype, objects),)
    check_texts(rows)
    found = []
    for place, dtype in enumerate(rows.dtypes):
        objects = None
        if str(dtype) in ("object", "Object"):
            column = rows.iloc[:, place] if held == "pandas" else rows[:, place]
            objects = cells(column, column=True)
        found.append(Element(dtype, objects))
    return tuple(found)


def check_texts(rows: Any) -> None:
    """Refuse a frame by its types alone, if it numbers its texts."""
    what, word, cure = _NUMBERED.get(container(rows), ("", "", ""))
    if word and any(word in str(dtype) for dtype in rows.dtypes):
        raise BadRows(
            f"{what} numbers its texts in the order in which they come up, so that one row "
            f"may move the numbers of all others: cast it to {cure}, in the data and in the "
            "population"
        )


def signature(rows: Any) -> tuple[Any, ...]:
    """Tell what must not change from one drawn table to the next; cheaper than `layout`."""
    plain = type(rows) is np.ndarray and rows.ndim > 0  # asked once for each pair: keep it quick
    held = "array" if plain else container(rows)
    if held == "array" and not isinstance(rows, Bundles) and not rows.dtype.hasobject:
        return (held, rows.dtype, rows.shape[1:])
    if isinstance(rows, Bundles):
        return signature(rows.rows)
    found = types(rows)
    if held in ("array", "list"):
        return (held, *found, () if held == "list" else rows.shape[1:])
    return (held, *rows.columns, *found)


def has_same_signature(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Tell whether two drawn tables are of one kind."""
    if first == second:
        return True
    return len(first) == len(second) and all(map(_is_same_part, first, second))


def _is_same_part(first: Any, second: Any) -> bool:
    if isinstance(first, Element) and isinstance(second, Element):
        ours, theirs = first.cells, second.cells
        if ours is not None and theirs is not None:
            return bool(first.dtype == second.dtype) and alike(ours, theirs)
    return bool(first == second)


def take(rows: Any, indices: NDArray[np.int64]) -> Any:
    """Rows at given positions, or users, in a new table."""
    if isinstance(rows, Bundles):
        found, places, starts = find_rows(rows, indices)
        taken, numbered = take(rows.rows, found), holds_numbers(rows.rows)
        if numbered:
            taken[:, rows.user] = places
        return Bundles(taken, starts, rows.user, numbered)
    held = container(rows)
    if held == "list":
        return [rows[i] for i in indices.tolist()]
    if held == "pandas":
        return rows.take(indices).reset_index(drop=True)
    if held == "array":  # many times faster than by rows[indices]
        return rows.take(indices, axis=0)
    return rows[indices]


def take_tables(table: Bundles, users: NDArray[np.int64]) -> Iterator[Bundles]:
    """Hand out a table of the users of each line.

    Of arrays what is known of users is read at once for all lines, which spares most of the time.
    """
    if not holds_numbers(table.rows):
        yield from (take(table, line) for line in users)
        return
    begins = table.starts[:-1].take(users)
    sizes = table.starts[1:].take(users) - begins
    starts = find_starts(sizes)
    shifts, places = begins - starts[:, :-1], np.arange(users.shape[1])
    for shift, own, start in zip(shifts, sizes, starts, strict=True):
        found = shift.repeat(own)
        found += np.arange(len(found))
        rows = table.rows.take(found, axis=0)
        rows[:, table.user] = places.repeat(own)
        yield Bundles(rows, start, table.user, numbered=True)


def join(first: Any, second: Any) -> Any:
    """Rows of two tables of one kind, in a new table."""
    held = container(first)
    if held == "list":
        return [*first, *second]
    if held == "array":
        return np.concatenate([first, second])
    if held == "polars":
        return first.vstack(second).rechunk()
    import pandas as pd  # noqa: PLC0415

    return pd.concat([first, second], ignore_index=True)


def is_same(first: Any, second: Any) -> bool:
    """Tell whether two tables hold equal values in equal order; NaN equals NaN."""
    if isinstance(first, Bundles):
        same = np.array_equal(first.starts, second.starts)
        return same and is_same(first.rows, second.rows)
    held = container(first)
    if held == "array":
        if first.shape != second.shape or first.dtype != second.dtype:
            return False
        if first.dtype.kind in "OV":
            return _has_same_values(first.tolist(), second.tolist())
        return bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fcmM"))
    if held == "list":
        return _has_same_values(first, second)
    return _is_same_frame(first, second)


def _is_same_frame(first: Any, second: Any) -> bool:
    objects = [place for place, each in enumerate(first.dtypes) if str(each).lower() == "object"]
    if not objects:
        return bool(first.equals(second))
    if list(first.columns) != list(second.columns) or list(first.dtypes) != list(second.dtypes):
        return False
    return len(first) == len(second) and all(
        _has_same_values(list(one), list(other)) if place in objects else bool(one.equals(other))
        for place, (one, other) in enumerate(zip(*map(_columns, (first, second)), strict=True))
    )


def _columns(frame: Any) -> list[Any]:
    """Columns of a frame, by place: names may be there twice."""
    if container(frame) == "polars":
        return list(frame.get_columns())
    return [frame.iloc[:, place] for place in range(frame.shape[1])]


def _has_same_values(first: Any, second: Any) -> bool:
    """Equality of nested plain values in which NaN equals NaN."""
    kind = type(first)
    if kind is not type(second) or first is second:
        return first is second
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(_has_same_values, first, second))
    if isinstance(first, dict):
        ours, theirs = ([*each, *each.values()] for each in (first, second))
        return _has_same_values(ours, theirs)
    if isinstance(first, np.ndarray) and first.ndim:
        return is_same(first, second)
    return _is_equal(first, second)


def _is_equal(first: Any, second: Any) -> bool:
    if hasattr(first, "equals"):  # a series or frame within a row
        return bool(first.equals(second))
    if hasattr(first, "toarray"):  # of a sparse matrix
        return is_same(first.toarray(), second.toarray())
    own: Any = type(first).__eq__
    if own is object.__eq__ and not isinstance(first, type):
        return _holds_same(first, second)
    nan = isinstance(first, float) and math.isnan(first) and math.isnan(second)
    return nan or bool(np.all(first == second))


def _holds_same(first: Any, second: Any) -> bool:
    """Compare objects of a class without an equality of its own by what pickle keeps of them."""
    try:
        ours, theirs = (
            (*each[:3], *(None if items is None else list(items) for items in each[3:5]))
            if isinstance(each, tuple)
            else each
            for each in (first.__reduce_ex__(4), second.__reduce_ex__(4))
        )
        return _has_same_values(ours, theirs)
    except Exception:  # it holds a lock, an open file, or itself
        kind = f"{type(first).__module__}.{type(first).__qualname__}"
    raise BadRows(
        f"the rows hold objects of type {kind}, of which nobody can tell whether two are equal: "
        "give the class an __eq__ (a dataclass has one), or make of each row a tuple, a dict or "
        "an array"
    )
