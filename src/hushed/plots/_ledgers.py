"""Figures of budgets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.printing import format_up, name_changed
from hushed.ledger import Budget, Ledger, Moment
from hushed.plots._figures import COLOURS, altair_or_refuse, require_kind, shows_offline

_NAMED = 15  # charges with a line of their own
_DAYS_WITH_HOURS = 4


@called_as('hs.plots.budget_figure(ledger, "stays")')
@shows_offline
def budget_figure(ledger: Ledger, budget: str) -> Any:
    """Draw how a budget was used up, and by which charges.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    budget : str
        Name of the budget.

    Returns
    -------
    altair chart
        The share that is used, over time; below it the last 15 charges by their notes, each with
        the share that it added. The rule of the budget composes charges, so an equal charge may add
        less later.

    Raises
    ------
    NotFound
        If there is no such budget.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    require_kind("ledger", ledger, Ledger)
    alt = altair_or_refuse()
    found = ledger.balance(budget)
    over_time = budget_over_time(found.budget, ledger.history(budget))
    # History thins out long runs of charges: only neighbours tell what one of them added.
    every = ledger.history(budget, points=max(found.entries, 1))
    bars = _list_charges(every)[-_NAMED:]
    if not bars:
        return over_time
    share = alt.X("before:Q", title="used (% of the budget)", scale=alt.Scale(domain=[0, 100]))
    base = alt.Chart(alt.Data(values=bars)).encode(
        y=alt.Y("charge:N", title=None, sort=None, axis=alt.Axis(labelLimit=220))
    )
    drawn = base.mark_bar(color=COLOURS[0], minBandSize=2).encode(x=share, x2="after:Q")
    told = base.mark_text(align="left", dx=4).encode(x="after:Q", text="added:N")
    told = told.transform_filter("datum.after <= 85")
    before = base.mark_text(align="right", dx=-4).encode(x="before:Q", text="added:N")
    before = before.transform_filter("datum.after > 85")
    return alt.vconcat(
        over_time,
        (drawn + told + before).properties(
            title={"text": "What each charge added", "subtitle": _tell_shown(found.entries)},
            width=480,
            height=alt.Step(18),
        ),
    )


def _tell_shown(charges: int) -> str:
    return f"the last {_NAMED} of {charges} charges" if charges > _NAMED else "in order of time"


def _list_charges(history: Sequence[Moment]) -> list[dict[str, Any]]:
    """List what each charge added, in order of time; the opening comes first and adds nothing."""
    return [
        {
            "charge": f"{each.number}: {each.note}" if each.note else f"{each.number}: (no note)",
            "before": 100 * before.used,
            "after": 100 * each.used,
            "added": f"+{100 * (each.used - before.used):.3g} %",
        }
        for before, each in pairwise(history)
    ]


def budget_over_time(budget: Budget, history: Sequence[Moment]) -> Any:
    """Draw how a budget was used up."""
    alt = altair_or_refuse()
    limit = budget.limit
    times = _read_times(history)
    rows = [
        {"at": at.isoformat(), "used": 100 * each.used, "charges": each.number, "note": each.note}
        for at, each in zip(times, history, strict=True)
    ]
    steps = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(
            color=COLOURS[0],
            interpolate="step-after",
            point={"color": COLOURS[0]} if len(rows) <= 50 else False,
        )
        .encode(
            x=_time_axis(times[0], times[-1]),
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
        f"{format_up(limit.delta)}, gamma {format_up(limit.gamma)}, "
        f"{name_changed(limit.unit, limit.distance)}; method {budget.method}; "
        f"{_count_charges(history[-1].number)}"
        f"{'; not a privacy guarantee' * limit.data_dependent}",
    }
    return (steps + top).properties(title=title, width=480, height=320)


def _count_charges(number: int) -> str:
    return "1 charge" if number == 1 else f"{number} charges"


def _read_times(history: Sequence[Moment]) -> list[datetime]:
    """Read the times of charges; somebody may have written one by hand: it counts as the last."""
    found = [datetime.min.replace(tzinfo=UTC)]
    for each in history:
        at = found[-1]
        with suppress(ValueError, OverflowError):
            told = datetime.fromisoformat(each.at)
            at = told.astimezone(UTC) if told.tzinfo else told.replace(tzinfo=UTC)
        found.append(at)
    return found[1:]


def _time_axis(opened: datetime, ended: datetime) -> Any:
    """Axis of time with the day and the hour of 24; by default it would read 07:32 for 19:32."""
    alt = altair_or_refuse()
    days = (ended - opened) / timedelta(days=1)
    title, written = "time (UTC)", "%Y-%m-%d"
    if days < 1:
        title, written = f"time (UTC), from {opened:%Y-%m-%d}", "%H:%M:%S"
    elif days < _DAYS_WITH_HOURS:
        written = "%Y-%m-%d %H:%M"
    axis = alt.Axis(format=written, tickCount=5, labelOverlap="greedy", labelSeparation=8)
    return alt.X("at:T", title=title, scale=alt.Scale(type="utc"), axis=axis)
