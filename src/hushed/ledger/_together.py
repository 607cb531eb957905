"""Charges of several budgets, and rows of a caller's own, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hushed.accounting._filters import Cost
from hushed.errors import DamagedLedger, KeyInUse, LedgerUnavailable, ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger import _rows as rows
from hushed.ledger._accounts import Ledger
from hushed.ledger._admission import check_promise, find_priced_law
from hushed.ledger._answers import answer_at, insert_answer
from hushed.ledger._cache import CachedBalance, sync_balance
from hushed.ledger._entries import Budget, Entry, write_entry
from hushed.ledger._requests import check_key, check_text, law_of, link_entry, next_entry
from hushed.ledger._running import RunningBalance, costs_of
from hushed.ledger._store import InDoubt
from hushed.privacy_loss import PrivacyProfile

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

# What the caller writes in the transaction of its charges; an exception undoes all of it.
Within = Callable[["Transaction", tuple[Entry, ...]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What is charged to every one of several budgets."""

    guarantee: Guarantee
    loss: PrivacyProfile | None = None
    note: str = ""
    key: str  # names the charge: it must be new in every budget
    question: str = ""


@dataclass(slots=True, kw_only=True)
class _Due:
    """One budget on its way to be charged."""

    cached: CachedBalance
    running: RunningBalance
    charge: Charge
    law: list[dict[str, Any]] | None
    known: PrivacyProfile | None
    costs: tuple[Cost, ...]


def charge_together(
    ledger: Ledger, budgets: Sequence[str], charge: Charge, within: Within
) -> tuple[Entry, ...]:
    """Charge each of the budgets the same, and write the caller's rows, or do nothing of it."""
    if not budgets or len(set(budgets)) != len(budgets):
        raise ParameterError("charge_together takes one or more budgets, each of them once")
    return charge_each(ledger, dict.fromkeys(budgets, charge), within)


def charge_each(ledger: Ledger, charges: Mapping[str, Charge], within: Within) -> tuple[Entry, ...]:
    """Charge each budget its charge, and write the caller's rows, or do nothing of it.

    The budgets are locked in the order of their names, by all who charge several: nobody waits for
    somebody who waits for him. The entries are in the order in which the budgets are given.
    """
    for name, charge in charges.items():
        check_key(charge.key, charge.question)
        check_text(name, charge.note)
    made: dict[str, Entry] = {}
    with ExitStack() as stack:
        dues = {
            name: _begin(ledger, stack.enter_context(ledger._balances.hold(name)), name, charge)
            for name, charge in sorted(charges.items())
        }
        try:
            with ledger._store.spending() as connection:
                for name, due in dues.items():
                    made[name] = _append(connection, name, due)
                within(connection, tuple(made[name] for name in charges))
        except InDoubt as error:
            for due in dues.values():
                due.cached.balance = None
            if not ledger._resolve_in_doubt(made[next(iter(charges))], error):
                raise LedgerUnavailable(f"nothing was charged: {error}") from None
            return tuple(made[name] for name in charges)
        for name, due in dues.items():
            due.cached.balance = None  # until the entry is folded in
            due.running.add(made[name])
            due.cached.balance = due.running
    return tuple(made[name] for name in charges)


def _begin(ledger: Ledger, cached: CachedBalance, name: str, charge: Charge) -> _Due:
    """Check what no other spender can change."""
    running = cached.balance or ledger._balances.read_current(cached, name)
    check_promise(running.budget, charge.guarantee, charge.loss)
    law = law_of(charge.loss)
    # The law by which a charge is priced; none if it promises less.
    known = None if law is None else find_priced_law(charge.guarantee, charge.loss)
    return _Due(
        cached=cached,
        running=running,
        charge=charge,
        law=None if known is None else law,
        known=known,
        costs=costs_of(running.budget, charge.guarantee, known),
    )


def _append(connection: Transaction, name: str, due: _Due) -> Entry:
    """Append the entry of one budget, if it fits."""
    charge = due.charge
    head = rows.head_of(connection, name, lock=True)
    due.running = running = sync_balance(due.cached, connection, head)
    if charge.key in running.keys:
        raise KeyInUse(f"the key {charge.key!r} of budget {name!r} is in use")
    running.check(charge.guarantee, due.known, due.costs)
    entry = next_entry(
        running, charge.guarantee, charge.note, due.law, due.costs, charge.key, charge.question
    )
    body = write_entry(entry)
    entry = link_entry(entry, running, body)
    rows.append(connection, entry, body)
    return entry


def open_within(connection: Transaction, budget: Budget) -> bool:
    """Open a budget in a transaction that is under way, unless one has its name."""
    return rows.insert_budget(connection, budget)


def find_budget(ledger: Ledger, name: str) -> Budget:
    """Give a budget, which never changes; nothing is added up."""
    with ledger._balances.hold(name) as cached:
        return (cached.balance or ledger._balances.read_current(cached, name)).budget


def writing(ledger: Ledger) -> AbstractContextManager[Transaction]:
    """Write rows of one's own into the database of a ledger; committed at the end."""
    return ledger._store.spending()


def reading(ledger: Ledger) -> AbstractContextManager[Transaction]:
    """Read rows of one's own from the database of a ledger, as of one moment."""
    return ledger._store.looking()


def has_key(ledger: Ledger, budget: str, key: str) -> bool:
    """Whether a budget was charged under a key."""
    with ledger._balances.hold(budget) as cached:
        return key in ledger._balances.read_current(cached, budget).keys


def keep_within(connection: Transaction, entry: Entry, text: str) -> str:
    """Store the answer of an entry in a transaction that is under way; the first one stays."""
    insert_answer(connection, entry, text)
    kept = answer_at(connection, entry.budget, entry.number)
    if kept is None:
        raise DamagedLedger(
            f"the answer of entry {entry.number} of {entry.budget!r} was not stored"
        )
    return kept


def entry_within(connection: Transaction, budget: str, number: int) -> Entry:
    """Read one entry in a transaction that is under way."""
    return rows.entry_at(connection, rows.budget_named(connection, budget), number)
