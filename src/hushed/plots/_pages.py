"""Pages that hold all that they show: the template filled in."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from hushed._ground.printing import cut_text
from hushed.errors import MissingExtra

_MOST_CELL = 90  # letters of a cell that are shown at once; a click shows the others


def render_page(**parts: Any) -> str:
    """Fill the page in; every text is escaped."""
    try:
        import jinja2  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a page", "plot") from None
    page = files("hushed.plots").joinpath("certificate.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True)
    environment.filters["cut"] = lambda text: cut_text(text, _MOST_CELL)
    return environment.from_string(page).render(**parts)
