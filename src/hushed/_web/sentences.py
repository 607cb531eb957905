"""What a privacy loss means, and what a query asks, in one sentence."""

from __future__ import annotations

from typing import Any

from hushed._ground.printing import percent_up, shown
from hushed._web.statistics import STATISTICS, WITHOUT_COLUMN
from hushed.risk import belief
from hushed.tables import Query

_MOST = 6  # statistics that are named


def say_meaning(epsilon: float, delta: float, unit: str) -> str:
    """Say what an epsilon means for somebody in the table."""
    sure = percent_up(belief(epsilon))
    who = "a certain person is" if unit == "user" else "a certain row is"
    more = (
        ". With a delta some answers may tell more; over all answers together, a guess is right "
        "with at most that probability plus delta"
    )
    return (
        f"Someone who knows everything else, and thinks it as likely as not (50 %) that {who} in "
        f"the table, could become at most {sure} % sure{more if delta else ''}."
    )


def say_query(query: Query) -> str:
    """Say in one line what is asked; a page cuts it where it is long."""
    asked = [_say_aggregate(each, query) for each in query.aggregates]
    more = f" and {len(asked) - _MOST} more" if len(asked) > _MOST else ""
    tops = any(each.kind == "top_k" for each in query.aggregates)
    grouped = () if query.groups is None or tops else query.groups.columns
    by = f" by {' and '.join(map(shown, grouped))}" if grouped else ""
    kept = "".join(f", {_say_step(each)}" for each in query.steps)
    return f"{', '.join(asked[:_MOST])}{more}{by}{kept}"


def _say_aggregate(aggregate: Any, query: Query) -> str:
    kind = aggregate.kind
    if kind in WITHOUT_COLUMN:
        return STATISTICS[kind]
    if kind == "top_k":
        columns = () if query.groups is None else query.groups.columns
        return f"{STATISTICS[kind]} of {' and '.join(map(shown, columns))}"
    if kind == "quantiles" and aggregate.probabilities == (0.5,):
        kind = "median"
    return f"{STATISTICS[kind]} of {shown(aggregate.column)}"


def _say_step(step: Any) -> str:
    if hasattr(step, "filter"):
        return str(step.filter)
    if hasattr(step, "derive"):
        return f"{step.derive} = {step.expression}"
    return "with columns of a public table"
