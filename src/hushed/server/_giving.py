"""Shares of data sets are given: all that is given together, or nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING

from hushed._ground.decimals import decimal_of, stated_above
from hushed.errors import KeyInUse, NotFound, ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._accounts import new_budget
from hushed.ledger._entries import Budget
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import (
    Charge,
    charge_each,
    has_key,
    open_within,
    reading,
    writing,
)
from hushed.server._audit import add_event, trail_head
from hushed.server._daily import check_per_day, limit_daily
from hushed.server._people import (
    SHARE,
    Grant,
    is_set_aside,
    list_grants,
    list_grants_within,
    require_person,
)
from hushed.server._schema import fetch_all, fetch_one

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

Step = Callable[["Transaction"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A share that somebody shall have."""

    dataset: str
    cap: Guarantee
    above: str  # the budget of the data set
    reserve: bool = False
    per_day: float | None = None  # epsilon; None leaves the limit by the day as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A share that somebody has now."""

    grant: Grant
    limit: Guarantee
    above: Guarantee  # the limit of the data set
    new: bool  # not so if it was there already, as it is
    left: float  # of its epsilon
    spent_before: float  # epsilon of the shares that were given earlier, and count no more


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What has to be written so that a share counts."""

    wanted: Wanted
    last: int  # number of the last share of this data set, when this was planned
    number: int
    budget: Budget
    grant: Grant


class _Taken(Exception):
    """Somebody else gave this person a share at the same time."""


def set_quota(
    ledger: Ledger,
    person: str,
    dataset: str,
    cap: Guarantee,
    *,
    above: str,
    actor: str,
    reserve: bool = False,
    per_day: float | None = None,
) -> Given:
    """Give somebody who is there a share of a data set; see `give_shares`."""
    with reading(ledger) as connection:
        found = require_person(connection, person)
    if found["role"] != "analyst":
        raise ParameterError("a share is for an analyst: a steward asks nothing")
    wanted = Wanted(dataset=dataset, cap=cap, above=above, reserve=reserve, per_day=per_day)
    return give_shares(ledger, person, found["name"], (wanted,), actor=actor)()[0]


def give_shares(
    ledger: Ledger,
    person: str,
    name: str,
    wanted: Sequence[Wanted],
    *,
    actor: str,
    before: Step = lambda _: None,
    after: Step = lambda _: None,
) -> Callable[[], tuple[Given, ...]]:
    """Give somebody shares, with what the caller writes before and after, or do nothing of it.

    What it returns tells where they stand, which is read anew: if that fails, they are given.

    A limit is never changed: a new share is a new budget that counts from now on, and what was
    spent before stays charged to the budget of the data set, which binds everybody. A share that is
    set aside is charged to that budget in the same transaction. The same share given again, below
    the same budget, is the one that counts, whatever was spent of it: nothing changes, but for a
    limit by the day that is named. One that is not named stays, also from one share to the next.
    A share that is set aside, given again as a cap, is the same one, too: another one would leave
    what was set aside to nobody.
    """
    _check_wanted(wanted)
    passed: set[str] = set()  # budgets whose key was used for another charge, by hand
    while True:
        lasts = [_find_last(ledger, person, each) for each in wanted]  # before what may be the same
        same = [_find_same(ledger, person, each) for each in wanted]
        plans = [
            _plan(ledger, name, each, last, passed)
            for each, last, known in zip(wanted, lasts, same, strict=True)
            if known is None
        ]

        def write(connection: Transaction, plans: Sequence[_Plan] = plans) -> None:
            trail_head(connection, lock=True)  # who gives a share at the same time waits here
            before(connection)
            for each in plans:
                _write_share(connection, person, name, each, actor)
            _limit_days(connection, person, name, wanted, actor)
            after(connection)

        try:
            _commit(ledger, plans, write)
            break
        except _Taken:  # somebody else's, at the same time: it may be the same
            continue
        except KeyInUse:  # that, or a charge by hand, which gives no share
            given = {each.budget for each in list_grants(ledger, person)}
            passed |= {each.budget.name for each in plans} - given
    made = {each.wanted.dataset: each.grant for each in plans}
    grants = [known or made[each.dataset] for each, known in zip(wanted, same, strict=True)]

    def tell() -> tuple[Given, ...]:
        now_are = {each.budget: each for each in list_grants(ledger, person)}
        return tuple(
            _tell(ledger, each, now_are.get(grant.budget, grant), new=each.dataset in made)
            for each, grant in zip(wanted, grants, strict=True)
        )

    return tell


def _check_wanted(wanted: Sequence[Wanted]) -> None:
    names = [each.dataset for each in wanted]
    if len(set(names)) != len(names):
        raise ParameterError("a data set is named twice: give one share of each")
    for each in wanted:
        if each.per_day is not None:
            check_per_day(each.per_day)
    aside = [each.above for each in wanted if each.reserve]
    if len(set(aside)) != len(aside):
        raise ParameterError(
            "two of these data sets have one budget: set their shares aside one after the other"
        )


def _share_of(ledger: Ledger, wanted: Wanted) -> Guarantee:
    """Give the limit of a share; a gamma is charged once, to the data set, and never set aside."""
    limit = _limit_of(ledger, wanted.above)
    gamma = 0.0 if wanted.reserve else limit.gamma
    return replace(limit, epsilon=wanted.cap.epsilon, delta=wanted.cap.delta, gamma=gamma)


def _limit_of(ledger: Ledger, budget: str) -> Guarantee:
    found = next((each for each in ledger.budgets() if each.name == budget), None)
    if found is None:
        raise NotFound(f"the ledger has no budget {budget!r}")
    return found.limit


def _find_same(ledger: Ledger, person: str, wanted: Wanted) -> Grant | None:
    """Find the share that counts, if it is the one that is wanted."""
    for each in list_grants(ledger, person):
        if each.dataset != wanted.dataset:
            continue
        kept = replace(wanted, reserve=wanted.reserve or each.reserved)
        same = ledger.balance(each.budget).budget.limit == _share_of(ledger, kept)
        return each if same and _stands_below(ledger, each, wanted) else None
    return None


def _stands_below(ledger: Ledger, grant: Grant, wanted: Wanted) -> bool:
    """Whether a share is below the budget that the data set has now, set aside if it has to be."""
    if wanted.reserve or grant.reserved:  # one that is set aside stays so: it is paid already
        return is_set_aside(ledger, grant, wanted.above)
    keys = [each.key for each in ledger.entries(grant.budget) if each.key]
    return not keys or any(has_key(ledger, wanted.above, key) for key in keys)  # charged there, too


def _find_last(ledger: Ledger, person: str, wanted: Wanted) -> int:
    """Find the number of the last share that somebody was given of a data set; 0 for none."""
    with reading(ledger) as connection:
        statement = "SELECT number FROM @.hushed_s_grants WHERE person = :p AND dataset = :d"
        found = fetch_all(connection, statement, p=person, d=wanted.dataset)
    return max((int(each["number"]) for each in found), default=0)


def _plan(ledger: Ledger, name: str, wanted: Wanted, last: int, passed: Collection[str]) -> _Plan:
    """Choose a budget that is not there yet."""
    known = {each.name for each in ledger.budgets()}
    share, told = _share_of(ledger, wanted), f"share of {name} in {wanted.dataset}"
    for number in count(last + 1):
        budget = f"{wanted.dataset}/{name}" + ("" if number == 1 else f"/{number}")
        if budget not in known and budget not in passed:
            break
    return _Plan(
        wanted=wanted,
        last=last,
        number=number,
        budget=new_budget(budget, share, note=told),
        grant=Grant(dataset=wanted.dataset, budget=budget, reserved=wanted.reserve),
    )


def _commit(ledger: Ledger, plans: Sequence[_Plan], write: Step) -> None:
    """Write in the transaction that charges what is set aside."""
    charges = {
        each.wanted.above: Charge(
            guarantee=each.budget.limit,
            note=f"set aside for {each.budget.name}",
            key=f"{SHARE}{each.budget.name}",
        )
        for each in plans
        if each.wanted.reserve
    }
    if charges:
        charge_each(ledger, charges, lambda connection, _: write(connection))
        return
    with writing(ledger) as connection:
        write(connection)


def _write_share(connection: Transaction, person: str, name: str, plan: _Plan, actor: str) -> None:
    """Open the budget of a share, and let it count in place of the one before."""
    wanted, values = plan.wanted, {"person": person, "dataset": plan.wanted.dataset, "at": now()}
    statement = (
        "SELECT number FROM @.hushed_s_grants WHERE person = :person AND dataset = :dataset "
        "AND number > :last"
    )
    told = {"person": person, "dataset": wanted.dataset, "last": plan.last}
    if fetch_one(connection, statement, **told) or not open_within(connection, plan.budget):
        raise _Taken
    look = (  # of the last share, also where that was taken away
        "SELECT per_day, day, day_spent FROM @.hushed_s_grants WHERE person = :person "
        "AND dataset = :dataset AND number = :last"
    )
    daily = fetch_one(connection, look, **told) or dict.fromkeys(("per_day", "day", "day_spent"))
    statement = (
        "UPDATE @.hushed_s_grants SET ended = :at WHERE person = :person AND dataset = :dataset "
        "AND ended IS NULL"
    )
    run(connection, statement, values)
    kept = {"number": plan.number, "budget": plan.budget.name, "reserved": int(wanted.reserve)}
    run(
        connection,
        "INSERT INTO @.hushed_s_grants (person, dataset, number, budget, reserved, made, "
        "per_day, day, day_spent) VALUES (:person, :dataset, :number, :budget, :reserved, :at, "
        ":per_day, :day, :day_spent)",
        values | kept | daily,
    )
    size = f"epsilon {wanted.cap.epsilon!r} delta {wanted.cap.delta!r}"
    aside = " set aside" if wanted.reserve else ""
    about = f"{name} {wanted.dataset} {size}{aside}"
    add_event(connection, actor=actor, action="gave a share", about=about)


def _limit_days(
    connection: Transaction, person: str, name: str, wanted: Sequence[Wanted], actor: str
) -> None:
    """Set the limits by the day that are named, of the shares that count now."""
    limits = {each.dataset: each.per_day for each in wanted if each.per_day is not None}
    for grant in list_grants_within(connection, person) if limits else ():
        per_day = limits.get(grant.dataset)
        if per_day is not None and limit_daily(connection, person, grant, per_day):
            about = f"{name} {grant.dataset} epsilon {per_day!r}"
            add_event(connection, actor=actor, action="limited each day", about=about)


def _tell(ledger: Ledger, wanted: Wanted, grant: Grant, *, new: bool) -> Given:
    there = ledger.balance(grant.budget)
    return Given(
        grant=grant,
        limit=there.budget.limit,
        above=_limit_of(ledger, wanted.above),
        new=new,
        left=there.epsilon_left,
        spent_before=spent_before(ledger, grant),
    )


def spent_before(ledger: Ledger, grant: Grant) -> float:
    """Add up the epsilon that the person of a share spent of those that count no more."""
    statement = (
        "SELECT old.budget FROM @.hushed_s_grants old JOIN @.hushed_s_grants own "
        "ON own.person = old.person AND own.dataset = old.dataset "
        "WHERE own.budget = :budget AND old.ended IS NOT NULL"
    )
    with reading(ledger) as connection:
        found = fetch_all(connection, statement, budget=grant.budget)
    spent = (decimal_of(ledger.balance(each["budget"]).spent.epsilon) for each in found)
    return stated_above(sum(spent, Fraction(0)))
