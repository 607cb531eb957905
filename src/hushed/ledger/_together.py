"""Charges of several budgets, and rows of a caller's own, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from hushed._ground.decimals import stated_above
from hushed.accounting._explained import find_priced_law
from hushed.accounting._filters import Cost
from hushed.errors import (
    DamagedLedger,
    HushedError,
    KeyInUse,
    LedgerUnavailable,
    ParameterError,
)
from hushed.guarantee import Guarantee
from hushed.ledger import _rows as rows
from hushed.ledger._accounts import Ledger
from hushed.ledger._admission import check_promise
from hushed.ledger._answers import answer_at, insert_answer
from hushed.ledger._cache import CachedBalance, append_next, sync_balance
from hushed.ledger._entries import Budget, Entry
from hushed.ledger._requests import check_key, check_text, law_of, next_entry
from hushed.ledger._running import DoesNotFit, RunningBalance, costs_of, start_balance
from hushed.ledger._store import InDoubt, translate_error
from hushed.privacy_loss import PrivacyProfile

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

# What the caller writes in the transaction of its charges; an exception undoes all of it.
Within = Callable[["Transaction", tuple[Entry, ...]], None]
# What has to hold in a transaction before anything of the caller's is written there.
Before = Callable[["Transaction"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What is charged to every one of several budgets."""

    guarantee: Guarantee
    loss: PrivacyProfile | None = None
    note: str = ""
    key: str  # names the charge: it must be new in every budget
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is charged to each of several budgets, with the rows of the caller, or not at all."""

    charges: Mapping[str, Charge]
    within: Within
    before: Before | None = None  # the same for all that are charged together


@dataclass(slots=True, kw_only=True)
class _Due:
    """One budget on its way to be charged."""

    cached: CachedBalance
    running: RunningBalance
    charge: Charge
    law: list[dict[str, Any]] | None
    known: PrivacyProfile | None
    costs: tuple[Cost, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _Wanted:
    """Charges that are made together, and what has come of them."""

    charges: Mapping[str, Charge]
    within: Within
    before: Before | None
    dues: dict[str, _Due] = field(default_factory=dict)
    made: dict[str, Entry] = field(default_factory=dict)
    error: Exception | None = None
    folded: bool = False  # balances count it, committed or not
    ended: bool = False

    def begin(self, ledger: Ledger, held: Mapping[str, CachedBalance]) -> bool:
        """Check what no other spender can change; whether it is good so far."""
        if self.error is not None:
            return False
        try:
            for name, charge in sorted(self.charges.items()):
                self.dues[name] = _begin(ledger, held[name], name, charge)
        except Exception as error:
            self.error = error
        return self.error is None

    def write(self, connection: Transaction, begun: set[Before]) -> None:
        """Append the entries, and write the caller's rows; whoever is next finds them counted."""
        for name, due in self.dues.items():
            self.made[name] = _append(connection, name, due)
        if self.before is not None and self.before not in begun:
            self.before(connection)
            begun.add(self.before)
        self.within(connection, self.entries())
        self.folded = True
        for name, due in self.dues.items():
            due.cached.fold(due.running, self.made[name])

    def undo(self, error: Exception | None) -> None:
        """Count it no more: it was not committed, or nobody knows."""
        self.error = error
        if self.folded:
            for due in self.dues.values():
                due.cached.balance = None

    def entries(self) -> tuple[Entry, ...]:
        """Give what was written, in the order of what was wanted."""
        return tuple(self.made[name] for name in self.charges)

    def find_error(self) -> Exception | None:
        """Give why it was not made, or may not have been made; the words may be left to find."""
        if self.error is not None or self.ended:
            return self.error
        return LedgerUnavailable(
            "another thread of this program wrote this charge and was stopped: it may have "
            "been made. Look for its key in the ledger before charging again"
        )

    def tell(self) -> tuple[Entry, ...]:
        """Tell the thread that wanted it what has come of it."""
        error = self.find_error()
        if isinstance(error, DoesNotFit):
            raise error.explain()
        if error is not None:
            raise error
        return self.entries()


def charge_together(
    ledger: Ledger,
    budgets: Sequence[str],
    charge: Charge,
    within: Within,
    before: Before | None = None,
) -> tuple[Entry, ...]:
    """Charge each of the budgets the same, and write the caller's rows, or do nothing of it."""
    if not budgets or len(set(budgets)) != len(budgets):
        raise ParameterError("charge_together takes one or more budgets, each of them once")
    return charge_each(ledger, dict.fromkeys(budgets, charge), within, before)


def charge_each(
    ledger: Ledger, charges: Mapping[str, Charge], within: Within, before: Before | None = None
) -> tuple[Entry, ...]:
    """Charge each budget its charge, and write the caller's rows, or do nothing of it.

    The budgets are locked in the order of their names, by all who charge several: nobody waits for
    somebody who waits for him. The entries are in the order in which the budgets are given.

    In a file one thread writes for all who wait, in one transaction: `within` may run in another
    thread, and `before`, which is the same for all of them, once. Neither uses the ledger but by
    that transaction.
    """
    wanted = _want(Wish(charges=charges, within=within, before=before))
    if wanted.error is None:
        _join(ledger, (wanted,))
    return wanted.tell()


def charge_many(ledger: Ledger, wishes: Sequence[Wish]) -> tuple[Exception | None, ...]:
    """Charge for many by one thread, as `charge_each` does for one; why each was refused, or None.

    In a file it is one transaction, together with what other threads charge meanwhile. Where a
    charge does not fit, the words for it are left to find: the others would wait for them.
    """
    wanted = [_want(each) for each in wishes]
    if ledger._store.sqlite:
        _join(ledger, wanted)
    else:
        for each in wanted:
            _join(ledger, (each,))
    return tuple(each.find_error() for each in wanted)


def _want(wish: Wish) -> _Wanted:
    wanted = _Wanted(charges=wish.charges, within=wish.within, before=wish.before)
    try:
        for name, charge in wish.charges.items():
            check_key(charge.key, charge.question)
            check_text(name, charge.note)
    except HushedError as error:
        wanted.error = error
    return wanted


def _join(ledger: Ledger, wanted: Sequence[_Wanted]) -> None:
    store = ledger._store
    if store.sqlite:
        store.line.join(
            wanted, lambda turn: _write(ledger, list(chain.from_iterable(turn))), store.timeout
        )
    else:  # a server locks budgets one by one, and those of the second charge after the trail
        _write(ledger, wanted)


def _write(ledger: Ledger, turn: Sequence[_Wanted]) -> None:
    """Write charges in one transaction: each of them, or nothing of it."""
    names = sorted({name for each in turn for name in each.charges})
    with ExitStack() as stack:
        held = {name: stack.enter_context(ledger._balances.hold(name)) for name in names}
        good = [each for each in turn if each.begin(ledger, held)]
        try:
            if good:
                with ledger._store.spending() as connection:
                    _write_each(connection, good)
        except InDoubt as error:
            _resolve(ledger, good, error)
        except Exception as error:  # whoever was refused may have been so for what is not written
            for each in good:
                each.undo(error)
        except BaseException:
            for each in good:
                each.undo(None)
            raise
        for each in turn:
            each.ended = True


def _write_each(connection: Transaction, good: Sequence[_Wanted]) -> None:
    """Write each of them; one that is refused, or fails, takes nothing of another one back."""
    import sqlite3  # noqa: PLC0415

    begun: set[Before] = set()
    if not isinstance(connection, sqlite3.Connection):
        (one,) = good
        one.write(connection, begun)
        return
    for each in good:
        connection.execute("SAVEPOINT one_of_them")
        try:
            each.write(connection, begun)
        except Exception as error:
            if not connection.in_transaction:  # what the others wrote was taken back with it
                raise LedgerUnavailable("nothing was charged: the database took it back") from error
            connection.execute("ROLLBACK TO one_of_them")
            each.undo(translate_error(error) if isinstance(error, sqlite3.Error) else error)
        connection.execute("RELEASE one_of_them")
    if all(each.error for each in good):
        connection.rollback()


def _resolve(ledger: Ledger, good: Sequence[_Wanted], error: InDoubt) -> None:
    """Find out whether the charges were committed when the connection was lost during the commit.

    They were written in one transaction: what is found of one of them holds of all.
    """
    written = [each for each in good if each.error is None]
    gone = LedgerUnavailable(f"nothing was charged: {error}")
    gone.__context__ = error.__context__
    outcome: Exception | None = gone
    try:
        if written and ledger._resolve_in_doubt(written[0].entries()[0], error):
            outcome = None
    except Exception as unknown:
        outcome = unknown
    for each in good:  # who was refused may have been so for what is not written
        if each.error is None:
            each.undo(outcome)
        else:
            each.undo(each.error if outcome is None else gone)


def _begin(ledger: Ledger, cached: CachedBalance, name: str, charge: Charge) -> _Due:
    """Check what no other spender can change."""
    running = cached.balance or ledger._balances.read_current(cached, name)
    check_promise(running.budget, charge.guarantee, charge.loss)
    law = law_of(charge.loss)
    # The law by which a charge is priced; none if it promises less.
    known = None if law is None else find_priced_law(charge.guarantee, charge.loss)
    costs = costs_of(running.budget, charge.guarantee, known)
    asked = charge.guarantee, known, costs
    return _Due(
        cached=cached,
        running=ledger._balances.judge_ahead(cached, name, charge.key, asked),
        charge=charge,
        law=None if known is None else law,
        known=known,
        costs=costs,
    )


def _append(connection: Transaction, name: str, due: _Due) -> Entry:
    """Append the entry of one budget, if it fits."""
    charge = due.charge
    head = rows.head_of(connection, name, lock=True)
    due.running = running = sync_balance(due.cached, connection, head)
    if charge.key in running.keys:
        raise KeyInUse(f"the key {charge.key!r} of budget {name!r} is in use")
    running.require_fit(charge.guarantee, due.known, due.costs)
    entry = next_entry(
        running, charge.guarantee, charge.note, due.law, due.costs, charge.key, charge.question
    )
    return append_next(connection, running, entry)


def open_within(connection: Transaction, budget: Budget) -> bool:
    """Open a budget in a transaction that is under way, unless one has its name."""
    return rows.insert_budget(connection, budget)


def find_budget(ledger: Ledger, name: str) -> Budget:
    """Give a budget, which never changes; nothing is added up."""
    with ledger._balances.hold(name) as cached:
        return (cached.balance or ledger._balances.read_current(cached, name)).budget


def new_gamma(ledger: Ledger, name: str, promise: Guarantee) -> float:
    """Give the gamma that a charge would bring, rounded up: an estimate brings what is not paid."""
    with ledger._balances.hold(name) as cached:
        running = ledger._balances.read_current(cached, name)
        return stated_above(running.gamma(promise) - running.gamma())


def require_room(ledger: Ledger, budget: Budget, promises: Sequence[Guarantee]) -> None:
    """Refuse promises that a budget would not take one after the other; nothing is charged.

    The budget may be one that is not opened yet.
    """
    if any(each.name == budget.name for each in ledger.budgets()):
        with ledger._balances.hold(budget.name) as cached:
            running = ledger._balances.read_current(cached, budget.name).copy()
    else:
        running = start_balance(budget)
    for each in promises:
        check_promise(budget, each, None)
        costs = costs_of(budget, each, None)
        running.check(each, None, costs)
        running.add(next_entry(running, each, "", None, costs))


def writing(ledger: Ledger) -> AbstractContextManager[Transaction]:
    """Write rows of one's own into the database of a ledger; committed at the end."""
    return ledger._store.spending()


def reading(ledger: Ledger) -> AbstractContextManager[Transaction]:
    """Read rows of one's own from the database of a ledger, as of one moment."""
    return ledger._store.looking()


def reading_in_turn(ledger: Ledger) -> AbstractContextManager[Transaction]:
    """Read as in `reading`, one thread after the other: for short looks of many threads at once."""
    return ledger._store.looking_in_turn()


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
