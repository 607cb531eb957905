"""Figures of checks: the private table among public ones, and how many pairs move further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.printing import flat, format_down, format_up
from hushed.fitting import MovementCheck, PopulationCheck
from hushed.plots._figures import COLOURS, altair_or_refuse, require_kind, shows_offline

_BINS = 40


@called_as("hs.plots.population_figure(hs.check_population(rows, population, epsilon=1.0))")
@shows_offline
def population_figure(check: PopulationCheck) -> Any:
    """Draw a population check: noisy statistics of public tables, and where the private one lies.

    Parameters
    ----------
    check : PopulationCheck
        What `hushed.check_population` found.

    Returns
    -------
    altair chart
        A histogram, with a line for the private table and one for what is caught.
    """
    require_kind("check", check, PopulationCheck)
    alt = altair_or_refuse()
    title = "largest difference of shares, with noise"
    tables = alt.Chart(alt.Data(values=_count_in_bins(check.deviations)))
    bars = tables.mark_bar(color=COLOURS[0], opacity=0.6).encode(
        # Ticks of numbers, not of bins: these end where the lines that matter are farther right.
        x=alt.X("low:Q", title=title, axis=alt.Axis(format="~g", tickCount=8, labelOverlap=True)),
        x2="high:Q",
        y=alt.Y("tables:Q", title="number of tables of the population"),
        y2=alt.datum(0),
    )
    marks = [
        {"at": check.statistic, "what": "private table"},
        {"at": check.caught, "what": f"caught with probability {check.caught_chance:g}"},
    ]
    lines = (
        alt.Chart(alt.Data(values=marks))
        .mark_rule(strokeWidth=2)
        .encode(
            x="at:Q",
            color=alt.Color(
                "what:N",
                title=None,
                sort=None,
                scale=alt.Scale(range=[COLOURS[1], COLOURS[2]]),
                legend=alt.Legend(labelLimit=400, orient="bottom"),
            ),
            strokeDash=alt.StrokeDash(
                "what:N", title=None, sort=None, scale=alt.Scale(range=[[1, 0], [6, 3]])
            ),
        )
    )
    heading = {
        "text": f"{check.verdict} (p = {format_up(check.p_value, 3)})",
        "subtitle": f"{check.rows} private {'rows' if check.user is None else 'users'} and "
        f"{flat(check.population.get('name') or check.population.get('kind', 'a population'))}, "
        f"epsilon = {format_up(check.guarantee.epsilon)}",
    }
    return (bars + lines).properties(title=heading, width=480, height=280)


def _count_in_bins(values: Sequence[float]) -> list[dict[str, float]]:
    """Count how many values lie in each of equally wide bins."""
    least, most = float(min(values)), float(max(values))
    if most - least <= 1e-6 * abs(least):  # equal ones are one bar
        most = least + (1e-6 * abs(least) or 1e-9)
    counts, edges = np.histogram(values, bins=_BINS, range=(least, most))
    return [
        {"low": low, "high": high, "tables": count}
        for low, high, count in zip(
            edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True
        )
    ]


@called_as("hs.plots.moved_figure(hs.check_movement(f, rows, of_fewer_rows, epsilon=1.0))")
@shows_offline
def moved_figure(check: MovementCheck) -> Any:
    """Draw a movement check: the share of private pairs that move further, and what is allowed.

    Parameters
    ----------
    check : MovementCheck
        What `hushed.check_movement` found.

    Returns
    -------
    altair chart
        The confidence bounds as a bar, the noisy share as a point, and gamma as a line.
    """
    require_kind("check", check, MovementCheck)
    alt = altair_or_refuse()
    bounds = {"low": check.share_at_least, "high": check.share_at_most}
    share = {"share": min(1.0, max(0.0, check.moved / check.pairs))}
    x = alt.X("low:Q").title("share of pairs that move further").axis(format="%")
    between = alt.Chart(alt.Data(values=[bounds]))
    bar = between.mark_bar(color=COLOURS[0], opacity=0.4, size=28).encode(x=x, x2="high:Q")
    found = alt.Chart(alt.Data(values=[share]))
    point = found.mark_point(color=COLOURS[0], filled=True, size=90).encode(x="share:Q")
    allowed = {"at": check.gamma, "what": f"gamma = {format_up(check.gamma)}"}
    rule = alt.Chart(alt.Data(values=[allowed])).mark_rule(
        color=COLOURS[1], strokeDash=[6, 3], size=2
    )
    # Beside the line, on the side where there is room.
    right = 2 * check.gamma < max(check.share_at_most, share["share"])
    place = {"align": "left", "dx": 6} if right else {"align": "right", "dx": -6}
    text = (
        alt.Chart(alt.Data(values=[allowed]))
        .mark_text(dy=-50, color=COLOURS[1], fontSize=12, **place)
        .encode(x="at:Q", text="what:N")
    )
    heading = {
        "text": f"{check.verdict} (p = {format_up(check.p_value, 3)})",
        "subtitle": [
            f"{check.pairs} pairs of tables of {check.rows} private rows against a movement of "
            f"{format_up(check.bound, 3)}, epsilon = {format_up(check.guarantee.epsilon)}",
            f"point: the noisy share; bar: its bounds, each with confidence "
            f"{format_down(check.confidence)}",
        ],
    }
    layers = bar + point + rule.encode(x="at:Q") + text
    return layers.properties(title=heading, width=480, height=140)
