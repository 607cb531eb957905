"""An answer as a table of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import (
    ROUNDED,
    WRITTEN_OUT,
    format_down,
    format_exactly,
    format_number,
    format_up,
    own_decimals,
    shown,
)
from hushed.tables._left_out import remark_of

if TYPE_CHECKING:
    from hushed.tables._answers import Answer

_DIGITS = 6  # of a number, at most


def list_lines(answer: Answer) -> list[list[str]]:
    """List the cells of an answer as text: the names, then one line for each group.

    Beside a name stands what its error bars do not include.
    """
    keys, values, low, high = answer.keys, answer.values, answer.low, answer.high
    rows = [
        [shown(str(each)) for each in key]
        + [_format_cell(values[name][i], low[name][i], high[name][i]) for name in values]
        for i, key in enumerate(zip(*keys.values(), strict=True) if keys else [()])
    ]
    remarks = {name: remark_of(answer, name) for name in values}
    named = [f"{shown(n)} [{said}]" if said else shown(n) for n, said in remarks.items()]
    return [[*map(shown, keys), *named], *rows]


def format_table(lines: Sequence[Sequence[str]]) -> str:
    """Format lines of cells as a table of text."""
    head, *rows = lines
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *rows]
    )


def list_places(answer: Answer) -> list[str]:
    """Name what the numbers of histograms and quantiles mean nothing without."""
    return [f"{name}: {listed}" for name, listed in name_places(answer)]


def name_places(answer: Answer) -> list[tuple[str, str]]:
    """Name the edges of the bins of each histogram, and which quantiles there are, in order."""
    told = [(f"edges of the bins of {shown(name)}", each) for name, each in answer.edges.items()]
    several = [(name, each) for name, each in answer.probabilities.items() if len(each) > 1]
    told += [(f"quantiles of {shown(name)}", each) for name, each in several]
    return [(name, " ".join(map(format_exactly, each))) for name, each in told]


def _format_cell(value: Any, low: Any, high: Any) -> str:
    if isinstance(value, list):
        text = " ".join(format_number(each) for each in value)
        return text if low is None else f"{text} ({_format_errors(value[0], low[0], high[0])})"
    if low is None:
        return format_number(value)
    value, low, high = format_bar(value, low, high)
    return f"{value} [{low}, {high}]"


def format_bar(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Format a number and the ends of its error bar, without decimals that say nothing.

    Of half the bar, two digits are kept, and of large numbers all before the point. The ends are
    rounded outwards.
    """
    with own_decimals():
        return _format_bar(value, low, high)


def _format_bar(value: float, low: float, high: float) -> tuple[str, str, str]:
    half = Decimal((high - low) / 2)
    if isinstance(value, float) and half.is_finite() and half:
        places = max(0, 1 - half.adjusted())
        whole = max(Decimal(each).adjusted() for each in (value, low, high) if each)
        if places + max(0, whole) < _DIGITS:
            return (
                _round(value, places, ROUND_HALF_EVEN),
                _round(low, places, ROUND_FLOOR),
                _round(high, places, ROUND_CEILING),
            )
    return format_number(value), format_end(low, -1), format_end(high, 1)


def _round(number: float, places: int, rounding: str) -> str:
    found = Decimal(repr(float(number))).quantize(Decimal(1).scaleb(-places), rounding)
    return f"{found if found else abs(found):f}"


def _format_errors(value: Any, low: Any, high: Any) -> str:
    """Format how far each number of a list may be off, where that is the same for all."""
    below, above = format_up(value - low, 4), format_up(high - value, 4)
    return f"within {above}" if below == above else f"-{below} to +{above}"


def format_end(end: float, side: int) -> str:
    """Format an end of an error bar: not inside of it, for the bar would hold less often."""
    if isinstance(end, int):
        return str(end)
    if ROUNDED <= abs(end) < WRITTEN_OUT:
        return str(math.floor(end) if side < 0 else math.ceil(end))
    return format_down(end) if side < 0 else format_up(end)
