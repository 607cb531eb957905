"""Whether a function or a population carries the private rows with it.

Objects and memory are compared, never values: the answer is not paid for, and whoever knows all
rows but one could otherwise try tables until one is refused.
"""

from __future__ import annotations

import copyreg
import gc
import pickle
import sys
import weakref
from array import array
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from mmap import mmap
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    ModuleType,
)
from typing import Any

import numpy as np

from hushed._functions._fingerprints.code import collect_names, fields_of, is_installed, is_library

_MOST_WORK = 1_000_000
_FRAMES = ("DataFrame", "Series")  # of Polars
_BUFFERS = (memoryview, bytearray, array, mmap)
_OWN = (list, dict, set, np.ndarray)  # cells and rows that are objects of one table alone
_PYTHON = (".py", ".pyc")
_MODULE = {"__name__", "__spec__", "__loader__"}

_SINGLE = frozenset({str, bytes, int, float, bool, type(None), np.float64, np.int64})
_ATOMS = _SINGLE | {tuple}

Array = np.ndarray[Any, Any]


class _Carried(BaseException):
    """The rows were met."""


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, text: Any) -> int:
        return len(text)


def carries_rows(thing: Any, rows: Any) -> bool:
    """Tell whether the rows themselves, or a view of some, can be reached from a thing.

    They are in a closure, a global, a default, an attribute, or a module that a function names.
    Copies are not seen, nor what was computed from the rows, nor what is found by text alone.
    """
    search = _Search(rows)
    try:
        search.dump(thing)
    except _Carried:
        return True
    except Exception:  # objects that lie too deep within each other
        return _carries_deep(thing, search)
    return False


def _carries_deep(thing: Any, search: _Search) -> bool:
    """Search in the same way, object by object: slower, and to any depth.

    It ends after a million objects: some make others whenever they are looked at.
    """
    found = [thing]  # what lies near comes first
    seen: dict[int, Any] = {}
    for value in found:
        if type(value) in _SINGLE or id(value) in seen:
            continue
        if len(seen) == _MOST_WORK:
            break
        seen[id(value)] = value  # kept, so that no id is used twice
        try:
            with suppress(Exception):  # a container that changes meanwhile
                found += [] if search.persistent_id(value) is not None else _list_parts(value)
        except _Carried:
            return True
    return False


def _list_parts(value: Any) -> list[Any]:
    """List what pickle would go on to: what a container holds, or an object."""
    if type(value) is dict:
        return [*value, *value.values()]
    if type(value) in (list, tuple, set, frozenset):
        return list(value)
    within = _list_within(value)
    return [] if within is None else [within]


class _Search(pickle.Pickler):
    """Go where pickle goes, also through what cannot be pickled, and keep nothing."""

    def __init__(self, rows: Any) -> None:
        super().__init__(_Nowhere(), protocol=5)
        self.rows = rows
        self.parts = _list_arrays(rows)  # kept, so that no memory is used twice
        self.single = _name_cells(rows)

    def persistent_id(self, value: Any) -> Any:
        if type(value) in _ATOMS:  # of which there are millions
            return None
        if value is self.rows or id(value) in self.single:
            raise _Carried
        arrays = _list_arrays(value)
        if any(_overlap(one, other) for one in arrays for other in self.parts):
            raise _Carried
        return "numbers" if type(value) is np.ndarray and not value.dtype.hasobject else None

    def reducer_override(self, value: Any) -> Any:
        if value is str:
            return NotImplemented
        return str, (), _list_within(value)


def _name_cells(rows: Any) -> set[int]:
    """Name the objects that rows and their cells are, at any depth of lists, tuples and dicts."""
    with suppress(Exception):  # no table: nothing to name
        found = _list_cells(rows)
        seen: dict[int, Any] = {}
        for each in found:
            if type(each) in (*_OWN, tuple) and id(each) not in seen:
                seen[id(each)] = each
                if type(each) is not np.ndarray:
                    found += [*each, *(each.values() if type(each) is dict else ())]
        return {name for name, each in seen.items() if type(each) in _OWN}
    return set()


def _list_within(value: Any) -> Any:
    """List what an object holds; nothing of one that fails when it is looked at."""
    try:
        return _look_within(value)
    except Exception:  # as one that stands for another one, which is not there now
        return None


def _look_within(value: Any) -> Any:
    """List what an object holds; of a function what its code uses."""
    if isinstance(value, FunctionType):
        return _list_used(value)
    if isinstance(value, ModuleType | CodeType) or (
        isinstance(value, type) and is_library(value.__module__)
    ):
        return None
    if isinstance(value, type):
        return [*(each for _, each in fields_of(value)), type(value), *value.__bases__]
    if isinstance(value, weakref.ref):
        return value()
    if type(value) in _LOOKED_INTO:
        return _LOOKED_INTO[type(value)](value)
    return [_look_by_pickle(value), _look_by_collector(value)]


def _look_by_collector(value: Any) -> Any:
    """List what Python's own collector knows an object to hold, which no class can hide.

    Not of objects of classes that installed code writes in Python: loggers, streams and the like
    hold on to the whole program, the user's rows included.
    """
    kind: Any = type(value)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if kind.__flags__ & 1 << 9 and is_library(kind.__module__) and file.endswith(_PYTHON):
        return None
    found = gc.get_referents(value)  # but for all names of a module
    return [each for each in found if not (type(each) is dict and each.keys() >= _MODULE)]


def _look_by_pickle(value: Any) -> Any:
    """List what pickle would keep of an object, or its attributes."""
    registered = copyreg.dispatch_table.get(type(value))
    try:
        reduced: Any = registered(value) if registered else value.__reduce_ex__(5)
        if not isinstance(reduced, str):
            return [*reduced[:3], *(list(each) for each in reduced[3:5] if each is not None)]
    except Exception:  # it cannot be pickled
        reduced = None
    slots = [vars(kind).get("__slots__", ()) for kind in type(value).__mro__]
    flat = [name for each in slots for name in ((each,) if isinstance(each, str) else each)]
    return [getattr(value, name, None) for name in ("__wrapped__", "__dict__", *flat)]


# What such an object holds, of which pickle keeps nothing.
_LOOKED_INTO: dict[type, Callable[[Any], Any]] = {
    MappingProxyType: dict,
    property: lambda held: [held.fget, held.fset, held.fdel],
    ContextVar: lambda held: held.get(None),
    GeneratorType: lambda held: held.gi_frame,
    CoroutineType: lambda held: held.cr_frame,
    AsyncGeneratorType: lambda held: held.ag_frame,
    # That of a module holds all that the program does.
    FrameType: lambda held: None if held.f_locals is held.f_globals else dict(held.f_locals),
}


def _list_used(function: FunctionType) -> list[Any]:
    """List what the code of a function uses, beside its arguments."""
    used = [function.__defaults__, function.__kwdefaults__, function.__dict__]
    for cell in function.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    if is_installed(function):  # a closure made by installed code, around what may be the user's
        return used
    names = collect_names(function.__code__)
    known = [function.__globals__[each] for each in names.globals & function.__globals__.keys()]
    known += [sys.modules[each] for each in names.imported & sys.modules.keys()]
    for held in known:  # also modules within modules, which are added to these
        if isinstance(held, ModuleType) and not is_library(held.__name__):
            named = [held.__dict__[each] for each in names.all & held.__dict__.keys()]
            known += [each for each in named if all(each is not other for other in known)]
    return used + known


def _list_arrays(table: Any) -> list[Array]:
    """Arrays that are the memory of a table; none where they would be made for the purpose."""
    if isinstance(table, np.ndarray):
        return [table]
    library, kind = str(type(table).__module__).partition(".")[0], type(table).__name__
    if library == "pyarrow" or isinstance(table, _BUFFERS):
        with suppress(Exception):  # released, or of parts that do not lie side by side
            return (
                _list_arrow(table, kind)
                if library == "pyarrow"
                else [np.asarray(memoryview(table))]
            )
    elif library == "pandas":
        with suppress(Exception):
            return [each for column in _list_columns(table) for each in _list_memory(column)]
    elif library == "polars" and kind in _FRAMES:
        series = [table] if kind == "Series" else table.get_columns()
        return [array for each in series for array in _list_chunks(each)]
    return []


def _list_cells(table: Any) -> list[Any]:
    """Cells of a table that are objects; rows of a list."""
    if type(table) is list:
        return list(table)
    if isinstance(table, np.ndarray):
        return list(table.ravel().tolist()) if table.dtype.hasobject else []
    if type(table).__module__.partition(".")[0] not in ("pandas", "polars"):
        return []
    columns = [table[each] for each in table.columns] if hasattr(table, "columns") else [table]
    return [
        cell for each in columns if str(each.dtype).lower() == "object" for cell in each.to_list()
    ]


def _list_columns(table: Any) -> list[Any]:
    """List the arrays of a frame, a series or an index of pandas; such an array is one itself."""
    import pandas  # noqa: PLC0415

    if isinstance(table, pandas.DataFrame):
        return [table.iloc[:, place].array for place in range(table.shape[1])]
    if isinstance(table, pandas.Series | pandas.Index):
        named = type(table) in (pandas.RangeIndex, pandas.MultiIndex)  # which hold no such array
        return [] if named else [table.array]
    return [table] if isinstance(table, pandas.api.extensions.ExtensionArray) else []


def _list_memory(column: Any) -> list[Array]:
    """Memory of a column of pandas: of NumPy, of numbers with a mask, or of Arrow."""
    if hasattr(column, "_pa_array"):
        return [each for chunk in column._pa_array.iterchunks() for each in _view_chunk(chunk)]
    if type(column).__name__ == "IntervalArray":
        ends = [*_list_columns(column.left), *_list_columns(column.right)]
        return [each for end in ends for each in _list_memory(end)]
    sparse = getattr(column, "sp_values", None)
    held = getattr(column, "_ndarray", getattr(column, "_data", sparse))
    return [held] if isinstance(held, np.ndarray) else []


def _list_arrow(held: Any, kind: str) -> list[Array]:
    """Memory of a table of Arrow, of a column or a part of one, or of a plain piece of memory."""
    if kind == "Buffer":
        return [np.frombuffer(held, dtype=np.uint8)]
    columns = held.columns if kind in ("Table", "RecordBatch") else [held]
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    return [each for chunk in chunks if hasattr(chunk, "buffers") for each in _view_chunk(chunk)]


def _view_chunk(chunk: Any) -> list[Array]:
    """Memory of the values of an Arrow array, or of the places of its texts; of its rows alone.

    What is all zero is left out, and the bits that say what is missing: many arrays share one
    memory there, which have nothing else in common. Of values that are bits, those are left out
    that share a byte with bits of other rows.
    """
    kind, first, stop = chunk.type, chunk.offset, chunk.offset + len(chunk)
    if hasattr(chunk, "storage"):  # of an extension
        return _view_chunk(chunk.storage)
    told = str(kind)
    if told.startswith("struct"):
        return [each for i in range(kind.num_fields) for each in _view_chunk(chunk.field(i))]
    if told.startswith("fixed_size_list"):
        return _view_chunk(chunk.values[first * kind.list_size : stop * kind.list_size])
    buffers = chunk.buffers()
    if len(buffers) < 2 or buffers[1] is None:
        return []
    try:
        bits = kind.bit_width
    except ValueError:  # of texts and lists
        bits = 128 if told.endswith("_view") else 64 if told.startswith("large") else 32
    held = np.frombuffer(buffers[1], dtype=np.uint8)[-(-first * bits // 8) : stop * bits // 8]
    return [held] if held.any() else []


def _list_chunks(series: Any) -> list[Array]:
    """Memory of a column of Polars."""
    import polars  # noqa: PLC0415

    found = []
    for chunk in series.get_chunks() if series.dtype != polars.Object else ():
        with suppress(Exception):  # of numbers without missing cells
            held = chunk.to_numpy(allow_copy=False)
            found += [held] if held.view(np.uint8).any() else []
            continue
        with suppress(Exception):  # what newer versions than that of Arrow know would be copied
            found += _view_chunk(chunk.to_arrow(compat_level=polars.CompatLevel.newest()))
    return found


def _overlap(one: Array, other: Array) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except Exception:  # strides too odd to tell in time
        return True
