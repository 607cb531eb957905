"""What is asked of a private table: one frozen record of plain data, without the table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from hushed._ground.checks import require_one_of
from hushed._ground.printing import brief
from hushed._ground.types import StoredType
from hushed.errors import ParameterError
from hushed.tables._expressions import columns_in, parse
from hushed.tables._joins import Join, JoinUsers, read_join, read_users_join
from hushed.tables._measurements import (
    Measurement,
    UnitContribution,
    measurements,
    unit_contribution,
)
from hushed.tables._requests import (
    Aggregate,
    AggregateKind,
    ContributionBounds,
    Counted,
    Derive,
    Filter,
    Keys,
    read_grouping,
    read_searched,
    require_distinct_outputs,
    require_int,
    require_name,
    require_numeric,
)
from hushed.tables._searching import Search, Side, searches
from hushed.tables._top import require_choice

Step = Filter | Derive | Join | JoinUsers


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query on a private table; every method returns a new one.

    Two queries are equal if they ask the same of tables with the same columns.
    """

    # Name and type of each column, derived ones included.
    schema: tuple[tuple[str, StoredType], ...]
    user: str | None = None  # user column, if there is one
    # Filters, derived columns and joins, in their order.
    steps: tuple[Step, ...] = ()
    keys: Keys = field(default_factory=Keys)  # the grouping
    # How much of one user counts.
    contribution_bounds: ContributionBounds = field(default_factory=ContributionBounds)
    aggregates: tuple[Aggregate, ...] = ()  # the aggregates

    @property
    def columns(self) -> dict[str, StoredType]:
        """Type of each column."""
        return dict(self.schema)

    @property
    def unit(self) -> Literal["user", "row"]:
        """What the guarantee protects: one user with all rows, or one row."""
        return "row" if self.user is None else "user"

    @property
    def bounds_users(self) -> bool:
        """Whether rows or groups of a user have to be chosen."""
        return self.user is not None and self.contribution_bounds != ContributionBounds()

    @property
    def contribution(self) -> UnitContribution:
        """How much one unit of privacy contributes at most."""
        by_user = self.user is not None
        return unit_contribution(self.keys, self.contribution_bounds, by_user=by_user)

    @property
    def measured(self) -> tuple[Measurement, ...]:
        """What has to be measured, in the order of the aggregates."""
        contribution, columns = self.contribution, self.columns
        found = (measurements(each, contribution, columns) for each in self.aggregates)
        return tuple(part for parts in found for part in parts)

    @property
    def searched(self) -> tuple[Search, ...]:
        """Bounds that have to be found first, in the order of the aggregates."""
        contribution, columns = self.contribution, self.columns
        found = (searches(each, contribution, columns) for each in self.aggregates)
        return tuple(search for several in found for search in several)

    def with_bounds(self, found: Mapping[tuple[str, Side], float]) -> Query:
        """Fill in the bounds that a search has found, by output and side."""
        filled = [
            replace(
                each,
                low=found.get((each.name, "low"), each.low),
                high=found.get((each.name, "high"), each.high),
            )
            for each in self.aggregates
        ]
        return replace(self, aggregates=tuple(filled))

    def with_smallest_bounds(self) -> Query:
        """Fill in the bounds nearest to zero that a search can find."""
        return self.with_bounds({(e.output, e.side): e.bounds[0] for e in self.searched})

    def filter(self, condition: str) -> Query:
        """Keep the rows that fulfil a condition."""
        parsed = parse(condition, self.columns)
        if parsed.type != "bool":
            raise ParameterError(
                f"{brief(condition)} is not a condition: its type is {parsed.type}, not bool"
            )
        return replace(self, steps=(*self.steps, Filter(condition=parsed)))

    def derive(self, name: str, expression: str) -> Query:
        """Add a column, computed row by row."""
        if require_name("a derived column", name) in self.columns:
            raise ParameterError(f"there is a column {brief(name)} already; choose another name")
        parsed = parse(expression, self.columns)
        step = Derive(name=name, value=parsed)
        return replace(self, steps=(*self.steps, step), schema=(*self.schema, (name, parsed.type)))

    @property
    def joins(self) -> tuple[Join, ...]:
        """Joins with public tables, in their order."""
        return tuple(each for each in self.steps if isinstance(each, Join))

    def names_users(self, column: str) -> bool:
        """Whether a column is that of the users, or is computed from it."""
        known = {self.user}
        for step in self.steps:
            if isinstance(step, Derive) and columns_in(step.value.tree) & known:
                known.add(step.name)
        return column in known

    def join(self, public: Any, on: str, default: Mapping[str, Any] | None) -> Query:
        """Add the columns of a public table."""
        step = read_join(self.columns, public, on, default)
        added = ((each.name, each.type) for each in step.columns)
        return replace(self, steps=(*self.steps, step), schema=(*self.schema, *added))

    def join_users(
        self,
        table: str,
        user: str,
        columns: Mapping[str, StoredType],
        default: Mapping[str, Any] | None,
    ) -> Query:
        """Add columns of another private table, of one row of the same user."""
        self._require_user()
        step = read_users_join(self.columns, table, user, columns, default)
        return replace(self, steps=(*self.steps, step), schema=(*self.schema, *step.columns))

    def group_by(
        self,
        columns: Sequence[str],
        keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
        *,
        select_partitions: bool,
    ) -> Query:
        """Answer for each group of rows."""
        self._require_alone("group_by")
        if self.keys.columns:
            raise ParameterError(
                "the query has a group_by already; name all columns in one group_by"
            )
        grouped = read_grouping(self.columns, columns, keys, select_partitions=select_partitions)
        require_distinct_outputs(self.aggregates, columns)
        return replace(self, keys=grouped)

    def bound_contributions(
        self, *, max_rows_per_user: int | None, max_groups_per_user: int | None
    ) -> Query:
        """Set how many rows and groups of one user count."""
        self._require_user()
        if max_rows_per_user is None and max_groups_per_user is None:
            raise ParameterError(
                "give bound_contributions(max_rows_per_user=...), "
                "bound_contributions(max_groups_per_user=...) or both"
            )
        bounds = ContributionBounds(
            max_rows_per_user=max_rows_per_user, max_groups_per_user=max_groups_per_user
        )
        return replace(self, contribution_bounds=bounds)

    def add(
        self, kind: AggregateKind, column: str | None = None, name: str | None = None, **how: Any
    ) -> Query:
        """Add an aggregate, and check its column and bounds at once."""
        self._require_alone("another aggregate")
        if kind == "users":
            self._require_user()
        if column is not None:
            require_numeric(self.columns, column, kind)
        name = f"{kind}_{column}" if name is None else name
        if kind in ("sum", "mean", "variance"):
            how |= read_searched(how["low"], how["high"])
        aggregate = Aggregate(kind=kind, name=name, column=column, **how)
        query = replace(self, aggregates=(*self.aggregates, aggregate))
        require_distinct_outputs(query.aggregates, self.keys.columns)
        if column is not None:
            measurements(aggregate, UnitContribution(rows=1, groups=1), self.columns)
            searches(aggregate, UnitContribution(rows=1, groups=1), self.columns)
        return query

    @property
    def chooses_keys(self) -> bool:
        """Whether the answer is a choice of keys: their top."""
        return any(each.kind == "top" for each in self.aggregates)

    def top_k(self, columns: Sequence[str], k: int, keys: Any, *, of: Counted, name: str) -> Query:
        """Choose the keys with the most rows, or users."""
        require_one_of("of", of, get_args(Counted))
        if of == "users":
            self._require_user()
        if self.aggregates or self.keys.columns:
            raise ParameterError(
                "top_k is a query of its own: ask for it without group_by and without other "
                "aggregates, in a second query",
                parameter="top_k",
            )
        if keys is None:
            raise ParameterError(
                "top_k chooses among public keys: which keys exist is private",
                parameter="keys",
                hint="give keys=[...]",
            )
        grouped = self.group_by(columns, keys, select_partitions=False)
        candidates = len(grouped.keys.combinations())
        require_choice(require_int("k", k), candidates)
        return grouped.add("top", None, name, k=k, bins=candidates, of=of)

    def _require_alone(self, what: str) -> None:
        """Refuse what would change the groups that a top is chosen from, or come beside it."""
        if self.chooses_keys:
            raise ParameterError(
                f"top_k is a query of its own: ask for {what} in a second query, without top_k",
                parameter="top_k",
            )

    def _require_user(self) -> None:
        if self.user is None:
            raise ParameterError(
                "there is no user column",
                parameter="user",
                hint="open the table with user='COLUMN'",
            )

    def describe(self) -> str:
        """Describe the query by public names: no constant, no key, no row."""
        aggregates = ", ".join(
            each.kind
            if each.column is None
            else f"{'median' if each.probabilities == (0.5,) else each.kind}({each.column})"
            for each in self.aggregates
        )
        filtered = " of filtered rows" if any(isinstance(s, Filter) for s in self.steps) else ""
        joined = {step.on for step in self.steps if isinstance(step, Join)}
        joined |= {step.table for step in self.steps if isinstance(step, JoinUsers)}
        filtered += f" joined by {', '.join(sorted(joined))}" if joined else ""
        grouped = f" by {', '.join(self.keys.columns)}" if self.keys.columns else ""
        return f"query: {aggregates}{filtered}{grouped}"

    def used_columns(self) -> dict[str, StoredType]:
        """Give the types of those columns of the table that the query uses."""
        used = {*self.keys.columns, *(each.column for each in self.aggregates), self.user}
        for step in self.steps:
            used |= needed_columns(step)
        added = {name for step in self.steps for name in added_columns(step)}
        return {name: kind for name, kind in self.schema if name in used - added}

    def facts(self) -> dict[str, Any]:
        """Give all that is asked, as plain values of JSON; equal numbers alike."""
        return {
            "columns": sorted(self.used_columns().items()),
            "user": self.user,
            "steps": [_describe_step(step) for step in self.steps],
            "keys": [self.keys.columns, self.keys.values],
            "contribution_bounds": _canonical(asdict(self.contribution_bounds)),
            "aggregates": [_canonical(asdict(each)) for each in self.aggregates],
        }


def needed_columns(step: Step) -> set[str]:
    """Columns that a step reads."""
    if isinstance(step, Join | JoinUsers):
        return {step.on} if isinstance(step, Join) else set()  # users are needed anyway
    return columns_in(step.condition.tree if isinstance(step, Filter) else step.value.tree)


def added_columns(step: Step) -> tuple[str, ...]:
    """Columns that a step adds."""
    if isinstance(step, Join):
        return tuple(each.name for each in step.columns)
    if isinstance(step, JoinUsers):
        return tuple(name for name, _ in step.columns)
    return () if isinstance(step, Filter) else (step.name,)


def _describe_step(step: Step) -> list[Any]:
    if isinstance(step, Filter):
        return ["filter", step.condition.text]
    if isinstance(step, Derive):
        return ["derive", step.name, step.value.text]
    return ["join" if isinstance(step, Join) else "join_users", asdict(step)]


def digest_question(query: Query, table: Sequence[str], terms: Mapping[str, object]) -> str:
    """Digest a query, its table and its terms; the same in every process, and for any rows."""
    facts = {
        "table": list(table),
        **query.facts(),
        "terms": _canonical(dict(sorted(terms.items()))),
    }
    return hashlib.sha256(json.dumps(facts, default=repr).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    """Write equal numbers alike, whether they are 1, 1.0, or of NumPy or decimal."""
    if isinstance(value, dict):
        return {name: _canonical(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_canonical(each) for each in value]
    if value is None or isinstance(value, str):
        return value
    return float(value).hex()
