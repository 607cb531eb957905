"""A query that is prepared: what no row decides is done. Then it is charged, and then answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from hushed._ground.calls import explained
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import format_up
from hushed._ground.progress import show_elapsed
from hushed._ground.stops import raise_stops
from hushed.errors import ParameterError, QueryFailed
from hushed.guarantee import Guarantee
from hushed.ledger._failures import write_failure
from hushed.ledger._payments import Payment
from hushed.privacy_loss import PrivacyProfile
from hushed.tables import _engine as engine
from hushed.tables._answers import Answer, Asked
from hushed.tables._plan import Plan
from hushed.tables._query import Query
from hushed.tables._quotes import Quote, quote_query
from hushed.tables._release import rehearse, run_plan
from hushed.tables._scan import PreparedScan
from hushed.tables._storage import read_answer, write_answer

_UNREAD = "no row was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A query and its terms, of which the engine knows nothing yet."""

    connection: engine.Connection  # the table
    query: Query  # what is asked
    plan: Plan  # its noise
    beta: float  # probability that an error bar does not hold
    asked: Asked  # the query as data, for whoever certifies the answer
    clock: engine.Clock  # limit of the time
    digest: str  # of the question, the table and the terms


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prepared(Shown):
    """A query that the engine has planned, before it is charged. Made by `Table.prepare`.

    It is for a program that charges by itself, such as a server: one process prepares and answers,
    another one holds the ledger. Everybody else calls `Table.release`, which does all three.

    Parameters
    ----------
    proposal : Proposal
        The query, its noise, and the limit of its time.
    scan : PreparedScan
        What the engine will run.
    digest : str
        SHA-256 of the question, the table and the terms, in hexadecimal: the same in every process,
        and for any rows. A ledger that is charged under a key takes it as ``question``.
    paused : float
        When the preparation ended, by `time.monotonic`; the clock stands still from then to the
        answer.
    ticket : Lock
        Taken by the one answer.
    """

    proposal: Proposal = field(repr=False, compare=False)
    scan: PreparedScan = field(repr=False, compare=False)
    digest: str
    paused: float = field(repr=False, compare=False)
    ticket: Any = field(default_factory=Lock, repr=False, compare=False)

    def _card(self) -> Card:
        asked, promise = self.proposal.query, self.guarantee
        names = ", ".join(each.name for each in asked.aggregates)
        facts = (
            ("asked", names),
            ("price", f"epsilon {format_up(promise.epsilon)}, delta {format_up(promise.delta)}"),
            ("protected is", f"one {promise.unit}"),
            ("state", "planned; no row was read, and nothing charged by it"),
        )
        return card_of_facts("Prepared query", facts)

    @property
    def guarantee(self) -> Guarantee:
        """What the answer guarantees, and has to be charged."""
        return self.proposal.plan.guarantee

    @property
    def loss(self) -> PrivacyProfile | None:
        """Privacy profile behind the guarantee, where it is known; a ledger counts by it."""
        return self.proposal.plan.loss

    def quote(
        self, *, rows: int | None = None, ledger: Any = None, budget: str | None = None
    ) -> Quote:
        """Price the answer; nothing is read or charged.

        Parameters
        ----------
        rows : int, optional
            Public guess of the number of rows in a group, as for `Table.quote`.
        ledger : Ledger, optional
            It reports what would be left of the budget.
        budget : str, optional
            Name of the budget in the ledger.

        Returns
        -------
        Quote
            The same as `Table.quote` gives on these terms.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        asked = self.proposal
        return quote_query(
            asked.connection,
            asked.query,
            asked.plan,
            beta=asked.beta,
            rows=rows,
            left_out=asked.asked.left_out,
            ledger=ledger,
            budget=budget,
        )

    @explained(
        "Table.release charges and answers by itself; call it as in "
        "prepared.answer(charged=entry.question, keep=keep)"
    )
    def answer(self, *, charged: str, keep: Callable[[str], str]) -> Answer:
        """Read the rows, add noise, store the answer and return what is stored; charges nothing.

        It is for whoever holds a charge for this question on these terms. A charge pays for one
        answer: a prepared query answers once, and one that is prepared again for the same charge
        tells the answer that was stored first.

        Parameters
        ----------
        charged : str
            Digest of what was charged: ``question`` of the ledger's entry. It must be `digest`.
        keep : callable
            Takes the answer as JSON, stores it with its charge unless one is stored there, and
            returns the text that is: ``lambda text: ledger.keep_answer(budget, entry, text)``. A
            failure that may depend on the rows is stored, too. If it raises, nothing is shown.

        Returns
        -------
        Answer
            One row for each group, with error bars, as it is stored.

        Raises
        ------
        ParameterError
            If something else was charged, or it was answered already; no row is read.
        EngineUnavailable
            If the table cannot be asked from here, or other queries took all the time; no row is
            read, and it may be answered again.
        QueryFailed
            If the database fails during the query, or the time is over. The charge stays, because a
            failure may depend on the rows.
        KeyboardInterrupt
            If stopped; nothing was released.
        """
        if charged != self.digest:
            raise ParameterError(
                f"another question, or another price, was charged than is asked here; {_UNREAD}",
                parameter="charged",
                hint="charge prepared.guarantee, and give charged=prepared.digest; "
                "Table.release charges by itself",
            )
        clock = self.resume()
        with engine.hold(self.proposal.connection, clock, _UNREAD):
            clock.require_left(_UNREAD)
            if not self.ticket.acquire(blocking=False):
                raise ParameterError(
                    "a prepared query answers once, because each answer has a price of its own: "
                    f"prepare it again, and charge it again; {_UNREAD}"
                )
            attempt = _attempt(self, clock)
        if attempt.answer is not None:
            return read_answer(keep(write_answer(attempt.answer)))
        if attempt.stopped or attempt.lost:
            problem = KeyboardInterrupt if attempt.stopped else QueryFailed
            raise problem(f"{attempt.failed}; prepare it again, and answer it for the same charge")
        failure = QueryFailed(f"{attempt.failed}; count the budget as spent")
        return read_answer(keep(write_failure(failure)))  # raised, unless an answer was stored

    def resume(self) -> engine.Clock:
        """Let the clock go on, without the time since the preparation.

        Returns
        -------
        Clock
            What is left of the time limit, from now on.
        """
        return self.proposal.clock.after_wait(self.paused)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """An answer, or what kept it away."""

    answer: Answer | None = None
    failed: str = ""
    # Whether nothing was told of the rows: the connection is lost, or the user stopped.
    lost: bool = False
    stopped: bool = False


def prepare_query(proposal: Proposal) -> Prepared:
    """Do all that no row decides, while no other thread queries the same table."""
    connection, clock = proposal.connection, proposal.clock
    with engine.hold(connection, clock):
        scan = rehearse(
            connection, proposal.query, proposal.plan, proposal.beta, clock, proposal.asked
        )
    clock.require_left()
    return Prepared(proposal=proposal, scan=scan, digest=proposal.digest, paused=time.monotonic())


def _attempt(prepared: Prepared, clock: engine.Clock) -> _Attempt:
    """Answer a query that is paid for; no text of the engine's own is shown."""
    asked = prepared.proposal
    try:
        with raise_stops():
            answer = run_plan(prepared.scan, asked.plan, asked.beta, clock, asked.asked.left_out)
        return _Attempt(answer=replace(answer, asked=asked.asked))
    except KeyboardInterrupt:
        return _Attempt(failed="stopped; nothing was released", stopped=True)
    except QueryFailed as error:
        return _Attempt(failed=str(error), lost=isinstance(error, engine.ConnectionLost))
    except Exception as error:  # whatever it is, its own text may quote a private value
        return _Attempt(failed=f"{asked.connection.engine} did not answer ({type(error).__name__})")


def release_query(
    proposal: Proposal, charge: Callable[[], Payment], *, known: bool, progress: bool = False
) -> Answer:
    """Prepare, charge and answer, while no other thread queries the same table.

    An answer that is stored under the caller's key (`known`) is read again, and nothing is queried.
    An answer is stored before it is shown. So is a failure, which may depend on the rows; but not a
    lost connection or a stop by the user: then the same key repeats the query, at no cost.
    """
    if known:
        paid = charge()
        if paid.kept is not None:
            return _read_stored(paid, paid.kept)
    with engine.hold(proposal.connection, proposal.clock):
        prepared = prepare_query(proposal)
        paid = charge()
        if paid.kept is not None:  # another process was faster
            return _read_stored(paid, paid.kept)
        # The wait for other spenders does not count: it costs no answer that is paid for.
        clock = prepared.resume()
        with show_elapsed(f"{proposal.connection.engine} answers", clock.limit, shown=progress):
            attempt = _attempt(prepared, clock)
    if attempt.answer is not None:
        if paid.number is None:
            return attempt.answer
        return _read_stored(paid, paid.keep(write_answer(attempt.answer)))
    stays = "count the budget as spent" if paid.ledger is None else "the charge stays"
    if attempt.stopped or (attempt.lost and paid.key is not None):
        again = "" if paid.key is None else f": ask again under the key {paid.key!r}, at no cost"
        problem = KeyboardInterrupt if attempt.stopped else QueryFailed
        raise problem(f"{attempt.failed}; {stays}{again}")
    failure = QueryFailed(f"{attempt.failed}; {stays}")
    if paid.number is not None and not attempt.lost:
        _read_stored(paid, paid.keep(write_failure(failure)))
    raise failure


def _read_stored(paid: Payment, text: str) -> Answer:
    """Read the stored answer; a stored failure is raised."""
    return replace(read_answer(text), entry=paid.number)
