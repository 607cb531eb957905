"""What a notebook shows of a value: a small card without script, network or colours of a page.

Text and lines take the colour of the page around them, light or dark. The plain text that a
terminal shows is kept beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hushed._ground.printing import flat

_MOST_LINES = 20  # of a table; all of it is in the value
_LONGEST = 240  # of the one line that stands for a value
_WIDTH, _HEIGHT = 320, 56  # of a picture, in pixels
_BINS = 40
_BLUE, _ORANGE = "#0072B2", "#D55E00"  # told apart under every common colour blindness
_STYLE = (
    "<style>.hushed-card{font:13px/1.45 system-ui,sans-serif;max-width:54em;overflow-x:auto;"
    "border-left:3px solid #0072B2;padding:.2em 0 .2em .9em}"
    ".hushed-card strong{display:block}.hushed-card table{border-collapse:collapse;"
    "margin:.4em 0;background:none;font:inherit;color:inherit}"  # pages without doctype reset it
    ".hushed-card th,.hushed-card td{text-align:left;padding:.1em 1em .1em 0;background:none;"
    "border:0;vertical-align:top;font-variant-numeric:tabular-nums}"
    ".hushed-card .facts th{font-weight:400;opacity:.75;white-space:nowrap}"
    ".hushed-card>svg{display:block;margin:.4em 0}"  # side by side their words would touch
    ".hushed-card .rows th{border-bottom:1px solid currentColor}"
    ".hushed-card p{white-space:pre-wrap;margin:.3em 0}"  # what is indented stays so
    ".hushed-card .rows svg{max-width:160px;height:auto}"  # or the words beside it are squeezed
    ".hushed-card svg text{fill:currentColor;font-size:11px}</style>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is shown of a value."""

    title: str
    text: str  # the plain text, for terminals
    facts: tuple[tuple[str, str], ...] = ()  # names and values
    lines: tuple[tuple[str, ...], ...] = ()  # a table; the names of its columns first
    pictures: tuple[str, ...] = ()  # SVG: of the whole, or of each line if `lines` are there
    words: str | None = None  # in place of the plain text on the card


class Shown:
    """A value that a notebook shows as its words; `_card` says how, where it is more.

    Printed it is its words, too. A record of many fields has ``repr=False``, and one line stands
    for it in a list, a traceback or a debugger.
    """

    __slots__ = ()

    def _card(self) -> Card:
        own = type(self).__str__ is not Shown.__str__
        words = getattr(self, "explain", self.__str__ if own else self.__repr__)
        return Card(title=type(self).__name__, text=words())

    def _brief(self) -> str:
        """Say what stands for it in one line."""
        card = self._card()
        facts = ", ".join(f"{name} {value}" for name, value in card.facts)
        return f"{card.title}: {facts or card.text.partition(chr(10))[0]}"

    def __repr__(self) -> str:
        try:
            line = flat(self._brief())
        except Exception:  # half made, as a debugger or a traceback may show it
            line = type(self).__name__
        return f"<{line if len(line) <= _LONGEST else line[: _LONGEST - 3] + '...'}>"

    def __str__(self) -> str:
        return self._card().text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Give what Jupyter shows, and the plain text for where it does not."""
        card = self._card()
        return {"text/plain": card.text, "text/html": render_card(card)}

    def _repr_html_(self) -> str:
        return render_card(self._card())


def card_of_facts(title: str, facts: Sequence[tuple[str, str]]) -> Card:
    """Make a card of names and values; they are its plain text, too."""
    text = "\n".join([title, *(f"  {name}: {value}" for name, value in facts)])
    return Card(title=title, text=text, facts=tuple(facts), words="")


def render_card(card: Card) -> str:
    """Write a card as HTML; everything in it is escaped, but pictures."""
    parts = [f"<strong>{_clean(card.title)}</strong>"]
    if card.facts:
        cells = "".join(f"<tr><th>{_clean(a)}</th><td>{_clean(b)}</td></tr>" for a, b in card.facts)
        parts.append(f'<table class="facts">{cells}</table>')
    if card.lines:
        parts.append(_render_lines(card))
    else:
        parts += card.pictures
    words = card.text if card.words is None else card.words
    paragraphs = "".join(f"<p>{_clean_lines(each)}</p>" for each in words.split("\n\n") if each)
    if paragraphs and (card.facts or card.lines or card.pictures):
        paragraphs = f"<details><summary>In words</summary>{paragraphs}</details>"
    return f'<div class="hushed-card">{_STYLE}{"".join(parts)}{paragraphs}</div>'


def _render_lines(card: Card) -> str:
    head, *rows = card.lines
    drawn = [*card.pictures, *[""] * len(rows)]
    names = "".join(f"<th>{_clean(each)}</th>" for each in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{_clean(cell)}</td>' for cell in row)}<td>{drawn[i]}</td></tr>"
        for i, row in enumerate(rows[:_MOST_LINES])
    )
    more = len(rows) - _MOST_LINES
    rest = f"<p>and {more} more lines</p>" if more > 0 else ""
    return f'<table class="rows"><tr>{names}<th></th></tr>{body}</table>{rest}'


def _clean(text: str) -> str:
    return escape(flat(text))


def _clean_lines(text: str) -> str:
    return "\n".join(_clean(line) for line in text.split("\n"))


def draw_gauge(share: float, label: str) -> str:
    """Draw how much of something is used, a share in [0, 1]."""
    used = min(max(share, 0.0), 1.0) * _WIDTH
    return _svg(
        20,
        label,
        f'<rect x="0.5" y="0.5" width="{_WIDTH - 1}" height="13" fill="none" '
        'stroke="currentColor"/>'
        f'<rect x="0" y="0" width="{used:.1f}" height="14" fill="{_BLUE}"/>',
    )


def draw_interval(low: float, value: float, high: float, ends: tuple[float, float]) -> str:
    """Draw a value with its error bar, on an axis between two ends."""
    width = ends[1] - ends[0]
    if not (math.isfinite(width) and width > 0):
        return ""
    a, x, b = (150 * ((each - ends[0]) / width) for each in (low, value, high))
    return _svg(
        12,
        "value with its error bar",
        f'<path d="M{a:.1f} 6H{b:.1f}M{a:.1f} 2V10M{b:.1f} 2V10" stroke="currentColor" '
        f'fill="none"/><circle cx="{x:.1f}" cy="6" r="3" fill="{_BLUE}"/>',
        width=160,
        left=-5,
    )


def draw_histogram(values: Sequence[float], kept: float, label: str) -> str:
    """Draw how often values occur, and the one that was kept."""
    known = [each for each in values if math.isfinite(each)]
    top = max([*known, kept])
    if not known or not math.isfinite(top) or top <= 0:
        return ""
    counts = [0] * _BINS
    for each in known:
        counts[min(_BINS - 1, int(_BINS * (max(each, 0.0) / top)))] += 1
    step, most = _WIDTH / _BINS, max(counts)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HEIGHT - max(1.0, _HEIGHT * n / most):.1f}" '
        f'width="{step - 1:.1f}" height="{max(1.0, _HEIGHT * n / most):.1f}" fill="{_BLUE}"/>'
        for i, n in enumerate(counts)
        if n
    )
    mark = _WIDTH * (kept / top)
    line = f'<path d="M{mark:.1f} 0V{_HEIGHT}" stroke="{_ORANGE}" stroke-width="2"/>'
    axis = f'<text x="0" y="{_HEIGHT + 14}">0</text>'
    axis += f'<text x="{_WIDTH}" y="{_HEIGHT + 14}" text-anchor="end">{top:.4g}</text>'
    return _svg(_HEIGHT + 18, label, bars + line + axis)


def draw_bound(certified: float, claimed: float, label: str) -> str:
    """Draw a certified lower bound and what was claimed, on one line from 0."""
    top = 1.1 * max(certified, claimed)
    if not (math.isfinite(top) and top > 0):
        return ""
    a, b = _WIDTH * (certified / top), _WIDTH * (claimed / top)
    side = "end" if b > 0.8 * _WIDTH else "middle" if b > 0.2 * _WIDTH else "start"
    x = {"end": float(_WIDTH), "middle": b, "start": 0.0}[side]  # words stay within the picture
    return _svg(
        46,
        label,
        f'<path d="M0 20H{_WIDTH}" stroke="currentColor"/>'
        f'<rect x="0" y="16" width="{a:.1f}" height="8" fill="{_ORANGE}"/>'
        f'<path d="M{b:.1f} 10V30" stroke="{_BLUE}" stroke-width="3"/>'
        f'<text x="0" y="11">at least {certified:.4g}</text>'
        f'<text x="{x:.1f}" y="42" text-anchor="{side}">claimed {claimed:.4g}</text>',
    )


def draw_pairs(shares: Sequence[tuple[float, float]], start: int, label: tuple[str, str]) -> str:
    """Draw pairs of shares as bars and dots, with a line before the one at `start`.

    The label has two short lines.
    """
    top = max((max(each) for each in shares), default=0.0)
    if not (math.isfinite(top) and top > 0):
        return ""
    step, gap = _WIDTH / len(shares), min(2.0, 0.1 * _WIDTH / len(shares))
    heights = [(_HEIGHT * (a / top), _HEIGHT * (b / top)) for a, b in shares]
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{4 + _HEIGHT - a:.1f}" width="{step - gap:.1f}" '
        f'height="{a:.1f}" fill="{_BLUE}" opacity="0.7"/>'
        for i, (a, _) in enumerate(heights)
    )
    dots = "".join(
        f'<circle cx="{(i + 0.5) * step:.1f}" cy="{4 + _HEIGHT - b:.1f}" r="3" fill="{_ORANGE}"/>'
        for i, (_, b) in enumerate(heights)
    )
    mark = f'<path d="M{start * step:.1f} 0V{_HEIGHT + 4}" stroke="currentColor" '
    mark += 'stroke-dasharray="3 2"/>'
    words = "".join(
        f'<text x="0" y="{_HEIGHT + 18 + 14 * i}">{_clean(line)}</text>'
        for i, line in enumerate(label)
    )
    return _svg(_HEIGHT + 38, "; ".join(label), bars + dots + mark + words)


def _svg(height: float, label: str, inside: str, *, width: int = _WIDTH, left: int = 0) -> str:
    return (
        f'<svg role="img" aria-label="{escape(flat(label), quote=True)}" width="{width}" '
        f'height="{height}" viewBox="{left} 0 {width} {height}">{inside}</svg>'
    )
