"""Who asks: a token for each request, and what its person may see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from hushed.ledger._together import reading
from hushed.server._desk import Desk
from hushed.server._people import (
    CALLER,
    GRANT,
    Caller,
    Grant,
    Role,
    find_caller,
    judge_caller,
    list_grants_within,
    read_grant,
)
from hushed.server._problems import Problem
from hushed.server._schema import fetch_one
from hushed.server._shared import rates_of
from hushed.server._tokens import Use, split_token

if TYPE_CHECKING:
    from starlette.types import Scope

    from hushed.ledger._rows import Transaction

_FAILURES = 10  # wrong tokens that an address may show in a minute
_bearer = HTTPBearer(auto_error=False, description="A token, which hushed serve invite prints.")
_VISITOR = "hushed_visitor"  # under which who asks stands in the scope of a request
ROLE = "hushed_role"  # the same for the role of whoever was let in
_KNOWN = "SELECT r.id FROM @.hushed_s_requests r WHERE r.person = p.id AND r.key = :key"
_SHARE = (
    f"SELECT {CALLER}, {GRANT}, ({_KNOWN}) AS known FROM @.hushed_s_tokens t "  # noqa: S608  (constants)
    "JOIN @.hushed_s_people p ON p.id = t.person "
    "JOIN @.hushed_s_grants g ON g.person = p.id AND g.dataset = :dataset AND g.ended IS NULL "
    "WHERE t.id = :token AND p.role = 'analyst'"
)
Told = TypeVar("Told")
Shown = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]

_OTHER_ROLE: dict[str, str] = {
    "steward": "A steward keeps people and shares, and never asks: use the token of an analyst.",
    "analyst": "This is done by a steward.",
}


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who asks, and is found by the thread that does what is asked: one for a request."""

    find: Callable[[], Caller]

    async def have(self, work: Callable[[Caller], Told]) -> Told:
        """Find who asks, and have something done for them, in one thread."""
        return await run_in_threadpool(lambda: work(self.find()))


def find_visitor(request: Request) -> Visitor | None:
    """Give who asks, if a route has to know."""
    found: Visitor | None = request.scope.get(_VISITOR)
    return found


class Callers:
    """Finds the caller of a request. A token that counts is never kept out by those who guess."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._failures = rates_of(desk.shared, "failures", _FAILURES)
        self._asked = rates_of(desk.shared, "requests", desk.settings.limits.requests_per_minute)

    def find(self, request: Request, shown: HTTPAuthorizationCredentials | None) -> Caller:
        """Find who asks, or refuse: unknown, expired, revoked and foreign tokens look the same."""
        return self.admit(request.scope, _read_shown(shown))

    def admit(self, scope: Scope, text: str, use: Use = "api") -> Caller:
        """Let in whoever shows a token that counts for this use."""
        address = scope.get("hushed_address", "")
        found = find_caller(self._desk.ledger, text, address, use)
        if found is None:
            self.count_failure(address)
            raise Problem("not_authenticated")
        scope[ROLE] = found.role
        if not self.count(found):
            raise Problem("too_many", wait=60)
        return found

    def count(self, caller: Caller) -> bool:
        """Count a request of somebody; False if there were as many as are allowed."""
        return self._asked.take(caller.id)

    def count_failure(self, address: str) -> None:
        """Count what opened nothing; whoever guesses often is told to wait."""
        if not self._failures.take(address):
            raise Problem("too_many", wait=60)

    def of_role(self, *roles: Role, quote_only: bool = False) -> Callable[..., Caller]:
        """Make a dependency that lets in people of some roles; all others are refused."""

        def find(request: Request, shown: Shown) -> Caller:
            return require_role(self.find(request, shown), *roles, quote_only=quote_only)

        return find

    def visiting(self, *roles: Role, quote_only: bool = False) -> Callable[..., Awaitable[Visitor]]:
        """Make a dependency as `of_role` does, for a route that has all done by its visitor."""

        async def come(request: Request, shown: Shown) -> Visitor:
            visitor = self.visit(request.scope, _read_shown(shown), *roles, quote_only=quote_only)
            request.scope[_VISITOR] = visitor  # for whoever tells that a value cannot be used
            return visitor

        return come

    def visit(self, scope: Scope, text: str, *roles: Role, quote_only: bool = False) -> Visitor:
        """Give who shows a token as one of some roles; all others are refused when it is used."""
        return Visitor(lambda: require_role(self.admit(scope, text), *roles, quote_only=quote_only))


def _read_shown(shown: HTTPAuthorizationCredentials | None) -> str:
    return "" if shown is None else shown.credentials


def require_role(caller: Caller, *roles: Role, quote_only: bool = False) -> Caller:
    """Refuse whoever has none of some roles, and a token for prices where it is not enough."""
    if caller.role not in roles:
        raise Problem("forbidden", _OTHER_ROLE[caller.role])
    if caller.scope.quote_only and not quote_only:
        raise Problem(
            "forbidden", "It asks prices, and nothing else: ask your steward for another."
        )
    return caller


def require_keeper(caller: Caller) -> Caller:
    """Refuse all but stewards whose token is for all data sets: it could make itself a wider one.

    One that counts from some addresses makes none that counts from others.
    """
    if require_role(caller, "steward").scope.datasets is not None:
        raise Problem("forbidden", "It is for some data sets: this needs a token for all of them.")
    return caller


def find_share_within(
    connection: Transaction, text: str, dataset: str, address: str, key: str | None = None
) -> tuple[Caller, Grant] | None:
    """Find an analyst with the share of a data set, and nothing asked under a key, by one look.

    None where that is not so, or that the token was used today has to be written down first.
    """
    told = split_token(text)
    row = told and fetch_one(connection, _SHARE, token=told[0], dataset=dataset, key=key)
    caller = admit_row(row, told, address)
    if not row or caller is None or row["known"] is not None:
        return None
    return (caller, read_grant(row)) if caller.scope.allows_dataset(dataset) else None


def admit_row(
    row: dict[str, Any] | None, told: tuple[str, str] | None, address: str
) -> Caller | None:
    """Find whose token was shown, unless that it was used today has to be written first."""
    if not row or row["last_used"] != datetime.now(UTC).date().isoformat():
        return None
    return judge_caller(row, told, address, "api")


def require_grant(desk: Desk, caller: Caller, dataset: str) -> Grant:
    """Find the share of an analyst: without one, a data set does not exist."""
    with reading(desk.ledger) as connection:
        return require_grant_within(connection, desk, caller, dataset)


def require_grant_within(
    connection: Transaction, desk: Desk, caller: Caller, dataset: str
) -> Grant:
    """Find it in a transaction that is under way."""
    for each in list_grants_within(connection, caller.id):
        there = each.dataset == dataset and dataset in desk.datasets
        if there and caller.scope.allows_dataset(dataset):
            return each
    raise Problem("not_found")
