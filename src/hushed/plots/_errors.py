"""The error of a query, or of a mechanism, against epsilon."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.checks import read_count, require_positive
from hushed._ground.printing import flat, format_up
from hushed.errors import ParameterError
from hushed.mechanisms._calibrated import Calibrated
from hushed.plots._figures import COLOURS, altair_or_refuse, shows_offline
from hushed.releasing._stated_error import name_unit
from hushed.tables import Table
from hushed.tables._quotes import QuotedOutput

_ANSWER = "unit of the answer"
_POINTS = 25
_TOLD = 4  # outputs whose errors are told in numbers


@called_as("hs.plots.error_figure(hs.Laplace(sensitivity, epsilon=1.0))")
@shows_offline
def error_figure(
    asked: Table | Calibrated,
    *,
    epsilon: tuple[float, float] = (0.05, 5.0),
    beta: float = 0.05,
    dims: int = 1,
    terms: Mapping[str, Any] | None = None,
    asked_at: float | None = None,
) -> Any:
    """Draw the error that is expected of a query, or of a mechanism, against epsilon.

    No private row is read, and nothing is charged.

    Parameters
    ----------
    asked : Table or mechanism
        A query, or a mechanism with an epsilon, such as `hushed.Laplace` with its sensitivity.
    epsilon : (float, float), default (0.05, 5)
        Both ends of the axis, in nats; above 0.
    beta : float, default 0.05
        Probability with which the error may be larger; in (0, 1).
    dims : int, default 1
        Numbers that the mechanism releases together, or candidates; of a query leave it out.
    terms : mapping of str, optional
        Of a query, what `Table.quote` takes besides epsilon and beta: ``{"rows": 1000}``, say.
    asked_at : float, optional
        An epsilon between both ends, in nats, that is marked on every line, with its errors in
        numbers: of the first four outputs.

    Returns
    -------
    altair chart
        One line for each output whose error is known beforehand, on logarithmic scales.

    Raises
    ------
    ParameterError
        If it is neither, the ends are not two numbers above 0 in order, `asked_at` lies outside
        them, or no error is known beforehand, as of means without ``rows`` in the terms.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    alt = altair_or_refuse()
    dims, levels = read_count("dims", dims, 1, 2**53), _lay_levels(epsilon)
    rows = _list_errors(asked, levels, beta, dims, terms or {})
    if not rows:
        raise ParameterError(
            "no error of this query is known beforehand: give terms={'rows': N}, about how many "
            "rows a group has"
        )
    subtitle = [f"noise exceeds it with a probability of {beta:g} at most"]
    figure = _draw_lines(alt, rows, _name_axis(rows, dims))
    if asked_at is not None:
        if not levels[0] <= require_positive("asked_at", asked_at) <= levels[-1]:
            raise ParameterError(
                f"asked_at = {asked_at:g} is not between the ends of epsilon, {levels[0]:g} and "
                f"{levels[-1]:g}",
                parameter="asked_at",
            )
        there = _list_errors(asked, [asked_at], beta, dims, terms or {})
        figure = alt.layer(figure, *_mark(alt, there))
        subtitle.append(_tell_errors(there))
    title = {"text": "Error against epsilon", "subtitle": subtitle}
    return figure.properties(title=title, width=480, height=320)


def _name_axis(rows: list[dict[str, Any]], dims: int) -> str:
    """Name the axis of errors, by their unit; by each line if they differ, in the legend, too."""
    units = list(dict.fromkeys(each["unit"] for each in rows))
    if len(units) > 1:
        for each in rows:
            each["line"] = f"{each['of']} ({each['unit']})"
        return "error, each in its unit below"
    together = f" of all {dims} numbers" if dims > 1 and units == [_ANSWER] else ""
    among = f", among {dims} candidates" if dims > 1 and units != [_ANSWER] else ""
    return f"error{together} ({units[0]}{among})"


def _draw_lines(alt: Any, rows: list[dict[str, Any]], title: str) -> Any:
    """Draw one line for each output, on logarithmic scales."""
    axis = alt.Axis(format="~g", labelOverlap=True)
    scale = alt.Scale(type="log", nice=False)
    colours = alt.Scale(range=list(COLOURS))
    legend = alt.Legend(labelLimit=400, orient="bottom")
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("epsilon:Q", title="epsilon (nats)", scale=scale, axis=axis),
            y=alt.Y("error:Q", title=title, scale=scale, axis=axis),
            color=alt.Color("line:N", title=None, sort=None, scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("line:N", title=None, sort=None, legend=legend),
        )
    )


def _mark(alt: Any, there: list[dict[str, Any]]) -> tuple[Any, Any]:
    """Mark an epsilon by a broken line, and by a dot on the line of each output."""
    base = alt.Chart(alt.Data(values=there)).encode(x="epsilon:Q")
    dots = base.mark_circle(color="black", size=50, opacity=1).encode(y="error:Q")
    return base.mark_rule(color="black", strokeDash=[2, 2]), dots


def _tell_errors(there: list[dict[str, Any]]) -> str:
    """Tell the errors at an epsilon, rounded up, of the first few outputs."""
    told = ", ".join(f"{each['of']} {format_up(each['error'], 4)}" for each in there[:_TOLD])
    rest = f" and {len(there) - _TOLD} more" if len(there) > _TOLD else ""
    return f"dots, at epsilon {format_up(there[0]['epsilon'], 4)}: {told}{rest}"


def _lay_levels(ends: tuple[float, float]) -> list[float]:
    """Lay levels of epsilon between two ends, evenly on a logarithmic axis."""
    low, high = (require_positive("epsilon", each) for each in ends)
    if not low < high:
        raise ParameterError("epsilon takes the lower end first", parameter="epsilon")
    step = math.log(high / low) / (_POINTS - 1)
    return [low, *(low * math.exp(step * i) for i in range(1, _POINTS - 1)), high]


def _list_errors(
    asked: Any, levels: list[float], beta: float, dims: int, terms: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """List the errors that are known beforehand, of each output at each level."""
    if isinstance(asked, Table):
        return [
            _point(level, each.accuracy, flat(each.name), _name_unit(each))
            for level in levels
            for each in asked.quote(epsilon=level, beta=beta, **terms).outputs
            if each.accuracy is not None
        ]
    if not isinstance(asked, Calibrated) or terms:
        raise ParameterError(
            "error_figure takes a query with the terms of its quote, or a mechanism without any; "
            f"got {type(asked).__name__}{_say_counted(asked)}"
        )
    found: Any = asked
    return [
        _point(
            level,
            dataclasses.replace(found, epsilon=level).accuracy(beta, dims),
            type(asked).__name__,
            name_unit(asked.name) or _ANSWER,
        )
        for level in levels
    ]


def _say_counted(asked: Any) -> str:
    """Say of a mechanism whose error depends on rows or scores what shows it."""
    name = getattr(type(asked), "name", None)
    unit = name_unit(name) if isinstance(name, str) else ""
    if not unit:
        return ""
    return (
        f", whose error is counted in another unit ({unit}): hs.compare tries it on public rows, "
        "and comparison_figure draws that"
    )


def _point(epsilon: float, error: float, of: str, unit: str) -> dict[str, Any]:
    return {"epsilon": epsilon, "error": error, "of": of, "unit": unit, "line": of}


def _name_unit(output: QuotedOutput) -> str:
    """Name the unit of an output's error by what is measured for it."""
    first = output.measured[0][0]
    if first.startswith("rank"):
        return "ranks"
    return {"users of a key": "users", "rows of a key": "rows"}.get(first, _ANSWER)
