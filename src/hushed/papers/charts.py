"""Charts in one look: legible in print, and told apart without colour."""

from __future__ import annotations

from typing import Any

from hushed.papers.experiment import Row
from hushed.plots.figures import altair_or_refuse

__all__ = ["bars", "lines"]

# Okabe and Ito, Color Universal Design, 2008: told apart under every common colour blindness.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F"]
_DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [1, 3], [12, 4], [6, 2, 2, 2]]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]
_SHAPES = [*_SHAPES, "triangle-right"]
_FONT = 12
_LINE = "line of the series"


def lines(
    rows: list[Row],
    *,
    x: str,
    y: str,
    by: str,
    labels: tuple[str, str, str],
    title: str,
    caption: str | list[str],
    log: str = "",
    panels: str = "",
    columns: int = 3,
    free: bool = False,
    points: bool = True,
) -> Any:
    """Draw one line for each series.

    Parameters
    ----------
    rows : list of dict
        Data.
    x, y, by : str
        Columns of the two axes and of the series.
    labels : tuple of str
        Titles of the x axis, the y axis and the legend, with units.
    title : str
        Title of the figure.
    caption : str or list of str
        Source and settings, below the title.
    log : str, default ""
        Axes with a logarithmic scale: ``""``, ``"x"``, ``"y"`` or ``"xy"``; a value of 0 or less
        cannot be drawn on one and is left out.
    panels : str, default ""
        Column that splits the figure into panels.
    columns : int, default 3
        Panels side by side.
    free : bool, default False
        Give each panel a y axis of its own, which starts at 0.
    points : bool, default True
        Mark the measured points.

    Returns
    -------
    altair chart
        The figure.

    Raises
    ------
    NotFound
        If the packages for figures are missing.
    """
    alt = altair_or_refuse()
    kept = ({key: _printable(row[key]) for key in (x, y, by, panels) if key} for row in rows)
    shown = [
        row
        for row in kept
        if row[y] is not None and ("y" not in log or row[y] > 0) and ("x" not in log or row[x] > 0)
    ]
    names = list(dict.fromkeys(row[by] for row in shown))
    legend = alt.Legend(
        orient="bottom",
        columns=1 if max(map(len, names)) > 36 else 2,
        symbolSize=80 if points else 900,  # a dash must be long enough to be recognised
        symbolStrokeWidth=2,
    )
    colour = alt.Scale(domain=names, range=[_COLOURS[i % 8] for i in range(len(names))])
    # Where points carry the legend, dashes follow other names: else they would cut up its shapes.
    lines_of = {name: f"line {i}" if points else name for i, name in enumerate(names)}
    shown = [row | {_LINE: lines_of[row[by]]} for row in shown]
    dashes = [_DASHES[i % 8] for i in range(len(names))]
    dash = alt.Scale(domain=list(lines_of.values()), range=dashes)
    shape = alt.Scale(domain=names, range=[_SHAPES[i % 8] for i in range(len(names))])
    base = alt.Chart().encode(
        x=alt.X(
            f"{x}:Q",
            title=labels[0],
            scale=_scale(alt, "x" in log, zero=False),
            axis=_axis(alt, "x" in log),
        ),
        y=alt.Y(
            f"{y}:Q",
            title=labels[1],
            scale=_scale(alt, "y" in log, zero=free),
            axis=_axis(alt, "y" in log),
        ),
        color=alt.Color(f"{by}:N", title=labels[2], sort=None, scale=colour, legend=legend),
    )
    layers = [
        base.mark_line().encode(
            strokeDash=alt.StrokeDash(
                f"{_LINE if points else by}:N",
                title=labels[2],
                sort=None,
                scale=dash,
                legend=None if points else legend,
            )
        )
    ]
    if points:
        layers.append(
            base.mark_point(size=36, filled=False).encode(
                shape=alt.Shape(f"{by}:N", title=labels[2], sort=None, scale=shape, legend=legend)
            )
        )
    chart = alt.layer(*layers, data=alt.Data(values=shown))
    if panels:
        order = list(dict.fromkeys(row[panels] for row in shown))
        chart = chart.properties(width=220, height=180).facet(
            facet=alt.Facet(f"{panels}:N", title=None, sort=order), columns=columns
        )
        if free:
            chart = chart.resolve_scale(y="independent")
    else:
        chart = chart.properties(width=460, height=300)
    return _dressed(alt, chart, title, caption)


def bars(
    rows: list[Row], *, x: str, y: str, labels: tuple[str, str], title: str, caption: str
) -> Any:
    """Draw one bar for each row, with its value written on it.

    Parameters
    ----------
    rows : list of dict
        Data.
    x, y : str
        Columns of the names and of the values.
    labels : tuple of str
        Titles of the value axis and of the names, with units.
    title, caption : str
        As for `lines`.

    Returns
    -------
    altair chart
        The figure.

    Raises
    ------
    NotFound
        If the packages for figures are missing.
    """
    alt = altair_or_refuse()
    shown = [{x: _printable(row[x]), y: row[y], "told": f"{row[y]:,.2f}"} for row in rows]
    base = alt.Chart(alt.Data(values=shown)).encode(
        x=alt.X(f"{y}:Q", title=labels[0]), y=alt.Y(f"{x}:N", title=labels[1], sort=None)
    )
    told = base.mark_text(align="left", dx=4, fontSize=_FONT).encode(text="told:N")
    chart = (base.mark_bar(color=_COLOURS[0]) + told).properties(width=460, height=220)
    return _dressed(alt, chart, title, caption)


def _printable(value: Any) -> Any:
    """Replace the letters that common fonts lack."""
    if isinstance(value, list):
        return [_printable(each) for each in value]
    return value.replace("₀", "0") if isinstance(value, str) else value


def _axis(alt: Any, logarithmic: bool) -> Any:
    return alt.Axis(tickCount=5, labelSeparation=8) if logarithmic else alt.Axis()


def _scale(alt: Any, logarithmic: bool, *, zero: bool) -> Any:
    return alt.Scale(type="log") if logarithmic else alt.Scale(zero=zero)


def _dressed(alt: Any, chart: Any, title: str, caption: str | list[str]) -> Any:
    """Title, caption and letters that survive print."""
    told = alt.TitleParams(
        text=_printable(title),
        subtitle=_printable(caption),
        anchor="start",
        fontSize=14,
        subtitleFontSize=10,
        subtitleColor="#444444",
    )
    return (
        chart.properties(title=told, background="white")
        .configure_axis(labelFontSize=11, titleFontSize=_FONT, gridColor="#DDDDDD")
        .configure_legend(labelFontSize=11, titleFontSize=_FONT, labelLimit=420)
        .configure_header(labelFontSize=11)
    )
