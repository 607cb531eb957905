"""The ledger: budgets are opened, charged, and kept from being overspent."""

from __future__ import annotations

from dataclasses import replace

from hushed._ground.calls import called_as
from hushed.accounting._explained import find_priced_law
from hushed.accounting._filters import FilterMethod, privacy_filters
from hushed.errors import BudgetExists, DamagedLedger, LedgerUnavailable, ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger import _rows as rows
from hushed.ledger._admission import check_promise
from hushed.ledger._answers import answer_at, insert_answer
from hushed.ledger._balance import Balance
from hushed.ledger._cache import CachedBalance, append_next, require_fitted, sync_balance
from hushed.ledger._entries import Budget, Entry, digest, write_budget
from hushed.ledger._migrations import now
from hushed.ledger._reader import LedgerReader
from hushed.ledger._requests import (
    check_key,
    check_new,
    check_text,
    is_text,
    law_of,
    next_entry,
    require_same_question,
)
from hushed.ledger._retiring import retire
from hushed.ledger._running import DoesNotFit, costs_of
from hushed.ledger._store import InDoubt
from hushed.privacy_loss import PrivacyProfile


def new_budget(
    name: str,
    limit: Guarantee,
    *,
    method: FilterMethod = "adaptive",
    slack: float = 0.5,
    order: float | None = None,
    note: str = "",
) -> Budget:
    """Make the record of a budget, which no ledger has yet."""
    check_text(name, note)
    check_new("name of a budget", name)
    if not isinstance(limit, Guarantee):
        raise ParameterError(
            f"limit must be a Guarantee, got {type(limit).__name__}", parameter="limit"
        )
    if limit.estimates:
        raise ParameterError(
            "a limit on gamma is a number stated by hand, not that of a sampled sensitivity"
        )
    filters = privacy_filters(limit.epsilon, limit.delta, method=method, slack=slack, order=order)
    budget = Budget(name=name, limit=limit, method=method, filters=filters, note=note, opened=now())
    return replace(budget, digest=digest("", write_budget(budget)))


@called_as('hs.Ledger("sqlite:///budgets.db")')
class Ledger(LedgerReader):
    """Budgets that cannot be overspent, on disk, for any number of threads and processes.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
    create : bool, default True
        Whether to make the ledger if there is none.
    timeout : float, default 60
        Longest wait for other spenders, in seconds; above 0.

    Raises
    ------
    ParameterError
        If the address is of no known kind.
    NotFound
        If there is no ledger and none is to be made.
    NotALedger, DamagedLedger, NewerLedger, LedgerUnavailable
        If what is there cannot be used.

    Notes
    -----
    A charge is committed before it returns. What is remembered between charges is derived from
    the entries and checked against the head of their chain each time.
    """

    @called_as('ledger.open_budget("stays", hs.Guarantee(epsilon=1.0))')
    def open_budget(
        self,
        name: str,
        limit: Guarantee,
        *,
        method: FilterMethod = "adaptive",
        slack: float = 0.5,
        order: float | None = None,
        note: str = "",
    ) -> Budget:
        """Open a budget, once and for all.

        Parameters
        ----------
        name : str
            Name, for example that of the data set; 1 to 200 printable characters, in the form NFC
            of Unicode, without spaces at the ends or two in a row.
        limit : Guarantee
            What all charges together have to keep. Its epsilon is finite and above 0.
        method : str, default "adaptive"
            Rule that stops the spending: ``adaptive``, ``basic``, ``zcdp``, ``renyi``,
            ``gaussian`` or ``pld``; see
            `hushed.accounting._filters.privacy_filters`.
        slack : float, default 0.5
            Share of delta that is set aside for the charges' own deltas; in [0, 1).
        order : float, optional
            For ``renyi``: the order.
        note : str, default ""
            Remark.

        Returns
        -------
        Budget
            As written down.

        Raises
        ------
        BudgetExists
            If there is a budget of this name, which stays as it is; a ParameterError, too.
        ParameterError
            If a parameter is out of range.
        """
        budget = new_budget(name, limit, method=method, slack=slack, order=order, note=note)
        with self._store.writing() as connection:
            # Asked twice: not everybody may insert, and another program may be just opening it.
            known = any(each.name == name for each in rows.budgets(connection))
            if known or not rows.insert_budget(connection, budget):
                raise BudgetExists(
                    f"there is a budget {name!r} already, and a limit is not changed; charge it as "
                    "it is, or open one by another name. One to which nothing was charged may be "
                    "retired (ledger.retire_budget, hushed ledger retire), so that nobody charges "
                    "it; its name stays taken"
                )
        return budget

    @called_as('ledger.retire_budget("stays")')
    def retire_budget(self, name: str, note: str = "") -> Entry:
        """End a budget to which nothing was charged, such as one of a wrong limit.

        Nothing is removed: an entry in its chain says that it takes no charge, and every later one
        is refused. The name stays taken; open the right limit under another one.

        Parameters
        ----------
        name : str
            The budget.
        note : str, default ""
            Remark.

        Returns
        -------
        Entry
            Its first and last entry, of epsilon 0.

        Raises
        ------
        ParameterError
            If something was charged to it, or it is retired already.
        NotFound, LedgerUnavailable, DamagedLedger
            As for `charge`.
        """
        return retire(self, name, note)

    @called_as('ledger.charge("stays", hs.Guarantee(epsilon=0.1))')
    def charge(
        self,
        name: str,
        guarantee: Guarantee,
        note: str = "",
        *,
        loss: PrivacyProfile | None = None,
        key: str | None = None,
        question: str = "",
    ) -> Entry:
        """Charge a budget, or refuse; committed when it returns.

        Parameters
        ----------
        name : str
            The budget.
        guarantee : Guarantee
            What the release is going to promise.
        note : str, default ""
            Remark; at most 10,000 characters.
        loss : PrivacyProfile, optional
            The law of the loss behind the promise (``mechanism.loss``), which often costs less
            than the worst mechanism with that promise. Both must hold. A law that keeps less than
            the promise, as that of one part of a release, is left out: the promise is charged.
        key : str, optional
            A name of your own for this charge: 1 to 200 printable characters, not only digits, and
            in such a form as the name of a budget.
            Charging again under it, for the same question at the same price, charges nothing.
        question : str, default ""
            What is asked, as a digest or in words that hold no private value.

        Returns
        -------
        Entry
            As written down; for a key in use, the entry that has it.

        Raises
        ------
        Overspent
            If it does not fit; nothing is charged.
        KeyInUse
            If the key belongs to another question, or for another price; nothing is charged.
        NotFound
            If there is no such budget.
        ParameterError
            If the promise is for other neighbours or another unit than the budget, or for fewer
            people, or not a promise at all.
        LedgerUnavailable
            If the ledger cannot be written; the message says if it may have been charged.
        DamagedLedger
            If the entries are not those that were written.
        """
        check_text(name, note)
        check_key(key, question)
        try:
            with self._balances.hold(name) as cached:
                return self._charge(cached, name, guarantee, note, loss, key, question)
        except DoesNotFit as refused:  # to find the words takes long where sums are exact
            raise refused.explain() from None

    def _charge(
        self,
        cached: CachedBalance,
        name: str,
        guarantee: Guarantee,
        note: str,
        loss: PrivacyProfile | None,
        key: str | None,
        question: str,
    ) -> Entry:
        """Charge a budget that is held."""
        law = law_of(loss)
        running = cached.balance or self._balances.read_current(cached, name)
        check_promise(running.budget, guarantee, loss)
        known = None if law is None else find_priced_law(guarantee, loss)
        law = None if known is None else law
        costs = costs_of(running.budget, guarantee, known)
        self._balances.judge_ahead(cached, name, key, (guarantee, known, costs))
        try:
            with self._store.spending() as connection:
                head = rows.head_of(connection, name, lock=True)
                running = sync_balance(cached, connection, head)
                paid = None if key is None else running.keys.get(key)
                if paid is not None:
                    entry = rows.entry_at(connection, running.budget, paid)
                    entry = require_same_question(
                        entry, running.budget, guarantee, law, costs, question
                    )
                    if answer_at(connection, name, paid) is None:
                        require_fitted(running, connection, entry, head)
                else:
                    running.require_fit(guarantee, known, costs)
                    entry = next_entry(running, guarantee, note, law, costs, key, question)
                    entry = append_next(connection, running, entry)
        except InDoubt as error:
            cached.balance = None
            if not self._resolve_in_doubt(entry, error):
                raise LedgerUnavailable(f"nothing was charged: {error}") from None
            return entry
        if paid is None:
            cached.fold(running, entry)
        return entry

    def keep_answer(self, name: str, entry: Entry, text: str) -> str:
        """Store the answer that a charge paid for, before it is shown; once.

        Parameters
        ----------
        name : str
            The budget.
        entry : Entry
            The charge, as `charge` returned it.
        text : str
            The released answer, which is public. Best JSON; no zero bytes or lone surrogates, and
            500 million characters at most.

        Returns
        -------
        str
            What is stored: the text, or the one that was stored before it. Show this one alone.

        Raises
        ------
        ParameterError
            If the entry is not of this budget, or the text none or too long.
        LedgerUnavailable
            If it cannot be written. Then show nothing, and ask again under the same key.
        """
        if not isinstance(text, str) or "\x00" in text or not is_text(text):
            raise ParameterError("an answer is a text without zero bytes and lone surrogates")
        if not isinstance(entry, Entry):
            raise ParameterError(f"an entry comes from charge, got {type(entry).__name__}")
        with self._store.spending() as connection:
            if entry.budget != name or not rows.is_written(connection, entry):
                raise ParameterError(f"the entry does not belong to budget {name!r} of this ledger")
            insert_answer(connection, entry, text)
            kept = answer_at(connection, name, entry.number)
        if kept is None:
            raise DamagedLedger(f"the answer of entry {entry.number} of {name!r} was not stored")
        return kept

    @called_as('ledger.quote("stays", hs.Guarantee(epsilon=0.1))')
    def quote(
        self, name: str, guarantee: Guarantee, *, loss: PrivacyProfile | None = None
    ) -> Balance:
        """Balance that a charge would leave; nothing is charged.

        Parameters
        ----------
        name : str
            The budget.
        guarantee : Guarantee
            What the release would promise.
        loss : PrivacyProfile, optional
            As for `charge`.

        Returns
        -------
        Balance
            Balance after it.

        Raises
        ------
        Overspent
            If it would not fit.
        NotFound, ParameterError, LedgerUnavailable, DamagedLedger
            As for `charge`.
        """
        law = law_of(loss)
        with self._balances.hold(name) as cached:
            running = self._balances.read_current(cached, name)
            check_promise(running.budget, guarantee, loss)
            known = None if law is None else find_priced_law(guarantee, loss)
            law = None if known is None else law
            costs = costs_of(running.budget, guarantee, known)
            running.check(guarantee, known, costs)
            after = running.copy()
            after.add(next_entry(running, guarantee, "", law, costs))
            return after.balance()

    def _resolve_in_doubt(self, entry: Entry, error: InDoubt) -> bool:
        """Whether an entry was committed when the connection broke during its commit.

        The head of the chain is locked first, so that a commit still under way is waited for.
        """
        try:
            with self._store.spending() as connection:
                rows.head_of(connection, entry.budget, lock=True)
                return rows.is_written(connection, entry)
        except LedgerUnavailable:
            raise LedgerUnavailable(
                f"{error}. The connection broke during the commit: the charge of budget "
                f"{entry.budget!r} may have been made. Do not release; look for entry "
                f"{entry.number} with digest {entry.digest[:12]} before charging again"
            ) from None
