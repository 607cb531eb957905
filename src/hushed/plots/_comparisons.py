"""A comparison as a figure and as a page: errors, or levels, of all routes beside their promise."""

from __future__ import annotations

from typing import Any

from hushed._ground.calls import called_as
from hushed.comparing import Comparison
from hushed.comparing._record import LABEL_ERROR, say_level
from hushed.plots._figures import (
    altair_or_refuse,
    draw_svg,
    require_kind,
    shows_offline,
    tell_apart,
)
from hushed.plots._pages import render_page
from hushed.statements._readings import Table

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
HEADING = "Which promise, at what price: "


@called_as("hs.plots.comparison_figure(comparison)")
@shows_offline
def comparison_figure(comparison: Comparison) -> Any:
    """Draw a comparison: one line for each route, on a logarithmic scale.

    Parameters
    ----------
    comparison : Comparison
        What `hushed.compare` found.

    Returns
    -------
    altair chart
        A dot where half of the releases are, a tick for 95 %; if an error was given, the epsilon
        that each route needs for it.
    """
    require_kind("comparison", comparison, Comparison)
    alt = altair_or_refuse()
    levels = comparison.error is not None
    pairs = [
        (each.guarantee.epsilon,) * 2 if levels else (each.error_50, each.error_95)
        for each in comparison.routes
    ]
    # A logarithm has no place for an error of 0.
    least = min((half for half, _ in pairs if half > 0), default=1.0) / 2
    rows = [
        {
            "route": each.name,
            "promise": each.promise,
            "half": max(half, least),
            "most": max(most, least),
        }
        for each, (half, most) in zip(comparison.routes, pairs, strict=True)
    ]
    unit = "rows" if comparison.categories else "unit of the answer"
    kept = f"error that 50 % (mark) and 95 % (end) of releases keep to ({unit})"
    title = "epsilon (nats)" if levels else LABEL_ERROR if comparison.labels else kept
    if any(half < least for half, _ in pairs):
        title += f"; 0 is drawn at {least:.2g}"
    route = alt.Y("route:N", title=None, sort=[row["route"] for row in rows])
    promises = list(dict.fromkeys(each.promise for each in comparison.routes))
    looks = tell_apart(promises, _SHAPES, by="promise", title="promise holds for")
    base = alt.Chart(alt.Data(values=rows)).encode(y=route, color=looks["color"])
    scale = alt.Scale(type="log")
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("half:Q", title=title, scale=scale), x2="most:Q"
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("half:Q", scale=scale), shape=looks["shape"]
    )
    ends = base.mark_tick(thickness=3, size=16).encode(x=alt.X("most:Q", scale=scale))
    heading = {
        "text": comparison.asked,
        "subtitle": f"{say_level(comparison)}; {comparison.trials} tables of a public population; "
        f"recommended: {comparison.recommended or 'none'}",
    }
    return (lines + dots + ends).properties(title=heading, width=480, height=40 + 36 * len(rows))


@called_as("hs.plots.comparison_page(comparison)")
def comparison_page(comparison: Comparison) -> str:
    """Write a comparison as one self-contained HTML page.

    Parameters
    ----------
    comparison : Comparison
        What `hushed.compare` found.

    Returns
    -------
    str
        HTML without references to anything outside it: the recommendation, all routes with promise,
        error, calls and how they are written, the figure, what does not apply, and the comparison
        as data, which is not printed.

    Raises
    ------
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    require_kind("comparison", comparison, Comparison)
    header, *lines = comparison.list_lines()
    written = [each.how for each in comparison.routes]
    tables = [_table("The ways", [*header, "written"], lines, written)] if lines else []
    left = [[each.name, each.reason] for each in comparison.left_out]
    if left:
        tables.append(_table("Not applicable", ["way", "reason"], left))
    return render_page(
        heading=f"{HEADING}{comparison.asked}",
        rows=[
            ("recommended", comparison.recommended or "nothing applies"),
            ("compared", comparison.title),
            ("seed", str(comparison.seed)),
        ],
        tables=tables,
        picture=draw_svg(_for_page(comparison_figure(comparison))) if lines else "",
        caption="Errors" if comparison.error is None else "Levels",
        paragraphs=[("Recommendation", comparison.advice)],
        itself="The comparison",
        json=comparison.to_json(),
    )


def _for_page(figure: Any) -> Any:
    """Lay a figure out for a page, which is narrow."""
    return figure.configure_legend(orient="bottom", columns=1)


def _table(
    name: str, header: list[str], lines: list[list[str]], last: list[str] | None = None
) -> Table:
    """Make a table of a page, all of whose lines are shown."""
    ends = [[]] * len(lines) if last is None else [[each] for each in last]
    body = [tuple(line) + tuple(end) for line, end in zip(lines, ends, strict=True)]
    return Table(name=name, lines=(tuple(header), *body), most=len(body))
