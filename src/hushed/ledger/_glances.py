"""Short looks into a file over one connection that is kept: for what every request asks."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hushed.errors import LedgerUnavailable
from hushed.ledger._forks import active

if TYPE_CHECKING:
    from hushed.ledger import Ledger
    from hushed.ledger._rows import Transaction

_PATIENCE = 0.05  # seconds, in which a file is free again where others only read or append


class Glances:
    """Looks into a file. Each statement sees a moment of its own; nothing can be written.

    Whoever looks keeps everybody else of a server waiting, and so waits for nobody: what cannot be
    looked at at once has to be asked in the usual way.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._store = ledger._store
        self._store.keep(self)
        self._lock = threading.RLock()  # the store closes this from within a look
        self._connection: Any = None
        self._info: dict[Any, Any] = {}

    @contextmanager
    def looking(self) -> Iterator[Transaction]:
        """Look with a few statements, each of whose rows are fetched at once."""
        with active(), self._lock:
            try:
                if self._connection is None or self._connection.ended:
                    self._open()
                self._store.check_file(self._info)
                yield self._connection
            except sqlite3.Error:
                self._end()
                raise LedgerUnavailable("the ledger cannot be looked into at once") from None
            except LedgerUnavailable:
                self._end()
                raise

    def _open(self) -> None:
        record = SimpleNamespace(info={})
        made = self._store.open_file()
        try:
            made.isolation_level = None
            made.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")
            made.execute("PRAGMA query_only = ON")
            made.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # opens the log
            self._store.opened(made, record)
        except BaseException:
            made.close()
            raise
        self._connection, self._info = made, record.info

    def _end(self) -> None:
        made, self._connection = self._connection, None
        if made is not None:
            made.close()

    def close(self) -> None:
        """Close the connection; a look after that opens another one."""
        with self._lock:
            self._end()
