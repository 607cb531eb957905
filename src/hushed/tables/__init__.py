"""Queries on a private table in a database: only noisy aggregates come out."""

from hushed.tables.answers import Answer
from hushed.tables.opening import table
from hushed.tables.quotes import Quote, QuotedOutput
from hushed.tables.table import Table

__all__ = ["Answer", "Quote", "QuotedOutput", "Table", "table"]
