"""Pages that hold all that they show: the template filled in."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from hushed.errors import MissingExtra


def render_page(**parts: Any) -> str:
    """Fill the page in; every text is escaped."""
    try:
        import jinja2  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a page", "plot") from None
    page = files("hushed.plots").joinpath("certificate.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True).from_string(page)
    return template.render(**parts)
