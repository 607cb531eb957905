"""PostgreSQL, through psycopg.

An address may contain a password, and a driver may quote it: so reasons of a failure are given in
our own words.
"""

from __future__ import annotations

import math
import os
import socket
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Any

from hushed._ground.printing import shown
from hushed._ground.search_path import find_schemas, pin_search_path, quote_name
from hushed.errors import EngineUnavailable, MissingExtra, ParameterError
from hushed.tables._engine.clock import Clock, stop_after
from hushed.tables._engine.databases import (
    ALL_TABLES,
    SOME_DAY,
    SOME_TIME,
    computed_warning,
    is_operational,
    tell_tables,
    view_warning,
)
from hushed.tables._engine.dialect import (
    Dialect,
    KeyedHash,
    PlannedQuery,
    common_errors,
)
from hushed.tables._engine.normalisation import column_type
from hushed.tables._engine.postgres_texts import read_texts, send_text, sha256

_GRACE = 2.0  # seconds after which a server is overdue that was told the limit
_PAUSE = 0.5  # seconds between attempts to cancel: one must not come to what follows
_MARKS = "(in a password, an @, : or / is written %40, %3A or %2F)"
_FAILURES = (  # words of libpq and of the server, and the reason that we give
    ("connection refused", "no server listens at this host and port"),
    ("resolve host", f"there is no host of this name {_MARKS}"),
    ("translate host", f"there is no host of this name {_MARKS}"),
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
    ("codec not available", "Python cannot read its encoding: use a database in UTF8"),
)
_REASONS = MappingProxyType(
    {
        "InsufficientPrivilege": "its user may not read the table or a column: GRANT SELECT",
        "UndefinedTable": "the table does not exist any more",
        "UndefinedColumn": "a column does not exist any more",
        "UndefinedFunction": "a column is of a type it cannot use here: query a view that casts "
        "it; or a view calls a function that names another one without its schema: give that "
        "function a search_path of its own",
        "CannotCoerce": "a column is of a type it cannot convert: query a view that casts it",
        "UntranslatableCharacter": "a key or constant does not fit the encoding of the database",
    }
)
LIMIT_OF_THIS_QUERY = (  # milliseconds; a shorter limit of the server holds
    "SELECT set_config('statement_timeout', CASE WHEN setting::bigint BETWEEN 1 AND {0} "
    "THEN setting ELSE '{0}' END, true) FROM pg_settings WHERE name = 'statement_timeout'"
)
_PARTS = (  # a table with its partitions, and tables that inherit from it, whose rows are read, too
    "WITH RECURSIVE named AS (SELECT c.oid, c.relkind::text, c.relrowsecurity FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s), "
    "part AS (SELECT oid FROM named UNION SELECT i.inhrelid FROM pg_inherits i "
    "JOIN part ON i.inhparent = part.oid) "
)
_WARNED_OF = (
    "named.relkind, named.relrowsecurity, EXISTS (SELECT FROM part JOIN pg_class c "
    "ON c.oid = part.oid WHERE c.relkind = 'f'), EXISTS (SELECT FROM (SELECT to_jsonb(a) AS told "
    "FROM part JOIN pg_attribute a ON a.attrelid = part.oid OFFSET 0) own "  # of its columns alone
    "WHERE own.told ->> 'attgenerated' = 'v')"
)
_KINDS = (  # of each column, with what a domain is of in the end: one may be of another one
    "WITH RECURSIVE made AS ("
    "SELECT a.attname, a.atttypid AS kind, a.atttypmod AS size, false AS again "
    "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped "
    "UNION ALL SELECT made.attname, t.typbasetype, t.typtypmod, true FROM made "
    "JOIN pg_type t ON t.oid = made.kind WHERE t.typtype = 'd') "
    "SELECT made.attname, made.again, format_type(made.kind, made.size), CASE "
    "WHEN t.typtype = 'e' AND NOT made.again THEN 'labels' "
    "WHEN t.typtype = 'b' AND t.typcategory <> 'A' THEN 'plain' ELSE '' END FROM made "
    "JOIN pg_type t ON t.oid = made.kind WHERE t.typtype <> 'd'"
)
_OF_ENUMERATION = 0  # length of its strings in the schema of Ibis; no other column has it
_VIEWS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_SOME_ZONED = (
    "CASE WHEN {0} BETWEEN TIMESTAMP WITH TIME ZONE '0001-01-01 00:00:00+00' "
    "AND TIMESTAMP WITH TIME ZONE '9999-12-31 23:59:59.999999+00' THEN {0} AT TIME ZONE 'UTC' END"
)
_SOME_DECIMAL = (
    "CAST(CASE WHEN {0} = CAST('NaN' AS numeric) THEN NULL "
    "WHEN {0} > CAST('1e200' AS numeric) THEN CAST('1e200' AS numeric) "
    "WHEN {0} < CAST('-1e200' AS numeric) THEN CAST('-1e200' AS numeric) "
    "WHEN ABS({0}) < CAST('1e-200' AS numeric) THEN 0 ELSE {0} END AS double precision)"
)
_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "int": "{0}",
        "unsigned": "CAST({0} AS numeric)",
        "float": "NULLIF(CAST({0} AS double precision), CAST('NaN' AS double precision))",
        # A number that is too small for a double is an error, and NaN above all others.
        "decimal": _SOME_DECIMAL.format("CAST({0} AS numeric)"),
        "string": 'CAST({0} AS text) COLLATE "C"',
        "bool": "{0}",
        "date": SOME_DAY,
        "timestamp": SOME_TIME,
        "zoned": _SOME_ZONED,
    }
)
_READ_AS: Mapping[str, str] = MappingProxyType(
    {  # how words are read, here and there; a role or a database may have settings of its own
        "client_encoding": "'UTF8'",  # another one may have fewer letters
        "timezone": "'UTC'",  # a view may cast a time with a zone; PGTZ, too, says where it is read
        "quote_all_identifiers": "off",  # else names of types are quoted, and not known to Ibis
        "standard_conforming_strings": "on",  # else a backslash of a constant ends it
    }
)
_BYTEA = 17  # number of the type of bytes
_CHANGES = (
    "SELECT has_table_privilege(format('%%I.%%I', %s::text, %s::text), "
    "'INSERT, UPDATE, DELETE, TRUNCATE')"
)

_IDENTITY = (
    "SELECT (SELECT system_identifier FROM pg_control_system()), d.oid, c.oid FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "JOIN pg_database d ON d.datname = current_database() "
    "WHERE n.nspname = %s AND c.relname = %s"
)
_DESCRIBED = (  # what it is stands under the empty name; a type's name hangs on the search path
    f"{_PARTS} SELECT '', concat_ws(' ', {_WARNED_OF}) FROM named "  # noqa: S608
    "UNION ALL SELECT a.attname, concat(a.atttypid, ' ', a.atttypmod) FROM pg_attribute a "
    "JOIN named ON named.oid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped"
)


def _connect(url: str) -> tuple[Any, str]:
    """Connect, in UTF-8; the home is host, port and database."""
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
    info = backend.con.info
    if info.parameter_status("server_encoding") == "SQL_ASCII":
        raise ParameterError(
            "this database has the encoding SQL_ASCII, so its strings may be invalid. Use a "
            "database in UTF8"
        )
    return backend, f"{info.host}:{info.port}/{info.dbname}"


def _close_once(connection: Any, process: int) -> None:
    """Close a connection, but not in a forked process, where that would end it for the other."""
    if os.getpid() == process:
        connection.close()


def _failure_reason(error: Exception) -> str:
    if isinstance(error, ValueError) and not isinstance(error, _errors()):
        return f"its address cannot be read {_MARKS}"
    text = str(error).lower()
    known = next((reason for words, reason in _FAILURES if words in text), None)
    return known or type(error).__name__


def _errors() -> tuple[type[Exception], ...]:
    own = [sys.modules["psycopg"].Error] if "psycopg" in sys.modules else []
    return (*common_errors(), *own)


def _list_tables(backend: Any) -> str:
    rows: list[tuple[str, str]] = []
    path: list[str] = []
    with suppress(*_errors()), backend.con.transaction():
        path, _ = find_schemas(backend.con, "")
        rows = backend.con.execute(ALL_TABLES).fetchall()
    return tell_tables(rows, next(iter(path), ""))


def _find_table(backend: Any, place: str, name: str) -> Any:
    """Find a table; a name without a schema is one of the search path.

    Ibis knows an enumeration by its type's name alone, so it asks with the path of this login, but
    with PostgreSQL's own schema first: what it calls there fits exactly, and nothing fits better.
    """
    driver = backend.con
    with driver.transaction():
        path, found = find_schemas(driver, name)
        if not place:
            login = driver.execute("SELECT current_user").fetchone()[0]
            _require_one_owner(name, found, login)
        first = ", ".join(map(quote_name, ["pg_catalog", *path]))
        driver.execute(f"SET LOCAL search_path TO {first}")
        rows = backend.table(name, database=place or (next(iter(found), "public"),))
        return _check_kinds(backend, rows)


def _require_one_owner(name: str, found: Mapping[str, str], login: str) -> None:
    """Refuse to choose between tables of different people: one may have been put before the other.

    A view that stands in for a table calls functions of its maker with the rights of the reader.
    Nobody but the reader has put one of the reader's own before the others.
    """
    owners = [*found.values()]
    if len(set(owners)) > 1 and owners[0] != login:
        known = ", ".join(shown(f"{each}.{name}") for each in found)
        raise ParameterError(
            f"the search path finds tables of different owners under the name {shown(name)}: name "
            f"one with its schema ({known})",
            parameter="table",
        )


def _check_kinds(backend: Any, rows: Any) -> Any:
    """Correct what Ibis takes for a known type by the name of a type alone.

    Whoever owns a type may make a cast of it, a function of theirs that sees each cell, with the
    rights of the reader. So enumerations are told from texts, and composite types, ranges and
    arrays cannot be queried, whatever they are called: plain types are made by superusers alone.
    A domain that is read as a type that it is not is refused, for casts would fail; what is raised
    is told as a column of a type that Ibis does not know.
    """
    import ibis.expr.datatypes as dt  # noqa: PLC0415

    read = backend.compiler.type_mapper.from_string
    where, schema = rows.op(), dict(rows.schema())
    named = [where.namespace.database, where.name]
    for column, again, base, kind in backend.con.execute(_KINDS, named).fetchall():
        seen = column_type(schema[column])
        if again and seen != "other" and seen != column_type(read(base)):
            raise TypeError(column)
        if kind == "labels" and seen == "string":
            schema[column] = schema[column].copy(length=_OF_ENUMERATION)
        elif kind != "plain":
            schema[column] = dt.unknown
    return where.copy(schema=schema).to_expr()


def _read_stored(quoted: str, dtype: Any) -> str:
    """Read the label of an enumeration as the server itself writes it, by no cast of its owner."""
    labels = dtype.is_string() and dtype.length == _OF_ENUMERATION
    return f"enum_out({quoted})" if labels else quoted


def _warnings(backend: Any, place: str, name: str) -> tuple[str, ...]:
    """Warn of a view, and of row-level security."""
    # Who may not look it up is refused by the query itself.
    kind, guarded, far, computed = "r", False, False, False
    schema = place.rpartition(".")[2]  # what may stand before it is this database
    with suppress(*_errors()), backend.con.transaction():
        _, found = find_schemas(backend.con, name)
        where = [schema or next(iter(found), "public"), name]
        asked = f"{_PARTS} SELECT {_WARNED_OF} FROM named"  # noqa: S608
        found = backend.con.execute(asked, where).fetchone()
        kind, guarded, far, computed = found or ("", False, False, False)
    what = _VIEWS.get(kind, "not found where tables are listed, and may be a view")
    told = [] if kind in ("r", "p") else [view_warning(name, what)]
    if far and kind in ("r", "p"):
        told.append(view_warning(name, "in part a foreign table"))
    if computed:
        told.append(computed_warning(name))
    if guarded:
        told.append(
            f"{shown(name)} has row-level security: whether a row is visible must not depend on "
            "rows of other users."
        )
    return tuple(told)


def _read_whole(quoted: str, dtype: Any) -> str:
    """Read an integer; an oid says that it is one of 64 bits, but has no sum."""
    return f"CAST({quoted} AS bigint)" if dtype.nbytes == 8 else quoted


@contextmanager
def _session(backend: Any, clock: Clock) -> Iterator[None]:
    """Open a transaction with a time limit.

    A server that is there stops by itself; one that is frozen, or behind a wire that is cut, is
    hung up on.
    """
    driver = backend.con
    hang_up, cancel = partial(_hang_up, driver), partial(_cancel, driver)
    watched = stop_after(clock, _GRACE, hang_up, cancel=cancel, pause=_PAUSE)
    with watched, driver.transaction():
        pin_search_path(driver)
        if clock.limit is not None:
            driver.execute(LIMIT_OF_THIS_QUERY.format(max(1, math.ceil(1000 * clock.left))))
        yield


def _cancel(driver: Any) -> None:
    """Ask the server to cancel what it does; hang up on one that does not answer."""
    try:
        driver.cancel_safe(timeout=_GRACE)
    except _errors():
        _hang_up(driver)


def _hang_up(driver: Any) -> None:
    """End the conversation with a server that does not answer."""
    with suppress(*_errors()), socket.socket(fileno=os.dup(driver.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def _plan(backend: Any, sql: str) -> None:
    _run_sql(backend, f"EXPLAIN {sql}")


def _fetch(backend: Any, query: PlannedQuery) -> list[tuple[Any, ...]]:
    with backend.con.cursor() as cursor:
        rows = cursor.execute(query.sql).fetchall()
        places = {i for i, each in enumerate(cursor.description) if each.type_code == _BYTEA}
    if not places:
        return list(rows)
    held = {row[i] for row in rows for i in places} - {None}
    texts: dict[Any, Any] = {None: None, **read_texts(backend.con, sorted(held))}
    return [tuple(texts[v] if i in places else v for i, v in enumerate(row)) for row in rows]


def _run_sql(backend: Any, sql: str) -> list[tuple[Any, ...]]:
    with backend.con.cursor() as cursor:
        return list(cursor.execute(sql).fetchall())


def _is_lost(error: Exception) -> bool:
    """Whether the server does not answer; class 54 is for queries that are too large."""
    if isinstance(error, OSError | MemoryError):
        return True
    return is_operational(error) and not _state(error).startswith("54")


def _is_gone(error: Exception) -> bool:
    """Whether the connection is lost, or the server ended the query for a reason of its own."""
    operational = any(each.__name__ == "OperationalError" for each in type(error).mro())
    if not type(error).__module__.startswith("psycopg") or not operational:
        return False
    state = _state(error)
    # 57P and 25P03: stopped by a person, or for waiting too long; not for a query that takes long.
    # 40: in conflict with another transaction, as on a replica that has to apply changes.
    return state[:2] in ("", "08", "40") or state[:3] == "57P" or state == "25P03"


def _state(error: Exception) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def _may_change(rows: Any) -> bool:
    """Whether this login may write into a table, of which it needs to read alone."""
    where, backend = rows.op(), rows.get_backend()
    with backend.con.transaction():
        found = backend.con.execute(_CHANGES, [where.namespace.database, where.name]).fetchone()
    return bool(found[0])


def _identity(rows: Any) -> str:
    """Name a table by its server, database and number: the same by every address and login.

    A replica has the numbers of its primary. Empty where the login may not ask for them.
    """
    import psycopg  # noqa: PLC0415

    where, backend = rows.op(), rows.get_backend()
    with suppress(psycopg.Error), backend.con.transaction():
        found = backend.con.execute(_IDENTITY, [where.namespace.database, where.name]).fetchone()
        return "" if found is None else ":".join(map(str, found))
    return ""


def _describe(rows: Any) -> dict[str, str]:
    """Tell what a table is, and the type of each column; empty if it is not there."""
    where, backend = rows.op(), rows.get_backend()
    named = [where.namespace.database, where.name]
    with backend.con.transaction():
        return dict(backend.con.execute(_DESCRIBED, named).fetchall())


POSTGRES = Dialect(
    name="postgres",
    schemes=("postgresql", "postgres"),
    example="postgresql://...",
    connect=_connect,
    errors=_errors,
    find_table=_find_table,
    list_tables=_list_tables,
    warnings=_warnings,
    may_change=_may_change,
    identity=_identity,
    describe=_describe,
    forms=_FORMS,
    read_stored=_read_stored,
    read_whole=_read_whole,
    barrier=True,
    hash=KeyedHash(
        whole="hashint8extended",
        real="hashfloat8extended",
        text="hashtextextended",
        type="int64",
        value_first=True,
    ),
    sha256=sha256,
    send_text=send_text,
    session=_session,
    plan=_plan,
    fetch=_fetch,
    is_lost=_is_lost,
    is_gone=_is_gone,
    is_closed=lambda backend: bool(backend.con.closed),
    reasons=_REASONS,
    denials=frozenset({"InsufficientPrivilege", "UndefinedTable", "UndefinedColumn"}),
)
