"""Frames as Arrow tables; reading them fails on no cell.

The type of a column is public, so it must not depend on the cells: Python objects in a frame, and
the categories of pandas, are strings unless the caller declares another type. So is a column that
Arrow or Polars calls null, because it was made of missing cells alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hushed._functions._silence import silence
from hushed._ground.stops import watch_stops
from hushed._ground.types import ColumnType
from hushed.errors import ParameterError

_PRIVATE_USE = re.compile(rb"\xee([\xbe\xbf])([\x80-\xbf])")  # U+EF80 to U+EFFF
_PRIVATE_BYTES = (b"\xee\xbe", b"\xee\xbf")  # with which they begin
_MASKED = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "Boolean"),
)
_SPELLED = b"\xed\xb3\xae\xed\xb2\\1\xed\xb2\\2"  # its bytes, each as half a pair of surrogates


def from_pandas(frame: Any) -> Any:
    """Turn a pandas frame into an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415

    names = [str(column) for column in frame.columns]
    for name in names:
        if any("\ud800" <= each <= "\udfff" for each in name):
            raise ParameterError(
                f"a column is called {name!a}, which holds half of a pair of surrogates and "
                "cannot be sent to a database: give it another name"
            )
    # A copy of each, because Arrow would share the memory of NumPy, which may change later.
    columns = _read_columns(names, lambda i: _column(frame.iloc[:, i].copy(deep=True)))
    return pa.Table.from_arrays(columns, names=names)


def from_polars(frame: Any) -> Any:
    """Turn a Polars frame into an Arrow table."""
    import pyarrow as pa  # noqa: PLC0415

    names = list(frame.columns)
    columns = _read_columns(names, lambda i: frame.select(names[i]).to_arrow().column(0))
    held = pa.BufferOutputStream()
    table = pa.Table.from_arrays(columns, names=names)
    with pa.ipc.new_stream(held, table.schema) as stream:
        stream.write_table(table)
    return pa.ipc.open_stream(held.getvalue()).read_all()


def _read_columns(names: Sequence[str], read: Callable[[int], Any]) -> list[Any]:
    """Read every column; refuse one that cannot be read, and show no cell.

    What cells and their types do when they are read is their own code, which may say anything.
    """
    columns, unknown = [], None
    with watch_stops() as is_stop, silence():
        for position, name in enumerate(names):
            try:
                columns.append(read(position))
            except BaseException as raised:
                if is_stop(raised):
                    raise
                unknown = name
    if unknown is not None:
        raise ParameterError(
            f"column {unknown!r} of the frame is of a type that cannot be read: leave it out, or "
            "cast it to numbers, strings, dates or timestamps"
        )
    return columns


def _column(column: Any) -> Any:
    """Read one column; how depends on its declared type alone.

    What Arrow does not know by its type it reads as what the cells look like. Of a category pandas
    itself found the type from the cells. A type that was pickled is equal, and another object.
    """
    import pandas as pd  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes, known = np.asarray(column.cat.codes), dtype.categories.to_numpy(dtype=object)
        words = _object_strings(known, np.zeros(len(known), dtype=bool))
        chosen = pa.array(np.maximum(codes, 0), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(chosen, words).dictionary_decode()
    numpy = isinstance(dtype, np.dtype)
    arrow = isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"
    if (numpy and dtype.kind == "O") or (isinstance(dtype, pd.StringDtype) and not arrow):
        return _object_strings(column.to_numpy(dtype=object), column.isna().to_numpy())
    masked = tuple(getattr(pd, f"{name}Dtype") for name in _MASKED)
    if numpy or arrow or isinstance(dtype, (pd.ArrowDtype, pd.DatetimeTZDtype, *masked)):
        return pa.array(column, from_pandas=True)
    return pa.nulls(len(column), pa.binary())  # which cannot be queried


def _object_strings(cells: Any, absent: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    with watch_stops() as is_stop:
        strings = [
            None if gone else _object_string(cell, is_stop)
            for cell, gone in zip(cells, absent, strict=True)
        ]
    return pa.array(
        [None if each is None else _repair_string(each) for each in strings], pa.large_string()
    )


def _repair_string(text: str) -> str:
    """Write half of a pair of surrogates as `repair_bytes` does, whatever other cells hold."""
    if text.isascii():
        return text
    return repair_bytes(text.encode("utf-8", "surrogatepass")).decode()


def _object_string(cell: object, is_stop: Callable[[BaseException], bool]) -> str | None:
    """Convert an object to a string; missing if its own code raises whatever, but for a signal.

    The error is not shown, and affects its own cell only.
    """
    try:
        return str.__str__(cell if isinstance(cell, str) else str(cell))
    except BaseException as raised:  # Ctrl-C, too, if nobody pressed it
        if is_stop(raised):
            raise
        return None


def readable_schema(schema: Any) -> Any:
    """Give a schema with which reading a column fails on no cell.

    An engine converts a time with a zone to microseconds, which fails on far times; without a zone,
    in UTC, it does not fail. Some types that DuckDB cannot read are replaced by similar ones.
    Columns of types that cannot be queried are left out: DuckDB may read any column to count rows.
    """
    import pyarrow as pa  # noqa: PLC0415

    fields = [(field.name, _readable_type(field.type)) for field in schema]
    return pa.schema([pa.field(name, dtype) for name, dtype in fields if dtype is not None])


def _readable_type(dtype: Any) -> Any:
    """Type to read a column as; None if it cannot be queried."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = pa.types
    if kinds.is_dictionary(dtype):
        return _readable_type(dtype.value_type)
    if kinds.is_timestamp(dtype):
        return pa.timestamp(dtype.unit)
    if _is_rounded(dtype):
        return pa.float64()
    texts = dict.fromkeys([pa.string_view(), pa.null()], pa.large_string())
    near = {pa.float16(): pa.float32(), **texts}
    supported = (
        *(kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_date),
        *(kinds.is_string, kinds.is_large_string, pa.uuid().equals),
    )
    known = dtype in near or any(each(dtype) for each in supported)
    return near.get(dtype, dtype) if known else None


def list_zoned(schema: Any) -> set[str]:
    """List the columns of times with a zone, which `readable_schema` gives without one."""
    import pyarrow as pa  # noqa: PLC0415

    types = {field.name: getattr(field.type, "value_type", field.type) for field in schema}
    return {
        name for name, kind in types.items() if pa.types.is_timestamp(kind) and kind.tz is not None
    }


def _is_rounded(dtype: Any) -> bool:
    """Whether a decimal is read as a double, because DuckDB has none of its type."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = pa.types
    return bool(kinds.is_decimal256(dtype) or (kinds.is_decimal(dtype) and dtype.scale < 0))


def require_exact(schema: Any, types: Mapping[str, ColumnType]) -> None:
    """Refuse to read doubles as whole numbers or texts where the column holds more digits.

    Two users whose numbers agree in 53 bits would be one.
    """
    for field in schema:
        kind = getattr(field.type, "value_type", field.type)
        if _is_rounded(kind) and types.get(field.name) in ("int", "string"):
            raise ParameterError(
                f"column {field.name!r} is a {kind}, which is read as a double and cannot be read "
                f"as {types[field.name]}: cast it to decimal128(38, 0) or to a string",
                parameter="types",
            )


def held_types(schema: Any) -> list[Any]:
    """Give the types that `make_readable` gives: of no value where a column cannot be queried."""
    import pyarrow as pa  # noqa: PLC0415

    found = [_readable_type(field.type) for field in schema]
    return [pa.null() if each is None else each for each in found]


def make_readable(arrow: Any) -> Any:
    """Convert an Arrow table such that every column can be read, whatever its cells."""
    import pyarrow as pa  # noqa: PLC0415

    def readable(column: Any) -> Any:
        dtype, wanted = column.type, _readable_type(column.type)
        if wanted is None:
            return pa.chunked_array([pa.nulls(len(column))])
        if pa.types.is_dictionary(dtype):
            words = _readable_type(dtype.value_type)  # not every string type can be decoded
            chunks = [
                pa.DictionaryArray.from_arrays(each.indices, each.dictionary.cast(words))
                for each in column.chunks
            ]
            return pa.chunked_array([each.dictionary_decode() for each in chunks], type=words)
        return column if wanted == dtype else column.cast(wanted)

    columns = [_repair_strings(readable(column)) for column in arrow.columns]
    return pa.Table.from_arrays(columns, names=arrow.column_names)


def _repair_strings(column: Any) -> Any:
    """Replace invalid bytes of strings, each by a character of its own, and each cell by itself."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    wide = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    if column.type not in wide:
        return column
    held = column.cast(wide[column.type])
    held.validate(full=True)  # of a damaged file a cell may begin anywhere in memory
    # A cell that another one's bytes would have repaired is repaired without them, too.
    alone = not any(pc.any(pc.match_substring(held, each)).as_py() for each in _PRIVATE_BYTES)
    try:
        if alone:
            column.validate(full=True)
            return column
    except pa.ArrowInvalid:
        pass
    texts = [None if cell is None else repair_bytes(cell).decode() for cell in held.to_pylist()]
    return pa.chunked_array([pa.array(texts, column.type)])


def may_be_repaired(held: bytes) -> bool:
    """Whether a text may hold characters that `repair_bytes` writes for bytes."""
    if b"\xee" not in held:  # no byte but the first of a character: 200 times as quick to see
        return False
    return any(each in held for each in _PRIVATE_BYTES)


def repair_bytes(held: bytes) -> bytes:
    """Write what is not UTF-8 as private-use characters, U+EF80 to U+EFFF, one for each byte.

    Different strings stay different. If two users became one, the rows that count of the first one
    would depend on those of the other, and neither would have the promise of a user. So one of
    those characters that is in the text itself is written as its three bytes are, too.
    """
    escaped = held.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass")
    escaped = _PRIVATE_USE.sub(_SPELLED, escaped)
    # U+DC80 to U+DCFF in three bytes, and the same place of the private-use area
    return escaped.replace(b"\xed\xb2", b"\xee\xbe").replace(b"\xed\xb3", b"\xee\xbf")
