"""What all figures share: the drawing library, and writing to a file without a network."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec

from hushed._ground.calls import called_as
from hushed._ground.printing import flat
from hushed._ground.whole_files import write_whole
from hushed.errors import MissingExtra, ParameterError

COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000", "#7F7F7F"),
)
"""Colours of series, in order; Okabe and Ito, Color Universal Design, 2008.

They are told apart under every common colour blindness, and in grey print.
"""

_P = ParamSpec("_P")
_MARK = b"a figure of hushed"
_HEADER = 33  # bytes of a PNG file up to the end of its first chunk
_SUFFIXES = (".svg", ".png", ".html")
_SHRINK = (
    0.86  # of texts in an SVG: DejaVu Sans is wider by a seventh than what they are laid out by
)
_SIZE_OF_TEXT = re.compile(r'(<text\b[^<>]*? font-size=")([\d.]+)(?=px")')
_SIZE_OF_ALL = re.compile(r'(?<= )(width|height)="([\d.]+)"')


def altair_or_refuse() -> Any:
    """Import the drawing library."""
    try:
        import altair  # noqa: PLC0415
        import jinja2  # noqa: F401, PLC0415
        import vl_convert  # noqa: F401, PLC0415
    except ImportError:
        raise MissingExtra("a figure or page", "plot") from None
    return altair


def shows_offline(draw: Callable[_P, Any]) -> Callable[_P, Any]:
    """Let a notebook show the figures of a function as SVG: Altair's own way asks the network."""

    @wraps(draw)
    def drawn(*given: _P.args, **named: _P.kwargs) -> Any:
        figure = draw(*given, **named)
        kind: Any = type(figure)
        # Altair keeps whatever is set in the usual way as a part of the record.
        object.__setattr__(figure, "__class__", _offline(kind))
        return figure

    return drawn


@cache
def _offline(kind: Any) -> Any:
    """Make a kind of chart that differs in nothing but how a notebook shows it."""
    return type(kind.__name__, (kind,), {"_repr_mimebundle_": _show, "__doc__": kind.__doc__})


def _show(figure: Any, *_: Any, **__: Any) -> dict[str, str]:
    """Give what Jupyter shows, and words for where it does not."""
    return {"image/svg+xml": draw_svg(figure), "text/plain": f"<{type(figure).__name__}>"}


def require_kind(name: str, given: object, *kinds: type) -> None:
    """Refuse an object of which a figure does not tell."""
    if not isinstance(given, kinds):
        known = " or ".join(each.__name__ for each in kinds)
        raise ParameterError(
            f"{name} must be a {known} of hushed, got {type(given).__name__}", parameter=name
        )


def tell_apart(
    names: Sequence[str], shapes: Sequence[str], *, by: str = "what", **legend: Any
) -> dict[str, Any]:
    """Tell series apart by colour and by shape, with one legend for both."""
    alt = altair_or_refuse()
    title = legend.pop("title", None)
    look = alt.Legend(labelLimit=400, symbolOpacity=1, **legend)
    colours = alt.Scale(domain=list(names), range=list(COLOURS[: len(names)]))
    marks = alt.Scale(domain=list(names), range=list(shapes[: len(names)]))
    return {
        "color": alt.Color(f"{by}:N", title=title, scale=colours, legend=look),
        "shape": alt.Shape(f"{by}:N", title=title, scale=marks, legend=look),
    }


@called_as('hs.plots.check_suffix("figure.svg")')
def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse a file that no figure can be written to.

    Parameters
    ----------
    path : str or path
        Should end in ``.svg``, ``.png`` or ``.html``.

    Raises
    ------
    ParameterError
        If the suffix is different.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    altair_or_refuse()
    suffix = Path(path).suffix
    if suffix not in _SUFFIXES:
        raise ParameterError(
            f"a figure is written as {', '.join(_SUFFIXES)}, got {suffix or 'no suffix'!r}"
        )


@called_as('hs.plots.save_figure(hs.plots.audit_figure(report), "figure.svg")')
def save_figure(figure: Any, path: str | Path) -> Path:
    """Write a figure in the format of the file's suffix.

    Parameters
    ----------
    figure : altair chart
        What to write.
    path : str or Path
        Ends in ``.svg``, ``.png`` or ``.html``; an HTML file needs no network.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        If the suffix is different.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    target = Path(path)
    check_suffix(target)
    if not hasattr(figure, "to_dict"):
        page = ": a page is a text, Path(path).write_text(page, encoding='utf-8') writes it"
        raise ParameterError(
            f"a figure of hs.plots is needed, got {type(figure).__name__}"
            f"{page if isinstance(figure, str) else ''}"
        )
    if target.suffix == ".html":
        # Altair finds the class of a record among its own, which are not those that show offline.
        kind: Any = next(each for each in type(figure).__mro__ if each.__module__ != __name__)
        clean = kind.from_dict(clean_spec(figure), validate=False)  # asked already, when cleaned
        page = clean.to_html(inline=True, json_kwds={"cls": _InScript})
        content = page.encode()
    elif target.suffix == ".svg":
        content = draw_svg(figure).encode()
    else:
        content = draw_png(figure)
    write_whole(target, _sign(content, target.suffix))
    return target


def draw_svg(figure: Any) -> str:
    """Write a figure as SVG, in which no text meets another where fonts are wider than here."""
    altair_or_refuse()
    import vl_convert  # noqa: PLC0415

    return leave_room(str(vl_convert.vegalite_to_svg(clean_spec(figure))))


def draw_png(figure: Any) -> bytes:
    """Write a figure as PNG, with two pixels where the screen has one."""
    altair_or_refuse()
    import vl_convert  # noqa: PLC0415

    return bytes(vl_convert.vegalite_to_png(clean_spec(figure), scale=2))


def leave_room(drawn: str) -> str:
    """Make the texts of an SVG smaller than their places, and all of it larger by as much."""
    drawn = _SIZE_OF_TEXT.sub(lambda m: f"{m[1]}{float(m[2]) * _SHRINK:.4g}", drawn)
    head, end, rest = drawn.partition(">")
    return (
        _SIZE_OF_ALL.sub(lambda m: f'{m[1]}="{float(m[2]) / _SHRINK:.0f}"', head, count=2)
        + end
        + rest
    )


def clean_spec(figure: Any) -> dict[str, Any]:
    """Write a figure as a plain record whose texts, names of others among them, are one line each.

    Control characters would end the process in the library that draws.
    """
    spec: dict[str, Any] = _on_one_line(figure.to_dict())
    return spec


def _on_one_line(value: Any) -> Any:
    if isinstance(value, str):
        return flat(value)
    if isinstance(value, dict):
        return {key: _on_one_line(inner) for key, inner in value.items()}
    return [_on_one_line(inner) for inner in value] if isinstance(value, list) else value


class _InScript(json.JSONEncoder):
    """JSON in which no text can end the script that it stands in."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c").replace(">", "\\u003e")


def is_figure(path: Path) -> bool:
    """Tell whether a file was written by `save_figure`."""
    return path.is_file() and _MARK in path.read_bytes()


def _sign(content: bytes, suffix: str) -> bytes:
    """Leave a mark by which an old figure is known: only such a file is replaced."""
    if suffix != ".png":
        return content + b"<!-- " + _MARK + b" -->\n"
    body = b"tEXtSoftware\0" + _MARK
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return content[:_HEADER] + chunk + content[_HEADER:]
