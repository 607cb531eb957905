"""A query on a private table as it is built: what is kept, how it is grouped, what is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Self

from hushed._ground.calls import called_as, explained
from hushed._ground.notebook import Card, card_of_facts
from hushed._ground.printing import brief
from hushed._ground.types import StoredType
from hushed.errors import ParameterError
from hushed.statistics._candidates import Spacing
from hushed.tables._query import Query, Step
from hushed.tables._requests import (
    Aggregate,
    AggregateKind,
    Bound,
    ContributionBounds,
    Counted,
    Keys,
    read_candidates,
    read_probabilities,
)

_RANGE = (
    "give the public range that every value is clipped to, as in {}low=0, high=100), from what the "
    "column means and not from its rows"
)
_BOUNDS = f"{_RANGE}; where nobody knows it, high='search' finds a bound privately"
_OF_USERS = (
    "{} is the column of the users, or computed from it, and a table with a row for each user is "
    "private, as a rule: a join would write all of it into the query, the stored answer and the "
    "certificate"
)
_IF_PUBLIC = (
    "join private tables of one database with join_users; only if everybody may know these users, "
    "and all that the table says of them, give users_are_public=True"
)
_TOP = "say how many, and list the public keys to choose from: top_k('city', k=1, keys=[...])"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBuilder:
    """What is asked of a table so far; every method returns a new one.

    Parameters
    ----------
    query : Query
        What is asked: plain data, which holds no connection.
    """

    query: Query

    def _describe(self, title: str) -> Card:
        """Show what is asked, and of which columns; no row and no address."""
        columns = ", ".join(f"{name} ({kind})" for name, kind in self.query.schema)
        asked = self.query.describe().removeprefix("query: ") or "nothing yet"
        unit = "one row" if self.user is None else f"one user, by {self.user}"
        facts = (("asked", asked), ("protected is", unit), ("columns", columns))
        return card_of_facts(title, facts)

    @property
    def user(self) -> str | None:
        """User column, if there is one."""
        return self.query.user

    @property
    def columns(self) -> Mapping[str, StoredType]:
        """Type of each column: int, float, string, bool, date, timestamp, or other."""
        return MappingProxyType(self.query.columns)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Filters, derived columns and joins, in their order."""
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

    @called_as("filter('cost > 100')")
    def filter(self, condition: str) -> Self:
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

    @called_as("derive('share', 'cost / days')")
    def derive(self, name: str, expression: str) -> Self:
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

    @called_as("join(public, on='city')")
    def join(
        self,
        public: Any,
        *,
        on: str,
        default: Mapping[str, Any] | None = None,
        users_are_public: bool = False,
    ) -> Self:
        """Add the columns of a public table, which has one row for each key.

        Parameters
        ----------
        public : pandas.DataFrame, polars.DataFrame, pyarrow.Table, or mapping of str to sequence
            The public table, such as ``{"ward": ["A", "B"], "beds": [10, 20]}``: a column of keys,
            and columns of numbers, strings or bools, without a missing cell, of at most 100,000
            cells together. All of it becomes a part of the query, and of its files, answers and
            certificates: whoever joins it says that it is public.
        on : str
            The column of the keys in both tables, of type int, string, bool or date. Keys are equal
            if they are of the same type, and strings, byte by byte.
        default : mapping of str to value, optional
            The value of each added column for rows without a match. Without it these rows, and
            those whose key is missing, are left out.
        users_are_public : bool, default False
            True where the keys are users, and everybody may know who they are and what the public
            table says of each of them. A table about users is private, as a rule.

        Returns
        -------
        Table
            The query with the columns. A row stays one row: the join costs nothing. Quote and
            answer say in `warnings` how much of the public table they publish.

        Raises
        ------
        ParameterError
            If a key is there twice or missing, the tables do not fit together, or the keys are
            users, or computed from them, and nobody said that they are public.
        """
        self._check_public(public)
        if self.query.names_users(on) and users_are_public is not True:
            said = _OF_USERS.format(brief(on))
            raise ParameterError(said, parameter="users_are_public", hint=_IF_PUBLIC)
        return replace(self, query=self.query.join(public, on, default))

    def _check_public(self, public: Any) -> None:
        """Refuse a private table in the place of a public one, as far as it is known."""

    @called_as("group_by('city', keys=['Bonn', 'Ulm'])")
    def group_by(
        self,
        *columns: str,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        select_partitions: bool = False,
    ) -> Self:
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

    @called_as("bound_contributions(max_rows_per_user=3)")
    def bound_contributions(
        self, *, max_rows_per_user: int | None = None, max_groups_per_user: int | None = None
    ) -> Self:
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

    @called_as("count()")
    def count(self, *, name: str = "count", weight: float = 1.0) -> Self:
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

    @called_as("count_users()")
    def count_users(self, *, name: str = "users", weight: float = 1.0) -> Self:
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

    @explained(_BOUNDS.format("sum('cost', "))
    def sum(
        self, column: str, *, low: Bound, high: Bound, name: str | None = None, weight: float = 1.0
    ) -> Self:
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

    @explained(_BOUNDS.format("mean('cost', "))
    def mean(
        self, column: str, *, low: Bound, high: Bound, name: str | None = None, weight: float = 1.0
    ) -> Self:
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

    @explained(_BOUNDS.format("variance('cost', "))
    def variance(
        self, column: str, *, low: Bound, high: Bound, name: str | None = None, weight: float = 1.0
    ) -> Self:
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

    @explained(_RANGE.format("quantiles('cost', [0.25, 0.75], "))
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
    ) -> Self:
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

    @explained(_RANGE.format("median('cost', "))
    def median(
        self,
        column: str,
        *,
        low: float,
        high: float,
        candidates: int | None = None,
        spacing: Spacing | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
        """Add the median of a column: the quantile 0.5, under a name of its own.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float
            Smallest and largest candidate.
        candidates : int, optional
            Number of candidates, as for `quantiles`.
        spacing : {"geometric", "even"}, optional
            How they are spaced, as for `quantiles`.
        name : str, optional
            Name of the output; ``median_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        Table
            The query with the aggregate. It takes a scan of its own.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        """
        return self.quantiles(
            column,
            [0.5],
            low=low,
            high=high,
            candidates=candidates,
            spacing=spacing,
            name=f"median_{column}" if name is None else name,
            weight=weight,
        )

    @explained(_RANGE.format("histogram('cost', "))
    def histogram(
        self,
        column: str,
        *,
        low: float,
        high: float,
        bins: int = 10,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
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

    @explained(_TOP)
    def top_k(
        self,
        *columns: str,
        k: int,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]],
        of: Counted = "rows",
        name: str = "rank",
    ) -> Self:
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
            the one meant for the most first. The choice uses all of epsilon, however large k is;
            ask for the numbers of rows in a second query.

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
    ) -> Self:
        return replace(self, query=self.query.add(kind, column, name, **how))
