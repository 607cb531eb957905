"""DuckDB: database files, and the engine that frames and other files are queried with."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hushed._ground.printing import name_missing, plain_path, shown
from hushed._ground.types import ColumnType
from hushed.errors import EngineUnavailable, NotFound, ParameterError
from hushed.tables._engine.clock import Clock, stop_after
from hushed.tables._engine.databases import (
    SOME_DAY,
    SOME_TIME,
    computed_warning,
    is_operational,
    missing_table,
    tell_tables,
    view_warning,
)
from hushed.tables._engine.dialect import (
    Dialect,
    KeyedHash,
    PlannedQuery,
    builtin_function,
    common_errors,
)
from hushed.tables._engine.frames import repair_bytes
from hushed.tables._engine.spellings import read_spelling

_LISTED = (
    "SELECT 1 FROM information_schema.tables WHERE table_catalog <> 'temp' "  # which we fill
    "AND lower(table_name) = lower($1) AND lower($2) IN "
    "('', lower(table_schema), lower(table_catalog), lower(table_catalog || '.' || table_schema))"
)
_OWN_TABLES = (  # no copies of rows of ours, nor what Ibis keeps: both are temporary
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog <> 'temp' "
    "AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, 2"
)
_VIEW = (  # $1 in any case; $2 is what stands before it: a schema, a database, or both
    "SELECT 1 FROM duckdb_views() WHERE lower(view_name) = lower($1) AND NOT internal "
    "AND lower(coalesce(nullif($2, ''), current_schema())) IN "
    "(lower(schema_name), lower(database_name), lower(database_name || '.' || schema_name))"
)
_COMPUTED = (  # its columns that are computed when they are read; a change of a row checks none
    "SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower($1) AND NOT internal "
    "AND contains(sql, 'GENERATED ALWAYS AS') "
    "AND lower(coalesce(nullif($2, ''), current_schema())) IN "
    "(lower(schema_name), lower(database_name), lower(database_name || '.' || schema_name))"
)
_OWN_FUNCTION = (  # of the database, found in place of one of DuckDB's
    "SELECT min(function_name) FROM duckdb_functions() WHERE NOT internal "
    "AND schema_name = current_schema() AND lower(function_name) IN "
    "(SELECT lower(function_name) FROM duckdb_functions() WHERE internal)"
)
# What a Parquet file holds, or a database that Arrow wrote, may be no UTF-8. DuckDB ends a string
# at a byte FF where it sorts: it would take two users for one, and read the columns behind wrongly.
# And it makes no table of such strings, nor hands them out: one cell would decide whether a query
# fails. So a string that is no UTF-8 is written in hexadecimal digits behind a mark, and one that
# begins with the mark, too.
_MARK = "\uef7f"
_UTF8 = "[\\x00-\ud7ff\ue000-\U0010ffff]*"  # all characters, none of which is half of a pair
_STRING = "CAST({0} AS VARCHAR)"
_TEXT = (
    f"CASE WHEN NOT regexp_full_match({_STRING}, '{_UTF8}') OR starts_with({_STRING}, '{_MARK}') "
    f"THEN '{_MARK}' || hex(encode({_STRING})) ELSE {_STRING} END COLLATE C"
)
_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "int": "{0}",
        "unsigned": "CAST({0} AS DECIMAL(20, 0))",
        "float": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END",
        "decimal": "CAST({0} AS DOUBLE)",
        "string": _TEXT,
        "bool": "{0}",
        "date": SOME_DAY,
        "timestamp": SOME_TIME.format("TRY_CAST({0} AS TIMESTAMP)"),
        # A cast would read the time zone of the session.
        "zoned": SOME_TIME.format("make_timestamp(epoch_us({0}))"),
    }
)
_READINGS: Mapping[ColumnType, str] = MappingProxyType(
    {  # of what is no string; what cannot be read is missing, and nothing is rounded silently
        "int": "CASE WHEN TRY_CAST({0} AS DOUBLE) = floor(TRY_CAST({0} AS DOUBLE)) "
        "THEN TRY_CAST({0} AS BIGINT) END",
        "float": "TRY_CAST({0} AS DOUBLE)",
        "string": "CAST({0} AS VARCHAR)",
        "bool": "TRY_CAST({0} AS BOOLEAN)",
        "date": "TRY_CAST({0} AS DATE)",
        "timestamp": "TRY_CAST({0} AS TIMESTAMP)",
    }
)
_SHORT = 18  # digits of a decimal that 64 bits hold
_ORDERED = "preserve_insertion_order"
_STOPPED = re.compile(r"\AQuery interrupted\Z|\bKeyboardInterrupt:?\s*\Z")
_CONFINED = {  # the last one locks the others
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}
_LOST = frozenset(  # names of exceptions of an engine that is not available
    {
        *("ConnectionException", "FatalException", "InternalException", "IOException"),
        *("InterruptException", "OutOfMemoryException"),
    }
)


def open_backend(path: str = ":memory:", *, read_only: bool = False) -> Any:
    """Open a database file, or a database in memory."""
    import ibis  # noqa: PLC0415

    backend = ibis.duckdb.connect(path, read_only=read_only)
    ((on,),) = backend.con.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if on:  # in a notebook without ipywidgets it is off, and even turning it off is refused
        backend.con.execute("SET enable_progress_bar = false")
    backend.con.execute("SET TimeZone = 'UTC'")  # in which times with a zone are read, in views too
    if path == ":memory:":  # nobody else has it
        backend.con.execute(f"SET {_ORDERED} = false")
    _spill_privately(backend)
    return backend


def _spill_privately(backend: Any) -> None:
    """Give rows that do not fit into the memory a folder that only this user can read."""
    folder = tempfile.mkdtemp(prefix="hushed-")
    backend.con.execute("SET temp_directory = $1", [folder])
    weakref.finalize(backend, _remove_once, folder, os.getpid())


def _remove_once(folder: str, process: int) -> None:
    """Remove a folder, but not in a forked process: the other one may still use it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _confine(backend: Any, memory: int, *, ordered: bool = False) -> None:
    """Close the way to files, addresses and extensions; no query opens it again.

    What is open stays so, and rows that do not fit into the memory still go to the folder of their
    own. Rows come in any order from then on, or always in that in which they are stored.
    """
    backend.con.execute(f"SET memory_limit = '{int(memory)}B'")
    settings = {_ORDERED: str(ordered).lower(), **_CONFINED}
    for name, value in settings.items():
        backend.con.execute(f"SET {name} = {value}")
    for name, value in settings.items():
        ((found,),) = backend.con.execute(f"SELECT current_setting('{name}')").fetchall()
        if str(found).lower() != value:
            raise EngineUnavailable(f"DuckDB cannot be confined: {name} is not {value}")


def _connect(url: str) -> tuple[Any, str]:
    """Open a database file, read only."""
    path = _path(url)
    if not isfile(path):
        raise NotFound(
            "duckdb:///a.db is a relative path, duckdb:////data/a.db an absolute one; "
            f"there is no file {name_missing(path)}"
        )
    backend = reason = None
    try:
        backend = open_backend(path, read_only=True)
    except _errors() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(
            f"DuckDB cannot open {plain_path(path)} ({reason}); is it a DuckDB file, and free?"
        )
    _check_functions(backend)
    return backend, str(_find_file(url))


def _check_functions(backend: Any) -> None:
    """Refuse a database whose macros would be called in place of functions of DuckDB."""
    found = backend.con.execute(_OWN_FUNCTION).fetchone()[0]
    if found is not None:
        raise ParameterError(
            f"this database has a macro {shown(found)}, which would be called in place of the "
            "function of DuckDB that queries need: give it another name"
        )


def _path(url: str) -> str:
    """Path in an address, as it was given."""
    rest = url.partition("://")[2]
    return rest[1:] if rest.startswith("/") else rest


def _find_file(url: str) -> Path:
    return Path(_path(url)).resolve()


def _errors() -> tuple[type[Exception], ...]:
    import duckdb  # noqa: PLC0415

    return (*common_errors(), duckdb.Error)


def _check_table(backend: Any, name: str) -> None:
    """Refuse a name that Ibis would take for a file."""
    place, _, short = name.rpartition(".")
    if not backend.con.execute(_LISTED, [short, place]).fetchall():
        raise missing_table(name, _list_tables(backend))


def _list_tables(backend: Any) -> str:
    rows, usual = [], ""
    with suppress(*_errors()):
        usual = backend.con.execute("SELECT current_schema()").fetchall()[0][0]
        rows = backend.con.execute(_OWN_TABLES).fetchall()
    return tell_tables(rows, usual)


def _warnings(backend: Any, place: str, name: str) -> tuple[str, ...]:
    told = []
    for query, words in ((_VIEW, view_warning), (_COMPUTED, computed_warning)):
        with suppress(*_errors()):
            if backend.con.execute(query, [name, place]).fetchall():
                told.append(words(name))
    return tuple(told)


def _read_stored(quoted: str, dtype: Any) -> str:
    """Leave out a decimal below all of its digits, as Arrow may hold one: no cast takes the least.

    Such a cell, of no column that DuckDB wrote, would keep a query from ending. Without a fraction
    it is an integer of 128 bits, which is cast whatever it is, and may have 39 digits.
    """
    if not dtype.is_decimal() or (dtype.precision or 0) <= _SHORT or not dtype.scale:
        return quoted
    whole, part = dtype.precision - dtype.scale, dtype.scale
    least = f"CAST('-{'9' * whole}.{'9' * part}' AS DECIMAL({dtype.precision}, {part}))"
    return f"(CASE WHEN {quoted} >= {least} THEN {quoted} END)"


def _sha256(text: Any) -> Any:
    return builtin_function("sha256", ("string",), "string")(text)


def _send_text(text: Any) -> Any:
    """Bytes of a string: they may be no UTF-8, which cannot be fetched."""
    held = builtin_function("encode", ("string",), "binary")(text)
    return builtin_function("hex", ("binary",), "string")(held)


def _read_text(digits: str) -> str:
    """Text of bytes, other ones for others: two keys that look alike would be one twice."""
    held = bytes.fromhex(digits)
    if held.startswith(_MARK.encode()):
        held = bytes.fromhex(held.decode().removeprefix(_MARK))
    return repair_bytes(held).decode()


@contextmanager
def _session(backend: Any, clock: Clock) -> Iterator[None]:
    """Interrupt the query when the time is over."""
    with stop_after(clock, 0.0, backend.con.interrupt):
        yield


@contextmanager
def _any_order(engine: Any) -> Iterator[None]:
    """Let rows come in any order, which no query of ours depends on.

    To keep them in order, one processor alone does all that is below a LIMIT. The setting is that
    of the file, so that other connections of this process have it, too, and get it back.
    """
    ((ordered,),) = engine.execute(f"SELECT current_setting('{_ORDERED}')").fetchall()
    if not ordered:
        yield
        return
    with suppress(*_errors()):  # it may be locked, or lost; the query is right in any order
        engine.execute(f"SET {_ORDERED} = false")
    try:
        yield
    finally:
        with suppress(*_errors()):
            engine.execute(f"SET {_ORDERED} = true")


def _plan(backend: Any, sql: str) -> None:
    run_sql(backend.con, f"EXPLAIN (FORMAT JSON) {sql}")  # to draw the plan takes longer than it


def _fetch(backend: Any, query: PlannedQuery) -> list[tuple[Any, ...]]:
    with _tell_stops(), _any_order(backend.con):
        return run_sql(backend.con, query.sql)


def run_sql(engine: Any, sql: str) -> list[tuple[Any, ...]]:
    """Query DuckDB, and hear of an interrupt by the user."""
    with _tell_stops():
        found: list[tuple[Any, ...]] = engine.execute(sql).fetchall()
        return found


@contextmanager
def _tell_stops() -> Iterator[None]:
    """Raise an interrupt by the user as one: DuckDB turns it into an error of its own.

    So it does where it reads a file or a frame through Python, too: by the end of a traceback.
    """
    try:
        yield
    except Exception as error:
        if _STOPPED.search(str(error)) is None:  # a stop by the timer is another error
            raise
    else:
        return
    raise KeyboardInterrupt


def _is_lost(error: Exception) -> bool:
    return type(error).__name__ in _LOST or is_operational(error)


DUCKDB = Dialect(
    name="duckdb",
    schemes=("duckdb",),
    example="duckdb:///FILE",
    connect=_connect,
    find_file=_find_file,
    errors=_errors,
    check_table=_check_table,
    list_tables=_list_tables,
    warnings=_warnings,
    confine=_confine,
    keeps_order=True,
    forms=_FORMS,
    readings=_READINGS,
    read_spelling=read_spelling,
    read_stored=_read_stored,
    barrier=True,
    copies=True,
    hash=KeyedHash(whole="hash", real="hash", text="hash", type="uint64"),
    ranks_small_first=True,
    sha256=_sha256,
    send_text=_send_text,
    read_text=_read_text,
    session=_session,
    plan=_plan,
    fetch=_fetch,
    is_lost=_is_lost,
    is_gone=lambda _: False,  # it runs in this process
    reasons=MappingProxyType(
        {"CatalogException": "the table is gone, or a type has no such function"}
    ),
)

# Of frames and CSV files every text is UTF-8 when it is read.
MEMORY = replace(
    DUCKDB,
    forms=MappingProxyType({**_FORMS, "string": f"{_STRING} COLLATE C"}),
    send_text=lambda text: text,
    read_text=lambda text: text,
)
