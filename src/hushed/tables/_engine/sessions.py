"""Sessions of Spark: open one, query in it, and notice that it has ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

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
_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class StoppedSession(ConnectionError):
    """The session was stopped; pyspark then fails with unrelated errors."""


def master_url(address: str) -> str:
    """Give the master URL of Spark for an address."""
    return address if _LOCAL.fullmatch(address) else f"spark://{address}"


def open_session(address: str) -> Any:
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


def column_names(session: Any, name: str) -> list[str]:
    """Names of the columns of a table, as Spark distinguishes them."""
    names: list[str] = session.table(name).columns
    exact = session.conf.get("spark.sql.caseSensitive") == "true"
    return names if exact else [each.lower() for each in names]


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
