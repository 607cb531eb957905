"""Between a query as data and a `Table`: ask one of the other, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import brief
from hushed.errors import ParameterError
from hushed.tables import _question as question
from hushed.tables import _question_parts as parts
from hushed.tables._joins import JoinUsers
from hushed.tables._requests import Aggregate, Derive, Filter
from hushed.tables._scan_rows import TOO_LONG

if TYPE_CHECKING:
    from hushed.tables._query import Query as TypedQuery
    from hushed.tables._query import Step
    from hushed.tables._table import Table

_KINDS = {"users": "count_users", "top": "top_k"}


def ask(table: Table, asked: question.Query) -> Table:
    """Ask a query of a table of which nothing is asked yet."""
    _check_table(table, asked)
    for step in asked.steps:
        table = _ask_step(table, step)
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
                raise ParameterError(
                    "top_k is a query of its own and uses all of epsilon: leave its weight out"
                )
            table = table.top_k(*columns, keys=keys or {}, **how)
        else:
            table = getattr(table, each.kind)(**how)
    return table


def _ask_step(table: Table, step: parts.AnyStep) -> Table:
    if isinstance(step, parts.Filter):
        return table.filter(step.filter)
    if isinstance(step, parts.Derive):
        return table.derive(step.derive, step.expression)
    if isinstance(step, parts.JoinUsers):
        return _ask_users(table, step)
    if step.join in step.columns:
        raise ParameterError(f"a join by {brief(step.join)} cannot add that column")
    public = {step.join: step.keys, **step.columns}
    # Whoever wrote the query down has written the public table with it.
    return table.join(public, on=step.join, default=step.default, users_are_public=True)


def _ask_users(table: Table, step: parts.JoinUsers) -> Table:
    """Join another table; where there is no database, as for a certificate, its types are told."""
    told = table.query.join_users(step.join_users, step.user, step.columns, step.default)
    connection: Any = table.connection
    if connection is None:
        return replace(table, query=told)
    columns = list(step.columns)
    found = table.join_users(step.join_users, user=step.user, columns=columns, default=step.default)
    if found.query != told:
        raise ParameterError(
            f"the columns of {brief(step.join_users)} are of other types than the query is for",
            parameter="types",
        )
    return found


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
    steps = [_describe_step(step) for step in typed.steps]
    if len(steps) > question.MOST_STEPS:
        raise ParameterError(TOO_LONG)
    return question.Query(
        user=typed.user,
        columns=typed.used_columns(),
        max_rows_per_user=bounds.max_rows_per_user,
        max_groups_per_user=bounds.max_groups_per_user,
        groups=groups,
        steps=steps,
        aggregates=[_describe_aggregate(each) for each in typed.aggregates],
    )


def _describe_step(step: Step) -> dict[str, Any]:
    if isinstance(step, Filter):
        return {"filter": step.condition.text}
    if isinstance(step, Derive):
        return {"derive": step.name, "expression": step.value.text}
    if isinstance(step, JoinUsers):
        names = [name for name, _ in step.columns]
        stated = None if step.default is None else dict(zip(names, step.default, strict=True))
        return {
            "join_users": step.table,
            "user": step.user,
            "columns": dict(step.columns),
            "default": stated,
        }
    defaults = {each.name: each.default for each in step.columns}
    return {
        "join": step.on,
        "keys": step.keys,
        "columns": {each.name: each.values for each in step.columns},
        "default": defaults if step.keeps_all else None,
    }


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
