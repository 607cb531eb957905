"""Open tables; no row is read, and no message of an engine is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os.path import isfile
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Literal

from hushed._printing import brief, plain_path
from hushed._types import ColumnType, StoredType
from hushed.errors import BadRows, EngineUnavailable, MissingExtra, NotFound, ParameterError
from hushed.tables._engine.databases import (
    check_functions,
    connect_postgres,
    database_address,
    engine_errors,
    has_table,
    list_tables,
    view_warnings,
)
from hushed.tables._engine.frames import (
    from_pandas,
    from_polars,
    lines_query,
    make_readable,
    read_lines,
    readable_schema,
)
from hushed.tables._engine.normalisation import COLUMN_TYPES, ColumnCast, cast_sql, choose_cast
from hushed.tables._engine.sessions import column_names, open_session, query_settings
from hushed.tables._expressions import find_column

EngineName = Literal["duckdb", "postgres", "pyspark"]

_NAME_ONE = "name one: hs.table(ADDRESS, 'NAME')"
_SPARK = RLock()  # its settings belong to the session, which all tables share


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A table in a database, not read yet.

    Parameters
    ----------
    engine : {"duckdb", "postgres", "pyspark"}
        Engine that answers.
    rows : ibis.Table
        The stored table. Queries read it through `normalise_columns` only.
    casts : mapping of str to ColumnCast
        Total cast of each column.
    stored : mapping of str to str
        Stored name of each column; empty if the column is left out.
    place : str
        Address and name of the table, for the digest of a query; without a password.
    lock : RLock
        Held from the plan of a query to its last answer: one thread queries at a time.
    process : int
        The process that opened it. Only this process may query: a forked one would share the
        connection, and receive answers of the other.
    file : Path, optional
        A file that queries read, and not only opening does.
    state : tuple of int, optional
        Inode, size and time of that file when it was opened.
    """

    engine: EngineName
    rows: Any = field(repr=False, compare=False)
    casts: Mapping[str, ColumnCast] = field(repr=False)
    stored: Mapping[str, str] = field(repr=False)
    place: str = field(default="", repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)
    lock: Any = field(default_factory=RLock, repr=False, compare=False)
    process: int = field(default_factory=os.getpid, repr=False, compare=False)
    file: Path | None = field(default=None, repr=False, compare=False)
    state: tuple[int, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def columns(self) -> Mapping[str, StoredType]:
        """Type of each column; public."""
        return MappingProxyType({name: cast.type for name, cast in self.casts.items()})

    @property
    def changed(self) -> bool:
        """Whether the file differs from the one that was opened."""
        return self.file is not None and _state_of(self.file) != self.state


def _state_of(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _open_watched(path: Path, opening: Callable[[Path], Connection]) -> Connection:
    """Open a file that queries will read, and note what it was like before."""
    path = path.resolve()
    state = _state_of(path)
    return replace(opening(path), file=path, state=state)


def connect(
    url: str, name: str, types: Mapping[str, ColumnType], header: str | None = None
) -> Connection:
    """Open a table at an address."""
    scheme, found, rest = url.partition("://")
    if not found or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return _open_file(Path(url), name, types, header)
    if header is not None:
        raise ParameterError(
            "header is for CSV files; a database names its columns", parameter="header"
        )
    if scheme == "duckdb":
        return _open_duckdb_file(rest, name, types)
    if scheme in ("postgresql", "postgres", "spark"):
        if types:
            raise ParameterError(
                "types is for files and frames; in this database, cast the column in a view",
                parameter="types",
            )
        if scheme == "spark":
            return _open_spark(rest, name)
        return _open_table("postgres", connect_postgres(url), name, {})
    raise ParameterError(
        f"cannot read {scheme}:// addresses; use duckdb:///FILE, postgresql://..., spark://... or "
        "the path of a CSV, Parquet or Arrow file"
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
    names = _require_distinct(arrow.column_names)
    if not names:
        raise ParameterError(
            "a frame without columns cannot be queried; add a column to count rows"
        )
    backend = _new_duckdb()
    short = [f"c{i}" for i in range(len(names))]  # DuckDB would confuse "City" and "city"
    backend.con.register(name, make_readable(arrow).rename_columns(short))
    stored = dict(zip(names, short, strict=True))
    return _open_table("duckdb", backend, name, types, stored, home or "a frame")


def _require_distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ParameterError("two columns of the table have the same name; rename one")
    return names


def _new_duckdb(path: str = ":memory:", *, read_only: bool = False) -> Any:
    import ibis  # noqa: PLC0415

    backend = ibis.duckdb.connect(path, read_only=read_only)
    backend.con.execute("SET enable_progress_bar = false")
    return backend


def _open_duckdb_file(rest: str, name: str, types: Mapping[str, ColumnType]) -> Connection:
    path = rest[1:] if rest.startswith("/") else rest
    if not isfile(path):
        raise NotFound(
            f"there is no file {plain_path(path)}; duckdb:///a.db is a relative path, "
            "duckdb:////data/a.db an absolute one"
        )
    return _open_watched(Path(path), lambda file: _open_database(file, path, name, types))


def _open_database(file: Path, path: str, name: str, types: Mapping[str, ColumnType]) -> Connection:
    backend = reason = None
    try:
        backend = _new_duckdb(path, read_only=True)
    except engine_errors() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(
            f"DuckDB cannot open {plain_path(path)} ({reason}); is it a DuckDB file, and free?"
        )
    check_functions(backend, "duckdb")
    return _open_table("duckdb", backend, name, types, home=str(file))


def _open_file(
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
    except engine_errors() as error:
        reason = type(error).__name__
    if reason is not None:
        raise BadRows(
            f"{path.name} cannot be read as a {kind[1:]} file ({reason}); it may be damaged, or "
            "have another format"
        )
    raise ParameterError(
        f"{path.name}: a table must be a .csv, .tsv, .parquet, .arrow or .feather file"
    )


def _open_arrow(path: Path, name: str, types: Mapping[str, ColumnType]) -> Connection:
    from pyarrow import feather  # noqa: PLC0415

    return open_frame(feather.read_table(path, memory_map=True), name, types, str(path))


def _open_parquet(path: Path, name: str, types: Mapping[str, ColumnType]) -> Connection:
    """Read with Arrow for DuckDB, whose own reader fails on far times and on invalid strings."""
    from pyarrow import dataset  # noqa: PLC0415

    backend = _new_duckdb()
    found = dataset.dataset(path, format="parquet").schema
    _require_distinct([each.lower() for each in found.names])  # DuckDB would confuse them
    schema = readable_schema(found)
    if not schema.names:
        raise ParameterError(f"{path.name} has no column of a type that can be queried")
    backend.con.register(name, dataset.dataset(path, format="parquet", schema=schema))
    stored = {each: each if each in schema.names else None for each in found.names}
    return _open_table("duckdb", backend, name, types, stored, str(path))


def _open_csv(path: Path, types: Mapping[str, ColumnType], header: str | None) -> Connection:
    """Read every line as a row of strings, and the strings as their declared types."""
    import pyarrow as pa  # noqa: PLC0415

    names, between, lines = read_lines(path, header)
    declared = _check_types(types, names)
    backend = _new_duckdb()
    backend.con.register("lines", pa.table({"line": lines}))
    strings = lines_query("lines", between, len(names))
    cells = [
        f"{cast_sql(f'c{i}', declared[each]) if each in declared else f'c{i}'} AS c{i}"
        for i, each in enumerate(names)
    ]
    made = f"CREATE TABLE cells AS SELECT {', '.join(cells)} FROM ({strings})"  # noqa: S608
    backend.con.execute(made)
    backend.con.unregister("lines")
    short = {each: f"c{i}" for i, each in enumerate(names)}
    return _open_table("duckdb", backend, "cells", {}, short, str(path.resolve()))


def _check_types(types: Mapping[str, ColumnType], names: Iterable[str]) -> dict[str, ColumnType]:
    """Check the declared types."""
    known = list(names)
    if not isinstance(types, Mapping):
        raise ParameterError(f"types must be a mapping such as {{'age': 'int'}}, got {types!r}")
    for column, declared in types.items():
        find_column(column, known)
        if declared not in COLUMN_TYPES:
            raise ParameterError(
                f"{column!r} cannot be of type {declared!r}; types are {', '.join(COLUMN_TYPES)}"
            )
    return dict(types)


def _open_spark(address: str, name: str) -> Connection:
    reason = backend = session = None
    try:
        import ibis  # noqa: PLC0415

        session = open_session(address)
        with query_settings(session):  # Ibis changes the time zone of the session
            backend = ibis.pyspark.connect(session)
    except ImportError:
        raise MissingExtra("a table on Spark", "spark", "it needs Java, too") from None
    except engine_errors() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(f"cannot reach Spark: {reason}")
    with suppress(*engine_errors()), query_settings(session):  # a missing table is refused below
        _require_distinct(column_names(session, name))
    return _open_table("pyspark", backend, name, {})


def _open_table(
    engine: EngineName,
    backend: Any,
    name: str,
    types: Mapping[str, ColumnType],
    stored: Mapping[str, str | None] | None = None,
    home: str = "",
) -> Connection:
    """Read the column types of a table; `stored` gives their stored names, if known.

    `home` is the path of a file. Ibis does not know some types, and an engine may lack the
    extension for a type.
    """
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    reason = rows = None
    unknown = False
    place, _, short = ("", "", name) if stored is not None else name.rpartition(".")
    if stored is None and engine == "duckdb" and not has_table(backend, place, short):
        shown_name = plain_path(name, brief)
        raise NotFound(
            f"there is no table {shown_name}{list_tables(backend, engine)}",
            parameter="table",
            hint=_NAME_ONE,
        )
    try:
        rows = backend.table(short, database=place or None)
    except engine_errors() as error:
        reason = type(error).__name__
        unknown = reason in ("IbisTypeError", "IOException", "HTTPException")
    except Exception as error:  # Ibis fails on a name: of a type, or of the table itself
        reason = type(error).__name__
        unknown = reason not in ("ParseError", "TokenError")
    if unknown:
        raise ParameterError(
            f"a column of the table {plain_path(name, brief)} is of a type that cannot even "
            "be left out; query a view without it"
        )
    if rows is None:
        raise NotFound(
            f"there is no table {plain_path(name, brief)} ({reason}){list_tables(backend, engine)}",
            parameter="table",
            hint=_NAME_ONE,
        )
    schema, own = rows.schema(), stored is None
    stored = {column: column for column in schema} if stored is None else stored
    declared = _check_types(types, stored)
    casts = {
        column: choose_cast(
            engine,
            _quote_identifier(backend, inside or "nothing"),
            schema[inside] if inside else dt.null,
            name=column,
            declared=declared.get(column),
        )
        for column, inside in stored.items()
    }
    return Connection(
        engine=engine,
        rows=rows,
        place=f"{home or database_address(backend, engine)} {name}",
        warnings=view_warnings(backend, engine, place, short) if own else (),
        casts=MappingProxyType(casts),
        stored=MappingProxyType({column: inside or "" for column, inside in stored.items()}),
        lock=_SPARK if engine == "pyspark" else RLock(),
    )


def _quote_identifier(backend: Any, name: str) -> str:
    import sqlglot  # noqa: PLC0415

    return str(sqlglot.to_identifier(name, quoted=True).sql(backend.dialect))


def normalise_columns(connection: Connection, names: Mapping[str, str]) -> Any:
    """Give the normalised columns of a table: every query starts here."""
    import ibis  # noqa: PLC0415

    backend = connection.rows.get_backend()
    casts = {short: connection.casts[name] for name, short in names.items()}
    chosen = ", ".join(f"{cast.sql} AS {short}" for short, cast in casts.items()) or "1 AS nothing"
    schema = {short: cast.dtype for short, cast in casts.items()} or {"nothing": "int64"}
    needed = dict.fromkeys(connection.stored[name] for name in names)
    rows = connection.rows.select(*needed) if needed else connection.rows.select(n=ibis.literal(1))
    query = f"SELECT {chosen} FROM ({backend.compile(rows)}) AS stored"  # noqa: S608
    return backend.sql(query, schema=schema)
