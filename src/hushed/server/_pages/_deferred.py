"""A question that is only written down: the process that serves pages parses no expression."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from hushed._web.question import Known
from hushed.server._shown import ShownColumn, ShownDataset
from hushed.tables._asking import describe
from hushed.tables._builder import QueryBuilder
from hushed.tables._query import Query as TypedQuery

_USED = ("int", "float", "string", "bool", "date", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred(QueryBuilder):
    """The builder of questions, whose conditions stay texts until a process judges them."""

    conditions: tuple[str, ...] = ()

    def filter(self, condition: str) -> Deferred:
        """Keep the rows that fulfil a condition, which is not looked at here."""
        return replace(self, conditions=(*self.conditions, condition))

    def write(self) -> dict[str, Any]:
        """Write the question as the API takes it: the conditions before all else."""
        told: dict[str, Any] = json.loads(describe(self.query).to_json())
        kept = [{"filter": each} for each in self.conditions]
        return told | {"steps": [*kept, *told.get("steps", [])]}


def know(told: ShownDataset) -> Known[Deferred]:
    """Say what is publicly known of a data set, for the form of a question."""
    schema = tuple((each.name, each.kind) for each in told.columns)
    query = TypedQuery(schema=schema, user=told.user)  # type: ignore[arg-type]
    used = [each for each in told.columns if each.kind in _USED and each.name != told.user]
    return Known(
        table=Deferred(query=query),
        kinds={each.name: each.kind for each in used},
        limits={each.name: _limits(each) for each in used},
        keys={each.name: tuple(each.keys) for each in used if each.keys},
        max_rows_per_user=told.max_rows_per_user,
        keys_where="ask a steward for a list",
    )


def _limits(column: ShownColumn) -> tuple[str, str]:
    if column.low is None or column.high is None:
        return "", ""
    return repr(column.low), repr(column.high)
