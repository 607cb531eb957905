"""One server for one ledger: its key is in the ledger, and one process at a time serves it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from hushed._ground.printing import plain_path
from hushed.errors import DamagedLedger, LedgerUnavailable, Refusal
from hushed.ledger import Ledger
from hushed.ledger._rows import run
from hushed.server._disk import open_lock
from hushed.server._keys import KEY_FILE, find_key, name_key, read_former

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hushed.ledger._rows import Transaction

_LOCK = 0x68757376  # key of the lock that a serving process holds on PostgreSQL
_TAKEN = (
    "another process serves this ledger, perhaps from another folder: stop it first, by Ctrl-C, "
    "systemctl stop, or a SIGTERM to it; {}"
)
_BY_FILE = "its number is the one that `fuser {0}` or `lsof {0}` shows"
_BY_SESSION = "its session of the database is {}, from {} (pg_stat_activity)"
# Whose session holds it, and from where; one of another login than ours, if there is one.
_HOLDER = (
    "SELECT a.usename, a.usename = current_user, a.pid, host(a.client_addr) "
    "FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a "
    "ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) "
    "AND l.classid = CAST(:lock AS oid) AND l.objid = CAST(hashtext(:schema) AS oid) ORDER BY 2"
)
_HELD = (
    "the lock of this ledger is held by another login of the database, {}: if no server of yours "
    "uses that login, end its session, and let it enter the database no more (REVOKE CONNECT)"
)


def claim(connection: Transaction, keyid: str) -> None:
    """Write down, in the transaction that makes the tables, whose ledger it is."""
    run(connection, "INSERT INTO @.hushed_s_state VALUES ('key', :key)", {"key": keyid})


def set_own(connection: Transaction, keyid: str) -> None:
    """Write down that another key of the same server counts."""
    run(connection, "UPDATE @.hushed_s_state SET value = :key WHERE name = 'key'", {"key": keyid})


def find_owner(connection: Transaction) -> str:
    """Find the name of the key that counts for a ledger."""
    row = run(connection, "SELECT value FROM @.hushed_s_state WHERE name = 'key'", {}).fetchone()
    return "" if row is None else str(row[0])


def require_own(connection: Transaction, folder: Path, *, former: bool = False) -> bytes:
    """Refuse the ledger of a server that has another key; the private key of this one.

    A ledger of a former key is an older copy, which is put back and not opened.
    """
    keyid = find_owner(connection)
    key = find_key(folder, keyid)
    if name_key(key) == keyid:
        return key
    if keyid in [each.kid for each in read_former(folder, name_key(key))]:
        if former:
            return key
        raise DamagedLedger(
            "this ledger is from before the key of the server was changed, so that it is an older "
            "copy: take it back with hushed serve restore"
        )
    raise Refusal(
        "this ledger belongs to a server with another key, in another folder: people, shares "
        f"and requests are that server's. Make a ledger for this one; or, if {KEY_FILE} is from "
        "before a change of the key, put the newest one back"
    )


@contextmanager
def serving_alone(ledger: Ledger) -> Iterator[Callable[[], None]]:
    """Keep a second process off: both would answer what was charged before a crash.

    The lock belongs to the ledger and not to a folder, so that copies of a folder share it. It ends
    with the process, however that ends; and with the connection to a database. So what is given is
    to be called again and again: it takes the lock anew, or raises.
    """
    if ledger._store.sqlite:
        with locked_file(ledger._store.path) as keep:
            yield keep
    else:
        with _locked_session(ledger) as keep:
            yield keep


@contextmanager
def locked_file(path: Path) -> Iterator[Callable[[], None]]:
    """Lock a ledger in a file, by a file beside it, which stays when the ledger is replaced.

    Whoever removes that file removes the lock: what is given takes it anew, or raises.
    """
    place = path.with_name(f"{path.name}.serving")
    held = [_lock_file(place)]

    def keep() -> None:
        if not _is_there(held[0], place):
            held.append(_lock_file(place))
            held.pop(0).close()

    try:
        yield keep
    finally:
        held[0].close()


def _lock_file(place: Path) -> IO[str]:
    """Lock a file that nobody else has locked; it is made if there is none."""
    # To close the ledger's own file would end the locks of SQLite.
    try:
        import fcntl  # noqa: PLC0415  (not on all systems)
    except ImportError:
        raise LedgerUnavailable(
            "a server needs the file locks of Linux or macOS, which this system has not"
        ) from None
    try:
        file = open_lock(place)
    except OSError as error:
        raise LedgerUnavailable(
            f"the lock {place.name} beside the ledger cannot be opened ({error.strerror}): it, and "
            "its folder, have to belong to the account that runs the server"
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        shown = _BY_FILE.format(shlex.quote(plain_path(place)))
        raise LedgerUnavailable(_TAKEN.format(shown)) from None
    if not _is_there(file, place):
        file.close()
        raise LedgerUnavailable(f"the lock {place.name} was removed meanwhile: try again")
    return file


def _is_there(file: IO[str], place: Path) -> bool:
    """Whether an open file is the one that lies at a place."""
    try:
        found = place.stat()
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(file.fileno()))


@contextmanager
def _locked_session(ledger: Ledger) -> Iterator[Callable[[], None]]:
    """Hold a lock of the ledger's schema on a connection that does nothing else."""
    held: list[Connection] = [_lock_session(ledger)]

    def keep() -> None:
        while held:
            with suppress(SQLAlchemyError):
                run(held[0], "SELECT 1", {})
                held[0].commit()
                return
            _leave(held.pop())
        held.append(_lock_session(ledger))

    try:
        yield keep
    finally:
        for each in held:
            _leave(each)


def _lock_session(ledger: Ledger) -> Connection:
    try:
        connection = ledger._store.engine().connect()
    except SQLAlchemyError:
        raise LedgerUnavailable("the database of the ledger does not answer") from None
    try:
        values = {"lock": _LOCK, "schema": connection.info["hushed_schema"]}
        statement = "SELECT pg_try_advisory_lock(:lock, hashtext(:schema))"
        taken = run(connection, statement, values).scalar()
        connection.commit()  # the lock is the session's, and no transaction stays open
    except BaseException:
        _leave(connection)
        raise
    if not taken:
        found = None
        with suppress(SQLAlchemyError), closing(connection):
            found = run(connection, _HOLDER, values).fetchone()
        raise LedgerUnavailable(_say_holder(found))
    return connection


def _say_holder(found: Sequence[Any] | None) -> str:
    """Say who holds the lock of a ledger on PostgreSQL, as far as its database tells."""
    if found is None:  # it has ended meanwhile
        return _TAKEN.format("or try again")
    login, ours, session, address = found
    if not ours:
        return _HELD.format(repr(login))
    return _TAKEN.format(_BY_SESSION.format(session, address or "the computer of the database"))


def _leave(connection: Connection) -> None:
    """End a connection and its lock, which no pool may keep."""
    with suppress(SQLAlchemyError):
        connection.invalidate()
        connection.close()
