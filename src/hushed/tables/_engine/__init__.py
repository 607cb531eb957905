"""The only part that speaks to databases, through Ibis: one expression, several engines.

Ibis gives one syntax, not one semantics. What is used here is spelled so that DuckDB, PostgreSQL
and Spark answer alike: clipping as cases (never ``clip``), missing means NULL or NaN, sums are of
whole numbers and come back as decimals, nothing can fail on a value. Only aggregates are fetched.
"""

from hushed.tables._engine.asking import Clock, ConnectionLost, Question, fetch, held, plan, write
from hushed.tables._engine.connections import Connection, EngineName, connect, over_frame, tamed
from hushed.tables._engine.operations import (
    Stage,
    bins_stages,
    cases,
    constant,
    dense_rank,
    fenced,
    hashed,
    listed,
    missing,
    number,
    opaque,
    presence_stages,
    row_rank,
    squares_stages,
    staged,
    steps_stages,
    tame,
    total,
)
from hushed.tables._engine.reaching import check_installed

__all__ = [
    "Clock",
    "Connection",
    "ConnectionLost",
    "EngineName",
    "Question",
    "Stage",
    "bins_stages",
    "cases",
    "check_installed",
    "connect",
    "constant",
    "dense_rank",
    "fenced",
    "fetch",
    "hashed",
    "held",
    "listed",
    "missing",
    "number",
    "opaque",
    "over_frame",
    "plan",
    "presence_stages",
    "row_rank",
    "squares_stages",
    "staged",
    "steps_stages",
    "tame",
    "tamed",
    "total",
    "write",
]
