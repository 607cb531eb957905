"""What pages say of a request: its question in words, its price, where it stands."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from hushed._ground.printing import format_up, shown
from hushed._web.statistics import STATISTICS, WITHOUT_COLUMN
from hushed.server._problems import Problem
from hushed.server._requests import State
from hushed.tables import Query
from hushed.tables._distances import DISTANCES

STATES: Final[Mapping[State, str]] = {
    "pending": "waits for approval",
    "charged": "charged, no answer yet",
    "answered": "answered",
    "failed": "failed; the charge stays",
    "declined": "declined",
    "cancelled": "taken back",
    "expired": "waited too long",
}
_MOST = 6  # statistics that are named


def read_key(fields: Mapping[str, str]) -> str:
    """Read the key that a page has made for what it pays."""
    try:
        return str(uuid.UUID(fields.get("key", "")))
    except ValueError:
        raise Problem("no_key") from None


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


def split_words(words: str) -> tuple[list[str], list[str]]:
    """Split what the library says of a price: the errors, and how the noise follows."""
    lines = words.split("\n")[1:]  # the first one is the price
    cut = next((i for i, each in enumerate(lines) if each.startswith(DISTANCES)), len(lines))
    return lines[:cut], lines[cut:]


def say_delta(epsilon: float, delta: float) -> str:
    """Say a price; rounded up."""
    return f"epsilon {format_up(epsilon, 4)}" + (f", delta {format_up(delta, 3)}" if delta else "")
