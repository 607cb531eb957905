"""Pictures as shapes with places, which a template writes as SVG; every text is escaped there.

A picture says in one sentence what it shows, and has the same numbers as a table. Colours are
classes of the style sheet: a strict content policy forbids styles in the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hushed._ground.printing import format_up, shown

WIDTH = 340  # what a phone has room for
_LETTER = 7  # what a letter of a word in a picture takes at most, on average
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 24, 34  # around a plot, for its axes

Anchor = Literal["start", "middle", "end"]
Cells = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One mark: a path, a box, a disc or a word."""

    kind: Literal["path", "box", "disc", "word"]
    look: str  # class in the style sheet
    path: str = ""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    text: str = ""
    anchor: Anchor = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is drawn, what it shows in one sentence, and its numbers; names of columns first.

    ``zoom`` is how much larger it is where there is room. A phone shows it as it is drawn, so that
    its words keep their size: it is at most `WIDTH` wide.
    """

    width: int
    height: int
    sentence: str
    shapes: tuple[Shape, ...]
    table: Cells = ()
    zoom: float = 1.25


def place(value: float, low: float, high: float, start: float, end: float) -> float:
    """Place a value of a range on a line, to a tenth; a value outside stands at the end."""
    share = 0.5 if high <= low else (min(max(value, low), high) - low) / (high - low)
    return round(start + share * (end - start), 1)


def draw_line(points: Sequence[tuple[float, float]], look: str) -> Shape:
    """Draw a line through points."""
    steps = " ".join(f"{'ML'[i > 0]}{x:g} {y:g}" for i, (x, y) in enumerate(points))
    return Shape(kind="path", look=look, path=steps)


def write_word(
    x: float, y: float, text: str, look: str = "tick", anchor: Anchor = "start"
) -> Shape:
    """Write a word."""
    return Shape(kind="word", look=look, x=x, y=y, text=text, anchor=anchor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A range of numbers, with the ticks that are written."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str
    log: bool = False

    def at(self, value: float, start: float, end: float) -> float:
        """Place a value."""
        if not self.log:
            return place(value, self.low, self.high, start, end)
        least = max(value, self.low)
        return place(math.log(least), math.log(self.low), math.log(self.high), start, end)


def draw_axes(x: Axis, y: Axis, width: int, height: int) -> list[Shape]:
    """Draw two axes with their ticks and titles."""
    right, bottom = width - RIGHT, height - BOTTOM
    lines = [(LEFT, TOP), (LEFT, bottom), (right, bottom)]
    shapes = [draw_line(lines, "axis")]
    for value, text in x.ticks:
        at = x.at(value, LEFT, right)
        side: Anchor = "end" if at > right - 4 * len(text) else "middle"
        shapes.append(write_word(at, bottom + 14, text, "tick", anchor=side))
    for value, text in y.ticks:
        where = y.at(value, bottom, TOP)
        shapes.append(draw_line([(LEFT, where), (right, where)], "grid"))
        shapes.append(write_word(LEFT - 6, where + 4, text, "tick", anchor="end"))
    middle = (LEFT + right) / 2
    if len(x.title) * _LETTER > 2 * (width - middle):  # it would be cut off at the right end
        shapes.append(write_word(width, height - 4, x.title, "title", anchor="end"))
    else:
        shapes.append(write_word(middle, height - 4, x.title, "title", anchor="middle"))
    shapes.append(write_word(0, 12, y.title, "title"))
    return shapes


def draw_curve(
    points: Sequence[tuple[float, float]],
    here: tuple[float, float] | None,
    *,
    x: Axis,
    y: Axis,
    sentence: str,
    table: Cells = (),
    size: tuple[int, int] = (WIDTH, 190),
) -> Picture:
    """Draw a curve, and the point of it that was chosen."""
    width, height = size
    right, bottom = width - RIGHT, height - BOTTOM

    def put(point: tuple[float, float]) -> tuple[float, float]:
        return x.at(point[0], LEFT, right), y.at(point[1], bottom, TOP)

    shapes = draw_axes(x, y, width, height)
    shapes.append(draw_line([put(each) for each in points], "curve"))
    if here is not None:
        across, down = put(here)
        shapes.append(draw_line([(LEFT, down), (across, down), (across, bottom)], "guide"))
        shapes.append(Shape(kind="disc", look="mark", x=across, y=down, width=4))
    return Picture(width=width, height=height, sentence=sentence, shapes=tuple(shapes), table=table)


def draw_gauge(used: float, after: float | None, *, sentence: str, table: Cells = ()) -> Picture:
    """Draw how much of a budget is used, and the hatched part that a question would take."""
    width, height = 320, 16
    first = place(used, 0.0, 1.0, 0, width - 2)
    shapes = [Shape(kind="box", look="edge", x=0.5, y=0.5, width=width - 1, height=height - 1)]
    shapes.append(Shape(kind="box", look="used", x=1, y=1, width=first, height=height - 2))
    if after is not None and after > used:
        more = place(after, 0.0, 1.0, 0, width - 2) - first
        shapes.append(
            Shape(kind="box", look="asked", x=1 + first, y=1, width=more, height=height - 2)
        )
        for i in range(int(more // 6) + 1):  # hatched, so that colour is not alone
            at = 1 + first + 6 * i
            end = min(at + 6, 1 + first + more)
            shapes.append(draw_line([(at, height - 1), (end, 1)], "hatch"))
    return Picture(
        width=width,
        height=height,
        sentence=sentence,
        shapes=tuple(shapes),
        table=table,
        zoom=1.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value with the ends of its error bar, which may be missing, and its name."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def draw_bars(bars: Sequence[Bar], *, sentence: str, table: Cells = ()) -> Picture:
    """Draw bars from zero, one under the other, with their error bars."""
    step, width = 22, WIDTH
    name_width = min(150, max(110, _LETTER * max((len(each.name) for each in bars), default=0)))
    height = step * len(bars) + 24
    numbers = [n for b in bars for n in (b.value, b.low, b.high) if n is not None]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    start, end = name_width + 8, width - 12
    zero = place(0.0, low, high, start, end) if high > low else start
    shapes: list[Shape] = []
    for row, bar in enumerate(bars):
        middle = step * row + step / 2
        at = place(bar.value, low, high, start, end) if high > low else start
        shapes.append(
            Shape(
                kind="box",
                look="bar",
                x=min(zero, at),
                y=middle - 7,
                width=round(abs(at - zero), 1),
                height=14,
            )
        )
        if bar.low is not None and bar.high is not None:
            a, b = (place(each, low, high, start, end) for each in (bar.low, bar.high))
            shapes.append(draw_line([(a, middle), (b, middle)], "spread"))
            shapes += [draw_line([(e, middle - 4), (e, middle + 4)], "spread") for e in (a, b)]
        shapes.append(write_word(name_width, middle + 4, shorten(bar.name), "tick", anchor="end"))
    shapes.append(draw_line([(zero, 0), (zero, height - 22)], "axis"))
    ends = ((low, "start"), (high, "end")) if high > low else ()
    for value, anchor in ends:
        side: Anchor = "start" if anchor == "start" else "end"
        at = place(value, low, high, start, end)
        shapes.append(write_word(at, height - 6, format_up(value, 3), "tick", anchor=side))
    return Picture(width=width, height=height, sentence=sentence, shapes=tuple(shapes), table=table)


def shorten(name: str, most: int = 21) -> str:
    """Cut a name that has no room; the table beside the picture has all of it."""
    text = shown(name)
    return text if len(text) <= most else f"{text[: most - 1]}…"
