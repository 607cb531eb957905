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
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus
from weakref import WeakSet

from hushed._ground.decimals import read
from hushed._ground.search_path import find_schemas, pin_search_path
from hushed.errors import (
    DamagedLedger,
    HushedError,
    LedgerUnavailable,
    MissingExtra,
    NotFound,
    ParameterError,
)
from hushed.ledger._advice import advise
from hushed.ledger._files import (
    BESIDE,
    Identity,
    check_identity,
    check_name,
    identity_of,
    inspect,
    is_unchanged,
)
from hushed.ledger._forks import active, connect_file, share_index
from hushed.ledger._line import Line
from hushed.ledger._migrations import MIGRATIONS, MOVED, migrate, read_version

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

    from hushed.ledger._rows import Transaction


# Connections of a process. What is above the number that is kept would be opened and closed again
# for each use, as soon as a few threads more ask at once.
_KEPT = {"pool_size": 15, "max_overflow": 0}
# The last one: what a server deletes is overwritten, and so in no copy that is made later.
_SETTINGS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON")
_LOCKED = (
    "the ledger cannot be used now (it is locked by another thread of this program); try again"
)
_MIGRATING = 0x68757368  # key of the lock that migrations take on PostgreSQL
_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_REFUSED = ("append-only", "moves by one", "and nothing else")  # by triggers and functions
_DAMAGE = ("malformed", "not a database", "corrupt", "disk image", "Could not decode")


_OF_THE_PARENT: list[Engine] = []  # kept, for what nobody holds is closed


class InDoubt(LedgerUnavailable):
    """The connection was lost while a transaction was being committed."""


class Store:
    """An open database with the tables of a ledger; other writers are waited for so long."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self.sqlite = url.startswith("sqlite:")
        self.path = Path(url.removeprefix("sqlite:///"))
        self._name = str(self.path)
        self.timeout = timeout
        self.schema: str | None = None  # on a server: where the tables lie
        self._engine: Engine | None = None
        self._making = RLock()
        self._writing = RLock()
        self._turn = Lock()  # of threads that look in turn
        self.line: Line[Any] = Line()  # of threads that charge
        self.kept: WeakSet[Any] = WeakSet()  # looks, each over a connection of its own
        self._file: Identity | None = None
        self._secrets: tuple[str, ...] = ()

    def engine(self) -> Engine:
        """Give the connections of this process; a forked child gets its own."""
        with self._making:
            if self._engine is None:
                self._engine = _engine(self)
            return self._engine

    def hide(self, url: URL) -> None:
        """Remember what no message may show."""
        asked = [str(v) for name, v in url.query.items() if "pass" in name.lower()]
        found = [each for each in (url.password, *asked) if each]
        self._secrets = (*found, *(quote_plus(each) for each in found), *map(quote, found))

    @contextmanager
    def _lent(self) -> Iterator[Engine]:
        """Give the connections of this process for one use, with forks kept away.

        What is in use when the ledger is closed comes back into a pool that is given up, and would
        stay open until it is collected: whoever used it last empties that pool.
        """
        with active():
            engine = self.engine()
            pool = engine.pool
            try:
                yield engine
            finally:
                if engine is not self._engine and engine not in _OF_THE_PARENT:
                    pool.dispose()

    def leave_to_parent(self) -> None:
        """Forget the connections of the parent: a forked child neither uses nor closes them."""
        self._making, self._writing, self.line = RLock(), RLock(), Line()
        self._turn = Lock()
        if self._engine is not None:
            _OF_THE_PARENT.append(self._engine)
            self._engine = None

    def expect(self) -> None:
        """Remember which file lies there before it is opened: every connection has to be to it."""
        if os.path.exists(self.path):
            self._file = identity_of(self.path)

    def open_file(self) -> Any:
        """Connect to the file; it is made for the first connection alone, if at all."""
        known = self._file
        if known is not None and identity_of(self.path).file != known.file:
            check_identity(self.path, known)
        mode = "rwc" if known is None else "rw"
        # The address is written as codes where a name has % and ?.
        return connect_file(f"{self.path.as_uri()}?mode={mode}", self.timeout)

    def opened(self, connection: Any, record: Any) -> None:
        """Remember which file and log a new connection speaks to."""
        found = identity_of(self.path)
        if self._file is not None and self._file.file != found.file:
            check_identity(self.path, self._file)
        record.info["hushed"] = self._file = share_index(connection, found)

    def check_file(self, info: dict[Any, Any], *, committed: bool = False) -> None:
        """Refuse to go on with a file that is not the one that was opened."""
        if not self.sqlite or is_unchanged(self._name, info["hushed"]):
            return
        try:
            check_identity(self.path, info["hushed"], committed=committed)
        except LedgerUnavailable:
            self.close()  # the next use opens the file, if it is the same one, with its new log
            raise

    def keep(self, look: Any) -> None:
        """Remember who keeps a connection of its own: it is closed with the others."""
        with self._making:
            self.kept.add(look)

    def close(self) -> None:
        """Close the connections."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()
        with self._making:
            kept = list(self.kept)
        for each in kept:  # else the log that was opened with them stays in use
            each.close()

    def backup(self, target: Path) -> Path:
        """Copy the file through SQLite, as of one moment."""
        import sqlite3  # noqa: PLC0415

        if not self.sqlite:
            raise ParameterError("a ledger on a server is copied by its own tools, such as pg_dump")
        if "\0" in str(target):
            raise ParameterError("the name of a file holds no zero bytes")
        check_name(target)
        with _written_whole(target) as fresh:
            try:
                with self.reading() as source, closing(sqlite3.connect(fresh)) as copy:
                    driver: Any = source.connection.driver_connection
                    driver.backup(copy)
            except sqlite3.Error as error:
                raise translate_error(error) from None
        return target

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read in one transaction, as of one moment, without keeping writers out."""
        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
        from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

        try:
            with (
                self._lent() as engine,
                engine.execution_options(hushed_reads=True).connect() as connection,
                connection.begin(),
            ):
                if not self.sqlite:  # head and entries have to be of the same moment
                    connection.exec_driver_sql(_ONE_MOMENT)
                    pin_search_path(connection.connection.driver_connection)
                self.check_file(connection.info)
                yield connection
        except (DBAPIError, Crowded) as error:
            raise translate_error(error, self._secrets) from None

    def looking(self) -> AbstractContextManager[Transaction]:
        """Read as in `reading`, by the shortest way: for what is looked up with every request."""
        return self._driving("BEGIN", commits=False) if self.sqlite else self.reading()

    @contextmanager
    def looking_in_turn(self) -> Iterator[Transaction]:
        """Look as in `looking`; in a file, one thread after the other.

        Python runs one thread at a time. Of hundreds that look at once, each lets go with every
        statement and waits to go on; a thread that does something else waits for all of them.
        """
        turn = self._turn if self.sqlite else Lock()  # a forked child has another one
        if not turn.acquire(timeout=self.timeout):
            raise LedgerUnavailable(_LOCKED)
        try:
            with self.looking() as connection:
                yield connection
        finally:
            turn.release()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write in one transaction that keeps other writers out; committed at the end."""
        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
        from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

        committing = False
        try:
            with self._lent() as engine, engine.connect() as connection:
                transaction = connection.begin()
                try:
                    if not self.sqlite:  # in every transaction, for a pooler may forget it
                        pin_search_path(connection.connection.driver_connection)
                    self.check_file(connection.info)
                    yield connection
                    committing = True
                    transaction.commit()
                    self.check_file(connection.info, committed=True)
                finally:
                    if transaction.is_active:
                        transaction.rollback()
        except (DBAPIError, Crowded) as error:
            raise translate_error(error, self._secrets, committing=committing) from None

    def spending(self) -> AbstractContextManager[Transaction]:
        """Write as in `writing`, by the shortest way: for charges, of which there are many."""
        return self._spending_alone() if self.sqlite else self.writing()

    @contextmanager
    def _spending_alone(self) -> Iterator[Any]:
        """Wait for the other threads of this process without a connection, and be woken.

        SQLite lets whoever waits sleep, for a tenth of a second in the end, and look again.
        """
        writing = self._writing  # a forked child has another one
        if not writing.acquire(timeout=self.timeout):
            raise LedgerUnavailable(_LOCKED)
        try:
            with self._driving("BEGIN IMMEDIATE", commits=True) as driver:
                yield driver
        finally:
            writing.release()

    @contextmanager
    def _driving(self, begin: str, *, commits: bool) -> Iterator[Any]:
        """Work in one transaction of SQLite without SQLAlchemy's expressions."""
        import sqlite3  # noqa: PLC0415

        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415
        from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

        committing = False
        try:
            with self._lent() as engine, closing(engine.raw_connection()) as lent:
                driver: Any = lent.driver_connection
                driver.execute(begin)
                self.check_file(lent.info)
                yield driver
                if commits:
                    committing = True
                    driver.commit()
                    self.check_file(lent.info, committed=True)
                # Whatever is not committed is rolled back as the connection goes back to its pool.
        except (sqlite3.Error, DBAPIError, Crowded) as error:
            raise translate_error(error, committing=committing) from None


@contextmanager
def _written_whole(target: Path) -> Iterator[str]:
    """Give a file to be written, which becomes a new one of this name when all of it is there."""
    import tempfile  # noqa: PLC0415

    exists = ParameterError(f"{target} exists; a backup is written to a new file")
    if os.path.lexists(target):
        raise exists
    for end in filter(lambda end: os.path.lexists(f"{target}{end}"), BESIDE):
        raise ParameterError(
            f"{target.name}{end} is left over from a ledger that had this name, and would be read "
            "as a part of the backup: move it away, or take another name"
        )
    fresh = ""
    try:
        number, fresh = tempfile.mkstemp(".part", ".hushed-", target.parent)
        os.close(number)
        yield fresh
        _name_new(fresh, target)
    except FileExistsError:
        raise exists from None
    except OSError as error:
        raise NotFound(f"{target} cannot be made: {error.strerror}") from None
    finally:
        for each in (fresh, f"{fresh}-journal") if fresh else ():
            Path(each).unlink(missing_ok=True)


def _name_new(fresh: str, target: Path) -> None:
    """Give a file its name, which no file has."""
    try:
        os.link(fresh, target)
    except FileExistsError:
        raise
    except OSError:  # some file systems know no second name
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(fresh, target)


def connect(url: str, *, create: bool, timeout: float) -> Store:
    """Open a ledger, and bring its tables up to date."""
    timeout = read("timeout", timeout, up=True)
    if not 0 < timeout < 1e6:
        raise ParameterError(
            f"timeout must be above 0 and below 1e6 seconds, got {timeout}", parameter="timeout"
        )
    store = Store(_address(url), timeout)
    if store.sqlite:
        inspect(store.path, create=create)
        store.expect()
    try:
        _prepare(store, create=create)
    except HushedError:
        store.close()
        raise
    return store


def _prepare(store: Store, *, create: bool) -> None:
    """Check the pages of a file, and migrate."""
    with store.reading() as connection:
        version = read_version(connection)
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
    if not isinstance(url, str):
        raise ParameterError(
            f"the address of a ledger is a text such as 'sqlite:///FILE', got {type(url).__name__}"
        )
    asked = re.search(r"[?&]\w+=", url)  # options, which SQLAlchemy takes, would be lost
    if re.match(r"sqlite:///.", url) and ":memory:" not in url and "\0" not in url and not asked:
        path = Path(os.path.realpath(os.path.expanduser(url.removeprefix("sqlite:///"))))
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


def _check_pages(connection: Connection) -> None:
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if found != "ok":
        raise DamagedLedger(
            "the file of the ledger is damaged: restore a copy, and charge again whatever was "
            "released after that copy was made"
        )


def _engine(store: Store) -> Engine:
    from sqlalchemy import URL, create_engine, event, make_url  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    timeout = store.timeout
    if store.sqlite:
        engine = create_engine(
            URL.create("sqlite", database=str(store.path)),
            creator=store.open_file,
            pool_timeout=timeout,
            **_KEPT,
        )
        event.listen(engine, "connect", _prepare_sqlite(store))
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    unread = "the address of the ledger cannot be read as one; it is not shown, for its password"
    try:
        url = make_url(store.url)
        engine = create_engine(
            url,
            connect_args={
                "connect_timeout": math.ceil(timeout),
                "client_encoding": "UTF8",
                "fallback_application_name": "hushed ledger",  # unless the address has another
            },
            use_native_hstore=False,  # it would be looked for
            pool_pre_ping=True,
            pool_timeout=timeout,
            **_KEPT,
        )
    except ImportError:
        raise MissingExtra("a ledger on PostgreSQL", "postgres") from None
    except (ArgumentError, ValueError):  # a ValueError quotes what stands in the port's place
        raise ParameterError(unread) from None
    if str(store.url).count("@") > 1:  # the driver would look for a host named by half a password
        raise ParameterError(f"{unread}: write an @ in a user name or password as %40")
    store.hide(url)
    event.listen(engine, "do_connect", _connect_postgres(store))
    return engine


def _prepare_sqlite(store: Store) -> Any:
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are begun by _begin_sqlite alone
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # opens the log
        store.opened(connection, record)

    return prepare


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("hushed_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _connect_postgres(store: Store) -> Any:
    """Connect, and set what holds for this connection before anything is looked up on it."""

    def connect(dialect: Any, record: Any, places: Any, options: Any) -> Any:
        connection = dialect.connect(*places, **options)
        try:
            connection.autocommit = True
            connection.execute("SET synchronous_commit TO on")
            connection.execute(f"SET lock_timeout TO {int(1000 * store.timeout)}")
            connection.execute("SET default_transaction_isolation TO 'read committed'")
            if store.schema is None:
                with connection.transaction():
                    path, found = find_schemas(connection, "hushed_migrations")
                _require_one([*found])
                store.schema = next(iter((*found, *path)), "public")
            connection.autocommit = False
            # The transaction is left open: SQLAlchemy has questions of its own. The path is not set
            # for the session, which a pooler may give to others.
            pin_search_path(connection)
        except BaseException:
            connection.close()
            raise
        record.info["hushed_schema"] = store.schema
        return connection

    return connect


def _require_one(schemas: list[str]) -> None:
    """Refuse to choose a ledger: whoever may create in an earlier schema could put one there."""
    if len(schemas) > 1:
        raise ParameterError(
            f"there is a ledger in each of the schemas {', '.join(map(repr, schemas))} of the "
            "search path, and none knows what is charged to another: name the schema that counts "
            "in the address, as in postgresql://USER@HOST/DATABASE?options=-csearch_path%3DSCHEMA"
        )


def translate_error(
    error: Exception, secrets: tuple[str, ...] = (), *, committing: bool = False
) -> DamagedLedger | LedgerUnavailable:
    """Say in the words of this library what the database refused; no statement is quoted."""
    from sqlalchemy.exc import TimeoutError as Crowded  # noqa: PLC0415

    cause = getattr(error, "orig", error)  # what the driver said
    text = "".join(str(cause or "").splitlines()[:1]) or "no reason given"
    text = text.partition(" with text ")[0]  # of a damaged entry or answer
    if any(each in text for each in secrets):
        text = "its message is withheld, for it holds a password"
    if isinstance(error, Crowded):
        text = "all its connections are in use by other threads that wait, too"
    found: DamagedLedger | LedgerUnavailable
    if any(word in text for word in _DAMAGE):
        found = DamagedLedger(
            f"the file of the ledger is damaged ({text}): restore a copy, and charge again "
            "whatever was released after that copy was made"
        )
    elif "hushed_keys" in text:
        found = LedgerUnavailable(
            "somebody else used this key, whose entries this login does not see: take another key. "
            "Nothing was charged"
        )
    elif text == MOVED:
        found = LedgerUnavailable(
            f"{text}: nothing was charged. The settings of its server name the one that counts now"
        )
    elif any(word in text for word in _REFUSED):
        found = DamagedLedger(f"refused by the ledger itself: {text}")
    else:
        found = LedgerUnavailable(f"the ledger cannot be used now ({text}); {advise(cause)}")
    found = InDoubt(str(found)) if committing else found
    found.__context__ = error  # for a log, which names it; also where nothing is raised here
    return found
