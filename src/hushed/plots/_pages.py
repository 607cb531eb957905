"""Pages that hold all that they show: the template filled in, and figures as SVG."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from hushed.errors import MissingExtra
from hushed.plots._figures import altair_or_refuse, clean_spec


def render_page(**parts: Any) -> str:
    """Fill the page in; every text is escaped."""
    try:
        import jinja2  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a page", "plot") from None
    page = files("hushed.plots").joinpath("certificate.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True).from_string(page)
    return template.render(**parts)


def draw_svg(figure: Any) -> str:
    """Write a figure as SVG, to stand in a page."""
    altair_or_refuse()
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.vegalite_to_svg(clean_spec(figure)))
