"""Planned scans that a table keeps, so that the same question is compiled and planned once.

A plan holds SQL, and nothing of the rows. It is kept with one open table, so that engine, columns
and types are those of the table, and it is found by the digest of all that is asked: another
question, with another constant, key or bound, has another plan. They are kept where copies of
bounded rows are (`copies.py`): there neither names, types nor rights change after a plan. What is
asked again under the same plan has the same secret, which keeps the promise as it does for copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hushed.tables._engine.copies import Copy
from hushed.tables._engine.dialect import PlannedQuery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hushed.tables._engine.connections import Connection

MOST_PLANS = 32  # of one table
_LONGEST = 50_000  # characters of the SQL of a plan that is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """The queries of a scan, planned."""

    copy: Copy | None  # the bounded rows that they read
    secret: int = field(repr=False)  # under which they were planned
    plain: PlannedQuery | None
    binned: Mapping[Any, PlannedQuery]  # by feature
    searched: Mapping[Any, PlannedQuery]  # by feature


def find_plans(connection: Connection, question: object) -> Plans | None:
    """Find the plans of a question, which are then those that were used last."""
    found: Plans | None = connection.plans.pop(question, None)
    if found is not None:
        connection.plans[question] = found
    return found


def keep_plans(connection: Connection, question: object, plans: Plans) -> None:
    """Keep plans, unless they are long; those that were used longest ago make room."""
    queries = [plans.plain, *plans.binned.values(), *plans.searched.values()]
    length = sum(len(each.sql) for each in queries if each is not None)
    if length + (0 if plans.copy is None else len(plans.copy.sql)) > _LONGEST:
        return
    while len(connection.plans) >= MOST_PLANS:
        connection.plans.pop(next(iter(connection.plans)))
    connection.plans[question] = replace(
        plans,
        plain=None if plans.plain is None else _without_expression(plans.plain),
        binned={name: _without_expression(each) for name, each in plans.binned.items()},
        searched={name: _without_expression(each) for name, each in plans.searched.items()},
    )


def _without_expression(planned: PlannedQuery) -> PlannedQuery:
    """Leave out what an engine that takes SQL does not need."""
    return replace(planned, query=None)
