"""The only part that talks to databases, through Ibis: one expression, several engines.

Ibis gives one syntax, not one semantics. Expressions are written here such that DuckDB, PostgreSQL
and Spark give the same answers: clipping uses cases (never ``clip``), missing means NULL or NaN,
sums are of whole numbers and come back as decimals, nothing can fail on a value. Only aggregates
are fetched.
"""

from hushed.tables._engine.clock import Clock
from hushed.tables._engine.connections import (
    Connection,
    add_other,
    normalise_columns,
    open_beside,
)
from hushed.tables._engine.copies import (
    Copy,
    fill_copy,
    find_copy,
    join_columns,
    plan_copy,
    read_copy,
)
from hushed.tables._engine.databases import check_installed
from hushed.tables._engine.dialect import Dialect, PlannedQuery
from hushed.tables._engine.execution import (
    ConnectionLost,
    compile_query,
    fetch,
    hold,
    plan,
    require_time,
)
from hushed.tables._engine.files import open_frame, read_public
from hushed.tables._engine.opening import connect
from hushed.tables._engine.plans import Plans, find_plans, keep_plans

__all__ = [
    "Clock",
    "Connection",
    "ConnectionLost",
    "Copy",
    "Dialect",
    "PlannedQuery",
    "Plans",
    "add_other",
    "check_installed",
    "compile_query",
    "connect",
    "fetch",
    "fill_copy",
    "find_copy",
    "find_plans",
    "hold",
    "join_columns",
    "keep_plans",
    "normalise_columns",
    "open_beside",
    "open_frame",
    "plan",
    "plan_copy",
    "read_copy",
    "read_public",
    "require_time",
]
