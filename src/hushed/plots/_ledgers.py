"""Figures of budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed._printing import format_up
from hushed.ledger import Budget, Moment
from hushed.plots._figures import altair_or_refuse


def budget_over_time(budget: Budget, history: Sequence[Moment]) -> Any:
    """Draw how a budget was used up."""
    alt = altair_or_refuse()
    limit = budget.limit
    rows = [
        {"at": each.at, "used": 100 * each.used, "charges": each.number, "note": each.note}
        for each in history
    ]
    steps = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(interpolate="step-after", point=len(rows) <= 50)
        .encode(
            x=alt.X("at:T", title="time (UTC)", scale=alt.Scale(type="utc")),
            y=alt.Y("used:Q", title="used (% of the budget)", scale=alt.Scale(domain=[0, 100])),
            tooltip=["at:N", "used:Q", "charges:Q", "note:N"],
        )
    )
    top = (
        alt.Chart(alt.Data(values=[{"used": 100}])).mark_rule(strokeDash=[4, 4]).encode(y="used:Q")
    )
    title = {
        "text": f"Budget {budget.name}",
        "subtitle": f"limit: epsilon {format_up(limit.epsilon)}, delta "
        f"{format_up(limit.delta)}, gamma {format_up(limit.gamma)}, one {limit.unit}; method "
        f"{budget.method}; {history[-1].number} charges",
    }
    return (steps + top).properties(title=title, width=480, height=320)
