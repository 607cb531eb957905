"""Warnings stand at the line that called the library."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_LIBRARY = __name__.partition(".")[0]
_BETWEEN = f"{_LIBRARY}._ground.calls"  # what explains a call stands around it


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
    passed = {*through, _BETWEEN}
    while frame.f_back is not None and frame.f_globals.get("__name__") in passed:
        frame, level = frame.f_back, level + 1
    if not _is_ours(frame):
        warnings.warn(message, stacklevel=level)


def warn_outside(message: Warning) -> None:
    """Warn at the first line that is none of the library, however many of its calls lie between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def warn_or_print(message: Warning) -> None:
    """Warn as `warn_outside`; where warnings are made errors it is printed, and nothing is lost."""
    try:
        warn_outside(message)
    except type(message):
        print(message, file=sys.stderr)  # noqa: T201


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == _LIBRARY
