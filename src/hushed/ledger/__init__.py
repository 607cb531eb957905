"""Budgets that cannot be overspent: a ledger on SQLite or PostgreSQL."""

from hushed.ledger._accounts import Ledger
from hushed.ledger._balance import Balance, Moment
from hushed.ledger._entries import Budget, Entry

__all__ = ["Balance", "Budget", "Entry", "Ledger", "Moment"]
