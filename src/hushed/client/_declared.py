"""What a steward has declared of columns, bounds and keys, in the place of what is not given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Self

from hushed._ground.calls import called_as
from hushed._ground.printing import flat, format_exactly
from hushed._ground.warned import warn_outside
from hushed.errors import HushedWarning, ParameterError
from hushed.statistics._candidates import Spacing
from hushed.tables._builder import QueryBuilder
from hushed.tables._expression_parts import texts_compared
from hushed.tables._expressions import parse
from hushed.tables._query import Query
from hushed.tables._requests import AggregateKind, Bound, read_key, require_numeric

_MOST = 5  # keys that a text names


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What is declared of the columns of a data set. It is public."""

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    rows: int | None = None  # of each person that count


def read_declared(columns: Sequence[Mapping[str, Any]], rows: int | None = None) -> Declared:
    """Read what a server tells of columns, and how many rows of each person count."""
    ends = {each["name"]: (each.get("low"), each.get("high")) for each in columns}
    bounds = {name: (a, b) for name, (a, b) in ends.items() if a is not None and b is not None}
    keys = {each["name"]: tuple(each["keys"]) for each in columns if each.get("keys")}
    return Declared(bounds=bounds, keys=keys, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredBuilder(QueryBuilder):
    """A query as it is built, with the declared bounds and keys where none are given.

    Parameters
    ----------
    query : Query
        What is asked.
    declared : Declared
        What the steward has declared.
    taken : tuple of str
        Which of it was taken so far, in words.
    """

    declared: Declared = field(default_factory=Declared, repr=False, hash=False)
    taken: tuple[str, ...] = field(default=(), repr=False)

    @called_as("bound_contributions(max_rows_per_user=3)")
    def bound_contributions(
        self, *, max_rows_per_user: int | None = None, max_groups_per_user: int | None = None
    ) -> Self:
        """Set the contribution bounds, as `hushed.Table.bound_contributions` does.

        Parameters
        ----------
        max_rows_per_user : int, optional
            Rows of one user that count; by default those that the steward has declared.
        max_groups_per_user : int, optional
            Groups of one user that count.

        Returns
        -------
        ServedTable
            The query with the contribution bounds.
        """
        rows, declared = max_rows_per_user, self.declared.rows
        said = f"{declared} row{'' if declared == 1 else 's'} of each person"
        taken = tuple(each for each in self.taken if each != said)
        if rows is None and declared is not None:
            rows, taken = declared, (*taken, said)
        bounded = QueryBuilder.bound_contributions(
            self, max_rows_per_user=rows, max_groups_per_user=max_groups_per_user
        )
        return replace(bounded, taken=taken)

    def filter(self, condition: str) -> Self:
        """Keep the rows that fulfil a condition, as `hushed.Table.filter` does.

        Parameters
        ----------
        condition : str
            Such as ``"age >= 18 and city in ['Rome', 'Oslo']"``. A warning tells of texts that are
            not among the keys that the steward has declared of their column.

        Returns
        -------
        ServedTable
            The query with the filter.

        Raises
        ------
        ParameterError
            If it cannot be read, names an unknown column or is not a condition.
        """
        kept = QueryBuilder.filter(self, condition)
        for column, texts in texts_compared(parse(condition, kept.query.columns).tree).items():
            told = self.declared.keys.get(column, ())
            others = [each for each in texts if each not in told]
            if told and others:
                warn_outside(
                    HushedWarning(
                        _say_others(column, others, told, "A condition that no row fulfils")
                    )
                )
        return kept

    def group_by(
        self,
        *columns: str,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        select_partitions: bool = False,
    ) -> Self:
        """Answer for each group of rows, as `hushed.Table.group_by` does.

        Parameters
        ----------
        *columns : str
            Grouping columns.
        keys : sequence, or mapping of str to sequence, optional
            Public keys; of a column that is not named here, those that the steward has declared.
            A warning tells of keys that are not among these.
        select_partitions : bool, default False
            True for keys that only the private rows hold.

        Returns
        -------
        ServedTable
            The query with the grouping.

        Raises
        ------
        ParameterError
            If no keys are given and none are declared.
        """
        taken: tuple[str, ...] = ()
        if not select_partitions and all(isinstance(each, str) for each in columns):
            keys, taken = self._fill_keys(columns, keys)
        grouped = QueryBuilder.group_by(
            self, *columns, keys=keys, select_partitions=select_partitions
        )
        self._warn_of_others(grouped.query)
        return replace(grouped, taken=(*self.taken, *taken))

    def sum(
        self,
        column: str,
        *,
        low: Bound | None = None,
        high: Bound | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
        """Add the sum of a column, as `hushed.Table.sum` does.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float or "search", optional
            Public bounds; by default those that the steward has declared.
        name : str, optional
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        ServedTable
            The query with the aggregate.

        Raises
        ------
        ParameterError
            If a bound is neither given nor declared.
        """
        asked, low, high = self._fill("sum", column, low, high)
        return QueryBuilder.sum(asked, column, low=low, high=high, name=name, weight=weight)

    def mean(
        self,
        column: str,
        *,
        low: Bound | None = None,
        high: Bound | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
        """Add the mean of a column, as `hushed.Table.mean` does.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float or "search", optional
            Public bounds; by default those that the steward has declared.
        name : str, optional
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        ServedTable
            The query with the aggregate.

        Raises
        ------
        ParameterError
            If a bound is neither given nor declared.
        """
        asked, low, high = self._fill("mean", column, low, high)
        return QueryBuilder.mean(asked, column, low=low, high=high, name=name, weight=weight)

    def variance(
        self,
        column: str,
        *,
        low: Bound | None = None,
        high: Bound | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
        """Add the variance of a column, as `hushed.Table.variance` does.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float or "search", optional
            Public bounds; by default those that the steward has declared.
        name : str, optional
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        ServedTable
            The query with the aggregate.

        Raises
        ------
        ParameterError
            If a bound is neither given nor declared.
        """
        asked, low, high = self._fill("variance", column, low, high)
        return QueryBuilder.variance(asked, column, low=low, high=high, name=name, weight=weight)

    def quantiles(
        self,
        column: str,
        probabilities: Sequence[float],
        *,
        low: float | None = None,
        high: float | None = None,
        candidates: int | None = None,
        spacing: Spacing | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
        """Add quantiles of a column, as `hushed.Table.quantiles` does.

        Parameters
        ----------
        column : str
            A numeric column.
        probabilities : sequence of float
            Which quantiles.
        low, high : float, optional
            Smallest and largest candidate; by default the bounds that the steward has declared.
        candidates : int, optional
            Number of candidates.
        spacing : {"geometric", "even"}, optional
            How they are spaced.
        name : str, optional
            Name of the output.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        ServedTable
            The query with the aggregate.

        Raises
        ------
        ParameterError
            If a bound is neither given nor declared.
        """
        asked, low, high = self._fill("quantiles", column, low, high)
        return QueryBuilder.quantiles(
            asked,
            column,
            probabilities,
            low=low,
            high=high,
            candidates=candidates,
            spacing=spacing,
            name=name,
            weight=weight,
        )

    def median(
        self,
        column: str,
        *,
        low: float | None = None,
        high: float | None = None,
        candidates: int | None = None,
        spacing: Spacing | None = None,
        name: str | None = None,
        weight: float = 1.0,
    ) -> Self:
        """Add the median of a column, as `hushed.Table.median` does.

        Parameters
        ----------
        column : str
            A numeric column.
        low, high : float, optional
            Smallest and largest candidate; by default the bounds that the steward has declared.
        candidates : int, optional
            Number of candidates.
        spacing : {"geometric", "even"}, optional
            How they are spaced.
        name : str, optional
            Name of the output; ``median_COLUMN`` by default.
        weight : float, default 1
            Share of epsilon relative to the other aggregates.

        Returns
        -------
        ServedTable
            The query with the aggregate.

        Raises
        ------
        ParameterError
            If a bound is neither given nor declared.
        """
        asked, low, high = self._fill("quantiles", column, low, high)
        return QueryBuilder.median(
            asked,
            column,
            low=low,
            high=high,
            candidates=candidates,
            spacing=spacing,
            name=name,
            weight=weight,
        )

    def _fill(self, kind: AggregateKind, column: str, low: Any, high: Any) -> tuple[Self, Any, Any]:
        """Take the declared bounds where none are given; say that they were taken."""
        if low is not None and high is not None:
            return self, low, high
        require_numeric(self.columns, column, kind)
        if column not in self.declared.bounds:
            raise ParameterError(
                f"the steward declared no bounds of {flat(column)}: give low and high",
                parameter="low" if low is None else "high",
            )
        known = self.declared.bounds[column]
        said = (
            f"{flat(column)} from {format_exactly(known[0], 15)} to {format_exactly(known[1], 15)}"
        )
        ends = (known[0] if low is None else low, known[1] if high is None else high)
        return replace(self, taken=(*self.taken, said)), *ends

    def _fill_keys(self, columns: Sequence[str], keys: Any) -> tuple[Any, tuple[str, ...]]:
        """Take the declared keys where none are given."""
        given = {} if keys is None else keys
        if not isinstance(given, Mapping) or not given.keys() <= set(columns):
            return keys, ()
        missing = [each for each in columns if each not in given]
        if not missing or not self.declared.keys.keys() >= set(missing):
            return keys, ()
        found = {each: self.declared.keys[each] for each in missing}
        said = tuple(f"the keys of {flat(each)}: {_name_some(found[each])}" for each in missing)
        return {each: ({**given} | found)[each] for each in columns}, said

    def _warn_of_others(self, asked: Query) -> None:
        """Warn of keys that the steward has not declared: they may be mistyped, and are paid."""
        keys = asked.keys
        for column, kind, values in zip(keys.columns, keys.types, keys.values or (), strict=False):
            told = self.declared.keys.get(column)
            if told is None:
                continue
            known = {read_key(each, kind, column) for each in told}
            others = [each for each in values if each not in known]
            if others:
                warn_outside(HushedWarning(_say_others(column, others, told)))


def _say_others(
    column: str, others: Sequence[Any], told: Sequence[Any], paid: str = "A group without rows"
) -> str:
    near = list(dict.fromkeys(found for each in others[:_MOST] for found in _find_near(each, told)))
    words = f"near them is {_name_some(near)}" if near else f"it declared {_name_some(told)}"
    are = "is" if len(others) == 1 else "are"
    return (
        f"{_name_some(others)} {are} not among the keys of {flat(column)} that the steward "
        f"declared; {words}. {paid} is answered, too, and paid"
    )


def _find_near(key: Any, known: Sequence[Any]) -> list[Any]:
    """Find the declared key that is most like another, capitals and spaces aside."""
    plain = {str(each).strip().casefold(): each for each in known}
    found = get_close_matches(str(key).strip().casefold(), plain, n=1)
    return [plain[each] for each in found]


def _name_some(keys: Sequence[Any]) -> str:
    """Name some keys, and say how many more there are."""
    more = len(keys) - _MOST
    named = ", ".join(flat(repr(each)) for each in keys[:_MOST])
    return named if more <= 0 else f"{named} and {more} more"
