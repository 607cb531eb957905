"""Queries on a private table in a database: only noisy aggregates come out."""

from hushed.tables._answers import Answer, Asked
from hushed.tables._distances import Distances, DistanceStep
from hushed.tables._left_out import LeftOut
from hushed.tables._open import table
from hushed.tables._prepared import Prepared
from hushed.tables._question import Query
from hushed.tables._quote_for import QuotedErrors
from hushed.tables._quotes import Quote, QuotedOutput
from hushed.tables._table import Table

__all__ = [
    "Answer",
    "Asked",
    "DistanceStep",
    "Distances",
    "LeftOut",
    "Prepared",
    "Query",
    "Quote",
    "QuotedErrors",
    "QuotedOutput",
    "Table",
    "table",
]
