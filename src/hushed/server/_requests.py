"""Requests as rows: each is written in the transaction of its charge, and answered once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from hushed.errors import DamagedLedger
from hushed.ledger import Ledger
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._schema import BESIDES, fetch_all, fetch_one

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

State = Literal["pending", "charged", "answered", "failed", "declined", "cancelled", "expired"]
GONE = "who asked was let out, or the token was revoked"
NO_SHARE = "the share of who asked was taken away"
_ENDED = ("answered", "failed")  # after a charge: told when the time has come
COLUMNS = (
    "id, person, dataset, key, digest, body, state, token, asked_at, budget, entry, quota, "
    "quota_entry, question, attempts, charged_at, done_at, readable_at, decided_by, reason, "
    "deleted_at, answer_sha256"
)

_UNTOLD = "readable_at > :now AND done_at <= :now"
OPEN = (  # both by an index alone
    "SELECT (SELECT COUNT(*) FROM @.hushed_s_requests WHERE person = :person "  # noqa: S608
    "AND state = 'charged') + (SELECT COUNT(*) FROM @.hushed_s_requests WHERE person = :person "
    f"AND {_UNTOLD}) AS number"
)
# Bytes that a person `o` takes: an answer counts when it can be read, or it would tell its end.
KEPT = (  # a sum of whole numbers is none on PostgreSQL
    "o.kept - CAST(COALESCE((SELECT SUM(size) FROM @.hushed_s_requests "  # noqa: S608
    f"WHERE person = o.id AND {_UNTOLD}), 0) AS BIGINT) AS kept"
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
    token: str  # id of the token that was shown
    asked_at: str
    budget: str
    entry: int | None = None  # the charge of the data set's budget; none without a charge
    quota: str  # the person's share
    quota_entry: int | None = None
    question: str  # digest of the prepared query: what the ledger's entries say was charged
    attempts: int = 0
    charged_at: str | None = None
    done_at: str | None = None
    readable_at: str | None = None
    decided_by: str | None = None  # the steward who approved or declined
    reason: str | None = None  # of a refusal, in the steward's words
    deleted_at: str | None = None  # when the text of its answer was deleted
    answer_sha256: str | None = None  # of that text

    def charge(self) -> tuple[int, str]:
        """Give number and time of the charge."""
        if self.entry is None or self.charged_at is None:
            raise DamagedLedger(f"the request {self.id} is {self.state}, and has no charge")
        return self.entry, self.charged_at

    def has_ended(self) -> bool:
        """Whether it was answered or has failed, told or not."""
        return self.state in _ENDED

    def shown_state(self) -> State:
        """Give the state as it may be told: an answer is there when its time has come.

        A clock that was set back does not hide what was readable before it was set.
        """
        if not self.has_ended() or self.readable_at is None or self.done_at is None:
            return self.state
        moment = datetime.now(UTC)
        done, readable = map(datetime.fromisoformat, (self.done_at, self.readable_at))
        return self.state if moment >= readable or moment < done else "charged"

    def next_look(self, grid: float) -> float:
        """Give the seconds until the next moment at which an answer may become readable."""
        moment, charged = datetime.now(UTC), datetime.fromisoformat(self.charge()[1])
        if self.readable_at is not None:
            left = datetime.fromisoformat(self.readable_at) - moment
            return max(0.0, left.total_seconds())
        return grid - (moment - charged).total_seconds() % grid


def insert_request(connection: Transaction, request: Request) -> None:
    """Write a request, in the transaction of its charge."""
    values = {name: getattr(request, name) for name in COLUMNS.split(", ")}
    done = run(
        connection,
        f"INSERT INTO @.hushed_s_requests ({COLUMNS}) VALUES "  # noqa: S608  (constants)
        f"({', '.join(f':{name}' for name in values)}) ON CONFLICT DO NOTHING",
        values,
    )
    if done.rowcount != 1:
        raise KeyTaken
    count_kept(connection, request.person, BESIDES + len(request.body.encode()))


def count_kept(connection: Transaction, person: str, size: int) -> None:
    """Count bytes that are kept of what somebody asked, or, below 0, are kept no more.

    In a transaction that has the trail: nobody else counts at the same time.
    """
    statement = "UPDATE @.hushed_s_people SET kept = kept + :size WHERE id = :person"
    run(connection, statement, {"size": size, "person": person})


def find_by_key(connection: Transaction, person: str, key: str) -> Request | None:
    """Find the request that somebody made under a key."""
    return _find(connection, "person = :person AND key = :key", person=person, key=key)


def find_ids(ledger: Ledger, keys: Sequence[str]) -> set[str]:
    """Find which keys of charges are ids of requests; others are of shares, or of what was spent.

    A charge by hand may have any key.
    """
    if not keys:
        return set()
    named = {f"key{number}": each for number, each in enumerate(keys)}
    places = ", ".join(f":{name}" for name in named)
    statement = f"SELECT id FROM @.hushed_s_requests WHERE id IN ({places})"  # noqa: S608
    with reading(ledger) as connection:
        return {str(each["id"]) for each in fetch_all(connection, statement, **named)}


def find_request(ledger: Ledger, identity: str, person: str | None = None) -> Request | None:
    """Find a request; of one person alone, if one is given: the database looks for no other."""
    with reading(ledger) as connection:
        if person is None:
            return _find(connection, "id = :id", id=identity)
        return _find(connection, "id = :id AND person = :person", id=identity, person=person)


def _find(connection: Transaction, where: str, **values: str) -> Request | None:
    statement = f"SELECT {COLUMNS} FROM @.hushed_s_requests WHERE {where}"  # noqa: S608
    found = fetch_one(connection, statement, **values)
    return None if found is None else Request(**found)


def list_requests(
    ledger: Ledger,
    *,
    person: str | None,
    cursor: str,
    most: int,
    state: str | None = None,
    datasets: Sequence[str] | None = None,
) -> tuple[Request, ...]:
    """List requests, the newest first, after that of a cursor; of some data sets, if given.

    The database looks for no other ones: where a page ends would tell of them.
    """
    if datasets is not None and not datasets:
        return ()
    named = {f"dataset{number}": each for number, each in enumerate(datasets or ())}
    own = "" if person is None else "AND person = :person "
    own += "" if state is None else "AND state = :state "
    own += f"AND dataset IN ({', '.join(f':{name}' for name in named)}) " if named else ""
    at, _, after = cursor.partition("_")  # several web processes may take two in one microsecond
    before = "AND asked_at <= :at AND (asked_at < :at OR id > :after) " if cursor else ""
    values: dict[str, Any] = {"most": most} | named
    values |= {} if person is None else {"person": person}
    values |= {} if state is None else {"state": state}
    values |= {"at": at, "after": after} if cursor else {}
    statement = (
        f"SELECT {COLUMNS} FROM @.hushed_s_requests WHERE 1 = 1 {own}{before}"  # noqa: S608
        "ORDER BY asked_at DESC, id LIMIT :most"
    )
    with reading(ledger) as connection:
        return tuple(Request(**each) for each in fetch_all(connection, statement, **values))


def list_open(ledger: Ledger) -> tuple[Request, ...]:
    """List what is charged and has no answer, the oldest first."""
    with reading(ledger) as connection:
        statement = (
            f"SELECT {COLUMNS} FROM @.hushed_s_requests WHERE state = 'charged' "  # noqa: S608
            "ORDER BY charged_at, id"
        )
        return tuple(Request(**each) for each in fetch_all(connection, statement))


def list_open_within(connection: Transaction, person: str) -> tuple[Request, ...]:
    """List what `count_open` counts, in a transaction that is under way."""
    statement = (
        f"SELECT {COLUMNS} FROM @.hushed_s_requests WHERE person = :person "  # noqa: S608
        f"AND (state = 'charged' OR ({_UNTOLD}))"
    )
    found = fetch_all(connection, statement, person=person, now=now())
    return tuple(Request(**each) for each in found)


def count_charged(ledger: Ledger) -> dict[str, int]:
    """Count what is charged and has no answer, of everybody, by data set."""
    with reading(ledger) as connection:
        statement = (
            "SELECT dataset, COUNT(*) AS number FROM @.hushed_s_requests WHERE state = 'charged' "
            "GROUP BY dataset"
        )
        found = fetch_all(connection, statement)
    return {str(each["dataset"]): int(each["number"]) for each in found}


def count_open(connection: Transaction, person: str) -> int:
    """Count what somebody waits for: an answer that may not be seen yet counts, too."""
    found = fetch_one(connection, OPEN, person=person, now=now())
    return 0 if found is None else int(found["number"])


def count_pending(connection: Transaction, person: str) -> int:
    """Count what somebody has waiting for approval."""
    statement = (
        "SELECT COUNT(*) AS number FROM @.hushed_s_requests "
        "WHERE person = :person AND state = 'pending'"
    )
    found = fetch_one(connection, statement, person=person)
    return 0 if found is None else int(found["number"])


def decide(
    connection: Transaction, request: str, state: State, *, by: str | None = None, reason: str = ""
) -> bool:
    """End the wait of a request that is pending; False if it waits no more."""
    done = run(
        connection,
        "UPDATE @.hushed_s_requests SET state = :state, decided_by = :by, reason = :reason, "
        "done_at = :at WHERE id = :id AND state = 'pending'",
        {"id": request, "state": state, "by": by, "reason": reason or None, "at": now()},
    )
    return bool(done.rowcount == 1)


def decline_gone(
    connection: Transaction, *, token: str = "", person: str = "", dataset: str = ""
) -> list[str]:
    """End what waits of a token that is stopped, or of somebody let out, as of one data set."""
    statement = (
        "SELECT id FROM @.hushed_s_requests WHERE state = 'pending' "
        "AND (token = :token OR person = :person) AND (:dataset = '' OR dataset = :dataset)"
    )
    values = {"token": token, "person": person, "dataset": dataset}
    reason = NO_SHARE if dataset else GONE
    return _decline_found(connection, fetch_all(connection, statement, **values), reason)


def decline_all(connection: Transaction) -> list[str]:
    """End all that waits, where no token counts any more."""
    statement = "SELECT id FROM @.hushed_s_requests WHERE state = 'pending'"
    return _decline_found(connection, fetch_all(connection, statement), GONE)


def _decline_found(
    connection: Transaction, found: Sequence[dict[str, Any]], reason: str
) -> list[str]:
    ended = [each["id"] for each in found]
    return [each for each in ended if decide(connection, each, "declined", reason=reason)]


def charge_pending(connection: Transaction, request: Request) -> bool:
    """Write the charge of a request that was pending; False if it waits no more."""
    names = ["state", "budget", "entry", "quota", "quota_entry", "question", "attempts"]
    names += ["charged_at", "decided_by"]
    values = {name: getattr(request, name) for name in (*names, "id")}
    told = ", ".join(f"{name} = :{name}" for name in names)
    statement = f"UPDATE @.hushed_s_requests SET {told} WHERE id = :id AND state = 'pending'"  # noqa: S608
    return bool(run(connection, statement, values).rowcount == 1)


def list_late(ledger: Ledger, before: str) -> tuple[Request, ...]:
    """List what is pending and was asked before a moment."""
    with reading(ledger) as connection:
        statement = (
            f"SELECT {COLUMNS} FROM @.hushed_s_requests WHERE state = 'pending' "  # noqa: S608
            "AND asked_at < :before"
        )
        return tuple(Request(**each) for each in fetch_all(connection, statement, before=before))


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


def return_attempt(ledger: Ledger, identity: str) -> None:
    """Count an attempt at a request no more: whoever paid does not lose by what was cut off."""
    with writing(ledger) as connection:
        run(
            connection,
            "UPDATE @.hushed_s_requests SET attempts = attempts - 1 "
            "WHERE id = :id AND state = 'charged' AND attempts > 0",
            {"id": identity},
        )


def end_request(
    connection: Transaction, request: Request, state: State, grid: float, size: int = 0
) -> str:
    """Write down that a request has its answer, or has failed, once; when it may be seen."""
    count_kept(connection, request.person, size)
    done = now()
    readable = readable_at(request.charge()[1], done, grid)
    found = run(
        connection,
        "UPDATE @.hushed_s_requests SET state = :state, done_at = :done, readable_at = :readable, "
        "size = :size WHERE id = :id AND state = 'charged'",
        {"state": state, "done": done, "readable": readable, "size": size, "id": request.id},
    )
    if found.rowcount != 1:
        raise DamagedLedger(f"the request {request.id} was ended by somebody else")
    return readable


def readable_at(charged: str, done: str, grid: float) -> str:
    """Give the first moment on the grid, counted from the charge, that is not before the end."""
    start, end = map(datetime.fromisoformat, (charged, done))
    step = timedelta(seconds=grid)
    if step <= timedelta(0):  # below a microsecond it is none
        return done
    steps = -((start - end) // step) or 1  # below zero if the clock was set back
    return (start + steps * step).isoformat(timespec="microseconds")


def insert_certificate(connection: Transaction, request: str, body: str) -> None:
    """Store the certificate of an answer."""
    values = {"request": request, "body": body}
    run(connection, "INSERT INTO @.hushed_s_certificates VALUES (:request, :body)", values)


def find_certificate(ledger: Ledger, request: str) -> str | None:
    """Find the certificate of an answer."""
    with reading(ledger) as connection:
        return certificate_within(connection, request)


def certificate_within(connection: Transaction, request: str) -> str | None:
    """Find it in a transaction that is under way."""
    statement = "SELECT body FROM @.hushed_s_certificates WHERE request = :id"
    found = fetch_one(connection, statement, id=request)
    return None if found is None else str(found["body"])
