"""Garbage that a call leaves: removed before it ends, for objects may speak when they go."""

from __future__ import annotations

import gc
import sys

_GENERATIONS = 2  # of Python's collector, beside the youngest


def count_collections() -> list[int]:
    """Count how often each generation of objects was searched for garbage."""
    return [each["collections"] for each in gc.get_stats()]


def collect(before: list[int]) -> None:
    """Remove garbage that was made since, for objects may say something when they are removed.

    Later, as an error in a task of asyncio is, it would be heard. What is young enough to have been
    made since is searched, which takes no time as long as nothing was searched meanwhile.
    """
    searched = [now > then for now, then in zip(count_collections(), before, strict=True)]
    oldest = max((place + 1 for place, each in enumerate(searched) if each), default=0)
    gc.collect(min(oldest, _GENERATIONS) if sys.version_info < (3, 14) else _GENERATIONS)
