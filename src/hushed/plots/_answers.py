"""A private answer with its error bars, beside exact numbers where they are public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.checks import is_real, list_in_order
from hushed._ground.printing import as_given, brief, flat, format_exactly, format_up
from hushed.errors import ParameterError
from hushed.plots._figures import COLOURS, altair_or_refuse, require_kind, shows_offline
from hushed.tables import Answer
from hushed.tables._answers import percent
from hushed.tables._left_out import remark_of

_MOST_GROUPS = 40


@called_as("hs.plots.answer_figure(answer)")
@shows_offline
def answer_figure(
    answer: Answer, *, exact: Mapping[str, float | Sequence[float]] | None = None
) -> Any:
    """Draw the numbers of an answer with their error bars, and exact ones beside them.

    Parameters
    ----------
    answer : Answer
        The answer of a query.
    exact : mapping of str to float or sequence of float, optional
        Exact numbers by output, one for each group in the order of the answer. They are drawn as
        they are: give them of public data only, to see what privacy costs there.

    Returns
    -------
    altair chart
        One panel for each output of counts, sums, means, variances and single quantiles, with the
        first 40 groups, and for each histogram of a query without groups, with its first 40 bins.

    Raises
    ------
    ParameterError
        If the answer has no such output, or the exact numbers do not fit it.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    require_kind("answer", answer, Answer)
    alt = altair_or_refuse()
    names = [name for name, column in answer.values.items() if all(map(is_real, column))]
    binned = [] if answer.keys else list(answer.edges)
    if answer.shortfall or not names + binned:
        raise ParameterError(
            "this answer has no number for each group: a figure shows counts, sums, means, "
            "variances, single quantiles, and histograms without groups"
        )
    known = _read_exact(answer, names, exact or {})
    panels = [_draw_output(alt, answer, name, known.get(name)) for name in names + binned]
    shown = min(len(answer), _MOST_GROUPS)
    of = f"; the first {shown} of {len(answer)} groups" if shown < len(answer) else ""
    of = of if len(answer) else "; no group is told"
    beside = " (tick: the exact number)" if known else ""
    promise = answer.guarantee
    slack = f", delta {format_up(promise.delta)}" if promise.delta else ""
    return alt.vconcat(*panels).properties(
        title={
            "text": f"Private answer{beside}",
            "subtitle": f"each bar holds with probability {percent(answer.level)}; epsilon "
            f"{format_up(promise.epsilon)}{slack}, one {answer.unit}{of}",
        }
    )


def _draw_output(alt: Any, answer: Answer, name: str, exact: Sequence[float] | None) -> Any:
    """Draw one output: a point with its bar for each group or bin, and a tick where it is known."""
    marks = _list_marks(answer, name)
    rows = [
        dict(zip(("group", "value", "low", "high"), mark, strict=True))
        | ({} if exact is None else {"exact": exact[i]})
        for i, mark in enumerate(marks[:_MOST_GROUPS])
    ]
    remark = remark_of(answer, name)
    axis = alt.Axis(labelLimit=220, ticks=len(marks) > 1 or bool(answer.keys))
    title = f"{flat(name)} [{remark}]" if remark else flat(name)
    if name in answer.edges and len(rows) < len(marks):
        title += f"; the first {len(rows)} of {len(marks)} bins"
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("group:N", title=None, sort=None, axis=axis)
    )
    scale = alt.Scale(zero=False, nice=True)

    def place(field: str) -> Any:
        return alt.X(field, title=title, scale=scale, axis=alt.Axis(tickCount=6))

    layers = [base.mark_circle(size=50, opacity=1, color=COLOURS[0]).encode(x=place("value:Q"))]
    if rows and rows[0]["low"] is not None:
        bar = base.mark_rule(color=COLOURS[0], strokeWidth=2)
        layers.insert(0, bar.encode(x=place("low:Q"), x2="high:Q"))
    if exact is not None:
        tick = base.mark_tick(color=COLOURS[1], thickness=3, size=14, opacity=1)
        layers.append(tick.encode(x=place("exact:Q")))
    return alt.layer(*layers).properties(width=480, height=alt.Step(20))


def _list_marks(answer: Answer, name: str) -> list[tuple[Any, ...]]:
    """List what is drawn of an output: the name of each group or bin, its number and its bar."""
    values, low, high = answer.values[name], answer.low[name], answer.high[name]
    if name in answer.edges:
        bins = pairwise(map(format_exactly, answer.edges[name]))
        named = [f"{begins} to {ends}" for begins, ends in bins]
        return list(zip(named, values[0], low[0], high[0], strict=True))
    keys = zip(*answer.keys.values(), strict=True) if answer.keys else [("",)]
    groups = [" / ".join(map(flat, map(str, key))) for key in keys]
    return list(zip(groups, values, low, high, strict=True))


def _read_exact(
    answer: Answer, names: Sequence[str], exact: Mapping[str, Any]
) -> dict[str, list[float]]:
    """Read exact numbers, one for each group of each output that is drawn."""
    found = {}
    for name, given in exact.items():
        if name not in names:
            raise ParameterError(
                f"there is no output {as_given(name)} to draw; there are {', '.join(names)}",
                parameter="exact",
            )
        column = [given] if is_real(given) else list_in_order(given)
        if len(column) != len(answer) or not all(map(is_real, column)):
            raise ParameterError(
                f"exact needs one number for each of the {len(answer)} groups of {brief(name)}",
                parameter="exact",
            )
        found[name] = [float(each) for each in column]
    return found
