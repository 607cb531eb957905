"""A table of one's own: in a plain container, with nothing in it but its rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.stops import watch_stops
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._elements import Element, cast_cells, convertible, name_type, order_keys, target
from hushed.errors import BadRows

_UNCHANGEABLE = {str, bytes, bool, int, float, complex, type(None)}

_POLARS_NUMBERS = {
    "Boolean": "bool",
    **{
        f"{sign}Int{bits}": f"{sign.lower()}int{bits}"
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
    **{f"Float{bits}": f"float{bits}" for bits in (32, 64)},
}


def strip_rows(rows: Any) -> Any:
    """Put rows into a plain container, without what else hangs on it."""
    if type(rows) is np.ndarray and rows.ndim and _is_bare_type(rows.dtype):
        return rows if rows.flags.c_contiguous else np.ascontiguousarray(rows)
    if isinstance(rows, Bundles):
        kept = strip_rows(rows.rows)
        return rows if kept is rows.rows else replace(rows, rows=kept)
    held = containers.container(rows)
    if held == "array":
        return np.ascontiguousarray(_base(rows))
    if held == "list":
        return rows if type(rows) is list else list(rows)
    if held == "pandas":
        return _plainly_labelled(rows) if _is_bare(rows) else _pandas(rows)
    return rows


def copy_rows(rows: Any, *, private: bool = False) -> Any:
    """Copy rows into a plain container of their own, the objects in their cells, too.

    Public rows that hold what cannot be copied are refused. Of private ones such an object stays
    what it is: a refusal would tell that a row holds it.
    """
    if isinstance(rows, Bundles):
        return replace(rows, rows=copy_rows(rows.rows, private=private))
    held = containers.container(rows)
    if held == "pandas":
        return _pandas(rows, private=private)
    if held == "polars":
        return _polars(rows, private=private)
    if held == "list":
        return deep(list(rows), private=private)
    base = _base(rows)
    own = deep(base, private=private) if base.dtype.hasobject else base
    return np.array(own, order="C", copy=True)


def deep(objects: Any, *, private: bool = False) -> Any:
    """Copy an object and all that it holds; each row or cell by itself, so that none is another."""
    held = objects.ravel().tolist() if isinstance(objects, np.ndarray) else objects
    if isinstance(held, list) and set(map(type, held)) <= _UNCHANGEABLE:
        return objects
    with watch_stops() as is_stop:

        def copied(each: Any) -> Any:
            return _copy_object(each, is_stop, private=private)

        if isinstance(objects, np.ndarray) and objects.dtype.kind == "O":
            return _cells_as_array(list(map(copied, held))).reshape(objects.shape)
        return list(map(copied, objects)) if type(objects) is list else copied(objects)


def _copy_object(each: Any, is_stop: Callable[[BaseException], bool], *, private: bool) -> Any:
    """Copy a row or a cell; what cannot be copied is refused, or stays if it is private."""
    if type(each) is np.ndarray and not each.dtype.hasobject:
        return each.copy()  # as it lies in drawn rows
    try:
        return copy.deepcopy(each)
    except BaseException as cause:  # its text may show the object
        stopped = is_stop(cause)
    if stopped:
        raise KeyboardInterrupt
    if private:
        return each
    raise BadRows("the rows hold an object that cannot be copied: the function would see yours")


def _base(rows: NDArray[Any]) -> NDArray[Any]:
    """Plain array of a subclass that only looks different."""
    if type(rows) not in (np.ndarray, np.matrix, np.memmap, np.recarray):
        raise BadRows(
            f"rows must be a plain NumPy array, got {type(rows).__module__}."
            f"{type(rows).__qualname__}, which may compute in its own way: give np.asarray(rows)"
        )
    base = np.asarray(rows)
    return base if _is_bare_type(base.dtype) else base.astype(_bare_type(base.dtype))


def _is_bare_type(dtype: np.dtype[Any]) -> bool:
    return dtype.names is None and dtype.metadata is None


def _bare_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type of an array without what else it can carry: metadata, titles, gaps between fields."""
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        return np.dtype((_bare_type(inner), shape))
    if dtype.names is not None:
        return np.dtype([(name, _bare_type(dtype[name])) for name in dtype.names])
    return dtype if dtype.metadata is None else np.dtype(dtype.str)


def _is_bare(frame: Any) -> bool:
    import pandas  # noqa: PLC0415

    index = frame.index
    return (
        type(index) is pandas.RangeIndex
        and (index.start, index.step, index.name) == (0, 1, None)
        and not frame.attrs
        and frame.flags.allows_duplicate_labels
        and not any(name is not None for name in frame.columns.names)
    )


def _plainly_labelled(frame: Any) -> Any:
    """Name the columns by an index of the kind that a list of their names makes."""
    import pandas  # noqa: PLC0415

    held, made = frame.columns, pandas.Index(list(frame.columns))
    if not len(held) or (type(held) is type(made) is pandas.Index and held.dtype == made.dtype):
        return frame
    frame = frame.copy(deep=False)
    frame.columns = made
    return frame


def _pandas(frame: Any, *, private: bool = False) -> Any:
    """Make a frame of copied columns, whose rows are numbered."""
    import pandas  # noqa: PLC0415

    columns = {}
    for place, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, place]
        values = _copy_values(column.array)
        if str(dtype) == "object":
            values = _cells_as_array(deep(list(column), private=private))
        columns[place] = pandas.Series(values, dtype=dtype)
    made = pandas.DataFrame(columns, index=pandas.RangeIndex(len(frame)))
    made.columns = pandas.Index(list(frame.columns)) if len(frame.columns) else made.columns
    return made


def _copy_values(column: Any) -> Any:
    """Copy the values of a column; those of Arrow in one piece, as drawn ones are."""
    held = getattr(column, "_pa_array", None)
    pieces = getattr(held, "num_chunks", 1) > 1
    return type(column)(held.combine_chunks()) if held is not None and pieces else column.copy()


def _cells_as_array(held: list[Any]) -> NDArray[Any]:
    """Array of objects that NumPy does not try to look into."""
    made = np.empty(len(held), dtype=object)
    for place, value in enumerate(held):
        made[place] = value
    return made


def _polars(frame: Any, *, private: bool = False) -> Any:
    """Make a frame of copied columns; what is said of one, as that it is sorted, is forgotten."""
    import polars  # noqa: PLC0415

    columns = []
    for series in frame.get_columns():
        if series.dtype == polars.Object:
            held = deep(series.to_list(), private=private)
            columns.append(polars.Series(series.name, held, dtype=polars.Object))
        elif any(series.flags.values()):
            order = np.arange(len(series), dtype=np.uint32)
            columns.append(series.gather(order))
        else:
            columns.append(series.clone())
    return polars.DataFrame(columns).rechunk()


def cast_rows(rows: Any, sampled: containers.Layout) -> Any:
    """Cast rows to the types that were sampled."""
    if isinstance(rows, Bundles):
        return replace(rows, rows=cast_rows(rows.rows, sampled))
    found, wanted = containers.types(rows), sampled.types
    if sampled.container == "list":
        return _cast_objects(rows, found[0], wanted[0], "the rows of the list")
    if sampled.container == "array":
        return _cast_array(rows, found[0], wanted[0])
    cast = _cast_pandas if sampled.container == "pandas" else _cast_polars
    columns = [
        cast(rows.iloc[:, i] if sampled.container == "pandas" else rows[:, i], ours, theirs, name)
        for i, (ours, theirs, name) in enumerate(zip(found, wanted, sampled.columns, strict=True))
    ]
    if sampled.container == "polars":
        return type(rows)(columns)
    made = type(rows)(dict(enumerate(columns)), index=rows.index)
    made.columns = rows.columns
    return made


def _refuse_types(name: str, wanted: object, found: object) -> BadRows:
    """Say which types differ; categories, names of fields and the like may be private."""
    ours, theirs = name_type(wanted), name_type(found)
    told = f"of type {ours} in the sample" if ours else "of one type in the sample"
    return BadRows(
        f"column {name!r} is {told} and {theirs or 'of another'} in the data, which does not "
        "convert without loss: the function may compute with it differently; convert the data, or "
        "sample tables of its type"
    )


def _cast_objects(held: Any, found: Element, wanted: Element, what: str) -> Any:
    """Cast numbers among objects, and put keys into the sampled order, row by row.

    The types that were found are facts about single rows.
    """
    if found.cells is None or wanted.cells is None:
        return held
    casts = target(found.cells, wanted.cells)
    made = None if casts is None else cast_cells(held, casts)
    made = None if made is None else order_keys(made, found.cells, wanted.cells)
    if made is None:
        raise BadRows(
            f"{what} hold other types of values than those that were sampled, which do not convert "
            "without loss, or have other lengths or keys: make them the same, or use an array or a "
            "frame with typed columns"
        )
    return made


def _cast_array(rows: NDArray[Any], found: Element, wanted: Element) -> NDArray[Any]:
    dtype = convertible(found.dtype, wanted.dtype)
    if dtype is None and found.dtype.kind == wanted.dtype.kind and wanted.dtype.kind in "US":
        raise BadRows(
            f"the sensitivity was sampled on texts of type {wanted.dtype.str[1:]}, and the data "
            "has wider ones: sample a population of texts wide enough for all, as "
            "table.astype('U50') makes them"
        )
    if dtype is None:
        ours, theirs = (each.dtype.type.__name__ for each in (wanted, found))
        if ours == theirs:
            ours, theirs = str(wanted.dtype), "another one"
        raise BadRows(
            f"the sensitivity was sampled on elements of type {ours}, the data has {theirs}, "
            "which does not convert without loss"
        )
    cast = rows if rows.dtype == dtype else rows.astype(dtype)
    if not dtype.hasobject:
        return cast
    held = cast.ravel().tolist()
    made = _cast_objects(held, found, wanted, "the cells of the array")
    if not dtype.names:
        return _cells_as_array(made).reshape(cast.shape)
    if any(new is not old for new, old in zip(made, held, strict=True)):
        _fill_fields(cast, made)
    return cast


def _fill_fields(rows: NDArray[Any], made: list[Any]) -> None:
    """Put cast objects into the fields of records, which a conversion of types leaves alone."""
    for place, name in enumerate(rows.dtype.names or ()):
        inner, cells = rows.dtype[name], [record[place] for record in made]
        if inner.names:
            _fill_fields(rows[name], cells)
        elif inner.kind == "O":  # arrays of objects are refused where they are to be cast
            rows[name] = _cells_as_array(cells).reshape(rows.shape)


def _cast_pandas(column: Any, found: Element, wanted: Element, name: str) -> Any:
    ours, theirs = wanted.dtype, found.dtype
    if found.cells is not None and wanted.cells is not None:
        held = _cast_objects(list(column), found, wanted, f"the cells of column {name!r}")
        return type(column)(_cells_as_array(held), dtype=object)
    if isinstance(ours, np.dtype) and isinstance(theirs, np.dtype):
        if convertible(theirs, ours) == ours:
            return column.astype(ours)
    elif ours == theirs:
        categories = getattr(ours, "categories", None)
        if categories is None:
            return column
        return column.cat.set_categories(ours.categories)  # in this order, and under its name
    elif _both_nullable(ours, theirs) and (
        convertible(theirs.numpy_dtype, ours.numpy_dtype) == ours.numpy_dtype
    ):
        return _cast_nullable(column, ours)
    raise _refuse_types(name, ours, theirs)


def _cast_nullable(column: Any, wanted: Any) -> Any:
    """Cast to a type that holds all of the other's values; Arrow refuses what doubles round."""
    if not hasattr(wanted, "pyarrow_dtype"):
        return column.astype(wanted)
    held = column.array.__arrow_array__().cast(wanted.pyarrow_dtype, safe=False)
    return type(column)(type(column.array)(held), index=column.index)


def _both_nullable(ours: Any, theirs: Any) -> bool:
    """Whether both types are of numbers that may be missing, of one kind of memory."""
    kinds = [getattr(getattr(each, "numpy_dtype", None), "kind", "") for each in (ours, theirs)]
    numbers = all(kind and kind in "biufc" for kind in kinds)
    return numbers and type(ours).__base__ is type(theirs).__base__


def _cast_polars(column: Any, found: Element, wanted: Element, name: str) -> Any:
    ours, theirs = wanted.dtype, found.dtype
    if found.cells is not None and wanted.cells is not None:
        held = _cast_objects(column.to_list(), found, wanted, f"the cells of column {name!r}")
        return type(column)(column.name, held, dtype=ours)
    if ours == theirs:
        return column
    names = [_POLARS_NUMBERS.get(str(dtype)) for dtype in (theirs, ours)]
    if names[0] and names[1] and np.can_cast(names[0], names[1], "safe"):
        return column.cast(ours)
    raise _refuse_types(name, ours, theirs)
