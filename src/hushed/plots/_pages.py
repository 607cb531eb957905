"""Pages that hold all that they show: the template filled in."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from hushed._ground.printing import cut_text
from hushed.errors import MissingExtra

_MOST_LETTERS = 2_500  # of a table on paper: of one with more, a cell is cut to what a line takes
_LINE = 52  # letters that the long columns of one line take together, each 26 at most


def render_page(**parts: Any) -> str:
    """Fill the page in; every text is escaped."""
    try:
        import jinja2  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a page", "plot") from None
    page = files("hushed.plots").joinpath("certificate.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True)
    environment.filters["cut"] = lambda table, cell: cut_text(cell, table.cell)
    environment.filters["paper"] = _cut_for_paper
    return environment.from_string(page).render(**parts)


def _cut_for_paper(table: Any, cell: str) -> str:
    """Cut what paper shows of a cell, where all cells would take more than two sides."""
    shown = table.lines[: table.most + 1]
    if sum(min(len(each), table.cell) for line in shown for each in line) <= _MOST_LETTERS:
        return cut_text(cell, table.cell)
    columns = zip(*shown, strict=False)
    long = sum(any(len(each) > _LINE / 2 for each in column) for column in columns)
    return cut_text(cell, _LINE // max(long, 2))
