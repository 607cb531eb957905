"""The mark: how far the trail had come, kept outside of the ledger, which may be set back.

It is on the disk before the rows of a charge are read. So an older copy of the ledger shows: its
trail lacks an event of which an answer may have been seen.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hushed._ground.printing import plain_path
from hushed.errors import DamagedLedger, LedgerUnavailable, NotFound, ParameterError
from hushed.ledger._anchors import read_anchor
from hushed.ledger._rows import run
from hushed.server._audit import trail_head

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

_LONGEST = 200  # bytes of the file


def write_mark(path: Path, head: tuple[int, str]) -> None:
    """Write ``NUMBER:DIGEST``; on the disk when this returns."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"{head[0]}:{head[1]}\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise LedgerUnavailable(
            f"{plain_path(path)}, the mark of the server, cannot be written ({error.strerror}): no "
            "row is read before it is"
        ) from None


def check_mark(connection: Transaction, path: Path) -> None:
    """Refuse a ledger whose trail does not hold the event of the mark."""
    try:
        text = path.read_text(encoding="ascii")[:_LONGEST].strip()
    except (OSError, ValueError):
        raise NotFound(
            f"{plain_path(path)}, the mark of the server, cannot be read: without it nobody sees "
            "whether the ledger was set back. Put it back from where it was moved or kept"
        ) from None
    try:
        number, digits = read_anchor(text)
    except ParameterError:
        raise DamagedLedger(
            f"{plain_path(path)}, the mark of the server, holds no NUMBER:DIGEST"
        ) from None
    end = trail_head(connection)[0]
    if end < number:
        raise DamagedLedger(
            f"the trail has {end} events and had {number}: the ledger was set back to an older "
            "copy, and what was answered since is not charged in it. Restore the newest copy. If "
            "there is none, make a new server with what is surely left"
        )
    statement = "SELECT digest FROM @.hushed_s_audit WHERE number = :number"
    row = run(connection, statement, {"number": number}).fetchone()
    if number and (row is None or not str(row[0]).startswith(digits)):
        raise DamagedLedger(
            f"event {number} of the trail is not the one of the mark: the ledger was rewritten, or "
            "is another one"
        )
