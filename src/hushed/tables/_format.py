"""An answer as a table of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import format_down, format_exactly, format_up, shown
from hushed.tables._left_out import remark_of

if TYPE_CHECKING:
    from hushed.tables._answers import Answer

_ROUNDED, _WRITTEN_OUT = 1e5, 1e15


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


def list_edges(edges: Mapping[str, Sequence[float]]) -> list[str]:
    """Name the edges of the bins of each histogram, which its numbers mean nothing without."""
    return [
        f"edges of the bins of {shown(name)}: {' '.join(map(format_exactly, found))}"
        for name, found in edges.items()
    ]


def _format_cell(value: Any, low: Any, high: Any) -> str:
    if isinstance(value, list):
        text = " ".join(_format_number(each) for each in value)
        return text if low is None else f"{text} ({_format_errors(value[0], low[0], high[0])})"
    return (
        _format_number(value)
        if low is None
        else f"{_format_number(value)} [{format_end(low, -1)}, {format_end(high, 1)}]"
    )


def _format_errors(value: Any, low: Any, high: Any) -> str:
    """Format how far each number of a list may be off, where that is the same for all."""
    below, above = format_up(value - low, 4), format_up(high - value, 4)
    return f"within {above}" if below == above else f"-{below} to +{above}"


def format_end(end: float, side: int) -> str:
    """Format an end of an error bar: not inside of it, for the bar would hold less often."""
    if isinstance(end, int):
        return str(end)
    if _ROUNDED <= abs(end) < _WRITTEN_OUT:
        return str(math.floor(end) if side < 0 else math.ceil(end))
    return format_down(end) if side < 0 else format_up(end)


def _format_number(value: float) -> str:
    """Format with six digits; large numbers without an exponent, as reports print them."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if _ROUNDED <= abs(value) < _WRITTEN_OUT else f"{value:.6g}"
