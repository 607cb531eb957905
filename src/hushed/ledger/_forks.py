"""Forks: no SQLite connection is open while the process is copied.

SQLite keeps, for each file, which locks the process holds. A forked child inherits these notes but
not the locks, so that even connections of its own would read and write without any. Therefore a
fork waits until no transaction is under way, and closes the connections; parent and child open
their own at the next use. Connections to PostgreSQL are left to the parent.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol
from weakref import WeakSet

from hushed.errors import LedgerUnavailable

_LONGEST = 5.0  # seconds that a fork waits for transactions under way


class Forked(Protocol):
    """What has to know of forks."""

    def before_fork(self) -> None:
        """Close what must not be copied; called if no transaction is under way."""

    def in_child(self) -> None:
        """Begin anew with locks and connections of one's own."""


class _Gate:
    """Counts transactions by thread; closed to new ones while a thread forks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # reentrant, for signals
        self.changed = threading.Condition(self.lock)
        self.running: dict[int, int] = {}
        self.forking: int | None = None
        self.quiet = True

    def enter(self) -> None:
        me = threading.get_ident()
        with self.lock:
            while self.forking not in (None, me) and me not in self.running:
                self.changed.wait()
            self.running[me] = self.running.get(me, 0) + 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self.lock:
            self.running[me] -= 1
            if not self.running[me]:
                del self.running[me]
            if self.forking is not None:
                self.changed.notify_all()

    def shut(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.forking is None)
            self.forking = threading.get_ident()
            self.quiet = self.changed.wait_for(lambda: not self.running, _LONGEST)

    def open(self) -> None:
        with self.changed:
            self.forking = None
            self.changed.notify_all()


class FileConnection(sqlite3.Connection):
    """A connection to a file that a fork finds, also if the ledger that made it was dropped."""

    identity: Any = None  # which file, log and index it speaks to
    ended = False

    def close(self) -> None:
        """Close, and know it."""
        self.ended = True
        super().close()


_gate = _Gate()
_stained = False  # whether this process was copied from one in the midst of a transaction
_watched: WeakSet[Forked] = WeakSet()
_connections: WeakSet[FileConnection] = WeakSet()
_connecting = threading.Lock()  # to list a set to which another thread adds is an error


def watch(each: Forked) -> None:
    """Tell an object of forks from now on."""
    _watched.add(each)


def connect_file(address: str, timeout: float) -> FileConnection:
    """Connect to a file of SQLite."""
    made = sqlite3.connect(
        address, uri=True, timeout=timeout, check_same_thread=False, factory=FileConnection
    )
    with _connecting:
        _connections.add(made)
    return made


def share_index(connection: FileConnection, found: Any) -> Any:
    """Tell which index a connection uses: SQLite has one for all of a process to the same file."""
    with _connecting:
        known = list(_connections)
    for each in known:
        other = None if each is connection or each.ended else each.identity
        if other is not None and other.file == found.file:
            found = replace(found, index=other.index)
            break
    connection.identity = found
    return found


@contextmanager
def active() -> Iterator[None]:
    """Keep forks away while SQLite is used."""
    if _stained:
        raise LedgerUnavailable(
            "this process was forked while a ledger was in use, and cannot use any: start "
            "processes by spawn or forkserver, or fork before threads charge. Nothing was charged"
        )
    gate = _gate
    gate.enter()
    try:
        yield
    finally:
        gate.leave()


def _before() -> None:
    _gate.shut()
    if _gate.quiet:
        for each in list(_watched):
            each.before_fork()
        for connection in list(_connections):  # of ledgers dropped, but not yet collected
            connection.close()


def _in_parent() -> None:
    _gate.open()


def _in_child() -> None:
    global _gate, _stained, _connecting  # noqa: PLW0603
    _stained = _stained or not _gate.quiet
    _gate, _connecting = _Gate(), threading.Lock()
    for each in list(_watched):
        each.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
