"""The trail: who did what, in a chain of digests; written in the transaction of what it tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import name_count
from hushed.errors import DamagedLedger
from hushed.ledger import Ledger
from hushed.ledger._entries import digest
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._schema import fetch_all, has_tables

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

_HEAD = "SELECT value FROM @.hushed_s_state WHERE name = 'audit'"
_MOVED = "moved"
_CHANGED = "the trail of the server was changed: {}; restore a copy, and look for who could write"


@contextmanager
def telling(ledger: Ledger) -> Iterator[Transaction]:
    """Write rows and the events that tell of them, one after the other with all who do the same.

    Whoever writes waits at the trail before anything is looked at: what is found there is still so
    when it is committed, and nobody waits for a row of somebody who waits for the trail. A charge
    takes the heads of its budgets first, and then the trail.
    """
    with writing(ledger) as connection:
        trail_head(connection, lock=True)
        yield connection


def trail_head(connection: Transaction, *, lock: bool = False) -> tuple[int, str]:
    """Give number and digest of the last event."""
    row = run(connection, _HEAD, {}, f"{_HEAD} FOR UPDATE" if lock else None).fetchone()
    told = str(row[0] if row else "")
    if told == _MOVED:
        raise DamagedLedger("this ledger was moved: the settings name the one that counts now")
    number, _, link = told.partition(":")
    if not number.isdecimal():
        raise DamagedLedger(_CHANGED.format("its head is gone"))
    return int(number), link


def leave_trail(connection: Transaction) -> None:
    """End the trail of a ledger that was moved: whoever still writes there is refused."""
    statement = "UPDATE @.hushed_s_state SET value = :value WHERE name = 'audit'"
    run(connection, statement, {"value": _MOVED})


def was_moved(ledger: Ledger) -> bool:
    """Whether a ledger in a file was moved, so that another one counts."""
    if not ledger._store.sqlite:
        return False
    with reading(ledger) as connection:
        row = run(connection, _HEAD, {}).fetchone() if has_tables(connection) else None
    return row is not None and row[0] == _MOVED


def add_event(
    connection: Transaction, *, actor: str, action: str, about: str, address: str = "", at: str = ""
) -> None:
    """Add an event; no text of a query goes here, only ids and names."""
    number, link = trail_head(connection, lock=True)
    told = {"at": at or now(), "actor": actor, "action": action, "about": about, "address": address}
    body = json.dumps(told, sort_keys=True)
    link = digest(link, f"{number + 1} {body}")
    values = {"number": number + 1, "body": body, "link": link}
    run(connection, "INSERT INTO @.hushed_s_audit VALUES (:number, :body, :link)", values)
    run(
        connection,
        "UPDATE @.hushed_s_state SET value = :value WHERE name = 'audit'",
        {"value": f"{number + 1}:{link}"},
    )


def list_events(
    connection: Transaction, *, after: int = 0, most: int = 100
) -> list[dict[str, Any]]:
    """List events in their order, up to the first one that may not be seen yet."""
    found = fetch_all(
        connection,
        "SELECT number, body FROM @.hushed_s_audit WHERE number > :after ORDER BY number "
        "LIMIT :most",
        after=after,
        most=most,
    )
    told = [{"number": each["number"], **json.loads(each["body"])} for each in found]
    moment = now()
    return list(takewhile(lambda event: event["at"] <= moment, told))


def told_after(connection: Transaction, number: int) -> set[str]:
    """List what the events after a number are about."""
    statement = "SELECT body FROM @.hushed_s_audit WHERE number > :number"
    found = fetch_all(connection, statement, number=number)
    return {str(json.loads(each["body"])["about"]) for each in found}


def verify_trail(connection: Transaction) -> str:
    """Check the chain from end to end; ``NUMBER:DIGEST`` of its end, to be kept elsewhere."""
    end, link, number = trail_head(connection), "", 0
    found = fetch_all(
        connection, "SELECT number, body, digest FROM @.hushed_s_audit ORDER BY number"
    )
    for number, each in enumerate(found, start=1):
        link = digest(link, f"{number} {each['body']}")
        if each["number"] != number or each["digest"] != link:
            raise DamagedLedger(_CHANGED.format(f"event {number} is not the one that was written"))
    if (number, link) != end:
        raise DamagedLedger(
            _CHANGED.format(f"it has {name_count(number, 'event')}, its head says {end[0]}")
        )
    return f"{number}:{link}"
