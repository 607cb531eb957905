"""A budget that was opened with a wrong limit: its first and last entry says that it takes none."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from hushed.accounting._filters import Cost
from hushed.errors import LedgerUnavailable, ParameterError
from hushed.ledger import _rows as rows
from hushed.ledger._cache import append_next, sync_balance
from hushed.ledger._entries import Entry
from hushed.ledger._requests import check_text, next_entry
from hushed.ledger._running import RETIRED
from hushed.ledger._store import InDoubt

if TYPE_CHECKING:
    from hushed.ledger._accounts import Ledger


def retire(ledger: Ledger, name: str, note: str) -> Entry:
    """Append the entry that ends a budget, if nothing was charged: it is chained as all others are.

    Whoever charges meanwhile holds the same lock: either the charge is first, and the budget stays,
    or the charge finds it retired and is refused.
    """
    check_text(name, note)
    with ledger._balances.hold(name) as cached:
        running = cached.balance or ledger._balances.read_current(cached, name)
        limit = running.budget.limit
        nothing = replace(limit, epsilon=0.0, delta=0.0, gamma=0.0, data_dependent=False)
        costs = tuple(Cost(amount=math.inf, delta=0.0) for _ in running.budget.filters)
        try:
            with ledger._store.spending() as connection:
                head = rows.head_of(connection, name, lock=True)
                running = sync_balance(cached, connection, head)
                if running.retired:
                    raise ParameterError(f"budget {name!r} is retired already")
                if running.number:
                    number = "1 charge" if running.number == 1 else f"{running.number} charges"
                    raise ParameterError(
                        f"budget {name!r} has {number}, and stays as it is: only one to which "
                        "nothing was charged is retired"
                    )
                entry = next_entry(running, nothing, note, None, costs, None, RETIRED)
                entry = append_next(connection, running, entry)
        except InDoubt as error:
            cached.balance = None
            if not ledger._resolve_in_doubt(entry, error):
                raise LedgerUnavailable(f"nothing was written: {error}") from None
            return entry
        cached.fold(running, entry)
    return entry
