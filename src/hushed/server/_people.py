"""People, their tokens and their shares of budgets."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from hushed.errors import NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import has_key, reading, reading_in_turn, writing
from hushed.server._audit import add_event, telling
from hushed.server._daily import Daily, read_daily
from hushed.server._requests import KEPT, OPEN, decline_gone
from hushed.server._schema import fetch_all, fetch_one
from hushed.server._tokens import LONGEST_DAYS, Scope, Use, is_secret, make_token, split_token

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

Role = Literal["analyst", "steward"]
MACHINE = "at the machine"  # who acts with the commands; the name of no person
SHARE = "share "  # with which the key of a charge begins that is no request, but a share set aside
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_NOBODY = f"hsh_{'0' * 12}_{'A' * 43}_00000000"
# What `read_grant` looks at, of a share g.
GRANT = "g.dataset, g.budget, g.reserved, g.per_day, g.day, g.day_spent"
# What `judge_caller` looks at, of a token t and its person p.
CALLER = (
    "t.digest AS token_digest, t.scope, t.expires, t.revoked, t.last_used, "
    "p.id AS person_id, p.name AS person_name, p.role, p.active"
)

_COUNTS = (
    "SELECT 1 AS one FROM @.hushed_s_tokens t JOIN @.hushed_s_people p ON p.id = t.person "
    "WHERE t.id = :token AND t.revoked IS NULL AND p.active = 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who showed a token that counts."""

    id: str
    name: str
    role: Role
    token: str
    expires: str
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person's share of a data set: a budget of its own, below that of the data set.

    A share that is set aside was charged to the data set as a whole when it was given; what is
    spent of it is charged to the share alone, as long as the data set has that budget.
    """

    dataset: str
    budget: str
    reserved: bool = False
    daily: Daily | None = None


def add_person(ledger: Ledger, name: str, role: Role, *, actor: str) -> str:
    """Add somebody; the id."""
    check_person(name, role)
    identity = str(uuid.uuid4())
    with telling(ledger) as connection:
        insert_person(connection, identity, name, role, actor=actor)
    return identity


def check_person(name: str, role: Role) -> None:
    """Refuse a name or a role that nobody has."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(
            "a name is 1 to 64 of the letters A-Z a-z 0-9 . _ @ -, and begins with a letter or "
            "a digit"
        )
    if name.lower() == "server":
        raise ParameterError("the trail calls the server itself by that name: choose another one")
    if role not in ("analyst", "steward"):
        raise ParameterError("a role is analyst or steward", parameter="role")


def insert_person(
    connection: Transaction, identity: str, name: str, role: Role, *, actor: str
) -> None:
    """Write somebody new, in a transaction that has the trail."""
    alike = fetch_one(
        connection,
        "SELECT name FROM @.hushed_s_people WHERE LOWER(name) = LOWER(:name) AND name <> :name",
        name=name,
    )
    if alike is not None:
        raise ParameterError(
            f"there is somebody called {alike['name']!r} already, and {name!r} differs from that "
            "in its capitals alone: spell it as it is, or choose another name",
            parameter="name",
        )
    made = run(
        connection,
        "INSERT INTO @.hushed_s_people VALUES (:id, :name, :role, 1, :made, 0) "
        "ON CONFLICT DO NOTHING",
        {"id": identity, "name": name, "role": role, "made": now()},
    )
    if made.rowcount != 1:
        raise ParameterError(f"there is somebody called {name!r} already", parameter="name")
    add_event(connection, actor=actor, action=f"added {role}", about=name)


def set_active(ledger: Ledger, person: str, active: bool, *, actor: str) -> int:
    """Let somebody in again, or out: all tokens stop counting at once, and never count again.

    Gives how many requests that waited for approval are declined.
    """
    with telling(ledger) as connection:
        return write_active(connection, person, active, actor=actor)


def write_active(connection: Transaction, person: str, active: bool, *, actor: str) -> int:
    """Do what `set_active` does, in a transaction that has the trail."""
    found = require_person(connection, person)
    values = {"id": person, "active": int(active)}
    run(connection, "UPDATE @.hushed_s_people SET active = :active WHERE id = :id", values)
    action = "let in" if active else "let out"
    add_event(connection, actor=actor, action=action, about=found["name"])
    if active:
        return 0
    statement = "UPDATE @.hushed_s_tokens SET revoked = :at WHERE person = :id AND revoked IS NULL"
    run(connection, statement, {"at": now(), "id": person})
    return _tell_gone(connection, decline_gone(connection, person=person))


def _tell_gone(connection: Transaction, requests: list[str]) -> int:
    for each in requests:
        add_event(connection, actor="server", action="declined", about=each)
    return len(requests)


def require_person(connection: Transaction, person: str) -> dict[str, Any]:
    """Find somebody by the id."""
    statement = "SELECT id, name, role, active, made FROM @.hushed_s_people WHERE id = :id"
    found = fetch_one(connection, statement, id=person)
    if found is None:
        raise NotFound("there is no such person")
    return found


def list_people(ledger: Ledger) -> list[dict[str, Any]]:
    """List people with their tokens, and nothing that opens a door."""
    with reading(ledger) as connection:
        people = fetch_all(
            connection,
            f"SELECT id, name, role, active, made, {KEPT} "  # noqa: S608
            "FROM @.hushed_s_people o ORDER BY name",
            now=now(),
        )
        tokens = fetch_all(
            connection,
            "SELECT id, person, scope, made, expires, revoked, last_used FROM @.hushed_s_tokens "
            "ORDER BY made",
        )
    for each in people:
        own = [token for token in tokens if token["person"] == each["id"]]
        each["active"] = bool(each["active"])
        each["tokens"] = [_told(token) for token in own]
    return people


def list_approvers(ledger: Ledger) -> list[str]:
    """List the stewards who can approve: with a token that was made at the machine and counts."""
    with reading(ledger) as connection:
        found = fetch_all(
            connection,
            "SELECT p.name, t.expires, t.scope FROM @.hushed_s_tokens t "
            "JOIN @.hushed_s_people p ON p.id = t.person WHERE p.role = 'steward' "
            "AND p.active = 1 AND t.revoked IS NULL AND t.maker = :machine",
            machine=MACHINE,
        )
    moment = datetime.now(UTC)
    return sorted(
        {
            str(each["name"])
            for each in found
            if datetime.fromisoformat(each["expires"]) > moment
            and not Scope.from_json(each["scope"]).quote_only
        }
    )


def _told(token: dict[str, Any]) -> dict[str, Any]:
    scope = Scope.from_json(token["scope"])
    told = {name: token[name] for name in ("id", "made", "expires", "revoked", "last_used")}
    narrowed = {"quote_only": scope.quote_only, "addresses": list(scope.addresses)}
    narrowed |= {"use": scope.use}
    datasets = None if scope.datasets is None else list(scope.datasets)
    return {**told, "datasets": datasets, **narrowed}


def add_token(
    ledger: Ledger, person: str, *, days: float, scope: Scope | None = None, actor: str
) -> tuple[str, str]:
    """Make a token for somebody: its id, and the text, which is shown now and never again."""
    check_days(days)
    with telling(ledger) as connection:
        return tell_token(connection, person, days=days, scope=scope or Scope(), actor=actor)


def check_days(days: float) -> None:
    """Refuse a token that counts too long."""
    if not 0 < days <= LONGEST_DAYS:
        raise ParameterError(f"a token counts for at most {LONGEST_DAYS} days", parameter="days")


def tell_token(
    connection: Transaction, person: str, *, days: float, scope: Scope, actor: str
) -> tuple[str, str]:
    """Write a new token and its event, in a transaction that has the trail."""
    found = require_person(connection, person)
    identity, text = insert_token(
        connection, person, scope=scope, maker=actor, life=timedelta(days=days)
    )
    about = f"{found['name']} {identity}"
    add_event(connection, actor=actor, action="made a token", about=about)
    return identity, text


def insert_token(
    connection: Transaction, person: str, *, scope: Scope, maker: str, life: timedelta
) -> tuple[str, str]:
    """Write a new token, in a transaction whose event tells of it: its id, and the text."""
    identity, text, kept = make_token()
    values = {
        "id": identity,
        "person": person,
        "digest": kept,
        "scope": scope.to_json(),
        "maker": maker,
        "made": now(),
        "expires": (datetime.now(UTC) + life).isoformat(timespec="seconds"),
    }
    run(
        connection,
        "INSERT INTO @.hushed_s_tokens (id, person, digest, scope, maker, made, expires) "
        "VALUES (:id, :person, :digest, :scope, :maker, :made, :expires)",
        values,
    )
    return identity, text


def revoke_token(ledger: Ledger, token: str, *, actor: str) -> int:
    """Stop a token at once; how many requests that waited for approval are declined."""
    with telling(ledger) as connection:
        found = fetch_one(
            connection,
            "SELECT p.name FROM @.hushed_s_tokens t JOIN @.hushed_s_people p ON p.id = t.person "
            "WHERE t.id = :id AND t.revoked IS NULL",
            id=token,
        )
        if found is None:
            raise NotFound("there is no such token, or it was revoked before")
        values = {"at": now(), "id": token}
        run(connection, "UPDATE @.hushed_s_tokens SET revoked = :at WHERE id = :id", values)
        about = f"{found['name']} {token}"
        add_event(connection, actor=actor, action="revoked a token", about=about)
        return _tell_gone(connection, decline_gone(connection, token=token))


def take_share(ledger: Ledger, person: str, dataset: str, *, actor: str) -> int:
    """Take a share away: its person asks that data set no more; what was spent stays spent.

    Gives how many requests that waited for approval are declined.
    """
    with telling(ledger) as connection:
        found = require_person(connection, person)
        done = run(
            connection,
            "UPDATE @.hushed_s_grants SET ended = :at WHERE person = :person "
            "AND dataset = :dataset AND ended IS NULL",
            {"at": now(), "person": person, "dataset": dataset},
        )
        if not done.rowcount:
            raise NotFound(
                f"{found['name']} has no share of {dataset!r}; hushed serve people lists them"
            )
        about = f"{found['name']} {dataset}"
        add_event(connection, actor=actor, action="took a share away", about=about)
        return _tell_gone(connection, decline_gone(connection, person=person, dataset=dataset))


def find_caller(ledger: Ledger, text: str, address: str, use: Use = "api") -> Caller | None:
    """Find who shows a token; None for any that does not count here, whatever the reason."""
    told = split_token(text)
    identity = "0" * 12 if told is None else told[0]
    with reading_in_turn(ledger) as connection:
        found = fetch_one(
            connection,
            f"SELECT {CALLER} FROM @.hushed_s_tokens t "  # noqa: S608  (constants)
            "JOIN @.hushed_s_people p ON p.id = t.person WHERE t.id = :id",
            id=identity,
        )
    caller = judge_caller(found, told, address, use)
    if caller is None or found is None:
        return None
    today = datetime.now(UTC).date().isoformat()
    if found["last_used"] != today:
        values = {"id": identity, "day": today}
        with writing(ledger) as connection:
            statement = "UPDATE @.hushed_s_tokens SET last_used = :day WHERE id = :id"
            run(connection, statement, values)
    return caller


def judge_caller(
    found: dict[str, Any] | None, told: tuple[str, str] | None, address: str, use: Use
) -> Caller | None:
    """Give whose token was shown, from the row of its id; None if it does not count here."""
    identity, secret = told or ("", _NOBODY)
    same = is_secret(secret, None if found is None else found["token_digest"])
    if told is None or found is None or not same or found["revoked"] is not None:
        return None
    scope = Scope.from_json(found["scope"])
    late = datetime.fromisoformat(found["expires"]) <= datetime.now(UTC)
    if late or not found["active"] or not scope.allows_address(address) or scope.use != use:
        return None
    return Caller(
        id=found["person_id"],
        name=found["person_name"],
        role=found["role"],
        token=identity,
        expires=found["expires"],
        scope=scope,
    )


def token_counts(connection: Transaction, token: str) -> bool:
    """Whether a token that was good a moment ago was not stopped since, nor its person."""
    return fetch_one(connection, _COUNTS, token=token) is not None


def find_counting(connection: Transaction, person: str, grant: Grant) -> Grant | None:
    """Find a share as it is now, if it is still the one that counts."""
    statement = (
        f"SELECT {GRANT} FROM @.hushed_s_grants g WHERE person = :person "  # noqa: S608
        "AND dataset = :dataset AND budget = :budget AND ended IS NULL"
    )
    values = {"person": person, "dataset": grant.dataset, "budget": grant.budget}
    found = fetch_one(connection, statement, **values)
    return None if found is None else read_grant(found)


def find_counting_of(
    connection: Transaction, token: str, person: str, grant: Grant
) -> tuple[bool, Grant | None, int, int]:
    """Say by one look what `token_counts`, `find_counting` and `count_open` say; and bytes kept."""
    found = fetch_one(
        connection,
        f"SELECT ({_COUNTS}) AS counts, ({OPEN}) AS waiting, {KEPT}, {GRANT} "  # noqa: S608
        "FROM @.hushed_s_people o LEFT JOIN @.hushed_s_grants g ON g.person = o.id "
        "AND g.dataset = :dataset AND g.budget = :budget AND g.ended IS NULL WHERE o.id = :person",
        token=token,
        person=person,
        dataset=grant.dataset,
        budget=grant.budget,
        now=now(),
    )
    if found is None:
        return False, None, 0, 0
    share = None if found["dataset"] is None else read_grant(found)
    return found["counts"] is not None, share, int(found["waiting"]), int(found["kept"])


def is_set_aside(ledger: Ledger, grant: Grant, above: str) -> bool:
    """Whether this budget has paid for a share as a whole.

    Not so where the data set had another budget when the share was set aside: it is a cap now.
    """
    if not grant.reserved:
        return False
    with suppress(NotFound):  # a budget that the settings alone know has paid nothing
        return has_key(ledger, above, f"{SHARE}{grant.budget}")
    return False


def list_grants(ledger: Ledger, person: str) -> tuple[Grant, ...]:
    """List the shares of somebody that count."""
    with reading(ledger) as connection:
        return list_grants_within(connection, person)


def list_grants_within(connection: Transaction, person: str) -> tuple[Grant, ...]:
    """List them in a transaction that is under way."""
    found = fetch_all(
        connection,
        f"SELECT {GRANT} FROM @.hushed_s_grants g WHERE person = :person "  # noqa: S608
        "AND ended IS NULL ORDER BY dataset",
        person=person,
    )
    return tuple(read_grant(each) for each in found)


def read_grant(row: dict[str, Any]) -> Grant:
    """Read a share from its row."""
    return Grant(
        dataset=row["dataset"],
        budget=row["budget"],
        reserved=bool(row["reserved"]),
        daily=read_daily(row),
    )


def list_shares(ledger: Ledger, dataset: str) -> dict[str, Grant]:
    """List the shares of a data set that count, by the name of their person."""
    with reading(ledger) as connection:
        found = fetch_all(
            connection,
            f"SELECT p.name, {GRANT} FROM @.hushed_s_grants g "  # noqa: S608  (constants)
            "JOIN @.hushed_s_people p ON p.id = g.person "
            "WHERE g.dataset = :dataset AND g.ended IS NULL ORDER BY p.name",
            dataset=dataset,
        )
    return {each["name"]: read_grant(each) for each in found}
