"""Opening tables and fetching aggregates; no row is fetched, and no message of an engine shown."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hushed.errors import EngineUnavailable, NotFound, ParameterError, QueryFailed
from hushed.tables.expressions import Kind

__all__ = [
    "Connection",
    "EngineName",
    "connect",
    "failures",
    "fetch",
    "over_frame",
    "require_alive",
]

EngineName = Literal["duckdb", "postgres", "pyspark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A table in a database, not read yet.

    Parameters
    ----------
    engine : {"duckdb", "postgres", "pyspark"}
        Who answers.
    rows : ibis.Table
        The table as an expression.
    columns : mapping of str to str
        Kind of each column; public.
    """

    engine: EngineName
    rows: Any = field(repr=False, compare=False)
    columns: Mapping[str, Kind]


def failures() -> tuple[type[Exception], ...]:
    """Exceptions by which an engine, or the way to it, reports that it could not answer."""
    import sys  # noqa: PLC0415

    import duckdb  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    from ibis.common.exceptions import IbisError  # noqa: PLC0415

    found: list[type[Exception]] = [
        IbisError,
        duckdb.Error,
        pa.ArrowException,
        OSError,
        MemoryError,
    ]
    if "psycopg" in sys.modules:
        found.append(sys.modules["psycopg"].Error)
    if "pyspark.errors" in sys.modules:
        found.append(sys.modules["pyspark.errors"].PySparkException)
    if "py4j.protocol" in sys.modules:
        found += [sys.modules["py4j.protocol"].Py4JError]
    return tuple(found)


def connect(url: str, name: str) -> Connection:
    """Open a table behind an address.

    Parameters
    ----------
    url : str
        ``duckdb:///file.db``, ``postgresql://...`` or ``spark://...`` (also ``spark://local``),
        or the path of a CSV, Parquet or Arrow file, which DuckDB reads.
    name : str
        Name of the table, as ``table`` or ``schema.table``.

    Returns
    -------
    Connection
        Nothing but names and types of the columns was asked for. (The types of a CSV file are
        guessed by DuckDB from its rows.)

    Raises
    ------
    NotFound
        If there is no such file or table.
    EngineUnavailable
        If the database does not answer, or its driver is not installed.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return _file(Path(url), name)
    if scheme == "duckdb":
        return _duckdb_file(rest, name)
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, name)
    if scheme == "spark":
        return _spark(rest, name)
    raise ParameterError(
        f"cannot read {scheme}:// addresses; use duckdb:///FILE, postgresql://..., spark://... or "
        "the path of a CSV, Parquet or Arrow file"
    )


def over_frame(frame: Any, name: str) -> Connection:
    """Open a frame in memory with DuckDB.

    Parameters
    ----------
    frame : pyarrow.Table, pandas.DataFrame or polars.DataFrame
        The private rows. Not changed.
    name : str
        What to call it.

    Returns
    -------
    Connection
        On a copy or an unchangeable view.

    Raises
    ------
    ParameterError
        If it is no frame.
    """
    import pyarrow as pa  # noqa: PLC0415

    module = type(frame).__module__.partition(".")[0]
    if isinstance(frame, pa.Table):
        arrow = frame
    elif module == "pandas" and hasattr(frame, "columns"):
        arrow = _from_pandas(frame)
    elif module == "polars" and hasattr(frame, "to_arrow") and hasattr(frame, "columns"):
        arrow = frame.to_arrow()
    else:
        raise ParameterError(
            "a table is an address, the path of a file, or a pandas, Polars or Arrow frame, got "
            f"{type(frame).__name__}"
        )
    backend = _duckdb()
    backend.con.register(name, arrow)
    return _opened("duckdb", backend, name)


def _from_pandas(frame: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    names = [str(column) for column in frame.columns]
    if len(set(names)) < len(names):
        raise ParameterError("two columns of the frame have the same name; rename one")
    mixed: str | None = None
    columns = []
    for position, column in enumerate(names):
        try:
            columns.append(pa.array(frame.iloc[:, position], from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            mixed = column
    if mixed is not None:  # raised out here, so that no cell is shown with it
        raise ParameterError(f"column {mixed!r} of the frame mixes types; give it one type")
    return pa.table(dict(zip(names, columns, strict=True)))


def _duckdb(path: str = ":memory:", *, read_only: bool = False) -> Any:
    import ibis  # noqa: PLC0415

    backend = ibis.duckdb.connect(path, read_only=read_only)
    backend.con.execute("SET enable_progress_bar = false")
    return backend


def _duckdb_file(rest: str, name: str) -> Connection:
    path = rest[1:] if rest.startswith("/") else rest
    if not Path(path).is_file():
        raise NotFound(
            f"there is no file {path}; duckdb:///a.db is a path from here, "
            "duckdb:////data/a.db one from the root"
        )
    backend = reason = None
    try:
        backend = _duckdb(path, read_only=True)
    except failures() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(
            f"DuckDB cannot open {path} ({reason}); is it a DuckDB file, and free?"
        )
    return _opened("duckdb", backend, name)


def _file(path: Path, name: str) -> Connection:
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    kind = path.suffix.lower()
    reason = None
    try:
        if kind in (".arrow", ".feather", ".ipc"):
            from pyarrow import feather  # noqa: PLC0415

            return over_frame(feather.read_table(path, memory_map=True), name)
        backend = _duckdb()
        readers = {
            ".csv": backend.read_csv,
            ".tsv": backend.read_csv,
            ".parquet": backend.read_parquet,
        }
        if kind in readers:
            readers[kind](str(path), table_name=name)
            return _opened("duckdb", backend, name)
    except failures() as error:
        reason = type(error).__name__
    if reason is not None:
        raise NotFound(f"{path.name} cannot be read as a {kind[1:]} file ({reason})")
    raise ParameterError(f"{path.name}: a table is a .csv, .tsv, .parquet, .arrow or .feather file")


def _postgres(url: str, name: str) -> Connection:
    reason = backend = None
    try:
        import ibis  # noqa: PLC0415
        import psycopg  # noqa: F401, PLC0415

        backend = ibis.connect(url)
        weakref.finalize(backend, backend.con.close)
    except ImportError:
        reason = "install hushed[postgres]"
    except failures() as error:  # its text may hold the address with the password
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(f"cannot reach the PostgreSQL database: {reason}")
    return _opened("postgres", backend, name)


def _spark(master: str, name: str) -> Connection:
    reason = backend = None
    try:
        import ibis  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415

        known = SparkSession.getActiveSession()
        builder = SparkSession.builder.master(
            master if master.startswith("local") else f"spark://{master}"
        ).config("spark.ui.enabled", "false")
        backend = ibis.pyspark.connect(known or builder.getOrCreate())
    except ImportError:
        reason = "install hushed[spark], which needs Java"
    except failures() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(f"cannot reach Spark: {reason}")
    return _opened("pyspark", backend, name)


def _opened(engine: EngineName, backend: Any, name: str) -> Connection:
    reason = rows = None
    place, _, short = name.rpartition(".")
    try:
        rows = backend.table(short, database=place or None)
    except failures() as error:
        reason = type(error).__name__
    if rows is None:
        raise NotFound(f"there is no table {name!r} ({reason})")
    kinds = {column: _kind(dtype) for column, dtype in rows.schema().items()}
    return Connection(engine=engine, rows=rows, columns=MappingProxyType(kinds))


def _kind(dtype: Any) -> Kind:
    if dtype.is_boolean():
        return "truth"
    if dtype.is_integer():
        return "whole"
    if dtype.is_floating() or dtype.is_decimal():
        return "real"
    if dtype.is_date():
        return "day"
    if dtype.is_timestamp():
        return "moment"
    return "text" if dtype.is_string() or dtype.is_uuid() else "other"


def fetch(connection: Connection, aggregated: Any) -> dict[str, list[Any]]:
    """Run a query of aggregates and take the answer.

    Parameters
    ----------
    connection : Connection
        Who answers.
    aggregated : ibis.Table
        A query whose rows are aggregates.

    Returns
    -------
    dict of str to list
        Plain Python values by column; decimals that are whole as int.

    Raises
    ------
    QueryFailed
        If the engine fails. Its own message, which may quote a private value, is dropped.
    """
    reason = answer = None
    try:
        with _unfused():
            answer = connection.rows.get_backend().to_pyarrow(aggregated)
    except failures() as error:
        reason = type(error).__name__
    if answer is None:
        raise QueryFailed(f"{connection.engine} did not finish the query ({reason})")
    return {name: [_plain(v) for v in answer[name].to_pylist()] for name in answer.column_names}


@contextmanager
def _unfused() -> Iterator[None]:
    """Leave subqueries as they are: trying to merge them takes Ibis seconds in a long query."""
    import ibis  # noqa: PLC0415

    before = ibis.options.sql.fuse_selects
    ibis.options.sql.fuse_selects = False
    try:
        yield
    finally:
        ibis.options.sql.fuse_selects = before


def require_alive(connection: Connection) -> None:
    """Refuse if the engine does not answer a question about no table at all.

    Raises
    ------
    EngineUnavailable
        Before anything is charged or read.
    """
    import ibis  # noqa: PLC0415

    reason = None
    try:
        connection.rows.get_backend().to_pyarrow(ibis.literal(1).name("one").as_table())
    except failures() as error:
        reason = type(error).__name__
    if reason is not None:
        raise EngineUnavailable(
            f"{connection.engine} does not answer ({reason}); nothing was charged or read"
        )


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value
