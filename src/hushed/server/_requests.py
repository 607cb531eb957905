"""Requests as rows: each is written in the transaction of its charge, and answered once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from hushed.errors import DamagedLedger
from hushed.ledger import Ledger
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._schema import fetch_all, fetch_one

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

State = Literal["charged", "answered", "failed"]
_COLUMNS = (
    "id, person, dataset, key, digest, body, state, budget, entry, quota, quota_entry, question, "
    "attempts, charged_at, done_at, readable_at"
)


class KeyTaken(Exception):
    """Somebody was faster with the same key; nothing was charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, as it is written down."""

    id: str
    person: str
    dataset: str
    key: str  # the caller's own name for it
    digest: str  # of what was asked, and for how much
    body: str  # what was asked, as JSON
    state: State
    budget: str
    entry: int  # the charge of the data set's budget
    quota: str  # the person's share
    quota_entry: int
    question: str  # digest of the prepared query: what the ledger's entries say was charged
    attempts: int
    charged_at: str
    done_at: str | None = None
    readable_at: str | None = None

    def shown_state(self) -> State:
        """Give the state as it may be told: an answer is there when its time has come.

        A clock that was set back does not hide what was readable before it was set.
        """
        if self.state == "charged" or self.readable_at is None or self.done_at is None:
            return "charged"
        moment = datetime.now(UTC)
        done, readable = map(datetime.fromisoformat, (self.done_at, self.readable_at))
        return self.state if moment >= readable or moment < done else "charged"

    def wait(self) -> float:
        """Give the seconds until an answer that is there may be read."""
        if self.readable_at is None or self.shown_state() != "charged":
            return 0.0
        left = datetime.fromisoformat(self.readable_at) - datetime.now(UTC)
        return max(0.0, left.total_seconds())


def insert_request(connection: Transaction, request: Request) -> None:
    """Write a request, in the transaction of its charge."""
    values = {name: getattr(request, name) for name in _COLUMNS.split(", ")}
    done = run(
        connection,
        f"INSERT INTO @.hushed_s_requests ({_COLUMNS}) VALUES "  # noqa: S608  (constants)
        f"({', '.join(f':{name}' for name in values)}) ON CONFLICT DO NOTHING",
        values,
    )
    if done.rowcount != 1:
        raise KeyTaken


def find_by_key(ledger: Ledger, person: str, key: str) -> Request | None:
    """Find the request that somebody made under a key."""
    return _find(ledger, "person = :person AND key = :key", person=person, key=key)


def find_request(ledger: Ledger, identity: str, person: str | None = None) -> Request | None:
    """Find a request; of one person alone, if one is given: the database looks for no other."""
    if person is None:
        return _find(ledger, "id = :id", id=identity)
    return _find(ledger, "id = :id AND person = :person", id=identity, person=person)


def _find(ledger: Ledger, where: str, **values: str) -> Request | None:
    with reading(ledger) as connection:
        statement = f"SELECT {_COLUMNS} FROM @.hushed_s_requests WHERE {where}"  # noqa: S608
        found = fetch_one(connection, statement, **values)
    return None if found is None else Request(**found)


def list_requests(
    ledger: Ledger, *, person: str | None, cursor: str, most: int
) -> tuple[Request, ...]:
    """List requests, the newest first, older than a cursor."""
    own = "" if person is None else "AND person = :person "
    before = "AND charged_at < :cursor " if cursor else ""
    values: dict[str, Any] = {"most": most}
    values |= {} if person is None else {"person": person}
    values |= {"cursor": cursor} if cursor else {}
    statement = (
        f"SELECT {_COLUMNS} FROM @.hushed_s_requests WHERE 1 = 1 {own}{before}"  # noqa: S608
        "ORDER BY charged_at DESC, id LIMIT :most"
    )
    with reading(ledger) as connection:
        return tuple(Request(**each) for each in fetch_all(connection, statement, **values))


def list_open(ledger: Ledger) -> tuple[Request, ...]:
    """List what is charged and has no answer, the oldest first."""
    with reading(ledger) as connection:
        statement = (
            f"SELECT {_COLUMNS} FROM @.hushed_s_requests WHERE state = 'charged' "  # noqa: S608
            "ORDER BY charged_at, id"
        )
        return tuple(Request(**each) for each in fetch_all(connection, statement))


def count_open(ledger: Ledger, person: str) -> int:
    """Count what somebody waits for: an answer that may not be seen yet counts, too."""
    with reading(ledger) as connection:
        return count_open_within(connection, person)


def count_open_within(connection: Transaction, person: str) -> int:
    """Count them in a transaction that is under way."""
    statement = (
        "SELECT COUNT(*) AS number FROM @.hushed_s_requests "
        "WHERE person = :person AND (state = 'charged' OR done_at <= :now AND readable_at > :now)"
    )
    found = fetch_one(connection, statement, person=person, now=now())
    return 0 if found is None else int(found["number"])


def count_attempt(ledger: Ledger, request: Request, most: int) -> bool:
    """Count one more attempt, before it begins; False if there were enough."""
    with writing(ledger) as connection:
        done = run(
            connection,
            "UPDATE @.hushed_s_requests SET attempts = attempts + 1 "
            "WHERE id = :id AND state = 'charged' AND attempts < :most",
            {"id": request.id, "most": most},
        )
        return bool(done.rowcount == 1)


def return_attempt(ledger: Ledger, request: Request) -> None:
    """Count an attempt no more, for it read no row: whoever paid does not lose by it."""
    with writing(ledger) as connection:
        run(
            connection,
            "UPDATE @.hushed_s_requests SET attempts = attempts - 1 "
            "WHERE id = :id AND state = 'charged' AND attempts > 0",
            {"id": request.id},
        )


def end_request(connection: Transaction, request: Request, state: State, grid: float) -> str:
    """Write down that a request has its answer, or has failed, once; when it may be seen."""
    done = now()
    readable = readable_at(request.charged_at, done, grid)
    found = run(
        connection,
        "UPDATE @.hushed_s_requests SET state = :state, done_at = :done, readable_at = :readable "
        "WHERE id = :id AND state = 'charged'",
        {"state": state, "done": done, "readable": readable, "id": request.id},
    )
    if found.rowcount != 1:
        raise DamagedLedger(f"the request {request.id} was ended by somebody else")
    return readable


def readable_at(charged: str, done: str, grid: float) -> str:
    """Give the first moment on the grid, counted from the charge, that is not before the end."""
    start, end = map(datetime.fromisoformat, (charged, done))
    if grid <= 0:
        return done
    step = timedelta(seconds=grid)
    steps = -((start - end) // step) or 1  # below zero if the clock was set back
    return (start + steps * step).isoformat(timespec="microseconds")


def insert_certificate(connection: Transaction, request: str, body: str) -> None:
    """Store the certificate of an answer."""
    values = {"request": request, "body": body}
    run(connection, "INSERT INTO @.hushed_s_certificates VALUES (:request, :body)", values)


def find_certificate(ledger: Ledger, request: str) -> str | None:
    """Find the certificate of an answer."""
    with reading(ledger) as connection:
        statement = "SELECT body FROM @.hushed_s_certificates WHERE request = :id"
        found = fetch_one(connection, statement, id=request)
    return None if found is None else str(found["body"])
