"""Values taken apart from what they were cut from: nothing of other rows goes with them."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.checks import is_a


def dump_apart(value: Any) -> bytes:
    """Pickle a value for another process; whatever it holds, at any depth, holds its own alone.

    A view of an array has the width of the longest text of the whole, a slice of a categorical
    column all its categories, a slice of an Arrow array all its memory.
    """
    import cloudpickle  # noqa: PLC0415

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, held: Any) -> Any:
            apart = set_apart(held)
            return super().reducer_override(held) if apart is held else apart.__reduce_ex__(5)

    with io.BytesIO() as file:
        Pickler(file, protocol=5).dump(value)
        return file.getvalue()


def set_apart(held: Any) -> Any:
    """Copy an array, a column or an index without what it was cut from; others as they are.

    What cells of it hold is left to the pickler, which meets each of them.
    """
    if is_a(held, np.ndarray, np.void):
        return narrow_texts(held)
    library, name = type(held).__module__.partition(".")[0], type(held).__name__
    if library == "pandas" and name == "Categorical":
        return keep_own_categories(held)
    if library == "pandas" and name == "MultiIndex":
        return held.remove_unused_levels()
    kind = getattr(held, "type", getattr(held, "schema", "")) if library == "pyarrow" else ""
    if "dictionary" in str(kind):
        return _make_anew(held)
    if library == "pyarrow" and hasattr(held, "take") and hasattr(held, "__len__"):
        return held.take(np.arange(len(held)))  # a list of none has no type
    return held  # pieces of Polars are written without what they were cut from


def _make_anew(held: Any) -> Any:
    """Make something of Arrow of its own values; a dictionary brings all its words along."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(held, pa.Scalar):
        return pa.array([held.as_py()], type=held.type)[0]
    if isinstance(held, pa.Array):
        return pa.array(held.to_pylist(), type=held.type)
    if isinstance(held, pa.ChunkedArray):
        return pa.chunked_array([_make_anew(each) for each in held.chunks], type=held.type)
    if isinstance(held, pa.Table | pa.RecordBatch):
        columns = [_make_anew(each) for each in held.columns]
        return type(held).from_arrays(columns, schema=held.schema)
    return held


def narrow_texts(held: Any) -> Any:
    """Make an array of texts, or of fields, as wide as its own longest one; others as they are.

    It is always copied, so that arrays share the object that is their type in no part, or in all.
    """
    if held.dtype.kind not in "USV":
        return held
    made = np.asanyarray(held)
    made = made.astype(_own_type(made))
    return made if is_a(held, np.ndarray) else made[()]


def keep_own_categories(column: Any) -> Any:
    """Leave a categorical column its own: categories of all rows tell, and so do numbers.

    Where they cannot be sorted it becomes an array of objects.
    """
    try:
        found = column.remove_unused_categories()
        if not found.ordered:  # it may be the order in which they came up
            found = found.set_categories(_sort(found.categories.tolist()))
    except (Exception, SystemExit, GeneratorExit):  # of objects of a class of the user's
        return np.array(column, dtype=object)
    return found


def make_frame_anew(frame: Any) -> Any:
    """Make a Polars frame of its values: memory of a larger one tells whether that had nulls."""
    return frame.with_columns(_make_column(each) for each in frame.get_columns())


def _make_column(column: Any) -> Any:
    """Make a column of Polars of its values."""
    if str(column.dtype) == "Object":  # which reaches no other process
        return column
    plain = _count_time(column.dtype)
    if plain != column.dtype:  # Python's own times know no nanoseconds
        return type(column)(column.name, column.cast(plain).to_list(), dtype=plain).cast(
            column.dtype
        )
    given = column.to_list()
    wide = column.dtype.is_decimal() or str(column.dtype).endswith("128")
    if column.dtype.is_numeric() and not wide and not column.null_count():
        given = column.to_numpy()
    return type(column)(column.name, given, dtype=column.dtype)


def _count_time(dtype: Any) -> Any:
    """Type of Polars with whole numbers in place of times, in lists and records as well."""
    import polars  # noqa: PLC0415

    if dtype.is_temporal():
        return polars.Int32 if dtype == polars.Date else polars.Int64
    if isinstance(dtype, polars.Struct):
        return polars.Struct({each.name: _count_time(each.dtype) for each in dtype.fields})
    if isinstance(dtype, polars.Array):
        return polars.Array(_count_time(dtype.inner), dtype.size)
    return polars.List(_count_time(dtype.inner)) if isinstance(dtype, polars.List) else dtype


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
        own = np.dtype([(name, _own_type(part[name]), shapes[name]) for name in names])
        return np.dtype((np.record, own)) if part.dtype.type is np.record else own
    if part.dtype.kind not in "US":
        return part.dtype
    longest = int(np.char.str_len(np.asarray(part)).max()) if part.size else 1
    return np.dtype(f"{part.dtype.kind}{max(longest, 1)}")
