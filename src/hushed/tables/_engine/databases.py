"""Connect to databases: reasons of failures, lists of tables, and warnings about views.

An address may contain a password, and a driver may quote it: so reasons are given in our own words.
"""

from __future__ import annotations

import os
import sys
import weakref
from contextlib import suppress
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from hushed._printing import shown
from hushed.errors import EngineUnavailable, MissingExtra, ParameterError

_NAMED = 10  # tables named in a message
_MARKS = "(in a password, an @, : or / is written %40, %3A or %2F)"
_REASONS = (  # words of libpq and of the server, and the reason that we give
    ("connection refused", "no server listens at this host and port"),
    ("resolve host", f"there is no host of this name {_MARKS}"),
    (
        "translate host",
        f"there is no host of this name {_MARKS}",
    ),
    ("authentication failed", "the server refuses this user or this password"),
    ("no password supplied", "the server requires a password"),
    ("pg_hba.conf", "the server does not accept this user from this host (pg_hba.conf)"),
    ("role ", "the server refuses this user or this password"),
    ("does not exist", "there is no database of this name on the server"),
    ("timeout", "the server did not answer in time"),
    ("timed out", "the server did not answer in time"),
    ("unreachable", "this host cannot be reached"),
    ("no such file", "there is no socket of a server"),
    ("too many clients", "the server has no free connection"),
    ("connection slots", "the server has no free connection"),
    ("permission denied", "its user has no right to connect to this database"),
    ("certificate", "the server and this machine do not agree on encryption"),
    ("ssl", "the server and this machine do not agree on encryption"),
)
_READ_AS = MappingProxyType(
    {  # how words are read, here and there; a role or a database may have settings of its own
        "client_encoding": "'UTF8'",  # another one may have fewer letters
        "quote_all_identifiers": "off",  # else names of types are quoted, and not known to Ibis
        "standard_conforming_strings": "on",  # else a backslash of a constant ends it
    }
)
_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, 2"
)
_LISTED = (
    "SELECT 1 FROM information_schema.tables WHERE lower(table_name) = lower($1) AND lower($2) IN "
    "('', lower(table_schema), lower(table_catalog), lower(table_catalog || '.' || table_schema))"
)
_RELATION = "SELECT relkind::text, relrowsecurity FROM pg_class WHERE oid = to_regclass(%s)"
_VIEW = (  # $1 in any case; $2 is what stands before it: a schema, a database, or both
    "SELECT 1 FROM duckdb_views() WHERE lower(view_name) = lower($1) AND NOT internal "
    "AND lower(coalesce(nullif($2, ''), current_schema())) IN "
    "(lower(schema_name), lower(database_name), lower(database_name || '.' || schema_name))"
)
_OWN_FUNCTIONS = {  # of a database, found in place of those of the engine
    "duckdb": "SELECT min(function_name) FROM duckdb_functions() WHERE NOT internal "
    "AND schema_name = current_schema() AND lower(function_name) IN "
    "(SELECT lower(function_name) FROM duckdb_functions() WHERE internal)",
    "postgres": "SELECT each FROM unnest(current_schemas(true)) WITH ORDINALITY AS path(each, at) "
    "WHERE each::text !~ '^pg_temp_' ORDER BY at LIMIT 1",
}
_RELATIONS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_CONDITION = (
    "the guarantee holds only if each of its rows comes from rows of its own user alone (without "
    "users: from one row): no window, LIMIT, DISTINCT, aggregate or join with rows of others"
)


def check_installed() -> None:
    """Refuse where the engines of the extra `tables` are not installed."""
    if any(find_spec(name) is None for name in ("duckdb", "ibis", "pyarrow")):
        raise MissingExtra("a query on a table", "tables")


def engine_errors() -> tuple[type[Exception], ...]:
    """Exceptions of the engines, and of the connections to them."""
    import duckdb  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    from ibis.common.exceptions import IbisError, TableNotFound  # noqa: PLC0415

    found: list[type[Exception]] = [
        IbisError,
        TableNotFound,  # no IbisError
        duckdb.Error,
        pa.ArrowException,
        OSError,
        MemoryError,
        UnicodeError,
    ]
    if "psycopg" in sys.modules:
        found.append(sys.modules["psycopg"].Error)
    if "pyspark.errors" in sys.modules:
        found.append(sys.modules["pyspark.errors"].PySparkException)
    if "py4j.protocol" in sys.modules:
        found += [sys.modules["py4j.protocol"].Py4JError]
    return tuple(found)


def connect_postgres(url: str) -> Any:
    """Connect to PostgreSQL."""
    reason = backend = None
    try:
        import ibis  # noqa: PLC0415
        import psycopg  # noqa: F401, PLC0415

        backend = ibis.connect(url)
        weakref.finalize(backend, _close_once, backend.con, os.getpid())
        with backend.con.transaction():
            for name, value in _READ_AS.items():
                backend.con.execute(f"SET {name} TO {value}")
    except ImportError:
        raise MissingExtra("a table on PostgreSQL", "postgres") from None
    except Exception as error:  # Ibis reads the address, and may quote it
        reason = _failure_reason(error)
    if backend is None:
        raise EngineUnavailable(f"cannot reach the PostgreSQL database: {reason}")
    if backend.con.info.parameter_status("server_encoding") == "SQL_ASCII":
        raise ParameterError(
            "this database has the encoding SQL_ASCII, so its strings may be invalid. Use a "
            "database in UTF8"
        )
    check_functions(backend, "postgres")
    return backend


def _close_once(connection: Any, process: int) -> None:
    """Close a connection, but not in a forked process, where that would end it for the other."""
    if os.getpid() == process:
        connection.close()


def _failure_reason(error: Exception) -> str:
    if isinstance(error, ValueError) and not isinstance(error, engine_errors()):
        return f"its address cannot be read {_MARKS}"
    text = str(error).lower()
    known = next((reason for words, reason in _REASONS if words in text), None)
    return known or type(error).__name__


def database_address(backend: Any, engine: str) -> str:
    """Give the address of a database, without user and password."""
    if engine != "postgres":
        return engine
    info = backend.con.info
    return f"{info.host}:{info.port}/{info.dbname}"


def list_tables(backend: Any, engine: str) -> str:
    """List the tables of a database, for a message about a wrong name."""
    if engine == "pyspark":
        return ""
    rows, usual = [], ""
    with suppress(*engine_errors()):
        usual = backend.con.execute("SELECT current_schema()").fetchall()[0][0]
        rows = backend.con.execute(_TABLES).fetchall()
    names = [name if place == usual else f"{place}.{name}" for place, name in rows]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = ", ".join(map(shown, names[:_NAMED])) + more if names else "none"
    return f"; its tables: {named}"


def has_table(backend: Any, place: str, name: str) -> bool:
    """Whether a DuckDB file has a table of this name."""
    return bool(backend.con.execute(_LISTED, [name, place]).fetchall())


def check_functions(backend: Any, engine: str) -> None:
    """Refuse a database whose own functions would be called in place of the engine's."""
    found = backend.con.execute(_OWN_FUNCTIONS[engine]).fetchone()[0]
    if engine == "duckdb" and found is not None:
        raise ParameterError(
            f"this database has a macro {shown(found)}, which would be called in place of the "
            "function of DuckDB that queries need: give it another name"
        )
    if engine == "postgres" and found != "pg_catalog":
        raise ParameterError(
            f"the search_path of this login has {shown(found)} before pg_catalog, so functions "
            "there would be called in place of those of PostgreSQL: leave pg_catalog out"
        )


def view_warnings(backend: Any, engine: str, place: str, name: str) -> tuple[str, ...]:
    """Warn of a view, and say what its rows must be like."""
    with suppress(*engine_errors()):
        return _view_warnings(backend, engine, place, name)
    return ()


def _view_warnings(backend: Any, engine: str, place: str, name: str) -> tuple[str, ...]:
    if engine == "duckdb":
        found = backend.con.execute(_VIEW, [name, place]).fetchall()
        return (f"{shown(name)} is a view: {_CONDITION}.",) if found else ()
    if engine != "postgres":
        return ()
    from sqlglot import expressions  # noqa: PLC0415

    whole = expressions.table_(name, db=place or None, quoted=True).sql("postgres")
    kind, guarded = backend.con.execute(_RELATION, [whole]).fetchone() or ("", False)
    found = [f"{shown(name)} is {_RELATIONS[kind]}: {_CONDITION}."] if kind in _RELATIONS else []
    if guarded:
        found.append(
            f"{shown(name)} has row-level security: whether a row is visible must not depend on "
            "rows of other users."
        )
    return tuple(found)
