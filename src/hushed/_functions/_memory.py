"""The memory that a table lies in, whatever holds it, and whether another array lies there, too."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from itertools import accumulate
from mmap import mmap
from pickle import PickleBuffer
from typing import Any

import numpy as np

from hushed._functions._fingerprints.code import is_library

FRAMES = ("DataFrame", "Series")  # of Polars

_MOST_WORK = 1_000_000
_BUFFERS = (memoryview, bytearray, array, mmap, PickleBuffer)

Array = np.ndarray[Any, Any]


class Memory:
    """Places of arrays, sorted, so that one of a million rows is found at once."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        placed = sorted((*_find_ends(each), place, each) for place, each in enumerate(arrays))
        self.lows = [low for low, _, _, _ in placed]
        self.highs = np.array([high for _, high, _, _ in placed], dtype=np.int64)
        self.tops = list(accumulate(self.highs.tolist(), max))  # the farthest end so far
        self.arrays = [each for _, _, _, each in placed]  # kept, so that no memory is used twice

    def meets(self, other: Array) -> bool:
        """Tell whether an array shares memory with one of these."""
        if not self.lows:
            return False
        low, high = _find_ends(other)
        stop = bisect_left(self.lows, high)
        if not stop or self.tops[stop - 1] <= low:
            return False
        near = np.flatnonzero(self.highs[:stop] > low)
        return any(_overlap(self.arrays[place], other) for place in near.tolist())


def _find_ends(held: Array) -> tuple[int, int]:
    """Find where the memory of an array begins and ends."""
    first: int = held.__array_interface__["data"][0]
    if held.flags.c_contiguous:
        return first, first + held.nbytes
    low, high = np.lib.array_utils.byte_bounds(held)
    return int(low), int(high)


def list_arrays(table: Any, *, private: bool = False) -> list[Array]:
    """Arrays that are the memory of a table; none where they would be made for the purpose.

    Nothing is asked for its class, and a private cell not for its memory unless a library wrote its
    class: what it answers is code of its own.
    """
    if issubclass(type(table), np.ndarray):
        return [table]
    table = _wrap(table)
    library, kind = str(type(table).__module__).partition(".")[0], type(table).__name__
    if (library, kind) == ("multiprocessing", "SharedMemory"):
        table = table.buf
    if library == "pyarrow" or issubclass(type(table), _BUFFERS):
        with suppress(Exception):  # released, or of parts that do not lie side by side
            return (
                _list_arrow(table, kind)
                if library == "pyarrow"
                else [np.asarray(memoryview(table))]
            )
    elif library == "pandas":
        with suppress(Exception):
            return [each for column in _list_columns(table) for each in _list_memory(column)]
    elif library == "polars" and kind in FRAMES:
        series = [table] if kind == "Series" else table.get_columns()
        return [array for each in series for array in _list_chunks(each)]
    elif hasattr(type(table), "__dlpack__") and (is_library(library) or not private):
        with suppress(Exception):  # on a device, or of numbers that NumPy does not know
            return [np.from_dlpack(table)]  # of a tensor
    return []


def _wrap(table: Any) -> Any:
    """Make a frame or a series of what Polars has below it, and its accessors hold."""
    wrappers = {"PyDataFrame": "wrap_df", "PySeries": "wrap_s"}
    kind, polars = type(table), sys.modules.get("polars")
    if polars is None or kind.__name__ not in wrappers or kind.__module__ != "builtins":
        return table
    return getattr(polars, wrappers[kind.__name__])(table)


def _list_columns(table: Any) -> list[Any]:
    """List the arrays of a frame, a series or an index of pandas; such an array is one itself."""
    import pandas  # noqa: PLC0415

    if issubclass(type(table), pandas.DataFrame):
        return [table.iloc[:, place].array for place in range(table.shape[1])]
    if issubclass(type(table), pandas.Series | pandas.Index):
        named = type(table) in (pandas.RangeIndex, pandas.MultiIndex)  # which hold no such array
        return [] if named else [table.array]
    return [table] if issubclass(type(table), pandas.api.extensions.ExtensionArray) else []


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
    held = getattr(held, "values", None) if kind.endswith("Scalar") else held  # a list in a cell
    columns = held.columns if kind in ("Table", "RecordBatch") else [held]
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    return [each for chunk in chunks if hasattr(chunk, "buffers") for each in _view_chunk(chunk)]


def _view_chunk(chunk: Any) -> list[Array]:
    """Memory of the values of an Arrow array, or the places of its texts; of its rows alone.

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
    within = _view_chunk(chunk.flatten()) if "list" in told.partition("<")[0] else []
    buffers = chunk.buffers()
    if len(buffers) < 2 or buffers[1] is None:
        return within
    try:
        bits = kind.bit_width
    except ValueError:  # of texts and lists
        bits = 128 if told.endswith("_view") else 64 if told.startswith("large") else 32
    held = np.frombuffer(buffers[1], dtype=np.uint8)[-(-first * bits // 8) : stop * bits // 8]
    return [*within, held] if held.any() else within


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
