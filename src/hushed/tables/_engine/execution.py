"""Plan a query, and then run it: one thread at a time, within a time limit.

A query is planned before it is charged: the engine compiles the SQL that will run, checks names,
types and rights, and reads no row. So a failure there does not depend on the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from hushed._ground.stops import raise_stops
from hushed.errors import EngineUnavailable, ParameterError, QueryFailed
from hushed.tables._engine.clock import LOOK, UNPAID, Clock
from hushed.tables._engine.compilation import compile_sql
from hushed.tables._engine.connections import Connection
from hushed.tables._engine.dialect import PlannedQuery

_NOT_ENCODED = "a key or constant does not fit the encoding of the database"
_OTHER = (
    "the table, or the type of one of its columns, is not what it was when it was opened: open it "
    "again"
)
_GONE = "; the server or the network ended it: open the table again"


class ConnectionLost(QueryFailed):
    """The connection, the transaction, or the file that was opened, is lost; no row decides it."""


class _Redescribed(Exception):
    """A table, or a type of a column, is another one than when it was opened."""


class _TimeOver(Exception):
    """There is no time left, or nobody waits any more."""


@contextmanager
def hold(connection: Connection, clock: Clock, so_far: str = UNPAID) -> Iterator[None]:
    """Lock a connection, so that other threads wait; a refusal tells what was done so far."""
    if (clock.limit, clock.stop) != (None, None) and not connection.engine.stoppable:
        raise ParameterError(
            f"a query on {connection.engine} cannot be stopped from here; set limits there",
            parameter="timeout" if clock.stop is None else "stop",
        )
    if os.getpid() != connection.process:
        raise EngineUnavailable(
            "the table was opened by the process that this one was forked from; open it again "
            f"here. {so_far.capitalize()}"
        )
    if connection.file is not None and connection.changed:
        raise EngineUnavailable(
            f"{connection.file.name} is not there any more, or not as it was when it was opened; "
            f"open it again. {so_far.capitalize()}"
        )
    if not _wait_for(connection.lock, clock):
        clock.require_no_stop(so_far)
        raise EngineUnavailable(f"other queries on this table took all of the {clock}; {so_far}")
    try:
        yield
    finally:
        connection.lock.release()


def _wait_for(lock: Any, clock: Clock) -> bool:
    """Wait for a lock until the time is over or somebody stops the query; whether it is held."""
    if clock.stop is None:
        return bool(lock.acquire(timeout=-1 if clock.limit is None else clock.left))
    while not lock.acquire(timeout=min(clock.left, LOOK)):
        if clock.stopped or clock.left == 0:
            return False
    return True


def compile_query(query: Any) -> PlannedQuery:
    """Compile a query that has the form of a planned one."""
    return PlannedQuery(query=query, sql=compile_sql(query), names=tuple(query.columns))


def plan(connection: Connection, query: Any, clock: Clock) -> PlannedQuery:
    """Let the engine plan a query, and check names, types and rights; no row is read."""
    planned = compile_query(query)
    engine, name, lost, gone = connection.engine, "", False, False
    other = False
    try:
        with _session(connection, clock) as backend:
            engine.plan(backend, planned.sql)
    except _TimeOver:
        name, lost = "TimeOver", True
    except _Redescribed:
        other = True
    except engine.errors() as error:
        name, lost, gone = type(error).__name__, engine.is_lost(error), engine.is_gone(error)
    if other:
        raise EngineUnavailable(f"{_OTHER}. {UNPAID.capitalize()}")
    if not name:
        return planned
    clock.require_no_stop()
    if clock.left == 0:
        raise EngineUnavailable(f"{engine} did not plan the query within {clock}; {UNPAID}")
    if lost:
        again = _GONE if gone else ""
        raise EngineUnavailable(f"{engine} does not answer ({name}); {UNPAID}{again}")
    known = {"UnicodeEncodeError": _NOT_ENCODED, **engine.reasons}.get(name)  # no row was read
    message = f"{engine} does not accept the query ({name}"
    message += f": {known}); {UNPAID}" if known else f"); {UNPAID}"
    raise (EngineUnavailable if name in engine.denials else ParameterError)(message)


def fetch(connection: Connection, query: PlannedQuery, clock: Clock) -> dict[str, list[Any]]:
    """Run a planned query and fetch the answer."""
    rows = _run(connection, query, clock)
    columns = list(zip(*rows, strict=True)) or [()] * len(query.names)
    return {
        name: [_plain(value) for value in column]
        for name, column in zip(query.names, columns, strict=True)
    }


def run_command(connection: Connection, sql: str, clock: Clock) -> None:
    """Run a command, such as one that makes a table of this session; it fails as a query."""
    _run(connection, PlannedQuery(query=None, sql=sql, names=()), clock)


def _run(connection: Connection, query: PlannedQuery, clock: Clock) -> Sequence[tuple[Any, ...]]:
    engine, reason, rows, gone = connection.engine, "", None, False
    try:
        with _session(connection, clock) as backend:
            rows = engine.fetch(backend, query)
    except _TimeOver:
        reason = "TimeOver"
    except _Redescribed:
        reason, gone = "changed", True
    except engine.errors() as error:
        reason, gone = type(error).__name__, engine.is_gone(error)
    if rows is None and clock.stopped:
        raise KeyboardInterrupt
    if connection.changed and connection.file is not None:
        raise ConnectionLost(f"{connection.file.name} changed while it was read; open it again")
    if rows is None:
        require_time(connection, clock)
        if gone:
            raise ConnectionLost(f"{engine} did not finish the query ({reason}){_GONE}")
        raise QueryFailed(f"{engine} did not finish the query ({reason})")
    return rows


def require_time(connection: Connection, clock: Clock) -> None:
    """Refuse to go on when the time is over; after the charge."""
    if clock.left == 0:
        reason = f"not within {clock}; the time may depend on the rows"
        raise QueryFailed(f"{connection.engine} did not finish the query ({reason})")


@contextmanager
def _session(connection: Connection, clock: Clock) -> Iterator[Any]:
    """Query a connection within the time that is left, unless somebody stopped it."""
    if clock.stopped or (clock.limit is not None and clock.left == 0):
        raise _TimeOver
    backend = connection.rows.get_backend()
    with raise_stops(), connection.engine.session(backend, clock):
        if any(
            each.was_described_otherwise() for each in (connection, *connection.others.values())
        ):
            raise _Redescribed
        yield backend


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) else value
