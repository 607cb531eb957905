"""Answers are kept for ever, or for some days: then their texts are deleted, and nothing else.

What was charged, asked and signed stays written down; of the text its SHA-256 stays, so that
whoever saved it can show that it was the answer.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hushed.errors import DamagedLedger, NotFound
from hushed.ledger._answers import empty_answer
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import reading
from hushed.server._audit import add_event, telling
from hushed.server._requests import COLUMNS, Request, certificate_within, count_kept
from hushed.server._schema import fetch_all

if TYPE_CHECKING:
    from hushed.ledger import Ledger
    from hushed.ledger._rows import Transaction
    from hushed.server._desk import Desk

_EVERY = 3600.0  # seconds between two looks
_AT_ONCE = 100  # answers that are deleted in one transaction, and by one sweep
_OLD = "state = 'answered' AND deleted_at IS NULL AND readable_at < :before"
_LEAP = 3600.0  # seconds by which a clock may be moved


def _offset() -> float:
    """Give the time of day, counted by a clock that nobody sets."""
    return datetime.now(UTC).timestamp() - time.monotonic()


@dataclass(slots=True)
class Retention:
    """When to look for answers whose time is over. A text that is deleted too early is lost.

    So nothing is deleted any more once the clock of the machine was set by more than an hour while
    this process ran: whoever starts the server again has looked at the clock.
    """

    _began: float = field(default_factory=_offset)
    _next: float = 0.0
    damaged: set[str] = field(default_factory=set)  # requests whose answers are not what they were

    def is_due(self) -> bool:
        """Whether it is time to look again."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _EVERY
        return True

    def go_on(self) -> None:
        """Look again with the next sweep: there is more."""
        self._next = 0.0

    def trusts_clock(self) -> bool:
        """Whether the clock is the one that the server was started with."""
        return abs(_offset() - self._began) <= _LEAP


def kept_until(desk: Desk, readable: str) -> str | None:
    """Say until when an answer is kept at least; None for ever."""
    days = desk.settings.server.retention_days
    if days is None:
        return None
    until = datetime.fromisoformat(readable) + timedelta(days=days)
    return until.isoformat(timespec="microseconds")


def delete_answers(desk: Desk) -> int:
    """Delete the texts of answers whose time is over, the oldest first; how many.

    A few with each sweep, so that what was charged before a crash does not wait for all of them.
    """
    days, retention = desk.settings.server.retention_days, desk.retention
    if days is None or not retention.is_due():
        return 0
    if not retention.trusts_clock():
        desk.log("answers are not deleted", reason="the clock was set since the server was started")
        return 0
    old = _list_old(desk.ledger, days, _AT_ONCE + len(retention.damaged))
    due, damaged = [each for each in old if each.id not in retention.damaged][:_AT_ONCE], []
    if not due:
        return 0
    with telling(desk.ledger) as connection:
        for each in due:
            try:
                _delete(connection, each)
            except (DamagedLedger, NotFound):  # nothing of it was written; it keeps no other one
                damaged.append(each.id)
    for request in damaged:
        desk.log("an answer is damaged, and not deleted", request=request)
    retention.damaged.update(damaged)
    desk.log("answers were deleted", number=len(due) - len(damaged))
    if len(due) == _AT_ONCE:
        retention.go_on()
    return len(due) - len(damaged)


def count_old(ledger: Ledger, days: int | None) -> int:
    """Count the answers whose time is over, and that are there."""
    if days is None:
        return 0
    statement = f"SELECT COUNT(*) FROM @.hushed_s_requests WHERE {_OLD}"  # noqa: S608
    with reading(ledger) as connection:
        return int(run(connection, statement, {"before": _ends(days)}).fetchone()[0])


def _ends(days: int) -> str:
    """Give the moment before which an answer was readable whose time is over."""
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")


def _list_old(ledger: Ledger, days: int, most: int) -> list[Request]:
    """List the oldest that are to be deleted; by when they could be read, as all is told."""
    statement = (
        f"SELECT {COLUMNS} FROM @.hushed_s_requests WHERE {_OLD} "  # noqa: S608  (constants)
        "ORDER BY readable_at, id LIMIT :most"
    )
    with reading(ledger) as connection:
        found = fetch_all(connection, statement, before=_ends(days), most=most)
    return [Request(**each) for each in found]


def _delete(connection: Transaction, request: Request) -> None:
    """Delete the text of an answer and its certificate, which holds the same numbers."""
    text = empty_answer(connection, request.budget, request.charge()[0])
    values = {"id": request.id, "at": now(), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    run(
        connection,
        "UPDATE @.hushed_s_requests SET deleted_at = :at, answer_sha256 = :sha256 WHERE id = :id",
        values,
    )
    signed = certificate_within(connection, request.id) or ""
    statement = "DELETE FROM @.hushed_s_certificates WHERE request = :id"
    run(connection, statement, {"id": request.id})
    count_kept(connection, request.person, -len(text.encode()) - len(signed.encode()))
    add_event(connection, actor="server", action="deleted an answer", about=request.id)
