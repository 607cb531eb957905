"""Threads that wait for the same thing: one of them does it for all who wait by then."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from hushed.errors import LedgerUnavailable

_MOST = 100  # of one turn: nobody else can write meanwhile
Work = TypeVar("Work")


class _Place(Generic[Work]):
    """A thread that waits."""

    __slots__ = ("called", "done", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.called = threading.Event()  # its work is done, or its turn has come
        self.done = False


class Line(Generic[Work]):
    """Threads of this process, one behind the other.

    Whoever comes first takes a turn at once, alone. Those who come meanwhile wait, and the first of
    them takes the next turn: for all of them.
    """

    def __init__(self) -> None:
        self._places: deque[_Place[Work]] = deque()  # the first one first
        self._taken = False  # somebody has the turn
        self._lock = threading.Lock()

    def join(self, work: Work, do: Callable[[Sequence[Work]], None], seconds: float) -> None:
        """Have some work done, by this thread or another one, after so long a wait at most.

        What came of it is told to the work itself.
        """
        place = _Place(work)
        with self._lock:
            self._places.append(place)
            waits, self._taken = self._taken, True
        if waits and not place.called.wait(seconds):
            self._leave(place)
        if not place.done:
            self._take_turn(do)

    def _leave(self, place: _Place[Work]) -> None:
        """Give up a place; if its work is under way, wait for that."""
        with self._lock:
            if not place.called.is_set() and place in self._places:
                self._places.remove(place)
                raise LedgerUnavailable(
                    "the ledger cannot be used now (it is locked by another thread of this "
                    "program); try again"
                )
        place.called.wait()

    def _take_turn(self, do: Callable[[Sequence[Work]], None]) -> None:
        """Do what waits, and call whoever is next."""
        with self._lock:
            turn = [self._places.popleft() for _ in range(min(_MOST, len(self._places)))]
        try:
            do([each.work for each in turn])
        finally:
            with self._lock:
                self._taken = bool(self._places)
                if self._taken:
                    self._places[0].called.set()
            for each in turn:
                each.done = True
                each.called.set()
