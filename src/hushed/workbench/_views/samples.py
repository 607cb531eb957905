"""Pictures of what was drawn: falling movements, one histogram with a mark, two of one audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hushed._ground.printing import format_down, format_up
from hushed._web.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Bar,
    Picture,
    Shape,
    draw_axes,
    draw_bars,
    draw_curve,
    draw_line,
    write_word,
)
from hushed.workbench._views.audits import Judged
from hushed.workbench._views.functions import Watched

_SIZE = (WIDTH, 190)
_MOST_POINTS, _MOST_ROWS, _BINS = 240, 40, 24


def draw_movements(watched: Watched) -> Picture:
    """Draw the sorted movements as a falling curve, with the place of the one that is kept."""
    found, total = watched.movements, watched.total
    x = Axis(low=1, high=max(2, total), ticks=_whole_ticks(total), title="pairs, largest first")
    top = found[0] if found and found[0] > 0 else 1.0
    y = Axis(low=0.0, high=top, ticks=((0.0, "0"), (top, format_up(top, 3))), title="")
    chosen = _pick(len(found), _MOST_POINTS)
    here = (float(watched.place), found[watched.place - 1]) if watched.kept else None
    drawn = draw_curve(
        [(float(i + 1), found[i]) for i in chosen],
        here,
        x=x,
        y=y,
        sentence=_tell_movements(watched),
        table=(
            ("place, largest first", "movement"),
            *((str(i + 1), format_up(found[i])) for i in _pick(len(found), _MOST_ROWS)),
        ),
        size=_SIZE,
    )
    words = write_word(_SIZE[0] - RIGHT, TOP + 12, "movement", "title", anchor="end")
    return replace(drawn, shapes=(*drawn.shapes, words))


def _tell_movements(watched: Watched) -> str:
    if not watched.movements:
        return "No movement is measured yet."
    place = "the largest" if watched.place == 1 else f"number {watched.place} from the largest"
    grow = "" if watched.done >= watched.total else " so far; it can only grow"
    kept = f", {watched.kept}" if watched.kept else ""
    return (
        f"Movements of {watched.done:,} of {watched.total:,} pairs, sorted: from {watched.largest} "
        f"falling. Kept is {place}{kept}{grow}."
    )


def _pick(count: int, most: int) -> list[int]:
    """Pick places out of many: the first ones all, the others evenly, the last one always."""
    if count <= most:
        return list(range(count))
    first, rest = most // 4, most - most // 4
    step = (count - 1 - first) / (rest - 1)
    return [*range(first), *(first + round(i * step) for i in range(rest))]


def _whole_ticks(total: int) -> tuple[tuple[float, str], ...]:
    return tuple((float(each), f"{each:,}") for each in sorted({1, total // 2, total}) if each)


def draw_histogram(
    values: Sequence[float], mark: float, *, title: str, marked: str, sentence: str
) -> Picture:
    """Draw how often numbers came up, and where one of them stands."""
    low, high = min([*values, mark]), max([*values, mark])
    high = high if high > low else low + 1.0
    edges = [low + (high - low) * i / _BINS for i in range(_BINS + 1)]
    counts = _count(values, low, high)
    most = max(counts)
    x = Axis(low=low, high=high, ticks=((low, f"{low:.3g}"), (high, f"{high:.3g}")), title=title)
    y = Axis(low=0.0, high=most, ticks=((0.0, "0"), (most, str(most))), title="tables")
    width, height = _SIZE
    right, bottom = width - RIGHT, height - BOTTOM
    shapes = draw_axes(x, y, width, height)
    for (start, end), count in zip(pairwise(edges), counts, strict=True):
        left, top = x.at(start, LEFT, right), y.at(count, bottom, TOP)
        wide = round(x.at(end, LEFT, right) - left, 1)
        tall = round(bottom - top, 1)
        shapes.append(Shape(kind="box", look="bar", x=left, y=top, width=wide, height=tall))
    at = x.at(mark, LEFT, right)
    shapes.append(Shape(kind="path", look="guide", path=f"M{at:g} {TOP} L{at:g} {bottom}"))
    late = at > (LEFT + right) / 2
    words = Shape(
        kind="word",
        look="title",
        x=at - 6 if late else at + 6,
        y=TOP + 26,
        text=marked,
        anchor="end" if late else "start",
    )
    table = (
        ("from", "to", "tables"),
        *(
            (f"{a:.4g}", f"{b:.4g}", str(n))
            for (a, b), n in zip(pairwise(edges), counts, strict=True)
        ),
        (marked, f"{mark:.4g}", ""),
    )
    return Picture(
        width=width, height=height, sentence=sentence, shapes=(*shapes, words), table=table
    )


def _count(values: Sequence[float], low: float, high: float) -> list[int]:
    counts = [0] * _BINS
    for each in values:
        counts[min(_BINS - 1, int(_BINS * (each - low) / (high - low)))] += 1
    return counts


def draw_event(judged: Judged) -> Picture:
    """Draw how often the event of the witness was seen on either table."""
    shares = [hits / max(1, runs) for _, hits, runs in judged.sides]
    told = " and ".join(
        f"{hits:,} times in {runs:,} on the {side}" for side, hits, runs in judged.sides
    )
    return draw_bars(
        [
            Bar(name=side, value=share)
            for (side, _, _), share in zip(judged.sides, shares, strict=True)
        ],
        sentence=f"The event was seen {told}.",
        table=(
            ("table", "seen", "runs"),
            *((side, f"{hits:,}", f"{runs:,}") for side, hits, runs in judged.sides),
        ),
    )


def draw_outcomes(judged: Judged) -> Picture | None:
    """Draw how often outcomes came up on either table, in the order of what they speak for."""
    count = len(judged.outcomes)
    if count < 2:
        return None
    (side, _, runs), (other, _, other_runs) = judged.sides
    shares = [(a / max(1, runs), b / max(1, other_runs)) for a, b in judged.outcomes]
    top = max(max(each) for each in shares)
    x = Axis(low=0, high=count, ticks=(), title="groups of outcomes")
    y = Axis(low=0.0, high=top, ticks=((0.0, "0"), (top, f"{top:.2g}")), title="share of runs")
    width, height = _SIZE
    right, bottom = width - RIGHT, height - BOTTOM
    shapes = draw_axes(x, y, width, height)
    step: list[tuple[float, float]] = []
    for i, (share, other_share) in enumerate(shares):
        left, end = x.at(i, LEFT, right), x.at(i + 1, LEFT, right)
        up = y.at(share, bottom, TOP)
        wide, tall = round(end - left, 1), round(bottom - up, 1)
        shapes.append(Shape(kind="box", look="bar", x=left, y=up, width=wide, height=tall))
        line = y.at(other_share, bottom, TOP)
        step += [(left, line), (end, line)]
    shapes.append(draw_line(step, "spread"))
    shapes += _mark_event(x.at(judged.event_from, LEFT, right), bottom)
    inside = range(judged.event_from, count)
    return Picture(
        width=width,
        height=height,
        sentence=f"Shares of the runs in {count} groups of outcomes: bars for the {side}, a line "
        f"for the {other}. Groups further right speak more for the {side}; the event is all of "
        "them from the broken line on. If the two tables could not be told apart, bars and line "
        "would agree.",
        shapes=tuple(shapes),
        table=(
            ("group", side, other, "in the event"),
            *(
                (str(i + 1), f"{a:,}", f"{b:,}", "yes" if i in inside else "no")
                for i, (a, b) in enumerate(judged.outcomes)
            ),
        ),
    )


def _mark_event(at: float, bottom: float) -> list[Shape]:
    """Draw the line where the event begins."""
    return [
        draw_line([(at, TOP), (at, bottom)], "guide"),
        write_word(at + 4, TOP + 26, "event", "title")
        if at < _SIZE[0] - RIGHT - 60
        else write_word(at - 4, TOP + 26, "event", "title", anchor="end"),
    ]


def draw_estimate(judged: Judged) -> Picture | None:
    """Draw the estimated delta against epsilon, which is no certificate."""
    curve = [each for each in judged.curve if math.isfinite(each[1])]
    if len(curve) < 2:
        return None
    right, top = curve[-1][0], max(1e-6, *(delta for _, delta in curve))
    x = Axis(low=0.0, high=right, ticks=((0.0, "0"), (right, f"{right:.3g}")), title="epsilon")
    y = Axis(low=0.0, high=top, ticks=((0.0, "0"), (top, f"{top:.3g}")), title="delta")
    return draw_curve(
        curve,
        None,
        x=x,
        y=y,
        sentence="Estimated delta at each epsilon, which is no certificate.",
        table=(
            ("epsilon", "estimated delta"),
            *(
                (format_down(a, 4), format_down(b, 4))
                for a, b in curve[:: max(1, len(curve) // 20)]
            ),
        ),
        size=_SIZE,
    )
