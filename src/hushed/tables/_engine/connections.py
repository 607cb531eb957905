"""Opening tables; no row is read, and no message of an engine shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os.path import isfile
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Literal

from hushed._printing import brief, plain_path
from hushed.errors import BadRows, EngineUnavailable, NotFound, ParameterError
from hushed.tables._engine.frames import (
    from_pandas,
    from_polars,
    lines_query,
    read_lines,
    settled,
    settled_schema,
)
from hushed.tables._engine.reaching import (
    failures,
    home_of,
    is_listed,
    reach_postgres,
    remarks_on,
    tables_in,
)
from hushed.tables._engine.sessions import ask, names_in, open_session
from hushed.tables._engine.taming import DECLARED, Cell, cell_of, read_as
from hushed.tables._expressions import Kind, find_column

EngineName = Literal["duckdb", "postgres", "pyspark"]

_SPARK = RLock()  # its settings belong to the session, which all tables share


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A table in a database, not read yet.

    Parameters
    ----------
    engine : {"duckdb", "postgres", "pyspark"}
        Who answers.
    rows : ibis.Table
        The table as it lies. Queries read it through `tamed` only.
    cells : mapping of str to Cell
        How each column is read.
    stored : mapping of str to str
        What each column is called in there; empty for one that is left out.
    place : str
        Which table it is, for the digest of a question: where it lies and its name, no password.
    lock : RLock
        Held from the plan of a query to its last answer: one thread asks at a time.
    process : int
        The process that opened it, and the only one that may ask: a forked one would share the
        wire to the database, and take answers that are not its own.
    file : Path, optional
        A file that is read anew by each query.
    state : tuple of int, optional
        What tells that file from a later one.
    """

    engine: EngineName
    rows: Any = field(repr=False, compare=False)
    cells: Mapping[str, Cell] = field(repr=False)
    stored: Mapping[str, str] = field(repr=False)
    place: str = field(default="", repr=False)
    remarks: tuple[str, ...] = field(default=(), repr=False)
    lock: Any = field(default_factory=RLock, repr=False, compare=False)
    process: int = field(default_factory=os.getpid, repr=False, compare=False)
    file: Path | None = field(default=None, repr=False, compare=False)
    state: tuple[int, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def columns(self) -> Mapping[str, Kind]:
        """Kind of each column; public."""
        return MappingProxyType({name: cell.kind for name, cell in self.cells.items()})

    @property
    def changed(self) -> bool:
        """Whether the file is another one than was opened."""
        return self.file is not None and _state_of(self.file) != self.state


def _state_of(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def connect(
    url: str, name: str, types: Mapping[str, Kind], header: str | None = None
) -> Connection:
    """Open a table behind an address."""
    scheme, found, rest = url.partition("://")
    if not found or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return _file(Path(url), name, types, header)
    if header is not None:
        raise ParameterError("header=... is for CSV files; a database names its columns")
    if scheme == "duckdb":
        return _duckdb_file(rest, name, types)
    if scheme in ("postgresql", "postgres", "spark"):
        if types:
            raise ParameterError(
                "types=... is for files and frames; in this database, cast the column in a view"
            )
        if scheme == "spark":
            return _spark(rest, name)
        return _opened("postgres", reach_postgres(url), name, {})
    raise ParameterError(
        f"cannot read {scheme}:// addresses; use duckdb:///FILE, postgresql://..., spark://... or "
        "the path of a CSV, Parquet or Arrow file"
    )


def over_frame(frame: Any, name: str, types: Mapping[str, Kind], home: str = "") -> Connection:
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
            "a table is an address, the path of a file, or a pandas, Polars or Arrow frame, got "
            f"{type(frame).__name__}"
        )
    names = _different(arrow.column_names)
    if not names:
        raise ParameterError("a frame without columns cannot be asked; give it one, to be counted")
    backend = _duckdb()
    short = [f"c{i}" for i in range(len(names))]  # DuckDB would take "City" and "city" for one
    backend.con.register(name, settled(arrow).rename_columns(short))
    stored = dict(zip(names, short, strict=True))
    return _opened("duckdb", backend, name, types, stored, home or "a frame")


def _different(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ParameterError("two columns of the table have the same name; rename one")
    return names


def _duckdb(path: str = ":memory:", *, read_only: bool = False) -> Any:
    import ibis  # noqa: PLC0415

    backend = ibis.duckdb.connect(path, read_only=read_only)
    backend.con.execute("SET enable_progress_bar = false")
    return backend


def _duckdb_file(rest: str, name: str, types: Mapping[str, Kind]) -> Connection:
    path = rest[1:] if rest.startswith("/") else rest
    if not isfile(path):
        raise NotFound(
            f"there is no file {plain_path(path)}; duckdb:///a.db is a path from here, "
            "duckdb:////data/a.db one from the root"
        )
    backend = reason = None
    try:
        backend = _duckdb(path, read_only=True)
    except failures() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(
            f"DuckDB cannot open {plain_path(path)} ({reason}); is it a DuckDB file, and free?"
        )
    return _opened("duckdb", backend, name, types, home=str(Path(path).resolve()))


def _file(path: Path, name: str, types: Mapping[str, Kind], header: str | None) -> Connection:
    if not isfile(path):  # of a name that is too long, pathlib's own would raise
        raise NotFound(f"there is no file {plain_path(path)}")
    kind = path.suffix.lower()
    if header is not None and kind not in (".csv", ".tsv"):
        raise ParameterError(f"header=... is for CSV files; {path.name} names its columns itself")
    reason = None
    try:
        if kind in (".arrow", ".feather", ".ipc"):
            from pyarrow import feather  # noqa: PLC0415

            found = feather.read_table(path, memory_map=True)
            return over_frame(found, name, types, str(path.resolve()))
        if kind in (".csv", ".tsv"):
            return _csv(path, types, header)
        if kind == ".parquet":
            return _parquet(path, name, types)
    except failures() as error:
        reason = type(error).__name__
    if reason is not None:
        raise BadRows(
            f"{path.name} cannot be read as a {kind[1:]} file ({reason}); it may be damaged, or "
            "of another kind than its name says"
        )
    raise ParameterError(f"{path.name}: a table is a .csv, .tsv, .parquet, .arrow or .feather file")


def _parquet(path: Path, name: str, types: Mapping[str, Kind]) -> Connection:
    """Have Arrow read the file for DuckDB, whose own reader fails on a far time or a bad text."""
    from pyarrow import dataset  # noqa: PLC0415

    path = path.resolve()
    state = _state_of(path)
    backend = _duckdb()
    found = dataset.dataset(path, format="parquet").schema
    _different([each.lower() for each in found.names])  # DuckDB would take them for one
    schema = settled_schema(found)
    if not schema.names:
        raise ParameterError(f"{path.name} has no column of a type that can be asked")
    backend.con.register(name, dataset.dataset(path, format="parquet", schema=schema))
    stored = {each: each if each in schema.names else None for each in found.names}
    opened = _opened("duckdb", backend, name, types, stored, str(path))
    return replace(opened, file=path, state=state)


def _csv(path: Path, types: Mapping[str, Kind], header: str | None) -> Connection:
    """Read every line as a row of texts, and those texts as what was declared."""
    import pyarrow as pa  # noqa: PLC0415

    names, between, lines = read_lines(path, header)
    declared = _declared(types, names)
    backend = _duckdb()
    backend.con.register("lines", pa.table({"line": lines}))
    texts = lines_query("lines", between, len(names))
    cells = [
        f"{read_as(f'c{i}', declared[each]) if each in declared else f'c{i}'} AS c{i}"
        for i, each in enumerate(names)
    ]
    made = f"CREATE TABLE cells AS SELECT {', '.join(cells)} FROM ({texts})"  # noqa: S608
    backend.con.execute(made)
    backend.con.unregister("lines")
    short = {each: f"c{i}" for i, each in enumerate(names)}
    return _opened("duckdb", backend, "cells", {}, short, str(path.resolve()))


def _declared(types: Mapping[str, Kind], names: Iterable[str]) -> dict[str, Kind]:
    """Check the types that were declared."""
    known = list(names)
    if not isinstance(types, Mapping):
        raise ParameterError(f"types is a mapping such as {{'age': 'whole'}}, got {types!r}")
    for column, kind in types.items():
        find_column(column, known)
        if kind not in DECLARED:
            raise ParameterError(
                f"{column!r} cannot be of kind {kind!r}; kinds are {', '.join(DECLARED)}"
            )
    return dict(types)


def _spark(address: str, name: str) -> Connection:
    reason = backend = session = None
    try:
        import ibis  # noqa: PLC0415

        session = open_session(address)
        with ask(session):  # Ibis changes the time zone of the session
            backend = ibis.pyspark.connect(session)
    except ImportError:
        reason = "its driver is missing: pip install 'hushed[spark]', which needs Java"
    except failures() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(f"cannot reach Spark: {reason}")
    with suppress(*failures()), ask(session):  # of a table that is not there, `_opened` tells
        _different(names_in(session, name))
    return _opened("pyspark", backend, name, {})


def _opened(
    engine: EngineName,
    backend: Any,
    name: str,
    types: Mapping[str, Kind],
    stored: Mapping[str, str | None] | None = None,
    home: str = "",
) -> Connection:
    """Look at the types of a table; `stored` says what its columns are called in there, if at all.

    `home` says where a file lies. Some types are unknown to Ibis, or known to an engine that lacks
    an extension for them.
    """
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    reason = rows = None
    unknown = False
    place, _, short = ("", "", name) if stored is not None else name.rpartition(".")
    if stored is None and engine == "duckdb" and not is_listed(backend, place, short):
        told = plain_path(name, brief)
        raise NotFound(f"there is no table {told}{tables_in(backend, engine)}")
    try:
        rows = backend.table(short, database=place or None)
    except failures() as error:
        reason = type(error).__name__
        unknown = reason in ("IbisTypeError", "IOException", "HTTPException")
    except Exception as error:  # Ibis stumbles over a name: of a type, or of the table itself
        reason = type(error).__name__
        unknown = reason not in ("ParseError", "TokenError")
    if unknown:
        raise ParameterError(
            f"a column of the table {plain_path(name, brief)} is of a type that cannot even "
            "be left out; ask a view without it"
        )
    if rows is None:
        raise NotFound(
            f"there is no table {plain_path(name, brief)} ({reason}){tables_in(backend, engine)}"
        )
    schema, own = rows.schema(), stored is None
    stored = {column: column for column in schema} if stored is None else stored
    declared = _declared(types, stored)
    cells = {
        column: cell_of(
            engine,
            _quoted(backend, inside or "nothing"),
            schema[inside] if inside else dt.null,
            name=column,
            declared=declared.get(column),
        )
        for column, inside in stored.items()
    }
    return Connection(
        engine=engine,
        rows=rows,
        place=f"{home or home_of(backend, engine)} {name}",
        remarks=remarks_on(backend, engine, place, short) if own else (),
        cells=MappingProxyType(cells),
        stored=MappingProxyType({column: inside or "" for column, inside in stored.items()}),
        lock=_SPARK if engine == "pyspark" else RLock(),
    )


def _quoted(backend: Any, name: str) -> str:
    import sqlglot  # noqa: PLC0415

    return str(sqlglot.to_identifier(name, quoted=True).sql(backend.dialect))


def tamed(connection: Connection, names: Mapping[str, str]) -> Any:
    """Columns of a table in their known forms: where every query starts."""
    import ibis  # noqa: PLC0415

    backend = connection.rows.get_backend()
    cells = {short: connection.cells[name] for name, short in names.items()}
    shown = ", ".join(f"{cell.sql} AS {short}" for short, cell in cells.items()) or "1 AS nothing"
    schema = {short: cell.dtype for short, cell in cells.items()} or {"nothing": "int64"}
    needed = dict.fromkeys(connection.stored[name] for name in names)
    rows = connection.rows.select(*needed) if needed else connection.rows.select(n=ibis.literal(1))
    query = f"SELECT {shown} FROM ({backend.compile(rows)}) AS stored"  # noqa: S608
    return backend.sql(query, schema=schema)
