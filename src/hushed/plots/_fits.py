"""The figure of a population check: the private table among tables of the population."""

from __future__ import annotations

from typing import Any

from hushed._printing import flat, format_up
from hushed.fitting import PopulationCheck
from hushed.plots._figures import COLOURS, altair_or_refuse

_BINS = 40


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
    alt = altair_or_refuse()
    title = "largest difference of shares, with noise"
    tables = alt.Chart(alt.Data(values=[{"statistic": each} for each in check.deviations]))
    bars = tables.mark_bar(color=COLOURS[0], opacity=0.6).encode(
        x=alt.X("statistic:Q", title=title, bin=alt.Bin(maxbins=_BINS)),
        y=alt.Y("count():Q", title="tables of the population"),
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
                legend=alt.Legend(labelLimit=400),
            ),
        )
    )
    heading = {
        "text": f"{check.verdict} (p = {format_up(check.p_value, 3)})",
        "subtitle": f"{check.rows} private rows and "
        f"{flat(check.population.get('name') or check.population.get('kind', 'a population'))}, "
        f"epsilon = {format_up(check.guarantee.epsilon)}",
    }
    return (bars + lines).properties(title=heading, width=480, height=280)
