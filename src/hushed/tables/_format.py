"""An answer as a table of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hushed._printing import format_up, shown

_ROUNDED, _WRITTEN_OUT = 1e5, 1e15

Columns = Mapping[str, Sequence[Any]]


def list_lines(keys: Columns, values: Columns, low: Columns, high: Columns) -> list[list[str]]:
    """List the cells of an answer as text: the names, then one line for each group."""
    rows = [
        [shown(str(each)) for each in key]
        + [_format_cell(values[name][i], low[name][i], high[name][i]) for name in values]
        for i, key in enumerate(zip(*keys.values(), strict=True) if keys else [()])
    ]
    return [[shown(name) for name in (*keys, *values)], *rows]


def format_table(keys: Columns, values: Columns, low: Columns, high: Columns) -> str:
    """Format an answer as a table of text, one line for each group."""
    head, *rows = list_lines(keys, values, low, high)
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *rows]
    )


def list_edges(edges: Mapping[str, Sequence[float]]) -> list[str]:
    """Name the edges of the bins of each histogram, which its numbers mean nothing without."""
    return [
        f"edges of the bins of {shown(name)}: {' '.join(map(_format_number, found))}"
        for name, found in edges.items()
    ]


def _format_cell(value: Any, low: Any, high: Any) -> str:
    if isinstance(value, list):
        text = " ".join(_format_number(each) for each in value)
        return text if low is None else f"{text} (within {format_up(high[0] - value[0], 4)})"
    return (
        _format_number(value)
        if low is None
        else f"{_format_number(value)} [{_format_number(low)}, {_format_number(high)}]"
    )


def _format_number(value: float) -> str:
    """Format with six digits; large numbers without an exponent, as reports print them."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if _ROUNDED <= abs(value) < _WRITTEN_OUT else f"{value:.6g}"
