"""The only part that talks to databases, through Ibis: one expression, several engines.

Ibis gives one syntax, not one semantics. Expressions are written here such that DuckDB, PostgreSQL
and Spark give the same answers: clipping uses cases (never ``clip``), missing means NULL or NaN,
sums are of whole numbers and come back as decimals, nothing can fail on a value. Only aggregates
are fetched.
"""

from hushed.tables._engine.clock import Clock
from hushed.tables._engine.connections import Connection, normalise_columns
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
from hushed.tables._engine.files import open_frame
from hushed.tables._engine.opening import connect
from hushed.tables._engine.operations import (
    Stage,
    apply_stages,
    as_double,
    bins_stages,
    cases,
    constant,
    constant_table,
    dense_rank,
    exact_sum,
    keyed_hash,
    ladder_stages,
    materialise,
    normalise,
    null,
    opaque_key,
    presence_stages,
    row_rank,
    squares_stages,
    steps_stages,
)

__all__ = [
    "Clock",
    "Connection",
    "ConnectionLost",
    "Dialect",
    "PlannedQuery",
    "Stage",
    "apply_stages",
    "as_double",
    "bins_stages",
    "cases",
    "check_installed",
    "compile_query",
    "connect",
    "constant",
    "constant_table",
    "dense_rank",
    "exact_sum",
    "fetch",
    "hold",
    "keyed_hash",
    "ladder_stages",
    "materialise",
    "normalise",
    "normalise_columns",
    "null",
    "opaque_key",
    "open_frame",
    "plan",
    "presence_stages",
    "require_time",
    "row_rank",
    "squares_stages",
    "steps_stages",
]
