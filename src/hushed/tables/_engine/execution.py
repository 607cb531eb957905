"""Plan a query, and then run it: one thread at a time, within a time limit.

A query is planned before it is charged: the engine compiles the SQL that will run, checks names,
types and rights, and reads no row. So a failure there does not depend on the rows.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

from hushed._checks import is_real
from hushed.errors import EngineUnavailable, ParameterError, QueryFailed
from hushed.tables._engine.compilation import compile_sql
from hushed.tables._engine.connections import Connection
from hushed.tables._engine.databases import engine_errors
from hushed.tables._engine.sessions import query_settings

_LONGEST = 1e6  # seconds
_GRACE = 2.0  # seconds after which a server is overdue that was told the limit
_AGAIN = 0.02  # seconds between attempts to stop
_UNPAID = "nothing was charged or read"
_LIMIT_OF_THIS_QUERY = (  # milliseconds; a shorter limit of the server holds
    "SELECT set_config('statement_timeout', CASE WHEN setting::bigint BETWEEN 1 AND {0} "
    "THEN setting ELSE '{0}' END, true) FROM pg_settings WHERE name = 'statement_timeout'"
)
_LOST = frozenset(  # names of exceptions of an engine that is not available
    {
        *("ConnectionException", "FatalException", "InternalException", "IOException"),
        *("InterruptException", "StoppedSession", "OutOfMemoryException"),
    }
)
_REASONS = MappingProxyType(
    {  # what the name of an exception means; public, because no row was read
        "InsufficientPrivilege": "its user may not read the table or a column: GRANT SELECT",
        "UndefinedTable": "the table does not exist any more",
        "CatalogException": "the table is gone, or a type has no such function",
        "UndefinedColumn": "a column does not exist any more",
        "UndefinedFunction": "a column is of a type it cannot use here: query a view that casts it",
        "CannotCoerce": "a column is of a type it cannot convert: query a view that casts it",
        "UnicodeEncodeError": "a key or constant does not fit the encoding of the database",
        "UntranslatableCharacter": "a key or constant does not fit the encoding of the database",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time limit of a whole query.

    Parameters
    ----------
    limit : float, optional
        Seconds; None for no limit.
    ends : float
        End of the time, by `time.monotonic`.
    """

    limit: float | None = None
    ends: float = math.inf

    @classmethod
    def start(cls, limit: float | None) -> Clock:
        """Start the clock."""
        if limit is None:
            return cls()
        if not is_real(limit) or not 0 < limit <= _LONGEST:
            raise ParameterError(
                f"timeout must be a number of seconds above 0 and up to {_LONGEST:g}, "
                f"got {limit!r}",
                parameter="timeout",
            )
        return cls(limit=float(limit), ends=time.monotonic() + float(limit))

    @property
    def left(self) -> float:
        """Seconds that are left; 0 after the end."""
        return max(0.0, self.ends - time.monotonic())

    def require_left(self) -> None:
        """Refuse to go on after the end; before the charge."""
        if self.left == 0:
            raise EngineUnavailable(f"planning the query took all of the {self}; {_UNPAID}")

    def after_wait(self, begun: float) -> Clock:
        """Clock that does not count a wait that began at a time, by `time.monotonic`."""
        return replace(self, ends=self.ends + time.monotonic() - begun)

    def __str__(self) -> str:
        return "no limit" if self.limit is None else f"{self.limit:g} s"


class ConnectionLost(QueryFailed):
    """The connection to the engine is lost; this does not depend on the rows."""


class _TimeOver(Exception):
    """There is no time left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuery:
    """A query that the engine has planned.

    Parameters
    ----------
    query : ibis.Table
        The query, for Spark.
    sql : str
        Its SQL, for the other engines.
    names : tuple of str
        Columns of the answer.
    """

    query: Any
    sql: str
    names: tuple[str, ...]


@contextmanager
def hold(connection: Connection, clock: Clock) -> Iterator[None]:
    """Lock a connection, so that other threads wait."""
    if clock.limit is not None and connection.engine == "pyspark":
        raise ParameterError(
            "a query on Spark cannot be stopped from here; set limits in Spark", parameter="timeout"
        )
    if os.getpid() != connection.process:
        raise EngineUnavailable(
            "the table was opened by the process that this one was forked from; open it again "
            f"here. {_UNPAID.capitalize()}"
        )
    if connection.file is not None and connection.changed:
        raise EngineUnavailable(
            f"{connection.file.name} is not there any more, or not as it was when it was opened; "
            f"open it again. {_UNPAID.capitalize()}"
        )
    if not connection.lock.acquire(timeout=-1 if clock.limit is None else clock.left):
        raise EngineUnavailable(f"other queries on this table took all of the {clock}; {_UNPAID}")
    try:
        yield
    finally:
        connection.lock.release()


def compile_query(query: Any) -> PlannedQuery:
    """Compile a query that has the form of a planned one."""
    return PlannedQuery(query=query, sql=compile_sql(query), names=tuple(query.columns))


def plan(connection: Connection, query: Any, clock: Clock) -> PlannedQuery:
    """Let the engine plan a query, and check names, types and rights; no row is read."""
    planned = compile_query(query)
    name, lost = "", False
    try:
        with _time_limit(connection, clock), _engine_context(connection):
            _explain(connection, planned.sql)
    except _TimeOver:
        name, lost = "TimeOver", True
    except engine_errors() as error:
        name, lost = type(error).__name__, _is_lost(connection, error)
    if not name:
        return planned
    if clock.left == 0:
        raise EngineUnavailable(
            f"{connection.engine} did not plan the query within {clock}; {_UNPAID}"
        )
    if lost:
        raise EngineUnavailable(f"{connection.engine} does not answer ({name}); {_UNPAID}")
    message = f"{connection.engine} does not accept the query ({name}"
    message += f": {_REASONS[name]}); {_UNPAID}" if name in _REASONS else f"); {_UNPAID}"
    raise (EngineUnavailable if name == "InsufficientPrivilege" else ParameterError)(message)


def _is_lost(connection: Connection, error: Exception) -> bool:
    """Whether the engine is not available, rather than unable to answer."""
    if connection.engine == "pyspark":  # a session that has ended says so in many ways
        return type(error).__name__ not in ("AnalysisException", "ParseException")
    if type(error).__name__ in _LOST or isinstance(error, OSError | MemoryError):
        return True
    state = getattr(error, "sqlstate", None)  # of PostgreSQL; 54 is for queries that are too large
    operational = any(
        c.__name__ in ("OperationalError", "InterfaceError") for c in type(error).mro()
    )
    return operational and not str(state or "").startswith("54")


def _is_gone(error: Exception) -> bool:
    """Whether the connection is lost, or the engine was stopped."""
    if not type(error).__module__.startswith("psycopg"):
        return type(error).__name__ in ("StoppedSession", "Py4JNetworkError")
    state = str(getattr(error, "sqlstate", None) or "")
    operational = any(each.__name__ == "OperationalError" for each in type(error).mro())
    return operational and (state[:2] in ("", "08") or state in ("57P01", "57P02", "57P03"))


def _explain(connection: Connection, sql: str) -> None:
    """Let the engine plan a query."""
    backend = connection.rows.get_backend()
    if connection.engine == "pyspark":
        import ibis  # noqa: PLC0415

        backend._session.sql(sql)  # is analysed at once
        backend.to_pyarrow(ibis.literal(1).name("one").as_table())  # the workers are there
        return
    _cursor_rows(connection, f"EXPLAIN {sql}")


def fetch(connection: Connection, query: PlannedQuery, clock: Clock) -> dict[str, list[Any]]:
    """Run a planned query and fetch the answer."""
    reason = rows = None
    gone = False
    try:
        with _time_limit(connection, clock), _engine_context(connection):
            if connection.engine == "pyspark":
                answer = connection.rows.get_backend().to_pyarrow(query.query)
                rows = list(zip(*(answer[n].to_pylist() for n in query.names), strict=True))
            else:
                rows = _cursor_rows(connection, query.sql)
    except _TimeOver:
        reason = "TimeOver"
    except engine_errors() as error:
        reason, gone = type(error).__name__, _is_gone(error)
    if rows is None:
        if clock.left == 0:
            reason = f"not within {clock}; the time may depend on the rows"
        problem = ConnectionLost if gone and clock.left > 0 else QueryFailed
        raise problem(f"{connection.engine} did not finish the query ({reason})")
    columns = list(zip(*rows, strict=True)) or [()] * len(query.names)
    return {
        name: [_plain(value) for value in column]
        for name, column in zip(query.names, columns, strict=True)
    }


def _cursor_rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    backend = connection.rows.get_backend()
    if connection.engine == "duckdb":
        return _duckdb_rows(backend.con, sql)
    with backend.con.cursor() as cursor:
        return list(cursor.execute(sql).fetchall())


def _duckdb_rows(engine: Any, sql: str) -> list[tuple[Any, ...]]:
    """Query DuckDB, which turns an interrupt by the user into an error of its own."""
    try:
        found: list[tuple[Any, ...]] = engine.execute(sql).fetchall()
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # a stop by the timer is another error
            raise
    else:
        return found
    raise KeyboardInterrupt


@contextmanager
def _time_limit(connection: Connection, clock: Clock) -> Iterator[None]:
    """Stop the engine when the time is over."""
    if clock.limit is not None and clock.left == 0:
        raise _TimeOver
    driver: Any = getattr(connection.rows.get_backend(), "con", None)
    if connection.engine == "postgres":
        # A server that is there stops by itself; one that is frozen, or behind a wire that is cut,
        # is hung up on.
        with _stopped(clock, _GRACE, partial(_hang_up, driver)), driver.transaction():
            if clock.limit is not None:
                driver.execute(_LIMIT_OF_THIS_QUERY.format(max(1, math.ceil(1000 * clock.left))))
            yield
    elif connection.engine == "duckdb":
        with _stopped(clock, 0.0, driver.interrupt):
            yield
    else:
        yield


@contextmanager
def _stopped(clock: Clock, grace: float, stop: Callable[[], None]) -> Iterator[None]:
    """Stop what is done within, when the time and some grace are over, until it has ended.

    Again and again: DuckDB forgets an interrupt that comes just before its query starts.
    """
    if clock.limit is None:
        yield
        return
    ended = Event()

    def watch() -> None:
        wait = clock.left + grace
        while not ended.wait(wait):
            stop()
            wait = _AGAIN

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:  # it must not stop whoever asks next
        ended.set()
        watching.join()


def _hang_up(driver: Any) -> None:
    """End the conversation with a server that does not answer."""
    with suppress(OSError, *engine_errors()), socket.socket(fileno=os.dup(driver.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def _engine_context(connection: Connection) -> AbstractContextManager[None]:
    """Context in which this engine is queried."""
    if connection.engine != "pyspark":
        return nullcontext()
    return query_settings(connection.rows.get_backend()._session)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value
