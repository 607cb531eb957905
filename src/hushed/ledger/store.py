"""Where a ledger lies: SQLite or PostgreSQL, with transactions that keep other spenders out.

SQLite: write-ahead log, every commit synchronised to the disk, and ``BEGIN IMMEDIATE``, so that
only one writer reads a balance and adds to it at a time. PostgreSQL: the head of the budget's
chain is locked (``SELECT ... FOR UPDATE``), and every commit is synchronised whatever the server's
default.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushed.errors import (
    DamagedLedger,
    HushedError,
    LedgerUnavailable,
    NotALedger,
    NotFound,
    ParameterError,
)
from hushed.ledger.migrations import APPLICATION_ID, MIGRATIONS, found_version, migrate

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from hushed.ledger.rows import Transaction

__all__ = ["Store", "Unsettled", "connect"]

_MIGRATING = 0x68757368  # key of the lock that migrations take on PostgreSQL
_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_DAMAGE = ("malformed", "not a database", "corrupt", "disk image")


class Unsettled(LedgerUnavailable):
    """The connection was lost while a transaction was being committed."""


class Store:
    """An open database with the tables of a ledger.

    Parameters
    ----------
    url : str
        Address, as `connect` takes it.
    patience : float
        Longest wait for other writers, in seconds.
    """

    def __init__(self, url: str, patience: float) -> None:
        self.url = url
        self.patience = patience
        self._process = os.getpid()
        self._engine: Engine | None = None

    @property
    def sqlite(self) -> bool:
        """Whether it is a file."""
        return self.url.startswith("sqlite:")

    def engine(self) -> Engine:
        """Give the connections of this process; a forked child gets its own.

        Returns
        -------
        Engine
            Of SQLAlchemy.
        """
        if self._engine is not None and self._process != os.getpid():
            self._engine.dispose(close=False)
            self._engine = None
        if self._engine is None:
            self._engine = _engine(self.url, self.patience)
            self._process = os.getpid()
        return self._engine

    def close(self) -> None:
        """Close the connections."""
        if self._engine is not None:
            self._engine.dispose(close=self._process == os.getpid())
            self._engine = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read in one transaction, as of one moment, without keeping writers out.

        Yields
        ------
        Connection
            In a transaction.

        Raises
        ------
        DamagedLedger, LedgerUnavailable
            If the database fails.
        """
        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
        from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

        try:
            engine = self.engine().execution_options(hushed_reads=True)
            with engine.connect() as connection, connection.begin():
                if not self.sqlite:  # head and entries have to be of the same moment
                    connection.exec_driver_sql(_ONE_MOMENT)
                yield connection
        except (DBAPIError, Crowded) as error:
            raise _told(error) from None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write in one transaction that keeps other writers out; committed at the end.

        Yields
        ------
        Connection
            In a transaction.

        Raises
        ------
        DamagedLedger, LedgerUnavailable
            If the database fails before the commit: nothing was written.
        Unsettled
            If it fails during the commit: it is not known whether it was written.
        """
        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
        from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

        committing = False
        try:
            with self.engine().connect() as connection:
                transaction = connection.begin()
                try:
                    yield connection
                    committing = True
                    transaction.commit()
                finally:
                    if transaction.is_active:
                        transaction.rollback()
        except (DBAPIError, Crowded) as error:
            raise _told(error, committing=committing) from None

    @contextmanager
    def spending(self) -> Iterator[Transaction]:
        """Write as in `writing`, by the shortest way: for charges, of which there are many.

        Yields
        ------
        Connection or sqlite3.Connection
            In a transaction; on SQLite the driver's own connection, as every statement that
            SQLAlchemy passes on costs more than SQLite takes to run it.

        Raises
        ------
        DamagedLedger, LedgerUnavailable, Unsettled
            As in `writing`.
        """
        if not self.sqlite:
            with self.writing() as connection:
                yield connection
            return
        import sqlite3  # noqa: PLC0415

        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
        from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

        committing = False
        try:
            with closing(self.engine().raw_connection()) as lent:
                driver: Any = lent.driver_connection
                driver.execute("BEGIN IMMEDIATE")
                yield driver
                committing = True
                driver.commit()
                # Whatever is not committed is rolled back as the connection goes back to its pool.
        except (sqlite3.Error, DBAPIError, Crowded) as error:
            raise _told(error, committing=committing) from None


def connect(url: str, *, create: bool, patience: float) -> Store:
    """Open a ledger, and bring its tables up to date.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` (three slashes for a relative path, four for an absolute one) or
        ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
    create : bool
        Whether to make the ledger if there is none.
    patience : float
        Longest wait for other writers, in seconds; above 0.

    Returns
    -------
    Store
        With tables of this version.

    Raises
    ------
    ParameterError
        If the address is of no known kind, or patience is not above 0.
    NotFound
        If there is no ledger and none is to be made.
    NotALedger, DamagedLedger, NewerLedger, LedgerUnavailable
        If what is there cannot be used.
    """
    if not 0 < patience < 1e6:
        raise ParameterError(f"patience must be above 0 and below 1e6 seconds, got {patience}")
    store = Store(_address(url), patience)
    if store.sqlite:
        _inspect(Path(store.url.removeprefix("sqlite:///")), create=create)
    try:
        _prepare(store, create=create)
    except HushedError:
        store.close()
        raise
    return store


def _prepare(store: Store, *, create: bool) -> None:
    """Check the pages of a file, and migrate."""
    with store.reading() as connection:
        version = found_version(connection)
        if version == 0 and not create:
            raise NotFound("there is no ledger at this address: open a budget first")
        if store.sqlite and version:
            _check_pages(connection)
    if version != MIGRATIONS[-1].version:
        with store.writing() as connection:
            if not store.sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
            migrate(connection)


def _address(url: str) -> str:
    """Address in the form that SQLAlchemy takes."""
    if re.match(r"sqlite:///.", url) and ":memory:" not in url and "?" not in url:
        path = Path(url.removeprefix("sqlite:///")).expanduser().absolute()
        return f"sqlite:///{path}"
    found = re.match(r"(postgres|postgresql|postgresql\+psycopg)://", url)
    if found:
        return "postgresql+psycopg://" + url[found.end() :]
    plain = "://" not in url and ":" not in url and "@" not in url and url.isprintable()
    raise ParameterError(  # an address may hold a password, and is not shown; the name of a file is
        "the address of a ledger is sqlite:///FILE or postgresql://USER@HOST/DATABASE (a ledger "
        "in memory would forget), got "
        + (f"{url!r}; for a file sqlite:///{url}" if plain and url else "another one")
    )


def _inspect(path: Path, *, create: bool) -> None:
    """Refuse files that are no ledger before anything is written to them."""
    import sqlite3  # noqa: PLC0415

    if not path.exists():
        if not create:
            raise NotFound(f"there is no file {path.name}: open a budget first")
        if not path.parent.is_dir():
            raise NotFound(f"there is no folder for the ledger {path.name}")
        return
    if not path.is_file():
        raise NotALedger(f"{path.name} is no file")
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return  # another process is just making it, or an empty file was left for it
    if not header.startswith(b"SQLite format 3\x00"):
        raise NotALedger(f"{path.name} is no SQLite file; nothing was changed")
    mark = int.from_bytes(header[68:72], "big")
    if mark == APPLICATION_ID:
        return
    try:
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=60) as found:
            tables = found.execute("SELECT name FROM sqlite_master").fetchall()
        found.close()
    except sqlite3.DatabaseError:
        raise DamagedLedger(f"{path.name} cannot be read as an SQLite file") from None
    if tables and ("hushed_migrations",) not in tables:
        raise NotALedger(
            f"{path.name} is an SQLite file with other tables, not a ledger; nothing was changed"
        )


def _check_pages(connection: Connection) -> None:
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if found != "ok":
        raise DamagedLedger(
            "the file of the ledger is damaged: restore a copy, and charge again whatever was "
            "released after that copy was made"
        )


def _engine(url: str, patience: float) -> Engine:
    from sqlalchemy import create_engine, event  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    sqlite = url.startswith("sqlite:")
    wait = {"timeout": patience} if sqlite else {"connect_timeout": math.ceil(patience)}
    try:
        engine = create_engine(
            url, connect_args=wait, pool_pre_ping=not sqlite, pool_timeout=patience
        )
    except ImportError:
        raise ParameterError(
            "a ledger on PostgreSQL needs the extra postgres: pip install 'hushed[postgres]'"
        ) from None
    except ArgumentError:
        raise ParameterError("the address of the ledger cannot be read as one") from None
    if sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "connect", _prepare_postgres(patience))
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite alone
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("hushed_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _prepare_postgres(patience: float) -> Any:
    def prepare(connection: Any, _: object) -> None:
        before, connection.autocommit = connection.autocommit, True
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO on")
            cursor.execute(f"SET lock_timeout TO {int(1000 * patience)}")
            cursor.execute("SET default_transaction_isolation TO 'read committed'")
        connection.autocommit = before

    return prepare


def _told(error: Exception, *, committing: bool = False) -> DamagedLedger | LedgerUnavailable:
    """Say in the words of this library what the database refused; no statement is quoted."""
    from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

    cause = getattr(error, "orig", error)  # what the driver said
    text = "".join(str(cause or "").splitlines()[:1]) or "no reason given"
    if isinstance(error, Crowded):
        text = "all its connections are in use by other threads that wait, too"
    found: DamagedLedger | LedgerUnavailable
    if any(word in text for word in _DAMAGE):
        found = DamagedLedger(
            f"the file of the ledger is damaged ({text}): restore a copy, and charge again "
            "whatever was released after that copy was made"
        )
    elif "append-only" in text or "moves by one" in text:
        found = DamagedLedger(f"refused by the ledger itself: {text}")
    else:
        found = LedgerUnavailable(f"the ledger cannot be used now ({text}); try again")
    return Unsettled(str(found)) if committing else found
