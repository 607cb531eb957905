"""What is asked of a private table, from the first filter to the paid answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from hushed._checks import require_probability
from hushed._printing import brief
from hushed.errors import ParameterError
from hushed.releasing._keeping import Charges, check_ledger, explain_stops, pay
from hushed.tables import _engine as engine
from hushed.tables._answers import Answer
from hushed.tables._expressions import Kind, parse
from hushed.tables._measurements import influence, measurements
from hushed.tables._plan import NoiseName
from hushed.tables._quotes import Quote, quoted
from hushed.tables._releases import described, planned, released
from hushed.tables._requests import (
    Aggregate,
    AggregateKind,
    Derive,
    Filter,
    Keys,
    Limits,
    grouping,
    intervals_of,
    probabilities_of,
    require_apart,
    require_name,
    require_numeric,
)
from hushed.tables._stored import question_of

_BETA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A query on a private table; every method returns a new one. Made by `table`.

    Parameters
    ----------
    connection : Connection
        Where the rows are.
    user : str, optional
        The column that says whose row it is.
    columns : mapping of str to str
        Kinds of the columns.
    steps : tuple of (Filter or Derive)
        Which rows and columns were asked for.
    keys : Keys
        What the rows are grouped by.
    limits : Limits
        How much of one user counts.
    aggregates : tuple of Aggregate
        What is told of each group.
    """

    connection: engine.Connection
    user: str | None
    columns: Mapping[str, Kind]
    steps: tuple[Filter | Derive, ...] = ()
    keys: Keys = field(default_factory=Keys)
    limits: Limits = field(default_factory=Limits)
    aggregates: tuple[Aggregate, ...] = ()

    @property
    def unit(self) -> Literal["user", "row"]:
        """Whom the promise protects."""
        return "row" if self.user is None else "user"

    def filter(self, condition: str) -> Table:
        """Keep the rows for which a condition holds.

        Parameters
        ----------
        condition : str
            Such as ``"age >= 18 and city in ['Rome', 'Oslo']"``. A condition on a missing value
            does not hold.

        Returns
        -------
        Table
            With the filter.

        Raises
        ------
        ParameterError
            If it cannot be read, names an unknown column or is no condition.
        """
        read = parse(condition, self.columns)
        if read.kind != "truth":
            raise ParameterError(f"{brief(condition)} is no condition but a {read.kind} value")
        return replace(self, steps=(*self.steps, Filter(condition=read)))

    def derive(self, name: str, expression: str) -> Table:
        """Add a column that is computed row by row.

        Parameters
        ----------
        name : str
            Name of the new column; not one that exists.
        expression : str
            Such as ``"cost / 1000"`` or ``"floor(age / 10)"``.

        Returns
        -------
        Table
            With the column.

        Raises
        ------
        ParameterError
            If it cannot be read or the name is taken.
        """
        if require_name("a derived column", name) in self.columns:
            raise ParameterError(f"there is a column {brief(name)} already; choose another name")
        read = parse(expression, self.columns)
        step = Derive(name=name, value=read)
        columns = {**self.columns, name: read.kind}
        return replace(self, steps=(*self.steps, step), columns=columns)

    def group_by(
        self,
        *columns: str,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        private_keys: bool = False,
    ) -> Table:
        """Answer for each group.

        Parameters
        ----------
        *columns : str
            Grouping columns, at least one: whole numbers, texts, truths or dates.
        keys : sequence, or mapping of str to sequence, optional
            Public keys: the values of the only column, or of each column. Every combination is
            answered, with noise around zero where there are no rows; other keys are left out.
        private_keys : bool, default False
            True if the keys are in the private rows only. Then a key is named if enough users have
            it, counted with noise, which costs a share of epsilon and a delta.

        Returns
        -------
        Table
            With the grouping.

        Raises
        ------
        ParameterError
            If not exactly one of ``keys`` and ``private_keys=True`` is given: keys found in the
            rows would tell who is among them.
        """
        if self.keys.columns:
            raise ParameterError("the query is grouped already; name all columns in one group_by")
        grouped = grouping(self.columns, columns, keys, private_keys=private_keys)
        require_apart(self.aggregates, columns)
        return replace(self, keys=grouped)

    def per_user(self, *, rows: int | None = None, groups: int | None = None) -> Table:
        """Limit what of one user counts.

        Parameters
        ----------
        rows : int, optional
            Rows of one user that are kept, over all groups together, in an order nobody chose.
        groups : int, optional
            Groups of one user that are kept, likewise; first the groups, then the rows.

        Returns
        -------
        Table
            With the limits.

        Raises
        ------
        ParameterError
            If there is no user column, or a limit is no whole number of 1 or more.
        """
        if self.user is None:
            raise ParameterError(
                "there is no user column",
                parameter="user",
                hint="open the table with user='COLUMN'",
            )
        if rows is None and groups is None:
            raise ParameterError("say per_user(rows=...), per_user(groups=...) or both")
        return replace(self, limits=Limits(rows=rows, groups=groups))

    def count(self, *, name: str = "count", weight: float = 1.0) -> Table:
        """Ask for the number of rows.

        Parameters
        ----------
        name : str, default "count"
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            With the aggregate.
        """
        return self._asking("count", None, name, weight)

    def count_users(self, *, name: str = "users", weight: float = 1.0) -> Table:
        """Ask for the number of different users.

        Parameters
        ----------
        name : str, default "users"
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            With the aggregate.

        Raises
        ------
        ParameterError
            If there is no user column.
        """
        if self.user is None:
            raise ParameterError(
                "there is no user column",
                parameter="user",
                hint="open the table with user='COLUMN'",
            )
        return self._asking("users", None, name, weight)

    def sum(
        self, column: str, *, low: float, high: float, name: str | None = None, weight: float = 1.0
    ) -> Table:
        """Ask for the sum of a column; missing values count as 0.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float
            Public bounds that every value is clipped to. The noise grows with the larger one.
        name : str, optional
            Name of the output; ``sum_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            With the aggregate.
        """
        return self._asking("sum", column, name, weight, low, high)

    def mean(
        self, column: str, *, low: float, high: float, name: str | None = None, weight: float = 1.0
    ) -> Table:
        """Ask for the mean of a column; missing values are left out.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float
            Public bounds that every value is clipped to.
        name : str, optional
            Name of the output; ``mean_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            With the aggregate: the middle of the bounds plus a noisy sum of distances from it,
            divided by a noisy number of values, each with half of the share.
        """
        return self._asking("mean", column, name, weight, low, high)

    def variance(
        self, column: str, *, low: float, high: float, name: str | None = None, weight: float = 1.0
    ) -> Table:
        """Ask for the variance of a column (divisor: number of values).

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float
            Public bounds that every value is clipped to.
        name : str, optional
            Name of the output; ``variance_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            With the aggregate: from noisy sums of distances from the middle of the bounds and of
            their squares, and a noisy number of values, a third of the share each.
        """
        return self._asking("variance", column, name, weight, low, high)

    def quantiles(
        self,
        column: str,
        probabilities: Sequence[float],
        *,
        low: float,
        high: float,
        candidates: int = 101,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Table:
        """Ask for quantiles of a column, each chosen among public candidates.

        Parameters
        ----------
        column : str
            A numeric column.
        probabilities : sequence of float
            Which ones; ``[0.5]`` is the median. Several answers of one group are put in order.
        low, high : float
            Smallest and largest candidate.
        candidates : int, default 101
            Number of candidates, evenly spaced, `low` and `high` included; 2 to 10001.
        name : str, optional
            Name of the output; ``quantiles_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates; divided among the quantiles.

        Returns
        -------
        Table
            With the aggregate. It takes a scan of its own.
        """
        return self._asking(
            "quantiles",
            column,
            name,
            weight,
            low,
            high,
            bins=intervals_of(candidates),
            probabilities=probabilities_of(probabilities),
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
        """Ask for the number of rows in equally wide bins.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float
            Ends of the first and the last bin; what lies outside counts there.
        bins : int, default 10
            Number of bins; 1 to 10000.
        name : str, optional
            Name of the output; ``histogram_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            With the aggregate. It takes a scan of its own.
        """
        return self._asking("histogram", column, name, weight, low, high, bins=bins)

    def _asking(
        self,
        kind: AggregateKind,
        column: str | None,
        name: str | None,
        weight: float,
        low: float = 0.0,
        high: float = 1.0,
        *,
        bins: int = 1,
        probabilities: tuple[float, ...] = (),
    ) -> Table:
        if column is not None:
            require_numeric(self.columns, column, kind)
        name = f"{kind}_{column}" if name is None else name
        asked = Aggregate(
            kind=kind,
            name=name,
            column=column,
            low=low,
            high=high,
            bins=bins,
            probabilities=probabilities,
            weight=weight,
        )
        query = replace(self, aggregates=(*self.aggregates, asked))
        require_apart(query.aggregates, self.keys.columns)
        if column is not None:  # bounds are checked at once
            measurements(asked, influence(Keys(), Limits(rows=1), by_user=False), self.columns)
        return query

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
            Slack; needed for private keys and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            Gaussian noise is smaller where a query has many outputs.
        beta : float, default 0.05
            Chance with which an accuracy may be missed.
        rows : int, optional
            Public guess of the rows of a group: then means and variances get an accuracy.
        ledger : Ledger, optional
            Asked what would be left.
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
        plan, _ = planned(self, epsilon=epsilon, delta=delta, noise_name=noise)
        require_probability("beta", beta)
        check_ledger(ledger, budget)
        asked = hasattr(ledger, "quote")
        left = ledger.quote(budget, plan.guarantee, loss=plan.loss) if asked else None
        quote = quoted(plan, self.aggregates, beta=beta, rows=rows, left=left)
        return replace(quote, remarks=self.connection.remarks)

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
        """Charge, run the query in the database, draw the noise, answer.

        Whatever no row decides comes first: the database compiles and plans the query, and checks
        names, types and rights. What fails then costs nothing. Other threads that ask the same
        table wait until this query is answered.

        Parameters
        ----------
        epsilon : float
            Privacy loss of the whole query, in nats; above 0.
        delta : float, default 0
            Slack; needed for private keys and for Gaussian noise.
        noise : {"laplace", "gaussian"}, default "laplace"
            Which noise counts and sums get.
        beta : float, default 0.05
            Chance with which an error bar may be missed.
        ledger : Charges, optional
            Charged before a row is read; nothing is charged without it.
        budget : str, optional
            Name of the budget in the ledger; required with one.
        note : str, default ""
            Remark for the ledger; by default the aggregates and the columns that are asked for.
        key : str, optional
            A name of your own for this answer, which needs a `Ledger`: asking the same again under
            it tells the stored answer, at no cost and without a look at the rows. So may be done
            after a crash. Without a key every release is a new one.
        timeout : float, optional
            Seconds that the query may take, waiting for other threads included; not on Spark. A
            query that is stopped after the charge stays paid, for that it was slow is an answer.
            No noise is on that answer: see the page on tables.

        Returns
        -------
        Answer
            One row for each group, with error bars.

        Raises
        ------
        ParameterError
            If the query or its target cannot be used; nothing is charged.
        KeyInUse
            If the key stands for another question; nothing is charged.
        EngineUnavailable
            If the database does not answer any more, or does not let its user read the table;
            nothing is charged.
        QueryFailed
            If the database fails on the way, or the time is over; the charge stays, for failing
            may tell of the rows.
        KeyboardInterrupt
            If stopped from the charge on; it says what stays, and how to ask again.
        """
        clock = engine.Clock.start(timeout)
        plan, what = planned(self, epsilon=epsilon, delta=delta, noise_name=noise)
        require_probability("beta", beta)
        check_ledger(ledger, budget, key)
        terms = {"epsilon": epsilon, "delta": delta, "noise": noise, "beta": beta}
        question = question_of(self, {**terms, "timeout": timeout})
        charge = partial(
            pay,
            ledger,
            budget,
            plan.guarantee,
            note or described(self),
            loss=plan.loss,
            key=key,
            question=question,
        )
        book: Any = ledger
        known = key is not None and book.answer(budget, key) is not None
        with explain_stops(ledger, budget, key):
            return released(self, plan, what, beta=beta, clock=clock, charge=charge, known=known)
