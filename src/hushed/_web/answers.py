"""What a page shows of an answer: its table, bars with error bars, histograms with their edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hushed._ground.printing import format_number, format_up, shown
from hushed._web.svg import Bar, Picture, draw_bars
from hushed.tables import Answer
from hushed.tables._answers import percent
from hushed.tables._format import format_bar, list_lines

_MOST_BARS, _MOST_PICTURES = 40, 6

Lines = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """What a page says of an answer."""

    lines: Lines
    left_out: int
    pictures: tuple[Picture, ...]
    errors: tuple[str, ...]
    words: tuple[str, ...]
    remarks: tuple[str, ...]


def describe_answer(answer: Answer, most: int | None = None) -> AnswerView:
    """Say all that a page says of an answer; of its lines, so many at most."""
    lines = list_answer(answer)
    shown_lines = lines if most is None else lines[: most + 1]
    return AnswerView(
        lines=shown_lines,
        left_out=len(lines) - len(shown_lines),
        pictures=draw_answer(answer),
        errors=list_errors(answer),
        words=tuple(answer.explain().split("\n")),
        remarks=tuple(answer.warnings),
    )


def list_answer(answer: Answer) -> Lines:
    """List the cells of an answer as text, the names of the columns first."""
    return tuple(map(tuple, list_lines(answer)))


def draw_answer(answer: Answer, what: str = "") -> tuple[Picture, ...]:
    """Draw each output of one number a group, and each histogram."""
    found: list[Picture] = []
    for name in answer.values:
        if name in answer.edges:
            found += _draw_histograms(answer, name, what)
        elif name not in (*answer.shortfall, *answer.probabilities) or _is_single(answer, name):
            bars = _list_bars(answer, name)
            if bars:
                found.append(_draw(answer, name, bars, what))
    return tuple(found[:_MOST_PICTURES])


def _is_single(answer: Answer, name: str) -> bool:
    return len(answer.probabilities.get(name, (0, 0))) == 1


def _list_bars(answer: Answer, name: str) -> list[Bar]:
    """List the bars of an output, one for each group."""
    groups = _name_groups(answer)
    cells = zip(groups, answer.values[name], answer.low[name], answer.high[name], strict=True)
    return [
        Bar(name=group, value=value, low=low, high=high)
        for group, value, low, high in cells
        if isinstance(value, int | float)
    ]


def _name_groups(answer: Answer) -> list[str]:
    if not answer.keys:
        return ["all rows"]
    return [", ".join(map(str, key)) for key in zip(*answer.keys.values(), strict=True)]


def _draw(answer: Answer, name: str, bars: Sequence[Bar], what: str) -> Picture:
    """Draw bars; a sentence says what they show."""
    barred = all(each.low is not None for each in bars)
    error = (
        f" with error bars of {percent(answer.level)}"
        if barred
        else " without error bars, although each may be off"
    )
    groups = "" if len(bars) == 1 else f" in {len(bars)} groups"
    cut = "" if len(bars) <= _MOST_BARS else f"; the first {_MOST_BARS} are drawn"
    lines = [("group", name, *(("from", "to") if barred else ()))]
    lines += [
        (shown(each.name), *(_cells(each) if barred else (format_number(each.value),)))
        for each in bars
    ]
    sentence = f"{shown(name)}{groups}{error}{cut}."
    if what:
        sentence = f"{what}: {sentence}"
    return draw_bars(bars[:_MOST_BARS], sentence=sentence, table=tuple(lines))


def _cells(bar: Bar) -> tuple[str, ...]:
    if bar.low is None or bar.high is None:
        return (format_number(bar.value),)
    return format_bar(bar.value, bar.low, bar.high)


def _draw_histograms(answer: Answer, name: str, what: str) -> list[Picture]:
    """Draw the histogram of each group; each bar is named by the edges of its bin."""
    edges = answer.edges[name]
    names = [f"{a:.6g} to {b:.6g}" for a, b in pairwise(edges)]
    found = []
    for i, group in enumerate(_name_groups(answer)):
        values, low, high = (
            _list(part[name][i]) for part in (answer.values, answer.low, answer.high)
        )
        bars = [
            Bar(name=label, value=value, low=a, high=b)
            for label, value, a, b in zip(names, values, low, high, strict=True)
        ]
        where = what if not answer.keys else " ".join([what, shown(group)]).strip()
        found.append(_draw(answer, name, bars, where))
    return found


def _list(cell: Any) -> list[Any]:
    return list(cell)


def list_errors(answer: Answer) -> tuple[str, ...]:
    """Say, for quantiles and tops, how far they may be off; the others have error bars."""
    found = [
        f"{shown(name)}: within {format_up(error, 4)} ranks"
        for name, error in answer.rank_error.items()
    ]
    found += [
        f"{shown(name)}: each key at most {format_up(most, 4)} less than the best"
        for name, most in answer.shortfall.items()
    ]
    return tuple(found)
