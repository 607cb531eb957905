"""Sessions of Spark: opening one, asking in it, and noticing that it has ended."""

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
        "spark.log.level": "OFF",  # what fails on a value is logged with the value
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)
_READ_AS: Mapping[str, str] = MappingProxyType(
    {  # what a constant or a time means; the session may be the user's, and set otherwise
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.session.timeZone": "UTC",
    }
)
_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class StoppedSession(ConnectionError):
    """The session was stopped; pyspark itself stumbles over what it lacks then."""


def master_of(address: str) -> str:
    """Say what Spark calls a master."""
    return address if _LOCAL.fullmatch(address) else f"spark://{address}"


def open_session(address: str) -> Any:
    """Find the session that is active, or start one."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    known = SparkSession.getActiveSession()
    if known is not None:
        return known
    master = master_of(address)
    builder = SparkSession.builder.master(master)
    settings = _OWN if _LOCAL.fullmatch(master) else {"spark.ui.enabled": "false"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def names_in(session: Any, name: str) -> list[str]:
    """Names of a table's columns, as Spark tells them apart."""
    names: list[str] = session.table(name).columns
    exact = session.conf.get("spark.sql.caseSensitive") == "true"
    return names if exact else [each.lower() for each in names]


@contextmanager
def ask(session: Any) -> Iterator[None]:
    """Have constants and times read alike in every session, and nothing said of what fails.

    Settings are put back at the end. Python's side of Spark would log the message of an error,
    which may quote a private value; that is held back.
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
        if not _ended(session):
            raise
        raise StoppedSession from error
    finally:
        _put_back(session, before)
        for log, was in zip(logs, silent, strict=True):
            log.disabled = was


def _put_back(session: Any, settings: Mapping[str, str]) -> None:
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    lost = (PySparkException, Py4JError, OSError, AttributeError, AssertionError, TypeError)
    for name, value in settings.items():
        with suppress(*lost):  # a session that has ended has no settings
            session.conf.set(name, value)


def _ended(session: Any) -> bool:
    """Tell whether the context of a session is gone."""
    context = getattr(session, "_sc", None)
    return context is not None and getattr(context, "_jsc", None) is None
