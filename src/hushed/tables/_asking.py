"""Between a query as data and a `Table`: ask one of the other, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hushed._printing import brief
from hushed.errors import ParameterError
from hushed.tables import _question as question
from hushed.tables._requests import Aggregate, Filter

if TYPE_CHECKING:
    from hushed.tables._query import Query as TypedQuery
    from hushed.tables._table import Table

_KINDS = {"users": "count_users", "top": "top_k"}


def ask(table: Table, asked: question.Query) -> Table:
    """Ask a query of a table of which nothing is asked yet."""
    _check_table(table, asked)
    for step in asked.steps:
        table = (
            table.filter(step.filter)
            if isinstance(step, question.Filter)
            else table.derive(step.derive, step.expression)
        )
    bounds = (asked.max_rows_per_user, asked.max_groups_per_user)
    if bounds != (None, None):
        table = table.bound_contributions(
            max_rows_per_user=bounds[0], max_groups_per_user=bounds[1]
        )
    groups = asked.groups
    columns, keys = ((), None) if groups is None else (groups.columns, groups.named_keys())
    tops = any(each.kind == "top_k" for each in asked.aggregates)
    if columns and not tops:
        table = table.group_by(*columns, keys=keys, select_partitions=keys is None)
    for each in asked.aggregates:
        how = each.model_dump(exclude={"kind"})
        if each.kind == "top_k":
            if how.pop("weight") != 1:
                raise ParameterError("top_k gets all of epsilon: it has no weight")
            table = table.top_k(*columns, keys=keys or {}, **how)
        else:
            table = getattr(table, each.kind)(**how)
    return table


def _check_table(table: Table, asked: question.Query) -> None:
    """Refuse a table with another user column or other types, or with a query of its own."""
    if not isinstance(asked, question.Query):
        raise ParameterError(f"ask takes a hushed.Query, got {type(asked).__name__}")
    if table.query != type(table.query)(schema=table.query.schema, user=table.user):
        raise ParameterError(
            "something is asked of this table already: ask a query of the table as it was opened"
        )
    if asked.user != table.user:
        wanted = "without a user column" if asked.user is None else f"with user={asked.user!r}"
        raise ParameterError(f"the query is for a table opened {wanted}", parameter="user")
    for column, kind in asked.columns.items():
        known = table.columns.get(column)
        if known is not None and known != kind:
            raise ParameterError(
                f"column {brief(column)} is of type {known}, and the query is for {kind}: open the "
                "table with types=query.columns, or change the query",
                parameter="types",
            )


def describe(typed: TypedQuery) -> question.Query:
    """Write what is asked of a table as data."""
    keys, bounds = typed.keys, typed.contribution_bounds
    groups = None
    if keys.columns:
        groups = {"columns": keys.columns, "keys": keys.values}
    steps: list[dict[str, str]] = [
        {"filter": step.condition.text}
        if isinstance(step, Filter)
        else {"derive": step.name, "expression": step.value.text}
        for step in typed.steps
    ]
    return question.Query(
        user=typed.user,
        columns=typed.used_columns(),
        max_rows_per_user=bounds.max_rows_per_user,
        max_groups_per_user=bounds.max_groups_per_user,
        groups=groups,
        steps=steps,
        aggregates=[_describe_aggregate(each) for each in typed.aggregates],
    )


def _describe_aggregate(each: Aggregate) -> Mapping[str, Any]:
    """Write an aggregate with the parameters of its method."""
    kind = _KINDS.get(each.kind, each.kind)
    found: dict[str, Any] = {"kind": kind, "name": each.name, "weight": each.weight}
    if each.kind == "top":
        return {**found, "k": each.k, "of": each.of}
    if each.column is None:
        return found
    found |= {"column": each.column, "low": each.low, "high": each.high}
    found |= dict.fromkeys(each.search, "search")
    if each.kind == "histogram":
        return {**found, "bins": each.bins}
    if each.kind == "quantiles":
        offered = {"candidates": each.bins, "spacing": each.spacing}
        return {**found, **offered, "probabilities": each.probabilities}
    return found
