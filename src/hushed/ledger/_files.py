"""The file of an SQLite ledger: that it is one, and that it stays the same one.

SQLite finds the write-ahead log and its index, in which spenders lock each other out, by their
names and keeps them by their inodes. So a file that is replaced, or has a second name, has two
logs, and one whose index was removed has two of these, and two spenders who do not see each other.
And closing any descriptor of a file drops all locks that the process holds on it: nothing here
opens the file but SQLite itself, which knows better.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from hushed.errors import (
    DamagedLedger,
    LedgerUnavailable,
    NotALedger,
    NotFound,
    ParameterError,
)
from hushed.ledger._advice import advise
from hushed.ledger._forks import active
from hushed.ledger._migrations import APPLICATION_ID

_SMALLEST = 512  # bytes of the smallest page
_NO_DATABASE = ("not a database", "malformed", "Could not decode")
BESIDE = ("-wal", "-shm", "-journal")  # ends of the names that SQLite gives to files of its own
_Inode = tuple[int, int]


NOTHING_CHARGED = "Nothing was charged"
_COMPARE = "Open it again, and compare its entries with what was released"


class FileChanged(LedgerUnavailable):
    """The file is not, or not for certain, the one that was opened.

    `what` happened, what became of the `charge`, and advice.
    """

    def __init__(self, what: str, advice: str = "", charge: str = NOTHING_CHARGED) -> None:
        super().__init__(what, advice, charge)
        self.what, self.advice, self.charge = what, advice, charge

    @property
    def message(self) -> str:
        """All of it, as sentences."""
        return ". ".join(filter(None, (self.what, self.charge, self.advice)))


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file a connection speaks to, which write-ahead log, and which index of it."""

    # Device and inode; None if there is none.
    file: _Inode | None
    log: _Inode | None
    index: _Inode | None


def identity_of(path: Path) -> Identity:
    """Find out which file and log lie at a path now."""
    found = _stat(path)
    if found is not None and found.st_nlink > 1 and S_ISREG(found.st_mode):
        raise FileChanged(
            f"the ledger {path.name} has {found.st_nlink} names (hard links), and spenders under "
            "different names would not see each other: keep one of them"
        )
    log, index = (_inode(_stat(path.with_name(path.name + end))) for end in ("-wal", "-shm"))
    return Identity(_inode(found), log, index)


def is_unchanged(path: str, opened: Identity) -> bool:
    """Tell quickly, for every charge asks, that nothing has happened to a file and its log."""
    try:
        file, log, index = os.lstat(path), os.lstat(f"{path}-wal"), os.lstat(f"{path}-shm")
    except OSError:
        return False
    return file.st_nlink == 1 and Identity(*map(_inode, (file, log, index))) == opened


def check_identity(path: Path, opened: Identity, *, committed: bool = False) -> None:
    """Refuse to go on if the file or its log is not the one that was opened."""
    found = identity_of(path)
    if found == opened:
        return
    what, advice = "was replaced by another one", _COMPARE
    if found.file is None:
        what = "was deleted, renamed or moved"
        advice = (
            f"If it was renamed or moved, put it back before anything opens it: what was charged "
            f"last may stand in {path.name}-wal alone. {_COMPARE}"
        )
    if found.file == opened.file:
        what = "lost its write-ahead log (was it opened or copied by other means than SQLite?)"
        if found.log == opened.log:
            what = f"lost the index of its log ({path.name}-shm, which SQLite alone removes)"
    lost = "What was just written may be lost: do not release, and look for it in the ledger"
    raise FileChanged(
        f"the ledger {path.name} {what} while it was in use",
        advice,
        charge=lost if committed else NOTHING_CHARGED,
    )


def check_place(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Refuse a file that is mounted alone: its log would lie in another folder than its own."""
    try:
        found = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in found.splitlines():
        fields = line.split(" ")
        if len(fields) > 4 and _unescape(fields[4]) == str(path):
            raise LedgerUnavailable(
                f"the ledger {path.name} is mounted as a single file, without its write-ahead log: "
                "mount the folder that it lies in"
            )


def check_name(path: Path) -> None:
    """Refuse a name that SQLite gives to files beside a database: it would write over this one."""
    name = path.name.lower()
    if end := next(filter(name.endswith, BESIDE), None):
        raise ParameterError(
            f"{path.name} is the name of a file that SQLite makes, and removes, beside "
            f"{path.name[: -len(end)] or 'another one'}: give a ledger a name without {end} at its "
            "end"
        )


def inspect(path: Path, *, create: bool) -> None:
    """Refuse files that are no ledger before anything is written to them."""
    check_name(path)
    if not os.path.exists(path):
        if not create:
            raise NotFound(
                f"there is no file {path.name}, or this account may not enter its folder: open a "
                "budget first"
            )
        if not os.path.isdir(path.parent):
            raise NotFound(f"there is no folder for the ledger {path.name}")
        return
    if not path.is_file():
        raise NotALedger(f"{path.name} is not a file")
    identity_of(path)
    check_place(path)
    if 0 < path.stat().st_size < _SMALLEST:  # SQLite would take it for an empty database
        raise NotALedger(f"{path.name} is not an SQLite file; nothing was changed")
    try:
        mark, tables = _marks(path)
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from None
    if tables and mark != APPLICATION_ID:  # none: another process is just making it
        raise NotALedger(
            f"{path.name} is an SQLite file with other tables, not a ledger; nothing was changed"
        )


def is_ledger(path: Path) -> bool:
    """Tell whether a file is a ledger, or belongs to one, under whatever name."""
    resolved = Path(os.path.realpath(path))  # follows no loop of links
    for ending in BESIDE:
        if resolved.name.endswith(ending):
            beside = resolved.with_name(resolved.name.removesuffix(ending))
            if beside.is_file() and is_ledger(beside):
                return True
    if not resolved.is_file() or resolved.stat().st_size < _SMALLEST:
        return False
    try:
        return _marks(resolved)[0] == APPLICATION_ID
    except sqlite3.DatabaseError as error:
        return not any(word in str(error) for word in _NO_DATABASE)


def _marks(path: Path) -> tuple[int, list[str]]:
    """Application and tables of an SQLite file, which is not written to."""
    try:
        return _read_marks(f"{path.as_uri()}?mode=ro")
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") != "SQLITE_READONLY_ROLLBACK":
            raise
    # Whoever wrote it was killed: what they began is taken back when it is opened as a ledger.
    return _read_marks(f"{path.as_uri()}?mode=ro&immutable=1")


def _read_marks(address: str) -> tuple[int, list[str]]:
    with active(), closing(sqlite3.connect(address, uri=True, timeout=60)) as found:
        try:
            mark = found.execute("PRAGMA application_id").fetchone()[0]
            names = found.execute("SELECT name FROM sqlite_master").fetchall()
        except UnicodeDecodeError:  # the very words of SQLite quote a damaged name
            raise sqlite3.DatabaseError("malformed names") from None
    return int(mark), [str(name) for (name,) in names]


def _unreadable(path: Path, error: sqlite3.DatabaseError) -> Exception:
    if "not a database" in str(error):
        return NotALedger(f"{path.name} is not an SQLite file; nothing was changed")
    if any(word in str(error) for word in _NO_DATABASE):
        return DamagedLedger(f"{path.name} cannot be read as an SQLite file")
    return LedgerUnavailable(f"{path.name} cannot be opened ({error}); {advise(error)}")


def _stat(path: Path) -> os.stat_result | None:
    """Look at a path that no link was in when it was read: one that is there now is new."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def _inode(found: os.stat_result | None) -> _Inode | None:
    return None if found is None else (found.st_dev, found.st_ino)


def _unescape(field: str) -> str:
    """Path as it is, from its form in mountinfo."""
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, plain)
    return field
