"""Spark, through a session: open one, query in it, and notice that it has ended."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import RLock
from types import MappingProxyType
from typing import Any

from hushed.errors import EngineUnavailable, MissingExtra
from hushed.tables._engine.clock import Clock
from hushed.tables._engine.databases import SOME_DAY, SOME_TIME, require_distinct
from hushed.tables._engine.dialect import (
    Dialect,
    KeyedHash,
    PlannedQuery,
    builtin_function,
    common_errors,
)

_LOCK = RLock()  # its settings belong to the session, which all tables share
_LOCAL = re.compile(r"local(\[(\*|\d+)(, ?\d+)?\])?")
_OWN: Mapping[str, str] = MappingProxyType(
    {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",  # a failure on a value would be logged with the value
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)
_READ_AS: Mapping[str, str] = MappingProxyType(
    {  # how constants and times are read; a session of the user may differ
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.session.timeZone": "UTC",
    }
)
_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "int": "{0}",
        "unsigned": "CAST({0} AS DECIMAL(20, 0))",
        "float": "CASE WHEN NOT isnan(CAST({0} AS DOUBLE)) THEN CAST({0} AS DOUBLE) END",
        "decimal": "CAST({0} AS DOUBLE)",
        # Through bytes, which have no collation; a key may be fetched, so it must be valid.
        "string": "make_valid_utf8(CAST(CAST(CAST({0} AS STRING) AS BINARY) AS STRING))",
        "bool": "{0}",
        "date": SOME_DAY,
        "timestamp": SOME_TIME,
        "zoned": SOME_TIME,
    }
)
_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class StoppedSession(ConnectionError):
    """The session was stopped; pyspark then fails with unrelated errors."""


def master_url(address: str) -> str:
    """Give the master URL of Spark for an address."""
    return address if _LOCAL.fullmatch(address) else f"spark://{address}"


def _connect(url: str) -> tuple[Any, str]:
    """Find the session that is active, or start one."""
    reason = backend = None
    try:
        import ibis  # noqa: PLC0415

        session = _open_session(url.partition("://")[2])
        with query_settings(session):  # Ibis changes the time zone of the session
            backend = ibis.pyspark.connect(session)
    except ImportError:
        raise MissingExtra("a table on Spark", "spark", "it needs Java, too") from None
    except _errors() as error:
        reason = type(error).__name__
    if backend is None:
        raise EngineUnavailable(f"cannot reach Spark: {reason}")
    return backend, "pyspark"


def _open_session(address: str) -> Any:
    """Find the session that is active, or start one."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    known = SparkSession.getActiveSession()
    if known is not None:
        return known
    master = master_url(address)
    builder = SparkSession.builder.master(master)
    settings = _OWN if _LOCAL.fullmatch(master) else {"spark.ui.enabled": "false"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _errors() -> tuple[type[Exception], ...]:
    found = [*common_errors()]
    if "pyspark.errors" in sys.modules:
        found.append(sys.modules["pyspark.errors"].PySparkException)
    if "py4j.protocol" in sys.modules:
        found.append(sys.modules["py4j.protocol"].Py4JError)
    return tuple(found)


def _check_table(backend: Any, name: str) -> None:
    """Refuse columns that Spark takes for one; a table that is missing is refused later."""
    session = backend._session
    with suppress(*_errors()), query_settings(session):
        names: list[str] = session.table(name).columns
        exact = session.conf.get("spark.sql.caseSensitive") == "true"
        require_distinct(names if exact else [each.lower() for each in names])


@contextmanager
def query_settings(session: Any) -> Iterator[None]:
    """Read constants and times alike in every session, and log no failure.

    The settings are restored at the end. The Python side of Spark would log the message of an
    error, which may quote a private value; that log is disabled.
    """
    from pyspark.logger import PySparkLogger  # noqa: PLC0415

    logs = [PySparkLogger.getLogger(name) for name in _LOGS]
    silent = [log.disabled for log in logs]
    before: dict[str, str] = {}
    try:
        for log in logs:
            log.disabled = True
        before = {name: session.conf.get(name) for name in _READ_AS}
        for name, value in _READ_AS.items():
            session.conf.set(name, value)
        yield
    except (AttributeError, AssertionError, TypeError) as error:
        if not _has_ended(session):
            raise
        raise StoppedSession from error
    finally:
        _restore(session, before)
        for log, was in zip(logs, silent, strict=True):
            log.disabled = was


def _restore(session: Any, settings: Mapping[str, str]) -> None:
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    lost = (PySparkException, Py4JError, OSError, AttributeError, AssertionError, TypeError)
    for name, value in settings.items():
        with suppress(*lost):  # a session that has ended has no settings
            session.conf.set(name, value)


def _has_ended(session: Any) -> bool:
    """Whether the context of a session has ended."""
    context = getattr(session, "_sc", None)
    return context is not None and getattr(context, "_jsc", None) is None


@contextmanager
def _session(backend: Any, _: Clock) -> Iterator[None]:
    with query_settings(backend._session):
        yield


def _sha256(text: Any) -> Any:
    return builtin_function("sha2", ("string", "int32"), "string")(text, 256)


def _plan(backend: Any, sql: str) -> None:
    import ibis  # noqa: PLC0415

    backend._session.sql(sql)  # is analysed at once
    backend.to_pyarrow(ibis.literal(1).name("one").as_table())  # the workers are there


def _fetch(backend: Any, query: PlannedQuery) -> list[tuple[Any, ...]]:
    answer = backend.to_pyarrow(query.query)
    return list(zip(*(answer[name].to_pylist() for name in query.names), strict=True))


def _is_lost(error: Exception) -> bool:
    """Whether the session has ended, which it says in many ways; what Ibis says is no such way."""
    of_ibis = type(error).__module__.startswith("ibis.")  # such as that there is no such table
    return not of_ibis and type(error).__name__ not in ("AnalysisException", "ParseException")


def _is_gone(error: Exception) -> bool:
    """Whether the session was stopped, or its Java is gone; what Java itself raises is neither."""
    name = type(error).__name__
    return isinstance(error, ConnectionError) or name in ("Py4JNetworkError", "Py4JError")


SPARK = Dialect(
    name="pyspark",
    schemes=("spark",),
    example="spark://...",
    connect=_connect,
    errors=_errors,
    check_table=_check_table,
    list_tables=lambda _: "",
    warnings=lambda *_: (),
    lock=lambda: _LOCK,
    forms=_FORMS,
    barrier=False,
    wide="decimal(28, 0)",  # its sum of 64-bit integers would wrap
    hash=KeyedHash(whole="xxhash64", real="xxhash64", text="xxhash64", type="int64"),
    sha256=_sha256,
    session=_session,
    stoppable=False,
    plan=_plan,
    fetch=_fetch,
    is_lost=_is_lost,
    is_gone=_is_gone,
)
