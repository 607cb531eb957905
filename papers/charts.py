"""Charts in one look: legible in print, and told apart without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from papers.experiment import Row
from papers.internals import COLOURS

__all__ = ["DASHES", "SHAPES", "bars", "lines"]

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [1, 3], [12, 4], [6, 2, 2, 2])
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross"),
    *("triangle-down", "stroke", "triangle-right"),
)
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
    """
    cells = ({key: _printable(row[key]) for key in (x, y, by, panels) if key} for row in rows)
    drawn = [
        row
        for row in cells
        if row[y] is not None and ("y" not in log or row[y] > 0) and ("x" not in log or row[x] > 0)
    ]
    names = list(dict.fromkeys(row[by] for row in drawn))
    base = alt.Chart().encode(
        x=_axis(alt.X, x, labels[0], logarithmic="x" in log, zero=False),
        y=_axis(alt.Y, y, labels[1], logarithmic="y" in log, zero=free),
        color=_series(alt.Color, by, labels[2], names, COLOURS, _legend(names, points=points)),
    )
    # Where points carry the legend, dashes follow other names: else they would cut up its shapes.
    line_of = {name: f"line {i}" if points else name for i, name in enumerate(names)}
    legend = None if points else _legend(names, points=points)
    dash = _series(
        alt.StrokeDash, _LINE if points else by, labels[2], [*line_of.values()], DASHES, legend
    )
    layers = [base.mark_line().encode(strokeDash=dash)]
    if points:
        shape = _series(alt.Shape, by, labels[2], names, SHAPES, _legend(names, points=points))
        layers.append(base.mark_point(size=36, filled=False).encode(shape=shape))
    values = [row | {_LINE: line_of[row[by]]} for row in drawn]
    chart = alt.layer(*layers, data=_data(values))
    if not panels:
        return _styled(chart.properties(width=460, height=300), title, caption)
    order = list(dict.fromkeys(row[panels] for row in drawn))
    chart = chart.properties(width=220, height=180).facet(
        facet=alt.Facet(f"{panels}:N", title=None, sort=order), columns=columns
    )
    return _styled(chart.resolve_scale(y="independent") if free else chart, title, caption)


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
    """
    drawn = [{x: _printable(row[x]), y: row[y], "text": f"{row[y]:,.2f}"} for row in rows]
    base = alt.Chart(_data(drawn)).encode(
        x=alt.X(f"{y}:Q", title=labels[0]), y=alt.Y(f"{x}:N", title=labels[1], sort=None)
    )
    text = base.mark_text(align="left", dx=4, fontSize=_FONT).encode(text="text:N")
    chart = (base.mark_bar(color=COLOURS[0]) + text).properties(width=460, height=220)
    return _styled(chart, title, caption)


def _data(rows: list[Row]) -> Any:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _axis(channel: Any, column: str, title: str, *, logarithmic: bool, zero: bool) -> Any:
    apart: dict[str, Any] = {
        "labelSeparation": 8,
        "labelFlush": False,
    }  # flush, the last two come close
    axis = alt.Axis(tickCount=5, **apart) if logarithmic else alt.Axis(**apart)
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(zero=zero)
    return channel(f"{column}:Q", title=title, scale=scale, axis=axis)


def _series(
    channel: Any, column: str, title: str, names: list[str], looks: Sequence[Any], legend: Any
) -> Any:
    """Give each series a look of its own, in the order of the data."""
    scale = alt.Scale(domain=names, range=[looks[i % len(looks)] for i in range(len(names))])
    return channel(f"{column}:N", title=title, sort=None, scale=scale, legend=legend)


def _legend(names: list[str], *, points: bool) -> Any:
    return alt.Legend(
        orient="bottom",
        columns=1 if max(map(len, names)) > 36 else 2,
        symbolSize=80 if points else 900,  # a dash must be long enough to be recognised
        symbolStrokeWidth=2,
    )


def _printable(value: Any) -> Any:
    """Replace the letters that common fonts lack."""
    if isinstance(value, list):
        return [_printable(each) for each in value]
    return value.replace("₀", "0") if isinstance(value, str) else value


def _styled(chart: Any, title: str, caption: str | list[str]) -> Any:
    """Add title, caption and letters that survive print."""
    heading = alt.TitleParams(
        text=_printable(title),
        subtitle=_printable(caption),
        anchor="start",
        fontSize=14,
        subtitleFontSize=10,
        subtitleColor="#444444",
    )
    return (
        chart.properties(title=heading, background="white")
        .configure_axis(labelFontSize=11, titleFontSize=_FONT, gridColor="#DDDDDD")
        .configure_legend(labelFontSize=11, titleFontSize=_FONT, labelLimit=420)
        .configure_header(labelFontSize=11)
    )
