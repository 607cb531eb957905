"""Frames in memory and files, which DuckDB queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import Any

from hushed._printing import plain_path
from hushed._types import ColumnType
from hushed.errors import BadRows, NotFound, ParameterError
from hushed.tables._engine.connections import Connection, check_types, open_own, state_of
from hushed.tables._engine.databases import require_distinct
from hushed.tables._engine.duckdb import DUCKDB, READINGS, open_backend
from hushed.tables._engine.frames import (
    from_pandas,
    from_polars,
    lines_query,
    make_readable,
    read_lines,
    readable_schema,
)


def open_frame(
    frame: Any, name: str, types: Mapping[str, ColumnType], home: str = ""
) -> Connection:
    """Open a frame in memory with DuckDB."""
    import pyarrow as pa  # noqa: PLC0415

    module = type(frame).__module__.partition(".")[0]
    if isinstance(frame, pa.Table):
        arrow = frame
    elif module == "pandas" and hasattr(frame, "columns"):
        arrow = from_pandas(frame)
    elif module == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        arrow = from_polars(frame)
    else:
        raise ParameterError(
            "a table must be an address, the path of a file, or a pandas, Polars or Arrow frame, "
            f"got {type(frame).__name__}"
        )
    names = require_distinct(arrow.column_names)
    if not names:
        raise ParameterError(
            "a frame without columns cannot be queried; add a column to count rows"
        )
    backend = open_backend()
    short = [f"c{i}" for i in range(len(names))]  # DuckDB would confuse "City" and "city"
    backend.con.register(name, make_readable(arrow).rename_columns(short))
    stored = dict(zip(names, short, strict=True))
    return open_own(DUCKDB, backend, name, types, stored, home or "a frame")


def open_file(
    path: Path, name: str, types: Mapping[str, ColumnType], header: str | None
) -> Connection:
    if not isfile(path):  # pathlib would raise for a name that is too long
        raise NotFound(f"there is no file {plain_path(path)}")
    kind = path.suffix.lower()
    if header is not None and kind not in (".csv", ".tsv"):
        raise ParameterError(
            f"header is for CSV files; {path.name} names its columns itself", parameter="header"
        )
    reason = None
    try:
        if kind in (".arrow", ".feather", ".ipc"):
            return _open_watched(path, lambda file: _open_arrow(file, name, types))
        if kind in (".csv", ".tsv"):
            return _open_csv(path, types, header)
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
        f"{path.name}: a table must be a .csv, .tsv, .parquet, .arrow or .feather file; a DuckDB "
        "file is named by its address, duckdb:///FILE"
    )


def _open_watched(path: Path, opening: Callable[[Path], Connection]) -> Connection:
    """Open a file that queries will read, and note what it was like before."""
    path = path.resolve()
    state = state_of(path)
    return replace(opening(path), file=path, state=state)


def _open_arrow(path: Path, name: str, types: Mapping[str, ColumnType]) -> Connection:
    from pyarrow import feather  # noqa: PLC0415

    return open_frame(feather.read_table(path, memory_map=True), name, types, str(path))


def _open_parquet(path: Path, name: str, types: Mapping[str, ColumnType]) -> Connection:
    """Read with Arrow for DuckDB, whose own reader fails on far times and on invalid strings."""
    from pyarrow import dataset  # noqa: PLC0415

    backend = open_backend()
    found = dataset.dataset(path, format="parquet").schema
    require_distinct([each.lower() for each in found.names])  # DuckDB would confuse them
    schema = readable_schema(found)
    if not schema.names:
        raise ParameterError(f"{path.name} has no column of a type that can be queried")
    backend.con.register(name, dataset.dataset(path, format="parquet", schema=schema))
    stored = {each: each if each in schema.names else None for each in found.names}
    return open_own(DUCKDB, backend, name, types, stored, str(path))


def _open_csv(path: Path, types: Mapping[str, ColumnType], header: str | None) -> Connection:
    """Read every line as a row of strings, and the strings as their declared types."""
    import pyarrow as pa  # noqa: PLC0415

    names, between, lines = read_lines(path, header)
    declared = check_types(types, names)
    backend = open_backend()
    backend.con.register("lines", pa.table({"line": lines}))
    strings = lines_query("lines", between, len(names))
    cells = [
        f"{READINGS[declared[each]].format(f'c{i}') if each in declared else f'c{i}'} AS c{i}"
        for i, each in enumerate(names)
    ]
    made = f"CREATE TABLE cells AS SELECT {', '.join(cells)} FROM ({strings})"  # noqa: S608
    backend.con.execute(made)
    backend.con.unregister("lines")
    short = {each: f"c{i}" for i, each in enumerate(names)}
    return open_own(DUCKDB, backend, "cells", {}, short, str(path.resolve()))
