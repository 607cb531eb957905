"""Functions that were tried on public rows in this process, before blocks of private ones."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

_TRIED: WeakSet[Any] = WeakSet()


def note_trial(function: Any) -> None:
    """Remember that a function was tried; what cannot be remembered counts as untried."""
    with suppress(TypeError):
        _TRIED.add(function)


def was_tried(function: Any) -> bool:
    """Whether a function was tried, on public rows: nothing of private ones is known here."""
    with suppress(TypeError):
        return function in _TRIED
    return False
