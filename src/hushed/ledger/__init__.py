"""Budgets that cannot be overspent: a ledger on SQLite or PostgreSQL."""

from hushed.ledger.accounts import Ledger
from hushed.ledger.balance import Balance, Moment
from hushed.ledger.entries import Budget, Entry

__all__ = ["Balance", "Budget", "Entry", "Ledger", "Moment"]
