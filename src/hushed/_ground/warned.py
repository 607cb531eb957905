"""Warnings stand at the line that called the library."""

from __future__ import annotations

import sys
import warnings

_LIBRARY = __name__.partition(".")[0]


def warn_caller(message: Warning, *through: str) -> None:
    """Warn at the line that called a function of the library.

    Parameters
    ----------
    message : Warning
        What to say. The filters of Python show equal words of one line once, so that numbers which
        differ from call to call do not belong into it.
    *through : str
        Modules that the call came through. Where another one of the library called, nothing is
        said: it does so itself, in its own words.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__") in through:
        frame, level = frame.f_back, level + 1
    if str(frame.f_globals.get("__name__")).partition(".")[0] != _LIBRARY:
        warnings.warn(message, stacklevel=level)
