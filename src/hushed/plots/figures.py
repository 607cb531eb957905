"""What all figures share: the drawing library, and writing to a file without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hushed.errors import NotFound, ParameterError

__all__ = ["altair_or_refuse", "save_figure"]

_SUFFIXES = (".svg", ".png", ".html")


def altair_or_refuse() -> Any:
    """Import the drawing library.

    Returns
    -------
    module
        Altair.

    Raises
    ------
    NotFound
        If the extra ``hushed[plot]`` is not installed.
    """
    try:
        import altair  # noqa: PLC0415
        import jinja2  # noqa: F401, PLC0415
        import vl_convert  # noqa: F401, PLC0415
    except ImportError:
        raise NotFound("figures need three more packages: pip install 'hushed[plot]'") from None
    return altair


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
        If the suffix is another one.
    NotFound
        If the extra ``hushed[plot]`` is not installed.
    """
    altair_or_refuse()
    target = Path(path)
    if target.suffix not in _SUFFIXES:
        raise ParameterError(
            f"a figure is written as {', '.join(_SUFFIXES)}, got {target.suffix or 'no suffix'!r}"
        )
    if target.suffix == ".html":
        figure.save(str(target), inline=True)
    else:
        figure.save(str(target), scale_factor=2 if target.suffix == ".png" else 1)
    return target
