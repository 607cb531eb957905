"""Whether a function or a population carries the private rows with it.

Objects and memory are compared, never values: the answer is not paid for, and whoever knows all
rows but one could otherwise try tables until one is refused.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
from array import array
from contextlib import suppress
from mmap import mmap
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from hushed._functions._fingerprints.code import collect_names, fields_of, is_installed, is_library

_MOST_WORK = 1_000_000
_FRAMES = ("DataFrame", "Series")
_BUFFERS = (memoryview, bytearray, array, mmap)
_OWN = (list, dict, np.ndarray)  # rows that are objects of one table alone

_ATOMS = frozenset({tuple, str, bytes, int, float, bool, type(None), np.float64, np.int64})

Array = np.ndarray[Any, Any]


class _Carried(Exception):
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
    try:
        _Search(rows).dump(thing)
    except _Carried:
        return True
    except Exception:  # objects that are too deep, or fail when they are looked at
        return False
    return False


class _Search(pickle.Pickler):
    """Go where pickle goes, also through what cannot be pickled, and keep nothing."""

    def __init__(self, rows: Any) -> None:
        super().__init__(_Nowhere(), protocol=5)
        self.rows = rows
        self.parts = _list_arrays(rows)  # kept, so that no memory is used twice
        held = rows if type(rows) is list else ()
        self.single = {id(row) for row in held if type(row) in _OWN}

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


def _list_within(value: Any) -> Any:
    """List what an object holds; of a function what its code uses."""
    if isinstance(value, FunctionType):
        return _list_used(value)
    if isinstance(value, ModuleType):
        return None
    if isinstance(value, type):
        return None if is_library(value.__module__) else [each for _, each in fields_of(value)]
    if isinstance(value, MappingProxyType):
        return dict(value)
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
    for module in known:
        if isinstance(module, ModuleType) and not is_library(module.__name__):
            used += [module.__dict__[each] for each in names.all & module.__dict__.keys()]
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
    elif library == "pandas" and kind in _FRAMES:
        columns = [table] if table.ndim == 1 else [table.iloc[:, i] for i in range(table.shape[1])]
        return [each for column in columns for each in _list_memory(column.array)]
    elif library == "polars" and kind in _FRAMES:
        series = [table] if kind == "Series" else table.get_columns()
        return [array for each in series for array in _list_chunks(each)]
    return []


def _list_memory(column: Any) -> list[Array]:
    """Memory of a column of pandas: of NumPy, of numbers with a mask, or of Arrow."""
    if hasattr(column, "_pa_array"):
        return [each for chunk in column._pa_array.iterchunks() for each in _view_chunk(chunk)]
    held = getattr(column, "_ndarray", getattr(column, "_data", None))
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

    Bits that say what is missing are left out: many arrays without a value share one memory.
    """
    buffers = chunk.buffers()
    if len(buffers) < 2 or buffers[1] is None:
        return []
    try:
        bits = chunk.type.bit_width
    except ValueError:  # of texts and lists
        bits = 64 if str(chunk.type).startswith("large") else 32
    first, last = chunk.offset * bits // 8, (chunk.offset + len(chunk)) * bits // 8
    return [np.frombuffer(buffers[1], dtype=np.uint8)[first:last]]


def _list_chunks(series: Any) -> list[Array]:
    """Arrays that are the memory of a column of Polars: of numbers, without missing cells."""
    found = []
    for chunk in series.get_chunks():
        # Texts, and columns with missing cells, have no such array.
        with suppress(Exception):
            found.append(chunk.to_numpy(allow_copy=False))
    return found


def _overlap(one: Array, other: Array) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except Exception:  # strides too odd to tell in time
        return True
