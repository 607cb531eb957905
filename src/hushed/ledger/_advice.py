"""What to do when a database refuses, by the code of its error, which no language translates."""

from __future__ import annotations

_WRITABLE = (
    "this account has to be able to read and write the file and the folder that it lies in, also "
    "to read a balance, for SQLite keeps a log beside it: change their rights, or read a copy "
    "that its owner makes by hushed ledger backup"
)
_LETTERS = (
    "a letter of a name (of a budget, or of a sampled function), note, key or answer is not in the "
    "encoding of this database: take other letters, or keep the ledger in a database in UTF8"
)
TAKES_NO_CHANGES = (
    "it takes no changes, as a standby server does: give the address of the primary one"
)
LACKS_A_RIGHT = (
    "this login lacks a right: its owner can grant those that hushed ledger roles prints"
)
_ROOM = "the disk is full: make room"
# SQLite calls it an error of the disk where there is no room for the index of its log.
_NO_ROOM = (
    "the disk is full, or cannot be read and written: make room for at least 64 KB where the "
    "ledger lies"
)
_ADVICE = {
    "SQLITE_READONLY": _WRITABLE,
    "SQLITE_CANTOPEN": _WRITABLE,
    "SQLITE_PERM": _WRITABLE,
    "SQLITE_FULL": _ROOM,
    "SQLITE_IOERR": _NO_ROOM,
    "53100": _ROOM,
    "22P05": _LETTERS,
    "25006": TAKES_NO_CHANGES,
    "42501": LACKS_A_RIGHT,
}


def advise(cause: object) -> str:
    """Say what to do about an error of SQLite or PostgreSQL."""
    code = str(getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None) or "")
    return next((text for known, text in _ADVICE.items() if code.startswith(known)), "try again")
