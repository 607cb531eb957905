"""What was spent on the people of a data set goes with it into another budget."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hushed._ground.decimals import stated_above
from hushed._ground.printing import brief, format_up
from hushed.errors import Overspent, Refusal
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._together import has_key, reading, require_room
from hushed.server._alone import serving_alone
from hushed.server._config import Settings, digest_of
from hushed.server._layouts import read_places, read_user
from hushed.server._mark import Tally
from hushed.server._schema import fetch_all
from hushed.server._sources import fingerprint

if TYPE_CHECKING:
    from hushed.ledger import Budget
    from hushed.tables import Table

_OTHER = "if the rows are of other people, give --other-people"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was spent of a former budget, and is to be charged to another one under a key."""

    promise: Guarantee
    former: str
    key: str

    def __str__(self) -> str:
        """Say what was spent, and of which budget."""
        told = f"epsilon {format_up(self.promise.epsilon)}, delta {format_up(self.promise.delta)}"
        told += f", gamma {format_up(self.promise.gamma)}" if self.promise.gamma else ""
        return f"{told} was spent of budget {self.former!r}"


def find_spent(
    ledger: Ledger,
    stack: ExitStack,
    settings: Settings,
    name: str,
    table: Table,
    places: Sequence[str],
    budget: Budget,
) -> tuple[Spent, ...]:
    """Find what the people of a data set have spent in the budgets it had before; all of it fits.

    The budget, which may not be open yet, is the one that is to be charged with it. A server that
    runs would go on with the old ones, and what it charges would be forgotten: so it must be
    stopped, until the stack ends. Each old budget is charged as one promise, once for the entries
    that it has, and not where another old one was charged with it.
    """
    former = sorted(set(_former(ledger, settings, name, fingerprint(table), places)))
    if former:
        stack.enter_context(serving_alone(ledger))
    opened = {each.name for each in ledger.budgets()} & {*former, budget.name}
    keys = {each: _key(ledger, each) for each in former}
    spent = [
        Spent(promise=_spent(ledger, each), former=each, key=key)
        for each, key in keys.items()
        if not any(has_key(ledger, other, key) for other in opened)
    ]
    due = tuple(
        each for each in spent if each.promise.epsilon or each.promise.delta or each.promise.gamma
    )
    _require_room(ledger, budget, due)
    return due


def _require_room(ledger: Ledger, budget: Budget, due: Sequence[Spent]) -> None:
    """Refuse what the budget would not take, before any of it is charged."""
    for each in due:
        if each.promise.unit != budget.limit.unit:
            raise Refusal(
                f"{each}, which protects {each.promise.unit}s: it cannot be charged to "
                f"{budget.name!r}, which protects {budget.limit.unit}s; keep the budget "
                f"{each.former!r}, or, {_OTHER}"
            )
    try:
        require_room(ledger, budget, [each.promise for each in due])
    except Overspent:
        raise _no_room(budget.name, due) from None


def _no_room(budget: str, due: Sequence[Spent]) -> Refusal:
    told = ", and ".join(map(str, due))
    together = "does" if len(due) == 1 else "together do"
    return Refusal(
        f"{told}, and {together} not fit into budget {budget!r}, which the same people have from "
        f"now on: take a larger budget, or, {_OTHER}"
    )


def carry_spent(ledger: Ledger, budget: str, due: Sequence[Spent]) -> tuple[str, ...]:
    """Charge an open budget with what was spent before; what was charged, in words."""
    for each in due:
        note = f"spent of budget {each.former} before this data set had this one"
        try:
            ledger.charge(budget, each.promise, note=note, key=each.key)
        except Overspent:  # somebody has charged it meanwhile
            raise _no_room(budget, due) from None
    told = f"and is charged to {budget!r}, because the people are the same"
    return tuple(f"{each}, {told}" for each in due)


def _key(ledger: Ledger, budget: str) -> str:
    """Name the charge with what was spent of a budget, by its entries: more is another charge."""
    named = hashlib.sha256(budget.encode()).hexdigest()[:32]
    return f"carried {named} {ledger.balance(budget).entries}"


def _former(
    ledger: Ledger, settings: Settings, name: str, seen: str, places: Sequence[str]
) -> Iterator[str]:
    """Give the other budgets of this data set, or of one that is gone and was the same table."""
    for budget, _, _ in _known(ledger, settings, name, seen, places):
        if budget != settings.dataset[name].budget:
            yield budget


def _known(
    ledger: Ledger, settings: Settings, name: str, seen: str, places: Sequence[str]
) -> Iterator[tuple[str, str, bool]]:
    """Give budget and layout of what this data set was, or another one that is the same table.

    That one is gone; or has the same budget, as the last value says. The same is the same file, or
    whatever lies at the same place: a file that is replaced each night has the same people, and so
    has a table of a database that is described in other words.
    """
    found = settings.dataset[name]
    statement = "SELECT id, config_digest, budget, fingerprint FROM @.hushed_s_datasets"
    with reading(ledger) as connection:
        known = fetch_all(connection, statement)
    for each in known:
        gone = each["id"] not in settings.dataset
        was, _, layout = each["fingerprint"].partition(" ")
        same = (bool(seen) and was == seen) or not read_places(layout).isdisjoint(places)
        alike = digest_of(found.model_copy(update={"budget": each["budget"]}))
        same = same or alike == each["config_digest"]
        shares = not gone and each["id"] != name and each["budget"] == found.budget
        if each["id"] == name or (same and (gone or shares)):
            yield each["budget"], layout, shares


def require_same_people(
    ledger: Ledger, settings: Settings, name: str, table: Table, places: Sequence[str]
) -> None:
    """Refuse another column of people than the one that was protected when a budget was charged.

    Whoever has several of the former names, as of stays, has lost as much for each of them. Which
    names are of one person is not known here.
    """
    user = settings.dataset[name].user
    for budget, layout, shares in _known(ledger, settings, name, fingerprint(table), places):
        was = read_user(layout)
        if was is None or user is None or was == user:
            continue
        with serving_alone(ledger):  # a server that runs would go on with the former column
            if not shares and not ledger.balance(budget).entries:
                continue
        kept = "is that of another data set of this table, where" if shares else "was charged while"
        raise Refusal(
            f"budget {budget!r} {kept} each {brief(was)} is protected, and this would be each "
            f"{brief(user)}: a person who is in several of either has lost more than the budget "
            f"says. If both columns name the same people, give --same-people; else keep that "
            "column, or take the table as a new data set, with a budget of what such a person may "
            "still lose, and --other-people"
        )


def _spent(ledger: Ledger, budget: str) -> Guarantee:
    """Add up the charges one by one, which holds in whatever order and way they were chosen.

    So does the limit, which may be less: noise of a Gaussian adds up to less than its prices.
    """
    with reading(ledger) as connection:
        told = Tally().count(connection)[budget]
    balance = ledger.balance(budget)
    limit, gamma = balance.budget.limit, balance.spent.gamma
    epsilon, delta = stated_above(told.epsilon), stated_above(told.delta)
    if epsilon > limit.epsilon or delta > limit.delta:
        return replace(limit, gamma=gamma)
    return replace(limit, epsilon=epsilon, delta=delta, gamma=gamma)
