"""What was spent on the people of a data set goes with it into another budget."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from hushed._ground.decimals import stated_above
from hushed._ground.printing import format_up
from hushed.errors import Overspent, Refusal
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._together import has_key, reading
from hushed.server._alone import serving_alone
from hushed.server._config import DatasetSettings, Settings, digest_of
from hushed.server._layouts import read_places
from hushed.server._mark import Tally
from hushed.server._schema import fetch_all
from hushed.server._sources import fingerprint

if TYPE_CHECKING:
    from hushed.tables import Table


def carry_spent(
    ledger: Ledger,
    stack: ExitStack,
    settings: Settings,
    name: str,
    table: Table,
    places: Sequence[str],
) -> tuple[str, ...]:
    """Charge the budget of a data set with what its people have spent in those it had before.

    A server that runs would go on with the old budget, and what it charges would be forgotten: so
    it must be stopped, until the stack ends. Each old budget is charged as one promise, once for
    the entries that it has, and not where another old one was charged with it. What was charged, in
    words.
    """
    found = settings.dataset[name]
    former = sorted(set(_former(ledger, settings, name, fingerprint(table), places)))
    if former:
        stack.enter_context(serving_alone(ledger))
    keys = {each: _key(ledger, each) for each in former}
    told = [
        _carry(ledger, found, each, key)
        for each, key in keys.items()
        if not any(has_key(ledger, other, key) for other in (*former, found.budget))
    ]
    return tuple(filter(None, told))


def _key(ledger: Ledger, budget: str) -> str:
    """Name the charge with what was spent of a budget, by its entries: more is another charge."""
    named = hashlib.sha256(budget.encode()).hexdigest()[:32]
    return f"carried {named} {ledger.balance(budget).entries}"


def _former(
    ledger: Ledger, settings: Settings, name: str, seen: str, places: Sequence[str]
) -> Iterator[str]:
    """Give the other budgets of this data set, or of one that is gone and was the same table.

    The same is the same file, or whatever lies at the same place: a file that is replaced each
    night has the same people, and so has a table of a database that is described in other words.
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
        if each["budget"] != found.budget and (each["id"] == name or (gone and same)):
            yield each["budget"]


def _carry(ledger: Ledger, found: DatasetSettings, old: str, key: str) -> str:
    spent = _spent(ledger, old)
    if not (spent.epsilon or spent.delta or spent.gamma):
        return ""
    limit = ledger.balance(found.budget).budget.limit
    told = f"epsilon {format_up(spent.epsilon)}, delta {format_up(spent.delta)}"
    told += f", gamma {format_up(spent.gamma)}" if spent.gamma else ""
    told = f"{told} was spent of budget {old!r}"
    other = "if the rows are of other people, give --other-people"
    if spent.unit != limit.unit:
        raise Refusal(
            f"{told}, which protects {spent.unit}s: it cannot be charged to {found.budget!r}, "
            f"which protects {limit.unit}s; keep the budget {old!r}, or, {other}"
        )
    try:
        note = f"spent of budget {old} before this data set had this one"
        ledger.charge(found.budget, spent, note=note, key=key)
    except Overspent:
        raise Refusal(
            f"{told}, and does not fit into budget {found.budget!r}, which the same people have "
            f"from now on: take a larger budget, or, {other}"
        ) from None
    return f"{told}, and is charged to {found.budget!r}, because the people are the same"


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
