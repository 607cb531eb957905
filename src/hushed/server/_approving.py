"""Four eyes: a costly request waits until a steward approves it who had no part in asking it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from hushed.errors import KeyInUse, Overspent
from hushed.ledger._together import charge_each, reading
from hushed.server._audit import add_event, telling
from hushed.server._daily import count_daily, refuse_daily
from hushed.server._desk import Desk
from hushed.server._judging import judge, read_asked
from hushed.server._life import budget_of, require_payable, run_request, wish_of
from hushed.server._people import (
    MACHINE,
    Caller,
    Grant,
    find_counting,
    list_grants,
    require_person,
    token_counts,
)
from hushed.server._problems import Problem
from hushed.server._refusing import refuse_full
from hushed.server._requests import (
    Request,
    State,
    charge_pending,
    decide,
    find_request,
    list_late,
)
from hushed.server._schema import fetch_all

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

_OF_PERSON = "person IN (SELECT id FROM @.hushed_s_people WHERE name = :about)"
_DEAD = "the token that it was asked with counts no more; decline it"
_OUT = "its data set, or function, was taken out of this server; decline it, unless it comes back"
DAYS = 14  # that a request waits for approval


def approve(desk: Desk, steward: Caller, request: str) -> Request:
    """Charge a request that is pending, and let it run; the charge is that of who asked."""
    found = require_seen(desk, steward, request)
    if found.state != "pending":
        return _require_decided(desk, steward, request)
    asker = require_four_eyes(desk, steward, found)
    require_token(desk, found)
    grant = require_share(desk, found)
    asked = read_asked(found.body)
    dataset = desk.datasets[found.dataset]
    require_payable(desk, grant, asked)
    judged = judge(desk, steward.id, dataset, asked)

    def write(connection: Transaction, charged: Request) -> None:
        if not token_counts(connection, steward.token):
            raise Problem("not_authenticated")
        if not charge_pending(connection, charged):
            raise Problem("not_pending")  # somebody was faster; nothing is charged here
        if not token_counts(connection, found.token):
            raise Problem("conflict", _DEAD)
        counting = find_counting(connection, found.person, grant)
        if counting is None:
            raise Problem("conflict", "the share of who asked was changed meanwhile")
        epsilon, (_, at) = judged.guarantee.epsilon, charged.charge()
        count_daily(connection, found.person, counting, epsilon, at)
        add_event(connection, actor=steward.name, action="approved", about=found.id)

    due = replace(found, budget=budget_of(desk, grant), quota=grant.budget, decided_by=steward.name)
    wish, charged = wish_of(desk, due, asker, asked, judged, write)
    try:
        charge_each(desk.ledger, wish.charges, wish.within, wish.before)
    except KeyInUse:  # somebody has charged it a moment ago
        return _require_decided(desk, steward, request)
    except Overspent as error:
        raise refuse_full(desk.ledger, grant, error, judged, above=due.budget) from None
    made = charged[-1]
    desk.log("approved", request=made.id, person=steward.id, dataset=made.dataset)
    desk.start(made, partial(run_request, desk, made))
    return made


def why_not(desk: Desk, steward: Caller, request: str) -> str:
    """Say what would keep a request from being approved now; empty if nothing is known that would.

    It is priced, as `approve` does: a server that is busy refuses to say.
    """
    found = require_seen(desk, steward, request)
    try:
        _require_room(desk, steward, found)
    except Problem as problem:
        if problem.code == "busy":
            raise
        return problem.tell("steward").said
    return ""


def _require_room(desk: Desk, steward: Caller, found: Request) -> None:
    """Refuse what `approve` would refuse; nothing is charged or written."""
    if found.state != "pending":
        raise Problem("not_pending")
    require_four_eyes(desk, steward, found)
    require_token(desk, found)
    grant = require_share(desk, found)
    asked = read_asked(found.body)
    require_payable(desk, grant, asked)
    judged = judge(desk, steward.id, desk.datasets[found.dataset], asked)
    above = budget_of(desk, grant)
    for budget in dict.fromkeys((above, grant.budget)):
        try:
            desk.ledger.quote(budget, judged.guarantee, loss=judged.loss)
        except Overspent as error:
            raise refuse_full(desk.ledger, grant, error, judged, above=above) from None
    if grant.daily is not None and judged.guarantee.epsilon > grant.daily.left():
        raise refuse_daily(grant.daily, judged.guarantee.epsilon)


def _require_decided(desk: Desk, steward: Caller, request: str) -> Request:
    """Find what this steward has approved: the same click, sent again; else somebody was faster."""
    found = find_request(desk.ledger, request)
    if found is None or found.entry is None or found.decided_by != steward.name:
        raise Problem("not_pending")
    return found


def require_seen(desk: Desk, steward: Caller, request: str) -> Request:
    """Find a request that a steward's token may see."""
    found = find_request(desk.ledger, request)
    if found is None or not steward.scope.allows_dataset(found.dataset):
        raise Problem("not_found")
    return found


def require_four_eyes(desk: Desk, steward: Caller, found: Request) -> str:
    """Refuse the asker, and whoever may be the same person; the name of who asked.

    A steward can make a token for the asker, and let in a second steward who approves, or who makes
    that token. So only a token made at the machine approves, and nothing that its steward let in.
    """
    with reading(desk.ledger) as connection:
        asker = require_person(connection, found.person)
        behind = _find_makers(connection, "id = :about", found.token)
        seen: set[str] = set()
        while new := behind - seen:
            seen |= new
            for name in new:
                behind |= _find_makers(connection, _OF_PERSON, name)
        made = _find_makers(connection, "id = :about", steward.token)
    if made != {MACHINE} or steward.id == found.person or not behind or steward.name in behind:
        raise Problem("four_eyes")
    return str(asker["name"])


def _find_makers(connection: Transaction, condition: str, about: str) -> set[str]:
    """Find who made a token, or any of a person's."""
    statement = f"SELECT maker FROM @.hushed_s_tokens WHERE {condition}"  # noqa: S608
    return {str(row["maker"]) for row in fetch_all(connection, statement, about=about)}


def require_token(desk: Desk, found: Request) -> None:
    """Refuse what was asked with a token that counts no more, before a word of budgets."""
    with reading(desk.ledger) as connection:
        if not token_counts(connection, found.token):
            raise Problem("conflict", _DEAD)


def require_share(desk: Desk, found: Request) -> Grant:
    """Find the share that the asker has now, of what can still be asked on this server."""
    function = read_asked(found.body).function
    known = function is None or function in desk.functions
    if found.dataset not in desk.datasets or not known:
        raise Problem("conflict", _OUT)
    for each in list_grants(desk.ledger, found.person):
        if each.dataset == found.dataset:
            return each
    raise Problem("conflict", "who asked has no share of this data set any more; decline it")


def decline(desk: Desk, steward: Caller, request: str, reason: str) -> Request:
    """Refuse a request that is pending; nothing was charged."""
    found = require_seen(desk, steward, request)
    return _end(desk, found, "declined", steward, by=steward.name, reason=reason)


def cancel(desk: Desk, found: Request, caller: Caller) -> Request:
    """Take back a request of one's own that is pending; what is charged is not taken back."""
    return _end(desk, found, "cancelled", caller)


def _end(
    desk: Desk,
    found: Request,
    state: State,
    who: Caller,
    *,
    by: str | None = None,
    reason: str = "",
) -> Request:
    """End a wait; the same again is the same."""
    with telling(desk.ledger) as connection:
        done = decide(connection, found.id, state, by=by, reason=reason)
        if done:
            add_event(connection, actor=who.name, action=state, about=found.id)
    now_is = find_request(desk.ledger, found.id)
    if now_is is None or (now_is.state, now_is.decided_by) != (state, by):
        raise Problem("not_pending")
    return now_is


def expire(desk: Desk) -> None:
    """End what waited too long."""
    before = (datetime.now(UTC) - timedelta(days=DAYS)).isoformat(timespec="microseconds")
    for each in list_late(desk.ledger, before):
        with telling(desk.ledger) as connection:
            if decide(connection, each.id, "expired"):
                add_event(connection, actor="server", action="expired", about=each.id)
