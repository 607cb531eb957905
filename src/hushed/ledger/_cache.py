"""What a process remembers of each budget between charges, brought up to date at each use."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

from hushed.errors import DamagedLedger, KeyInUse, LedgerUnavailable
from hushed.ledger import _rows as rows
from hushed.ledger._entries import Entry, write_entry
from hushed.ledger._requests import check_text, link_entry
from hushed.ledger._running import RunningBalance, start_balance
from hushed.ledger._store import Store

if TYPE_CHECKING:
    from hushed.accounting._filters import Cost
    from hushed.guarantee import Guarantee
    from hushed.ledger._balance import Balance
    from hushed.ledger._rows import Transaction
    from hushed.privacy_loss import PrivacyProfile


class CachedBalance:
    """What this process remembers of one budget."""

    __slots__ = ("balance", "lock", "told")

    def __init__(self) -> None:
        self.lock = RLock()
        self.balance: RunningBalance | None = None
        self.told: tuple[str, Balance] | None = None  # last entry, and where the budget stood

    def tell(self, running: RunningBalance) -> Balance:
        """Say where the budget stands, which is worked out once after each charge."""
        if self.told is None or self.told[0] != running.link:
            self.told = running.link, running.balance()
        return self.told[1]

    def fold(self, running: RunningBalance, entry: Entry) -> None:
        """Fold an entry in; until that is done there is nothing to rely on."""
        self.balance = None
        running.add(entry)
        self.balance = running


class BalanceCache:
    """Running balances by budget; each can be thrown away at any time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.clear()

    def clear(self) -> None:
        """Forget every balance, and every lock: in a forked child they may be held for ever."""
        self._balances: dict[str, CachedBalance] = {}
        self._lock = RLock()

    @contextmanager
    def hold(self, name: str) -> Iterator[CachedBalance]:
        """Keep the other threads of this process from a budget."""
        check_text(name, "")
        with self._lock:
            cached = self._balances.setdefault(name, CachedBalance())
        with cached.lock:
            yield cached

    def read_current(self, cached: CachedBalance, name: str) -> RunningBalance:
        """Read the balance up to the newest entry, without keeping writers out."""
        with self._store.looking() as connection:
            if cached.balance is None:
                cached.balance = start_balance(rows.budget_named(connection, name))
            return sync_balance(cached, connection, rows.head_of(connection, name))

    def judge_ahead(
        self,
        cached: CachedBalance,
        name: str,
        key: str | None,
        asked: tuple[Guarantee, PrivacyProfile | None, tuple[Cost, ...]],
    ) -> RunningBalance:
        """Compose exact sums before other spenders are kept out: it may take seconds.

        The charge itself is judged behind the newest entry, and composes again if that is another.
        """
        running = cached.balance or self.read_current(cached, name)
        if running.exact is not None:
            running = self.read_current(cached, name)
            if key not in running.keys:
                running.takes(*asked)
        return running


def sync_balance(cached: CachedBalance, connection: Transaction, head: rows.Head) -> RunningBalance:
    """Fold in the entries that others have added."""
    running = cached.balance
    if running is None:
        raise LedgerUnavailable("the ledger was used from a signal or a callback; try again")
    if (running.number, running.link) == head:
        return running
    cached.balance = None
    if head[0] <= running.number:
        raise DamagedLedger(
            f"budget {running.budget.name!r} lost entries that were there before: the ledger "
            "was replaced by another copy; charge again what was released since that copy"
        )
    known = (running.number, running.link)
    for entry in rows.entries_after(connection, running.budget.name, known, head):
        running.add(entry)
    cached.balance = running
    return running


def append_next(connection: Transaction, running: RunningBalance, entry: Entry) -> Entry:
    """Write an entry behind the last one, and give it its place in the chain.

    On a server others see its digest, and not its words, which a guess would be compared with.
    """
    if rows.hides_words(connection):
        entry = replace(entry, salt=secrets.token_hex(16))
    body = write_entry(entry)
    linked = link_entry(entry, running, body)
    rows.append(connection, linked, body)
    return linked


def require_fitted(
    running: RunningBalance, connection: Transaction, entry: Entry, head: rows.Head
) -> None:
    """Refuse an entry that did not fit into its budget when it was made.

    A server cannot add up what was spent: an entry that somebody wrote by hand may be beyond the
    limit, and no answer is given for it.
    """
    if running.keeps_limit():
        return
    budget = running.budget
    before = start_balance(budget)
    for each in rows.entries_after(connection, budget.name, (0, budget.digest), head):
        before.add(each)
        if each.number == entry.number:
            break
    if not before.keeps_limit():
        raise KeyInUse(
            f"the key {entry.key!r} of budget {budget.name!r} was charged beyond the limit (entry "
            f"{entry.number}), by other means than this library. Nothing was charged"
        )
