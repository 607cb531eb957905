"""The curve of the error against epsilon, each point a quote of the library."""

from __future__ import annotations

from functools import lru_cache

from hushed._ground.printing import format_up
from hushed._web.svg import Axis, Picture, draw_curve
from hushed.errors import HushedError
from hushed.workbench._views.pricing import (
    POINTS,
    Asked,
    Live,
    ask_of,
    between,
    find_ends,
    quote_at,
)
from hushed.workbench._views.question import Question


@lru_cache(maxsize=64)
def _list_points(
    asked: Asked, low: float, high: float, output: str
) -> tuple[tuple[float, float], ...]:
    """List epsilon and error along the slider; what the library refuses is left out."""
    found = []
    for place in range(POINTS):
        epsilon = between(low, high, place / (POINTS - 1))
        try:
            error = quote_at(asked, epsilon).accuracy(output)
        except HushedError:
            continue
        if error is not None and error > 0:
            found.append((epsilon, error))
    return tuple(found)


def draw_prices(question: Question, live: Live, left: float | None) -> Picture | None:
    """Draw the error against epsilon, with the point that is chosen."""
    output = live.sliders.error_of
    if question.table is None or not output or live.quote is None:
        return None
    asked = ask_of(question.table, question.terms)
    ends = find_ends(asked, left)
    points = _list_points(asked, ends.low, ends.high, output)
    if len(points) < 2:
        return None
    errors = [error for _, error in points]
    at = live.quote.accuracy(output)
    x = _axis(ends.low, ends.high, "privacy loss (epsilon)")
    y = _axis(min(errors), max(errors), "error")
    label = question.labels[output]
    sentence = (
        f"The error of the {label} falls from {format_up(max(errors), 3)} at epsilon "
        f"{format_up(points[0][0], 3)} to {format_up(min(errors), 3)} at epsilon "
        f"{format_up(points[-1][0], 3)}"
    )
    chosen = None if not at else (live.quote.guarantee.epsilon, at)
    if chosen is not None:
        sentence += f"; here it is {format_up(chosen[1], 3)} at {format_up(chosen[0], 3)}"
    rows = tuple((format_up(e, 3), format_up(error, 4)) for e, error in points)
    return draw_curve(
        points, chosen, x=x, y=y, sentence=f"{sentence}.", table=(("epsilon", "error"), *rows)
    )


def _axis(low: float, high: float, title: str) -> Axis:
    """Give a logarithmic axis with a tick at each power of ten, or at its ends."""
    ticks = [10.0**power for power in range(-12, 13) if low <= 10.0**power <= high]
    ticks = ticks if len(ticks) > 1 else [low, high]
    return Axis(
        low=low,
        high=max(high, low * 1.0001),
        ticks=tuple((each, format_up(each, 3)) for each in ticks),
        title=title,
        log=True,
    )
