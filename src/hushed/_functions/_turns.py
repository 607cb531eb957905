"""Turns of threads that call one function, which may keep the rows while it works on them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from hushed._ground.forks import do_in_forked_children

_LOCK = threading.RLock()  # reentrant, for signals and for what is removed meanwhile
_TAKEN: dict[int, list[Any]] = {}  # by function: its lock, and how many threads have or want it


def _reset_after_fork() -> None:
    """After a fork other threads are gone, and what they held would stay held."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.RLock()
    _TAKEN.clear()


do_in_forked_children(_reset_after_fork)


class Turn:
    """A call of a function in one thread at a time; other functions do not wait.

    Methods of one object are one function, for what they keep is in the object. So are the
    library's own wrappers of one function, as `hushed.fixed_seed` makes.

    Parameters
    ----------
    function : callable
        The function.
    """

    __slots__ = ("held", "own")

    def __init__(self, function: Callable[..., Any]) -> None:
        held: Any = function
        while type(held) is not FunctionType and (inner := _look_within(held)) is not held:
            held = inner
        self.held = held

    def __enter__(self) -> None:
        with _LOCK:
            found = _TAKEN.get(id(self.held))
            if found is None:
                found = _TAKEN[id(self.held)] = [threading.RLock(), 0]
            found[1] += 1
            self.own = found[0]
        try:
            self.own.acquire()
        except BaseException:  # a stop while it waits
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        self.own.release()
        self._leave()

    def _leave(self) -> None:
        with _LOCK:
            found = _TAKEN.get(id(self.held))
            if found is not None:  # a copy of the process has none
                found[1] -= 1
                if not found[1]:
                    del _TAKEN[id(self.held)]


def _look_within(held: Any) -> Any:
    """Give what a method or a wrapper asks; of all else the thing itself."""
    kind = type(held)
    if kind is MethodType:
        return held.__self__
    if kind is partial:
        return held.func
    ours = str(kind.__module__).startswith("hushed.")
    return held.function if ours and "function" in getattr(kind, "__slots__", ()) else held
