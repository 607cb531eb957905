"""A ledger as it is read: budgets, balances, entries, stored answers; nothing is charged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn, Self

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count
from hushed._ground.notebook import Card, Shown, draw_gauge
from hushed._ground.printing import format_down, percent_up
from hushed.errors import ParameterError
from hushed.ledger import _rows as rows
from hushed.ledger._anchors import read_anchor
from hushed.ledger._answers import answer_at
from hushed.ledger._balance import Balance, Moment, name_units
from hushed.ledger._cache import BalanceCache
from hushed.ledger._entries import Budget, Entry
from hushed.ledger._forks import watch
from hushed.ledger._rights import find_write_problem
from hushed.ledger._store import Store, connect
from hushed.ledger._walks import export_entries, trace_balance, verify_entries

_MOST_NUMBER = 2**31 - 1  # of an entry, in both databases


class LedgerReader(Shown):
    """What a ledger tells; `Ledger` adds what it takes down."""

    def __init__(self, url: str, *, create: bool = True, timeout: float = 60.0) -> None:
        self._store: Store = connect(url, create=create, timeout=timeout)
        self._balances = BalanceCache(self._store)
        watch(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Ledger cannot be copied or pickled, for it holds connections and locks: give its "
            "address to the other process, and open it there by hs.Ledger(url, create=False)"
        )

    def _brief(self) -> str:
        """Name the database; an address may hold a password, and asking it may fail."""
        held = f"SQLite, {self._store.path.name}" if self._store.sqlite else "PostgreSQL"
        return f"Ledger on {held}"

    def __str__(self) -> str:
        return repr(self)

    def _card(self) -> Card:
        """List the budgets; the address may hold a password, and is not shown."""
        found = [self.balance(each.name) for each in self.budgets()]
        lines = [
            (
                each.budget.name,
                str(each.entries),
                f"{percent_up(each.used)} %",
                format_down(each.epsilon_left),
                f"{name_units(each.budget.limit)}, {each.budget.limit.neighbours}",
            )
            for each in found
        ]
        head = ("budget", "charges", "used", "epsilon left", "protects")
        text = "\n".join(["Ledger", *(each.explain() for each in found)])
        return Card(
            title=f"Ledger of {len(found)} budget{'' if len(found) == 1 else 's'}",
            text=text,
            lines=(head, *lines),
            pictures=tuple(
                draw_gauge(each.used, f"{percent_up(each.used)} % of the budget is used")
                for each in found
            ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        self._store.close()

    def _find_write_problem(self) -> str:
        """Say why no charge of this login is taken; nothing if it is."""
        return find_write_problem(self._store)

    def budgets(self) -> tuple[Budget, ...]:
        """All budgets.

        Returns
        -------
        tuple of Budget
            By name.
        """
        with self._store.reading() as connection:
            return rows.budgets(connection)

    @called_as('ledger.balance("stays")')
    def balance(self, name: str) -> Balance:
        """Where a budget stands.

        Parameters
        ----------
        name : str
            The budget.

        Returns
        -------
        Balance
            Folded from its entries.

        Raises
        ------
        NotFound
            If there is no such budget.
        """
        with self._balances.hold(name) as cached:
            return cached.tell(self._balances.read_current(cached, name))

    @called_as('ledger.entries("stays")')
    def entries(self, name: str) -> tuple[Entry, ...]:
        """All charges of a budget, checked against their chain.

        Parameters
        ----------
        name : str
            The budget.

        Returns
        -------
        tuple of Entry
            In the order in which they were charged. `hushed.compose` takes them as they are.

        Raises
        ------
        NotFound
            If there is no such budget.
        DamagedLedger
            If they are not those that were written.
        """
        with self._store.reading() as connection:
            budget = rows.budget_named(connection, name)
            head = rows.head_of(connection, name)
            return tuple(rows.entries_after(connection, budget.name, (0, budget.digest), head))

    @called_as('ledger.history("stays")')
    def history(self, name: str, *, points: int = 200) -> tuple[Moment, ...]:
        """Share of a budget that was used after each charge.

        Parameters
        ----------
        name : str
            The budget.
        points : int, default 200
            Most charges to tell of, evenly spread and the last one among them; 1 or more.

        Returns
        -------
        tuple of Moment
            In order of time, the opening first.

        Raises
        ------
        NotFound
            If there is no such budget.
        ParameterError
            If ``points`` is below 1.
        """
        points = require_count("points", points)
        with self._store.reading() as connection:
            return trace_balance(connection, name, points)

    @called_as('ledger.answer("stays", 1)')
    def answer(self, name: str, key_or_number: str | int) -> str | None:
        """Read a stored answer again; nothing is charged.

        Parameters
        ----------
        name : str
            The budget.
        key_or_number : str or int
            The caller's key, or the number of the entry.

        Returns
        -------
        str or None
            The text as stored; None if there is no answer under this key or number.

        Raises
        ------
        NotFound
            If there is no such budget, or a server has deleted the answer.
        ParameterError
            If it is asked by neither a key nor a number.
        DamagedLedger
            If it is not what was stored.
        """
        number = key_or_number
        if not isinstance(number, str | int):
            raise ParameterError(
                f"an answer is read by a key or a number, got {type(number).__name__}"
            )
        with self._balances.hold(name) as cached:
            running = self._balances.read_current(cached, name)
            if isinstance(number, str):
                number = running.keys.get(number, 0)
        if not 0 < number <= _MOST_NUMBER:
            return None
        with self._store.looking() as connection:
            return answer_at(connection, name, number)

    @called_as('ledger.verify("stays")')
    def verify(self, name: str, expect: str | None = None) -> str:
        """Check a budget from end to end, and against an anchor that was kept outside.

        Parameters
        ----------
        name : str
            The budget.
        expect : str, optional
            ``NUMBER:DIGEST``, as this method returned it some time before; the first 16 or more
            digits of the digest will do. The chain alone cannot tell that its last entries were
            taken off, or that all of it was rewritten.

        Returns
        -------
        str
            ``NUMBER:DIGEST`` of the last entry, to be written down where nobody who can write to
            the ledger can change it.

        Raises
        ------
        DamagedLedger
            If entries or answers are not those that were written, or the anchor does not fit.
        NotFound
            If there is no such budget.
        ParameterError
            If ``expect`` is no anchor.
        """
        wanted = None if expect is None else read_anchor(expect)
        with self._store.reading() as connection:
            return verify_entries(connection, name, wanted)

    @called_as('ledger.backup("copy.db")')
    def backup(self, path: str | Path) -> Path:
        """Copy an SQLite ledger while it is in use, as of one moment.

        Parameters
        ----------
        path : str or Path
            A file that does not exist.

        Returns
        -------
        Path
            The copy. It is no second ledger: what is charged to the first one later is not in it.

        Raises
        ------
        ParameterError
            If the file exists, or the ledger lies on a server, which has tools of its own.
        NotFound
            If its folder does not exist.
        """
        return self._store.backup(Path(path))

    def export(self, name: str | None = None) -> str:
        """Write budgets and their entries as JSON.

        Parameters
        ----------
        name : str, optional
            One budget; all by default.

        Returns
        -------
        str
            One JSON object: the texts as they lie in the ledger, with their digests, so that the
            chain can be checked without this library.
        """
        names = [each.name for each in self.budgets()] if name is None else [name]
        with self._store.reading() as connection:
            found = [export_entries(connection, each) for each in names]
        return json.dumps({"schema": "hushed ledger", "version": 1, "budgets": found})

    def before_fork(self) -> None:
        """Close connections that a forked child must not inherit; not for callers."""
        if self._store.sqlite:
            self._store.close()

    def in_child(self) -> None:
        """Begin anew in a forked child, whose locks may be held for ever; not for callers."""
        self._balances.clear()
        self._store.leave_to_parent()
