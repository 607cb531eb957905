"""Frames in memory and files, which DuckDB queries."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os.path import isfile
from pathlib import Path
from typing import Any

from hushed._ground.checks import list_in_order
from hushed._ground.printing import SAVE_AS_CSV, SPREADSHEETS, name_missing
from hushed._ground.types import ColumnType
from hushed.errors import BadRows, NotFound, ParameterError
from hushed.tables._engine.arrow_files import ArrowFile, read_arrow_schema
from hushed.tables._engine.connections import OF_A_FRAME, Connection, check_types, open_own
from hushed.tables._engine.csv_files import lines_query, open_csv
from hushed.tables._engine.databases import require_distinct
from hushed.tables._engine.duckdb import DUCKDB, MEMORY, open_backend
from hushed.tables._engine.frames import (
    from_pandas,
    from_polars,
    held_types,
    list_zoned,
    make_readable,
    readable_schema,
    require_exact,
)
from hushed.tables._engine.parts import read_parts, require_one_schema, state_of
from hushed.tables._engine.plain_parquet import has_dictionaries, hide_types, open_plain
from hushed.tables._engine.spellings import read_spelling, say_how_read

_MOST_FOOTER = 100_000_000  # bytes of a schema; Arrow reads no longer ones either
_DUCKDB_FILE = "a DuckDB file is named by its address, duckdb:///FILE"
FROM_SQLITE = (  # without a guess of types, which the cells would decide
    "a table in SQLite is copied to a CSV file first: "
    "sqlite3 -header -csv shop.sqlite 'SELECT * FROM stays' > stays.csv"
)
_ELSEWHERE = {  # where what is no table goes, by the end of its name
    **dict.fromkeys(
        (".db", ".sqlite", ".sqlite3"),
        f"{_DUCKDB_FILE}, and a ledger by ledger=, or --ledger; {FROM_SQLITE}",
    ),
    **dict.fromkeys(SPREADSHEETS, SAVE_AS_CSV),
    ".toml": "a question in a file is read by hs.Query.from_toml, or --file",
}


def open_frame(frame: Any, name: str, types: Mapping[str, ColumnType]) -> Connection:
    """Open a frame in memory with DuckDB."""
    arrow = _read_frame(frame)
    if arrow is None:
        raise ParameterError(
            "a table must be an address, the path of a file, or a pandas, Polars or Arrow frame, "
            f"got {type(frame).__name__}"
        )
    stored = _shorten(arrow.column_names)
    require_exact(arrow.schema, check_types(types, stored))
    backend = open_backend()
    backend.con.register(name, make_readable(arrow).rename_columns([*stored.values()]))
    zoned = list_zoned(arrow.schema)
    opened = open_own(MEMORY, backend, name, types, stored, OF_A_FRAME, zoned)
    with suppress(TypeError):  # not every frame can be referred to
        return replace(opened, frame=weakref.ref(frame))
    return opened


def _shorten(names: Iterable[str]) -> dict[str, str]:
    """Give each column a name of our own: DuckDB would confuse "City" and "city"."""
    found = require_distinct(names)
    if not found:
        raise ParameterError(
            "a frame without columns cannot be queried; add a column to count rows"
        )
    return {name: f"c{i}" for i, name in enumerate(found)}


def _read_frame(frame: Any) -> Any:
    """Read a frame as an Arrow table; None for what is no frame."""
    import pyarrow as pa  # noqa: PLC0415

    module = type(frame).__module__.partition(".")[0]
    if isinstance(frame, pa.Table):
        return frame
    if module == "pandas" and hasattr(frame, "columns"):
        return from_pandas(frame)
    if module == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        return from_polars(frame)
    return None


def read_public(given: Any) -> dict[str, list[Any]]:
    """Read the columns of a public table: a frame, or a mapping of names to lists."""
    if isinstance(given, Mapping) and all(map(_is_list, given.values())):
        return {name: list_in_order(values) for name, values in given.items()}
    arrow = None if isinstance(given, Mapping) else _read_frame(given)
    if arrow is None:
        raise ParameterError(
            "a public table must be a pandas, Polars or Arrow frame, or a mapping such as "
            f"{{'ward': ['A', 'B'], 'beds': [10, 20]}}, got {type(given).__name__}; a private "
            "one is joined by its users, with join_users",
            parameter="public",
        )
    names = require_distinct(arrow.column_names)
    return {name: arrow.column(name).to_pylist() for name in names}


def _is_list(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)


def open_file(
    path: Path,
    name: str,
    types: Mapping[str, ColumnType],
    header: str | None = None,
    *,
    newlines_in_values: bool = False,
) -> Connection:
    kind = ".parquet" if _is_in_parts(path) else path.suffix.lower()
    if newlines_in_values and kind not in (".csv", ".tsv"):
        raise ParameterError(
            f"newlines_in_values is for CSV files, and {path.name} is none",
            parameter="newlines_in_values",
        )
    if header is not None and kind not in (".csv", ".tsv"):
        raise ParameterError(
            f"header is for CSV files; {path.name} names its columns itself", parameter="header"
        )
    reason = None
    try:
        if kind in (".arrow", ".feather", ".ipc"):
            return _open_watched(path, lambda file: _open_arrow(file, name, types))
        if kind in (".csv", ".tsv"):
            across = newlines_in_values
            return _open_watched(
                path, partial(_open_csv, types=types, header=header, newlines_in_values=across)
            )
        if kind == ".parquet":
            return _open_watched(path, lambda file: _open_parquet(file, name, types))
    except DUCKDB.errors() as error:
        reason = type(error).__name__
    if reason is not None:
        raise BadRows(
            f"{path.name} cannot be read as a {kind[1:]} file ({reason}); it may be damaged, or "
            "have another format"
        )
    raise ParameterError(
        f"{path.name}: a table must be a .csv, .tsv, .parquet, .arrow or .feather file, or a "
        f"folder of .parquet files; {_ELSEWHERE.get(kind, _DUCKDB_FILE)}"
    )


def _is_in_parts(path: Path) -> bool:
    """Whether a table is in several files; refuse one that is in none."""
    if isfile(path):  # pathlib would raise for a name that is too long
        return False
    with suppress(OSError):
        if read_parts(path):
            return True
    raise NotFound(f"there is no file {name_missing(path)}")


def _open_watched(path: Path, opening: Callable[[Path], Connection]) -> Connection:
    """Open a file that queries will read, and note what it was like before."""
    path = path.resolve()
    state = state_of(path)
    return replace(opening(path), file=path, state=state)


def _open_arrow(path: Path, name: str, types: Mapping[str, ColumnType]) -> Connection:
    import pyarrow as pa  # noqa: PLC0415

    schema = read_arrow_schema(path)
    stored = _shorten(schema.names)
    require_exact(schema, check_types(types, stored))
    read = pa.schema([*zip(stored.values(), held_types(schema), strict=True)])
    backend = open_backend()
    backend.con.register(name, ArrowFile(path=path, schema=read))
    return open_own(MEMORY, backend, name, types, stored, str(path), list_zoned(schema))


def _open_parquet(path: Path, name: str, types: Mapping[str, ColumnType]) -> Connection:
    """Read with Arrow for DuckDB, whose own reader fails on far times and on invalid strings."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import dataset  # noqa: PLC0415

    backend = open_backend()
    files = [each.resolve() for each in read_parts(path)] or [path]
    footers = [_read_footer(each) for each in files]
    schemas = [_read_schema(each) for each in footers]
    require_one_schema(files, schemas)
    found = schemas[0]
    require_distinct([each.lower() for each in found.names])  # DuckDB would confuse them
    schema = readable_schema(found)
    if not schema.names:
        raise ParameterError(f"{path.name} has no column of a type that can be queried")
    _require_readable(path, schema)
    require_exact(found, check_types(types, found.names))
    if has_dictionaries(found):
        plain = _read_schema(hide_types(footers[0]))
        schema = readable_schema(pa.schema([plain.field(name) for name in schema.names]))
        read = open_plain(files, footers, schema)
    else:
        read = dataset.dataset([str(each) for each in files], format="parquet", schema=schema)
    backend.con.register(name, read)
    stored = {each: each if each in schema.names else None for each in found.names}
    return open_own(DUCKDB, backend, name, types, stored, str(path), list_zoned(found))


def _require_readable(path: Path, schema: Any) -> None:
    """Refuse a column by whose name Arrow fails on every row, for it adds one of that name."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import dataset  # noqa: PLC0415

    readable = False
    with suppress(pa.ArrowInvalid):
        readable = dataset.dataset(schema.empty_table()).scanner() is not None
    if not readable:
        raise ParameterError(
            f"{path.name} has a column by whose name Arrow, which reads Parquet files, calls one "
            "of its own, such as __filename: rename it"
        )


def _read_footer(path: Path) -> bytes:
    """Read the footer of a Parquet file, with what ends it, and none of its pages.

    Arrow reads 64 kB at the end of a file to find the schema, which hold rows, too. The footer may
    hold the least and the largest value of a column; they are not used.
    """
    with open(path, "rb", buffering=0) as file:
        end = file.seek(-8, os.SEEK_END)
        tail = file.read(8)  # the length of the footer, and four letters
        length = int.from_bytes(tail[:4], "little") if tail.endswith(b"PAR1") else 0
        plausible = length <= min(end - 4, _MOST_FOOTER)
        start = end - length if plausible else end  # nothing is read of what is no footer
        file.seek(start)
        return file.read(end - start) + tail


def _read_schema(footer: bytes) -> Any:
    """Read the schema that a footer tells: Arrow is given a file of the footer alone."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    return parquet.read_schema(pa.BufferReader(b"PAR1" + footer))


def _open_csv(
    path: Path, *, types: Mapping[str, ColumnType], header: str | None, newlines_in_values: bool
) -> Connection:
    """Read every record as a row of strings, and the strings as their declared types."""
    file = open_csv(path, header, newlines_in_values=newlines_in_values)
    declared = check_types(types, file.names)
    backend = open_backend()
    backend.con.register("lines", file)
    strings = lines_query("lines", file.delimiter, len(file.names))
    cells = [
        f"{read_spelling(f'c{i}', declared.get(each, 'string'))} AS c{i}"
        for i, each in enumerate(file.names)
    ]
    made = f"CREATE VIEW cells AS SELECT {', '.join(cells)} FROM ({strings})"  # noqa: S608
    backend.con.execute(made)
    short = {each: f"c{i}" for i, each in enumerate(file.names)}
    opened = open_own(MEMORY, backend, "cells", {}, short, str(path))
    remarks = say_how_read(file.delimiter, declared)
    return replace(opened, delimiter=file.delimiter, remarks=remarks)
