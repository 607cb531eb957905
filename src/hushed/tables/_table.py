"""A query on a private table, from what is asked to the paid answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

from hushed._functions._carried import carries_rows
from hushed._ground.calls import called_as
from hushed._ground.checks import require_probability
from hushed._ground.notebook import Card, Shown
from hushed._ground.warned import warn_outside
from hushed.errors import HushedWarning, ParameterError
from hushed.ledger._notes import choose_note, default_note
from hushed.ledger._payments import Charges, check_ledger, explain_stops, pay
from hushed.populations import PublicTable
from hushed.tables import _engine as engine
from hushed.tables import _question as question
from hushed.tables._answers import Answer, Asked
from hushed.tables._asking import ask, describe
from hushed.tables._builder import QueryBuilder
from hushed.tables._left_out import LeftOut, count_missing, read_left_out
from hushed.tables._plan import NoiseName, Plan
from hushed.tables._prepared import Prepared, Proposal, prepare_query, release_query
from hushed.tables._query import Query, digest_question
from hushed.tables._quote_for import Prices, QuotedErrors, Share, solve_errors
from hushed.tables._quotes import Quote, quote_plan, quote_query
from hushed.tables._release import plan_query
from hushed.tables._wanted import read_errors, read_wanted

_BETA = 0.05


@called_as('hs.table("stays.csv")')
@dataclass(frozen=True, slots=True, kw_only=True)
class Table(QueryBuilder, Shown):
    """A query on a private table; every method returns a new one. Made by `table`.

    Parameters
    ----------
    query : Query
        What is asked: plain data, which holds no connection.
    connection : Connection
        Where the rows are.
    """

    connection: engine.Connection

    __repr__ = Shown.__repr__

    def _card(self) -> Card:
        return self._describe("Query of a private table")

    @called_as("table.ask(query)")
    def ask(self, query: question.Query) -> Table:
        """Ask a query that was written as data.

        Parameters
        ----------
        query : Query
            What is asked, such as one read from a file.

        Returns
        -------
        Table
            The query on this table, as its methods would make it.

        Raises
        ------
        ParameterError
            If something is asked of the table already, it was opened with another user column or
            other types, or the query cannot be asked of it.
        """
        return ask(self, query)

    @called_as("join_users('people', user='patient', columns=['age'])")
    def join_users(
        self,
        name: str,
        *,
        user: str,
        columns: Sequence[str],
        default: Mapping[str, Any] | None = None,
    ) -> Table:
        """Add columns of another private table, which has rows of the same users.

        The unit of privacy is then one user with all rows in both tables.

        Parameters
        ----------
        name : str
            Name of the other table, in the same database.
        user : str
            Its user column, of the same type as that of this table.
        columns : sequence of str
            Columns of it to add.
        default : mapping of str to value, optional
            The value of each added column for users without a row in the other table. Without it
            their rows are left out.

        Returns
        -------
        Table
            The query with the columns. Of each user, one row of the other table is used: if there
            are several, a keyed hash decides which one. So a row of this table stays one row, and
            the contribution bounds, which count joined rows, hold across both tables.

        Raises
        ------
        NotFound
            If there is no such table.
        ParameterError
            If this table has no user column, or the tables do not fit together.
        """
        from hushed.tables._beside import join_beside  # noqa: PLC0415

        joined, remarks = join_beside(self, name, user, columns, default)
        for message in remarks:
            warn_outside(HushedWarning(message))
        return joined

    def _check_public(self, public: Any) -> None:
        if not isinstance(public, Table):  # which is no public table anyway
            self._refuse_private(public, "public", "a join would write all of it into the query")

    def _read_left_out(self, guess: Any) -> LeftOut | None:
        """Count what contribution bounds leave out by a public guess."""
        held = guess.frame if isinstance(guess, PublicTable) else guess
        told = "its rows would be told by the error bars: give a public one, or numbers"
        self._refuse_private(held, "rows_per_user", told)
        return read_left_out(guess, self.query)

    def _refuse_private(self, given: Any, parameter: str, harm: str) -> None:
        """Refuse what holds the private rows: the frame, columns or slices of it."""
        private = getattr(self.connection, "frame", None)  # a certificate is read without a table
        rows = None if private is None else private()
        if rows is not None and given is not None and carries_rows(given, rows):
            raise ParameterError(
                f"this is the private table itself, or a part of it, and {harm}",
                parameter=parameter,
            )

    @called_as("table.count().quote(epsilon=1.0)")
    def quote(
        self,
        *,
        epsilon: float | None = None,
        errors: Mapping[str, float] | None = None,
        error: float | None = None,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
        rows: int | None = None,
        rows_per_user: Any = None,
        ledger: Any = None,
        budget: str | None = None,
    ) -> Quote:
        """Price the query without reading a row or charging anything.

        Parameters
        ----------
        epsilon : float, optional
            Privacy loss of the whole query, in nats; above 0. This one, `errors` or `error`.
        errors : mapping of str to float, optional
            Largest error of some outputs: the price is that of `quote_for`, which also says which
            of them decides.
        error : float, optional
            Largest error of the only output.
        delta : float, default 0
            Slack; needed for partition selection and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            Gaussian noise is smaller where a query has many outputs.
        beta : float, default 0.05
            Probability that an accuracy does not hold.
        rows : int, optional
            Public guess of the number of rows in a group. It gives means and variances an accuracy.
        rows_per_user : table, PublicTable, sequence or mapping, optional
            Public guess of the rows of the users: a public table with the user column, the number
            of rows of each user, or how many users have so many rows. The accuracies then
            include what contribution bounds leave out.
        ledger : Ledger, optional
            It reports what would be left of the budget.
        budget : str, optional
            Name of the budget in the ledger.

        Returns
        -------
        Quote
            Guarantee, accuracy of each output, and what would be left of the budget.

        Raises
        ------
        ParameterError
            If the query or its target cannot be used.
        NotFound, NotFeasible
            As for `quote_for`.
        Overspent
            If it would not fit the budget.
        """
        errors = read_errors(epsilon, errors, error, [each.name for each in self.aggregates])
        if epsilon is None:
            return self.quote_for(
                errors=errors or {},
                delta=delta,
                noise=noise,
                beta=beta,
                rows=rows,
                rows_per_user=rows_per_user,
                ledger=ledger,
                budget=budget,
            ).quote
        plan = plan_query(self.query, epsilon=epsilon, delta=delta, noise_name=noise)
        return quote_query(
            self.connection,
            self.query,
            plan,
            beta=beta,
            rows=rows,
            left_out=self._read_left_out(rows_per_user),
            ledger=ledger,
            budget=budget,
        )

    @called_as('table.count().quote_for(errors={"count": 50})')
    def quote_for(
        self,
        *,
        errors: Mapping[str, float] | None = None,
        error: float | None = None,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
        rows: int | None = None,
        rows_per_user: Any = None,
        share: Share = "weights",
        ledger: Any = None,
        budget: str | None = None,
    ) -> QuotedErrors:
        """Find the smallest epsilon whose quote keeps the errors that are wanted.

        No row is read, and nothing is charged.

        Parameters
        ----------
        errors : mapping of str to float, optional
            Largest error of some outputs, as `quote` states it: of quantiles in ranks, of a top in
            rows or users. These, or `error`.
        error : float, optional
            Largest error of the only output.
        delta : float, default 0
            Slack; needed for partition selection and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        beta : float, default 0.05
            Probability that an error does not hold, for each output by itself.
        rows : int, optional
            Public guess of the number of rows in a group; means and variances need it.
        rows_per_user : table, PublicTable, sequence or mapping, optional
            Public guess of the rows of the users, as for `quote`: the errors then include what
            contribution bounds leave out.
        share : {"weights", "solve"}, default "weights"
            "solve" chooses the weights, too, so that epsilon is smallest; it needs an error for
            each output. Partition selection keeps its share.
        ledger : Ledger, optional
            It reports what would be left of the budget.
        budget : str, optional
            Name of the budget in the ledger.

        Returns
        -------
        QuotedErrors
            The query to release, its quote, and which error binds. Epsilon is at most one part in
            10,000 above the smallest, and the quote at it keeps every error.

        Raises
        ------
        ParameterError
            If a parameter cannot be used, every epsilon keeps the errors, or an output has no error
            before its bound is found.
        NotFound
            If there is no such output.
        NotFeasible
            If no epsilon up to 1,000 keeps the errors.

        Notes
        -----
        A bisection: the result is an epsilon at which the quote was seen to keep the errors.
        """
        wanted = read_wanted(errors, error, [each.name for each in self.aggregates])
        beta = require_probability("beta", beta)
        left_out = self._read_left_out(rows_per_user)

        def plan(query: Query, epsilon: float) -> Plan:
            return plan_query(query, epsilon=epsilon, delta=delta, noise_name=noise)

        def quote(query: Query, planned: Plan) -> Quote:
            missing = count_missing(query, left_out)
            asked = query.aggregates
            return quote_plan(planned, asked, beta=beta, rows=rows, left=None, missing=missing)

        query, epsilon, binding = solve_errors(
            self.query, wanted, Prices(plan, quote, left_out), share
        )
        solved = replace(self, query=query)
        price = solved.quote(
            epsilon=epsilon,
            delta=delta,
            noise=noise,
            beta=beta,
            rows=rows,
            rows_per_user=rows_per_user,
            ledger=ledger,
            budget=budget,
        )
        return QuotedErrors(table=solved, quote=price, errors=dict(wanted), binding=binding)

    @called_as("table.count().prepare(epsilon=1.0)")
    def prepare(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
        rows_per_user: Any = None,
        timeout: float | None = None,
    ) -> Prepared:
        """Do all that no row decides; nothing is read or charged. `release` does it by itself.

        The noise is planned and tried on an empty group, and the database compiles and plans the
        query, and checks names, types and rights.

        Parameters
        ----------
        epsilon : float
            Privacy loss of the whole query, in nats; above 0.
        delta : float, default 0
            Slack; needed for partition selection and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        beta : float, default 0.05
            Probability that an error bar does not hold.
        rows_per_user : table, PublicTable, sequence or mapping, optional
            Public guess of the rows of the users, as for `release`.
        timeout : float, optional
            Seconds that preparation and answer may take together, as for `release`; the time
            between them does not count.

        Returns
        -------
        Prepared
            What has to be charged, and the answer to whoever holds the charge.

        Raises
        ------
        ParameterError
            If the query or its target cannot be used.
        EngineUnavailable
            If the database does not answer, or its user may not read the table.
        """
        proposal = self._propose(epsilon, delta, noise, beta, timeout, rows_per_user)
        return prepare_query(proposal)

    def _propose(
        self,
        epsilon: float,
        delta: float,
        noise: NoiseName,
        beta: float,
        timeout: float | None,
        rows_per_user: Any,
        stop: Event | None = None,
    ) -> Proposal:
        """Start the clock, and plan the noise on these terms; nothing is asked of the engine."""
        clock = engine.Clock.start(timeout, stop)
        plan = plan_query(self.query, epsilon=epsilon, delta=delta, noise_name=noise)
        beta = require_probability("beta", beta)
        terms = {"epsilon": epsilon, "delta": delta, "noise": noise, "beta": beta}
        left_out = self._read_left_out(rows_per_user)
        if left_out is not None:
            terms |= {"rows left out": left_out.rows, "users left out": left_out.users}
        others = (each.place for _, each in sorted(self.connection.others.items()))
        place = (self.connection.engine.name, self.connection.place, *others)
        return Proposal(
            connection=self.connection,
            query=self.query,
            plan=plan,
            beta=beta,
            asked=Asked(query=describe(self.query), noise=noise, beta=beta, left_out=left_out),
            clock=clock,
            digest=digest_question(self.query, place, {**terms, "timeout": timeout}),
        )

    @called_as("table.count().release(epsilon=1.0)")
    def release(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
        ledger: Charges | None = None,
        budget: str | None = None,
        note: str = "",
        key: str | None = None,
        rows_per_user: Any = None,
        timeout: float | None = None,
        stop: Event | None = None,
        progress: bool = False,
    ) -> Answer:
        """Charge the budget, run the query in the database, add noise, and return the answer.

        First comes all that does not depend on the rows: the database compiles and plans the query,
        and checks names, types and rights. A failure there costs nothing. Other threads that query
        the same table wait until this query is answered.

        Parameters
        ----------
        epsilon : float
            Privacy loss of the whole query, in nats; above 0.
        delta : float, default 0
            Slack; needed for partition selection and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        beta : float, default 0.05
            Probability that an error bar does not hold.
        ledger : Charges, optional
            It is charged before any row is read. Without a ledger, nothing is charged.
        budget : str, optional
            Name of the budget in the ledger; required with one.
        note : str, default ""
            Note in the ledger; by default the aggregates and their columns.
        key : str, optional
            A name of your own for this answer; it needs a `Ledger`. The same query under the same
            key returns the stored answer, at no cost and without reading the rows, such as after a
            crash. Without a key, every release is a new one. Frames are not told apart: the answer
            may be one of another frame with the same columns, which a `HushedWarning` says.
        rows_per_user : table, PublicTable, sequence or mapping, optional
            Public guess of the rows of the users: a public table with the user column, the number
            of rows of each user, or how many users have so many rows. Error bars then
            include what contribution bounds leave out, if these users have no more.
        timeout : float, optional
            Seconds that the query may take, including the wait for other threads, but not the wait
            for the ledger, which has a limit of its own; not on Spark. A query that is stopped
            after the charge stays paid, because a slow query says something about the rows, without
            noise: see the page on tables. The time of drawing noise does not count.
        stop : threading.Event, optional
            Stops the query when another thread sets it, as Ctrl-C does: for programs whose queries
            run in threads, which no signal reaches; not on Spark.
        progress : bool, default False
            Show in a terminal or a notebook for how long the database has been at work; not how
            much is done, which would tell of the rows.

        Returns
        -------
        Answer
            One row for each group, with error bars.

        Raises
        ------
        ParameterError
            If the query or its target cannot be used; nothing is charged.
        KeyInUse
            If the key belongs to another query; nothing is charged.
        EngineUnavailable
            If the database does not answer, or its user may not read the table; nothing is charged.
        QueryFailed
            If the database fails during the query, or the time is over. The charge stays, because a
            failure may depend on the rows.
        KeyboardInterrupt
            If stopped; the message says whether it was charged, and how to repeat the query.
        """
        proposal = self._propose(epsilon, delta, noise, beta, timeout, rows_per_user, stop)
        check_ledger(ledger, budget, key)
        charge = partial(
            pay,
            ledger,
            budget,
            proposal.plan.guarantee,
            choose_note(note, default_note(self.query.describe())),
            loss=proposal.plan.loss,
            key=key,
            question=proposal.digest,
            named=self.connection.has_address,
        )
        book: Any = ledger
        known = key is not None and book.answer(budget, key) is not None
        with explain_stops(ledger, budget, key):
            return release_query(proposal, charge, known=known, progress=progress)
