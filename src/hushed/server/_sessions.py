"""Sessions of pages: an address that opens them once becomes a cookie that counts for some hours.

Both are tokens, kept as a digest alone. What one may do is handed on from the address to its
session, and so is who made it. To revoke a session, or to let its person out, ends it at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from hushed.ledger import Ledger
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.server._audit import add_event, telling
from hushed.server._config import ServerSettings
from hushed.server._people import Caller, find_caller, insert_token
from hushed.server._schema import fetch_one

LIFE = timedelta(hours=8)
PAGES = "/pages"
ENTER = f"{PAGES}/enter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session that was opened, and what its browser is told to keep."""

    person: str
    cookie: str


def write_address(settings: ServerSettings, token: str) -> str:
    """Write an address that opens the pages once.

    Browsers keep what stands behind ``#`` to themselves: no server and no proxy is sent it, and no
    log or link to elsewhere has it.
    """
    return f"{settings.address}{ENTER}#{token}"


def open_session(ledger: Ledger, text: str, address: str) -> Session | None:
    """Exchange what opens the pages once for a session; None if it does not count."""
    door = find_caller(ledger, text, address, "door")
    if door is None:
        return None
    with telling(ledger) as connection:
        used = run(
            connection,
            "UPDATE @.hushed_s_tokens SET revoked = :at WHERE id = :id AND revoked IS NULL",
            {"at": now(), "id": door.token},
        )
        if used.rowcount != 1:  # somebody was faster
            return None
        statement = "SELECT maker FROM @.hushed_s_tokens WHERE id = :id"
        made = fetch_one(connection, statement, id=door.token)
        identity, cookie = insert_token(
            connection,
            door.id,
            scope=replace(door.scope, use="page"),
            maker="" if made is None else made["maker"],  # four eyes ask who is behind it
            life=LIFE,
        )
        about = f"{door.name} {identity}"
        add_event(connection, actor=door.name, action="signed in", about=about, address=address)
    return Session(person=door.id, cookie=cookie)


def close_session(ledger: Ledger, caller: Caller) -> None:
    """End a session as if its time were over: what was asked in it goes on waiting."""
    with telling(ledger) as connection:
        values = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "id": caller.token}
        run(connection, "UPDATE @.hushed_s_tokens SET expires = :at WHERE id = :id", values)
        about = f"{caller.name} {caller.token}"
        add_event(connection, actor=caller.name, action="signed out", about=about)
