"""Functions that were tried on public rows in this process, before blocks of private ones."""

from __future__ import annotations

from contextlib import suppress
from types import MethodType
from typing import Any
from weakref import WeakMethod, ref

_TRIED: set[Any] = set()  # of weak references, which leave it with what they refer to


def note_trial(function: Any) -> None:
    """Remember that a function was tried; what cannot be remembered counts as untried."""
    with suppress(Exception):  # its hash and its equality are the caller's
        _TRIED.add(_refer(function))


def was_tried(function: Any) -> bool:
    """Whether a function was tried, on public rows: nothing of private ones is known here."""
    with suppress(Exception):
        return _refer(function) in _TRIED
    return False


def _refer(function: Any) -> Any:
    """Refer to a function; a method of an object is made anew each time it is named."""
    weak = WeakMethod if isinstance(function, MethodType) else ref
    return weak(function, _TRIED.discard)
