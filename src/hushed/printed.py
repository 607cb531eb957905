"""Texts of others in messages and on a terminal: on one line, cut, and without passwords."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["brief", "plain_path", "shown"]

_LONGEST = 100
_MAY_BE_SECRET = re.compile(r"[@?&]|://|(pass|pwd|token|secret|key)\w*\s*[=:]", re.IGNORECASE)


def shown(text: str) -> str:
    """Show a name or a key: on one line, and such that it cannot pass for anything else.

    Parameters
    ----------
    text : str
        Any text, from whoever is in the rows perhaps.

    Returns
    -------
    str
        The text itself if it is plain. One with characters that are not printed (ends of lines,
        controls of the terminal or of the direction of writing), with blanks that could be taken
        for those between columns, or with marks around it is quoted, and those are spelled out.
        A long one is cut, and its length told.
    """
    odd = (
        not text.isprintable() or "  " in text or text != text.strip() or text[:1] in ("", "'", '"')
    )
    if len(text) > _LONGEST:
        return f"{text[: _LONGEST - 3]!r}... ({len(text)} characters)"
    return repr(text) if odd else text


def brief(text: str) -> str:
    """Quote what somebody wrote, in a message: on one line, and not all of a long text.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Between quotation marks.
    """
    return repr(text) if len(text) <= _LONGEST else shown(text)


def plain_path(path: object, show: Callable[[str], str] = shown) -> str:
    """Show the path of a file that is not there, unless it may be an address with a password.

    Parameters
    ----------
    path : object
        What was given for one.
    show : callable, optional
        How a plain one is shown.

    Returns
    -------
    str
        The path, or words in its place.
    """
    text = str(path)
    if _MAY_BE_SECRET.search(text):
        return "of that name (not shown, for it may be an address: postgresql://USER@HOST/DATABASE)"
    return show(text)
