"""A query on a private table, from the first filter to the paid answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from hushed._checks import require_probability
from hushed._types import StoredType
from hushed.releasing._keeping import Charges, check_ledger, explain_stops, pay
from hushed.releasing._release import default_note
from hushed.statistics._candidates import Spacing
from hushed.tables import _engine as engine
from hushed.tables import _question as question
from hushed.tables._answers import Answer
from hushed.tables._asking import ask
from hushed.tables._plan import NoiseName, Plan
from hushed.tables._prepared import Prepared, Proposal, prepare_query, release_query
from hushed.tables._query import Query, digest_question
from hushed.tables._quote_for import Prices, QuotedErrors, Share, solve_errors
from hushed.tables._quotes import Quote, quote_query
from hushed.tables._release import plan_query
from hushed.tables._requests import (
    Aggregate,
    AggregateKind,
    Bound,
    ContributionBounds,
    Counted,
    Derive,
    Filter,
    Keys,
    read_candidates,
    read_probabilities,
)

_BETA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A query on a private table; every method returns a new one. Made by `table`.

    Parameters
    ----------
    connection : Connection
        Where the rows are.
    query : Query
        What is asked: plain data, which holds no connection.
    """

    connection: engine.Connection
    query: Query

    @property
    def user(self) -> str | None:
        """User column, if there is one."""
        return self.query.user

    @property
    def columns(self) -> Mapping[str, StoredType]:
        """Type of each column: int, float, string, bool, date, timestamp, or other."""
        return MappingProxyType(self.query.columns)

    @property
    def steps(self) -> tuple[Filter | Derive, ...]:
        """Filters and derived columns, in their order."""
        return self.query.steps

    @property
    def keys(self) -> Keys:
        """The grouping."""
        return self.query.keys

    @property
    def contribution_bounds(self) -> ContributionBounds:
        """How much of one user counts."""
        return self.query.contribution_bounds

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates."""
        return self.query.aggregates

    @property
    def unit(self) -> Literal["user", "row"]:
        """What the guarantee protects: one user with all rows, or one row."""
        return self.query.unit

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

    def filter(self, condition: str) -> Table:
        """Keep the rows that fulfil a condition.

        Parameters
        ----------
        condition : str
            Such as ``"age >= 18 and city in ['Rome', 'Oslo']"``. A missing value fulfils no
            condition.

        Returns
        -------
        Table
            The query with the filter.

        Raises
        ------
        ParameterError
            If it cannot be read, names an unknown column or is not a condition.
        """
        return replace(self, query=self.query.filter(condition))

    def derive(self, name: str, expression: str) -> Table:
        """Add a column, computed row by row.

        Parameters
        ----------
        name : str
            Name of the new column. It must not exist yet.
        expression : str
            Such as ``"cost / 1000"`` or ``"floor(age / 10)"``.

        Returns
        -------
        Table
            The query with the column.

        Raises
        ------
        ParameterError
            If it cannot be read or the name is taken.
        """
        return replace(self, query=self.query.derive(name, expression))

    def group_by(
        self,
        *columns: str,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        select_partitions: bool = False,
    ) -> Table:
        """Answer for each group (partition) of rows.

        Parameters
        ----------
        *columns : str
            Grouping columns, at least one, of type int, string, bool or date.
        keys : sequence, or mapping of str to sequence, optional
            Public keys: the values of the only column, or of each column. Every combination gets an
            answer (noise around zero where there are no rows). Rows with other keys are left out.
        select_partitions : bool, default False
            True for keys that only the private rows hold: private partition selection. A key is
            released if its noisy number of users reaches a threshold (tau). This costs a share of
            epsilon, and delta.

        Returns
        -------
        Table
            The query with the grouping.

        Raises
        ------
        ParameterError
            Unless exactly one of ``keys`` and ``select_partitions=True`` is given. Keys that are
            found in the rows would show who is in the table.
        """
        query = self.query.group_by(columns, keys, select_partitions=select_partitions)
        return replace(self, query=query)

    def bound_contributions(
        self, *, max_rows_per_user: int | None = None, max_groups_per_user: int | None = None
    ) -> Table:
        """Set the contribution bounds: how many rows and groups of one user count.

        Parameters
        ----------
        max_rows_per_user : int, optional
            At most this number of rows of one user is kept, over all groups together. A keyed hash
            decides which ones.
        max_groups_per_user : int, optional
            At most this number of groups of one user is kept, chosen in the same way. Groups are
            bounded first, then rows.

        Returns
        -------
        Table
            The query with the contribution bounds.

        Raises
        ------
        ParameterError
            If there is no user column, or a bound is not an integer of 1 or more.
        """
        query = self.query.bound_contributions(
            max_rows_per_user=max_rows_per_user, max_groups_per_user=max_groups_per_user
        )
        return replace(self, query=query)

    def count(self, *, name: str = "count", weight: float = 1.0) -> Table:
        """Add the number of rows to the query.

        Parameters
        ----------
        name : str, default "count"
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate.
        """
        return self._ask("count", name=name, weight=weight)

    def count_users(self, *, name: str = "users", weight: float = 1.0) -> Table:
        """Add the number of different users to the query.

        Parameters
        ----------
        name : str, default "users"
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate.

        Raises
        ------
        ParameterError
            If there is no user column.
        """
        return self._ask("users", name=name, weight=weight)

    def sum(
        self, column: str, *, low: Bound, high: Bound, name: str | None = None, weight: float = 1.0
    ) -> Table:
        """Add the sum of a column; missing values count as 0.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float or "search"
            Public bounds that every value is clipped to. The noise grows with the larger one.
            "search" finds the bound in the rows, as `hushed.find_bound` does: the first power of
            two with few rows beyond it. That takes a scan of its own and an equal part of the
            share; one bound serves all groups, and the answer tells it.
        name : str, optional
            Name of the output; ``sum_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate.
        """
        return self._ask("sum", column, name, low=low, high=high, weight=weight)

    def mean(
        self, column: str, *, low: Bound, high: Bound, name: str | None = None, weight: float = 1.0
    ) -> Table:
        """Add the mean of a column; missing values are left out.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float or "search"
            Public bounds that every value is clipped to; "search" as for `sum`.
        name : str, optional
            Name of the output; ``mean_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate: the middle of the bounds plus a noisy sum of
            distances from it, divided by a noisy number of values. Each gets half of the share.
        """
        return self._ask("mean", column, name, low=low, high=high, weight=weight)

    def variance(
        self, column: str, *, low: Bound, high: Bound, name: str | None = None, weight: float = 1.0
    ) -> Table:
        """Add the variance of a column (divisor: number of values).

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float or "search"
            Public bounds that every value is clipped to; "search" as for `sum`.
        name : str, optional
            Name of the output; ``variance_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate. It comes from a noisy sum of distances from the middle of
            the bounds, a noisy sum of their squares, and a noisy number of values. Each gets a
            third of the share.
        """
        return self._ask("variance", column, name, low=low, high=high, weight=weight)

    def quantiles(
        self,
        column: str,
        probabilities: Sequence[float],
        *,
        low: float,
        high: float,
        candidates: int | None = None,
        spacing: Spacing | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Table:
        """Add quantiles of a column, each chosen among public candidates.

        Every value counts as the candidate nearest to it.

        Parameters
        ----------
        column : str
            A numeric column.
        probabilities : sequence of float
            Which quantiles; ``[0.5]`` is the median. Several answers of one group are sorted.
        low, high : float
            Smallest and largest candidate.
        candidates : int, optional
            Number of candidates, evenly spaced unless `spacing` says otherwise; 2 to 10001. By
            default 2,000, geometric where `low` is 0 or more, as those of `hushed.statistics`.
        spacing : {"geometric", "even"}, optional
            Geometric candidates are each the same multiple of the one before, and a value is off by
            the same percentage anywhere; where `low` is 0 they are 0 and the numbers from a
            millionth of `high` on.
        name : str, optional
            Name of the output; ``quantiles_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates; divided among the quantiles.

        Returns
        -------
        Table
            The query with the aggregate. It takes a scan of its own.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        offered, chosen = read_candidates(candidates, spacing, low)
        return self._ask(
            "quantiles",
            column,
            name,
            low=low,
            high=high,
            weight=weight,
            bins=offered,
            spacing=chosen,
            probabilities=read_probabilities(probabilities),
        )

    def histogram(
        self,
        column: str,
        *,
        low: float,
        high: float,
        bins: int = 10,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Table:
        """Add the number of rows in equally wide bins.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float
            Ends of the first and the last bin. Values outside count in the first or the last bin.
        bins : int, default 10
            Number of bins; 1 to 10000.
        name : str, optional
            Name of the output; ``histogram_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate. It takes a scan of its own.
        """
        return self._ask("histogram", column, name, low=low, high=high, weight=weight, bins=bins)

    def top_k(
        self,
        *columns: str,
        k: int,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]],
        of: Counted = "rows",
        name: str = "rank",
    ) -> Table:
        """Choose the k keys with the most rows, all together; only their names are released.

        Parameters
        ----------
        *columns : str
            Columns whose values are the keys, at least one, as for `group_by`.
        k : int
            How many keys are chosen; 1 or more, at most the number of keys.
        keys : sequence, or mapping of str to sequence
            Public keys to choose from, as for `group_by`.
        of : {"rows", "users"}, default "rows"
            What is counted for each key. A user counts once for each key with a row of theirs,
            which needs no contribution bound.
        name : str, default "rank"
            Name of the output: 1 for the first key, and so on.

        Returns
        -------
        Table
            The query, which takes no further aggregate. The answer has one row for each chosen key,
            the one meant for the most first. It gets all of epsilon, which does not grow with
            k; numbers come from a second query.

        Raises
        ------
        ParameterError
            If a parameter cannot be used, or the query has a grouping or an aggregate already.

        Notes
        -----
        `hushed.TopK`, the joint exponential mechanism. One user moves each number of rows by
        ``max_rows_per_user`` at most, each number of users by 1, and all of them the same way.
        """
        return replace(self, query=self.query.top_k(columns, k, keys, of=of, name=name))

    def _ask(
        self, kind: AggregateKind, column: str | None = None, name: str | None = None, **how: Any
    ) -> Table:
        return replace(self, query=self.query.add(kind, column, name, **how))

    def quote(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
        rows: int | None = None,
        ledger: Any = None,
        budget: str | None = None,
    ) -> Quote:
        """Price the query without reading a row or charging anything.

        Parameters
        ----------
        epsilon : float
            Privacy loss of the whole query, in nats; above 0.
        delta : float, default 0
            Slack; needed for partition selection and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            Gaussian noise is smaller where a query has many outputs.
        beta : float, default 0.05
            Probability that an accuracy does not hold.
        rows : int, optional
            Public guess of the number of rows in a group. It gives means and variances an accuracy.
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
        """
        plan = plan_query(self.query, epsilon=epsilon, delta=delta, noise_name=noise)
        return quote_query(
            self.connection,
            self.query,
            plan,
            beta=beta,
            rows=rows,
            ledger=ledger,
            budget=budget,
        )

    def quote_for(
        self,
        *,
        errors: Mapping[str, float],
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
        rows: int | None = None,
        share: Share = "weights",
        ledger: Any = None,
        budget: str | None = None,
    ) -> QuotedErrors:
        """Find the smallest epsilon whose quote keeps the errors that are wanted.

        No row is read, and nothing is charged.

        Parameters
        ----------
        errors : mapping of str to float
            Largest error of some outputs, as `quote` states it: of quantiles in ranks, of a top in
            rows or users.
        delta : float, default 0
            Slack; needed for partition selection and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        beta : float, default 0.05
            Probability that an error does not hold, for each output by itself.
        rows : int, optional
            Public guess of the number of rows in a group; means and variances need it.
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
        require_probability("beta", beta)

        def plan(query: Query, epsilon: float) -> Plan:
            return plan_query(query, epsilon=epsilon, delta=delta, noise_name=noise)

        def quote(query: Query, planned: Plan) -> Quote:
            return quote_query(self.connection, query, planned, beta=beta, rows=rows)

        query, epsilon, binding = solve_errors(self.query, errors, Prices(plan, quote), share)
        solved = replace(self, query=query)
        price = solved.quote(
            epsilon=epsilon,
            delta=delta,
            noise=noise,
            beta=beta,
            rows=rows,
            ledger=ledger,
            budget=budget,
        )
        return QuotedErrors(table=solved, quote=price, errors=dict(errors), binding=binding)

    def prepare(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseName = "laplace",
        beta: float = _BETA,
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
        proposal = self._propose(epsilon, delta, noise, beta, timeout)
        return prepare_query(proposal)

    def _propose(
        self, epsilon: float, delta: float, noise: NoiseName, beta: float, timeout: float | None
    ) -> Proposal:
        """Start the clock, and plan the noise on these terms; nothing is asked of the engine."""
        clock = engine.Clock.start(timeout)
        plan = plan_query(self.query, epsilon=epsilon, delta=delta, noise_name=noise)
        require_probability("beta", beta)
        terms = {"epsilon": epsilon, "delta": delta, "noise": noise, "beta": beta}
        place = (self.connection.engine.name, self.connection.place)
        return Proposal(
            connection=self.connection,
            query=self.query,
            plan=plan,
            beta=beta,
            clock=clock,
            digest=digest_question(self.query, place, {**terms, "timeout": timeout}),
        )

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
        timeout: float | None = None,
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
            crash. Without a key, every release is a new one.
        timeout : float, optional
            Seconds that the query may take, including the wait for other threads, but not the wait
            for the ledger, which has a limit of its own; not on Spark. A query that is stopped
            after the charge stays paid, because a slow query says something about the rows, without
            noise: see the page on tables. The time of drawing noise does not count.

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
            If stopped after the charge; the message says what stays, and how to repeat the query.
        """
        proposal = self._propose(epsilon, delta, noise, beta, timeout)
        check_ledger(ledger, budget, key)
        charge = partial(
            pay,
            ledger,
            budget,
            proposal.plan.guarantee,
            note or default_note(self.query.describe()),
            loss=proposal.plan.loss,
            key=key,
            question=proposal.digest,
        )
        book: Any = ledger
        known = key is not None and book.answer(budget, key) is not None
        with explain_stops(ledger, budget, key):
            return release_query(proposal, charge, known=known)
