"""Frames and CSV files as Arrow tables; reading them fails on no cell.

The type of a column is public, so it must not depend on the cells: Python objects in a frame, and
all cells of a CSV file, are strings unless the caller declares another type. And a line of a CSV
file is a row, whatever it contains: a quotation mark that is never closed must not affect other
rows.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hushed.errors import BadRows, ParameterError

_BETWEEN = ",;\t|"
_MARK = b"\xef\xbb\xbf"  # byte order mark; some programs write it before a text
_NUMERIC = re.compile(r"[-+.,:/ \d]*\d[-+.,:/ \d]*")  # numbers, dates and times in any format


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
    """Read every column; refuse one that cannot be read, and show no cell."""
    import pyarrow as pa  # noqa: PLC0415

    columns, unknown = [], None
    for position, name in enumerate(names):
        try:
            columns.append(read(position))
        except (pa.ArrowException, NotImplementedError, OverflowError):
            unknown = name
    if unknown is not None:
        raise ParameterError(
            f"column {unknown!r} of the frame is of a type that cannot be read: leave it out, or "
            "cast it"
        )
    return columns


def _column(column: Any) -> Any:
    """Read one column; how depends on its declared type alone."""
    import pandas as pd  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(column.cat.codes)
        known = _column(dtype.categories.to_series())
        known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
        chosen = pa.array(np.maximum(codes, 0), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(chosen, known).dictionary_decode()
    if dtype is np.dtype(object) or (
        isinstance(dtype, pd.StringDtype) and dtype.storage != "pyarrow"
    ):
        return _object_strings(column.to_numpy(dtype=object), column.isna().to_numpy())
    return pa.array(column, from_pandas=True)


def _object_strings(cells: Any, absent: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    strings = [
        None if gone else _object_string(cell) for cell, gone in zip(cells, absent, strict=True)
    ]
    try:
        return pa.array(strings, pa.large_string())
    except UnicodeError:  # lone surrogates
        held = [None if w is None else w.encode("utf-8", "surrogatepass") for w in strings]
        known = [None if w is None else _repair_bytes(w).decode() for w in held]
        return pa.array(known, pa.large_string())


def _object_string(cell: object) -> str | None:
    """Convert an object to a string; missing if its own code raises an error.

    The error is not shown, and affects its own cell only.
    """
    try:
        return str.__str__(cell if isinstance(cell, str) else str(cell))
    except (Exception, SystemExit):  # whatever its own code raises
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
    if kinds.is_decimal256(dtype):
        return pa.float64()
    near = {pa.float16(): pa.float32(), pa.string_view(): pa.large_string()}
    supported = (
        *(kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_date),
        *(kinds.is_string, kinds.is_large_string, kinds.is_string_view, pa.uuid().equals),
    )
    return near.get(dtype, dtype) if any(each(dtype) for each in supported) else None


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
    """Replace invalid bytes of strings, each by a character of its own."""
    import pyarrow as pa  # noqa: PLC0415

    wide = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    if column.type not in wide:
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        cells = column.cast(wide[column.type]).to_pylist()
        texts = [None if cell is None else _repair_bytes(cell).decode() for cell in cells]
        return pa.chunked_array([pa.array(texts, column.type)])
    return column


def _repair_bytes(held: bytes) -> bytes:
    """Write what is not UTF-8 as private-use characters, U+EF80 to U+EFFF, one for each byte.

    Different strings stay different. If two users became one, the rows that count of the first one
    would depend on those of the other, and neither would have the promise of a user.
    """
    escaped = held.decode("utf-8", "surrogateescape").encode("utf-8", "surrogatepass")
    # U+DC80 to U+DCFF in three bytes, and the same place of the private-use area
    return escaped.replace(b"\xed\xb2", b"\xee\xbe").replace(b"\xed\xb3", b"\xee\xbf")


def read_lines(path: Path, header: str | None = None) -> tuple[list[str], str, Any]:
    """Read a CSV file as lines."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    held = path.read_bytes()
    tabbed = path.suffix.lower() == ".tsv"
    if header is None:
        head, _, _ = held.partition(b"\n")
        start = len(head) + 1
        first = head.decode("utf-8-sig", "replace").rstrip("\r")
        names, between = _split_names(first, tabbed=tabbed)
        _require_names(path, held, names, first)
    else:
        start = len(_MARK) if held.startswith(_MARK) else 0
        names, between = _split_names(header, tabbed=tabbed and "\t" in header)
        between = "\t" if tabbed else between
        if not names or not all(map(str.strip, names)) or len(set(names)) < len(names):
            raise ParameterError(
                f"header must name every column, and no column twice, got {header!r}",
                parameter="header",
            )
    lines = _split(held, start)
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid:
        lines = _split(_repair_bytes(held[start:]), 0)
    return names, between, pc.ascii_rtrim(lines, "\r\n")


def _split_names(line: str, *, tabbed: bool) -> tuple[list[str], str]:
    """Split a line of names, and find its delimiter."""
    between = "\t" if tabbed else max(_BETWEEN, key=line.count)
    try:
        return next(csv.reader([line], delimiter=between), []), between
    except csv.Error:  # a cell is too long for a name, or contains an end of line
        return [], between


def _require_names(path: Path, held: bytes, names: Sequence[str], first: str) -> None:
    """Refuse a first line that may be a record; only that line decides, and it is not shown."""
    if not held.removeprefix(_MARK).strip():
        raise BadRows(f"{path.name} is empty: it has no first line with the names of its columns")
    if "\x00" in first:
        why = "contains a null character"
    elif not names or not all(map(str.strip, names)):
        why = "has an empty cell, or one too long for a name"
    elif len(set(names)) < len(names):
        why = "has the same name twice"
    elif any(map(_numeric, names)):
        why = "contains a number or a date"
    else:
        return
    raise BadRows(
        f"{path.name}: the first line of a CSV file must name its columns, and this one {why}; it "
        "may be a record, so nothing of it is shown. If it is a record, give the names and the "
        "delimiter. If not, give every column a name of its own that is not a number",
        parameter="header",
        hint="give header='patient;city;cost'",
    )


def _numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return _NUMERIC.fullmatch(cell) is not None
    return True


def lines_query(lines: str, between: str, width: int) -> str:
    """Write a query of DuckDB that splits each line into cells, by itself."""
    quoted = f"""'[{between}]("(?:[^"]|"")*"|[^{between}]*)'"""
    cell = f'(?:[^"{between}]*|"[^"{between}]*")'
    strings = ", ".join(f"nullif(cells[{i + 1}], '') AS c{i}" for i in range(width))
    # The last way is general, but takes ten times as long: simple lines take the first.
    return f"""WITH marked AS MATERIALIZED (SELECT line, CASE WHEN NOT contains(line, '"') THEN 0
            WHEN regexp_full_match(line, '{cell}(?:[{between}]{cell})*') THEN 1 ELSE 2 END AS way
            FROM {lines} WHERE line <> ''), split AS (
        SELECT string_split(replace(line, '"', ''), '{between}') AS cells FROM marked WHERE way < 2
        UNION ALL
        SELECT list_transform(regexp_extract_all('{between}' || line, {quoted}, 1),
            lambda x: CASE WHEN x LIKE '"%"' AND strlen(x) > 1
                THEN replace(substring(x, 2, length(x) - 2), '""', '"') ELSE x END) AS cells
            FROM marked WHERE way = 2)
        SELECT {strings} FROM split"""  # noqa: S608


def _split(held: bytes, start: int) -> Any:
    """Split bytes into lines from a position on, without a copy."""
    import pyarrow as pa  # noqa: PLC0415

    if start >= len(held):
        return pa.array([], pa.large_string())
    ends = np.flatnonzero(np.frombuffer(held, np.uint8, offset=start) == ord("\n")) + start + 1
    last = [] if ends.size and ends[-1] == len(held) else [len(held)]
    offsets = np.concatenate([[start], ends, last]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(
        offsets.size - 1, pa.py_buffer(offsets), pa.py_buffer(held)
    )
