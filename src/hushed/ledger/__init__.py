"""Budgets that cannot be overspent: a ledger on SQLite or PostgreSQL."""

from hushed.ledger.accounts import Ledger
from hushed.ledger.entries import Budget, Entry
from hushed.ledger.tally import Balance, Moment

__all__ = ["Balance", "Budget", "Entry", "Ledger", "Moment"]
