"""Walks over all entries of a budget: its history, its verification, its export."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from hushed.accounting._filters import Cost
from hushed.errors import DamagedLedger, NotFound
from hushed.ledger import _rows as rows
from hushed.ledger._anchors import anchor, check_anchor
from hushed.ledger._answers import answer_at, list_answered
from hushed.ledger._balance import Moment
from hushed.ledger._entries import Budget, Entry, write_budget, write_entry, write_promise
from hushed.ledger._running import RunningBalance, price_entry, start_balance

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction


def trace_balance(connection: Transaction, name: str, points: int) -> tuple[Moment, ...]:
    """Moments from the opening on, at most so many of them after it, the last entry among them."""
    budget = rows.budget_named(connection, name)
    head = rows.head_of(connection, name)
    running = start_balance(budget)
    found = [Moment(at=budget.opened, number=0, used=0.0, note="opened")]
    wanted = choose_moments(head[0], points)
    for entry in rows.entries_after(connection, name, (0, budget.digest), head):
        running.add(entry)
        if entry.number in wanted:
            found.append(moment_after(entry, running))
    return tuple(found)


def moment_after(entry: Entry, running: RunningBalance) -> Moment:
    """Tell how much is used after an entry; one that retires the budget is no charge."""
    number, note = entry.number, entry.note
    if running.retired:
        number, note = 0, f"retired: {note}" if note else "retired"
    return Moment(at=entry.at, number=number, used=running.used(), note=note)


def choose_moments(count: int, points: int) -> set[int]:
    """Choose so many of the numbers 1 to `count`, evenly spread, the last one among them."""
    return {count - (count * i) // points for i in range(points)}


def verify_entries(connection: Transaction, name: str, wanted: tuple[int, str] | None) -> str:
    """Read every entry and answer, and compare with an anchor; give the anchor of the last."""
    budget = rows.budget_named(connection, name)
    head = rows.head_of(connection, name)
    link = budget.digest if wanted is None or wanted[0] == 0 else ""
    prices: dict[str, tuple[Cost, ...]] = {}
    for entry in rows.entries_after(connection, name, (0, budget.digest), head):
        _check_costs(budget, entry, prices)
        if wanted is not None and entry.number == wanted[0]:
            link = entry.digest
    for number in list_answered(connection, name):
        with suppress(NotFound):  # its text was deleted; that it is none is no damage
            answer_at(connection, name, number)
    if wanted is not None:
        check_anchor(name, wanted, head[0], link)
    return anchor(head)


def _check_costs(budget: Budget, entry: Entry, prices: dict[str, tuple[Cost, ...]]) -> None:
    """Refuse an entry that states a smaller cost than its promise has; prices are remembered."""
    promise = json.dumps([write_promise(entry.guarantee), entry.law, *map(astuple, entry.costs)])
    if promise not in prices:
        prices[promise] = price_entry(budget, entry)
    if entry.costs != prices[promise]:
        raise DamagedLedger(
            f"entry {entry.number} of budget {budget.name!r} states a smaller cost than its "
            "promise has: it was written by hand. What it promises was counted, and not that cost"
        )


def export_entries(connection: Transaction, name: str) -> dict[str, Any]:
    """Give the texts of a budget, its entries and answers, with their digests."""
    budget = rows.budget_named(connection, name)
    head = rows.head_of(connection, name)
    read = rows.entries_after(connection, name, (0, budget.digest), head)
    return {
        "budget": json.loads(write_budget(budget)),
        "digest": budget.digest,
        "entries": [{**json.loads(write_entry(entry)), "digest": entry.digest} for entry in read],
        "answers": {
            str(number): _find_answer(connection, name, number)
            for number in list_answered(connection, name)
        },
    }


def _find_answer(connection: Transaction, name: str, number: int) -> str | None:
    """Find an answer; None if its text was deleted."""
    with suppress(NotFound):
        return answer_at(connection, name, number)
    return None
