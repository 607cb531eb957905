"""Budgets in words and shares, rounded as the library rounds them."""

from __future__ import annotations

from dataclasses import dataclass

from hushed._ground.printing import format_down, format_up, shown
from hushed.ledger import Balance


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A budget at one look."""

    name: str
    label: str
    spent: str
    limit: str
    left: str
    used: float
    sentence: str


def describe_gauge(balance: Balance, *most: float) -> Gauge:
    """Say how much of a budget is used; rounded up what is spent, down what is left.

    The largest epsilon that fits is none above what one request may cost, where that is given.
    """
    spent, limit = format_up(balance.spent.epsilon, 3), format_down(balance.budget.limit.epsilon, 6)
    label = shown(balance.budget.name)
    return Gauge(
        name=balance.budget.name,
        label=label,
        spent=spent,
        limit=limit,
        left=format_down(min((balance.epsilon_left, *most)), 3),
        used=balance.used,
        sentence=f"privacy budget '{label}': {spent} of {limit} used",
    )
