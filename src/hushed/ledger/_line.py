"""Threads that wait for the same thing: one of them does it for all who wait by then."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
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
        self._turn: _Place[Work] | None = None  # whose turn it is; nobody waits if there is none
        self._lock = threading.Lock()

    def join(self, work: Work, do: Callable[[Sequence[Work]], None], seconds: float) -> None:
        """Have some work done, by this thread or another one, after so long a wait at most.

        What came of it is told to the work itself.
        """
        place = _Place(work)
        try:
            with self._lock:
                self._places.append(place)
                self._turn = self._turn or place
            if self._turn is not place and not place.called.wait(seconds):
                self._leave(place)
            if not place.done:
                self._take_turn(do)
        finally:
            self._go_on(place)

    def _leave(self, place: _Place[Work]) -> None:
        """Give up a place; if its work is under way, wait for that."""
        with self._lock:
            if self._turn is not place and place in self._places:
                raise LedgerUnavailable(
                    "the ledger cannot be used now (it is locked by another thread of this "
                    "program); try again"
                )
        place.called.wait()

    def _take_turn(self, do: Callable[[Sequence[Work]], None]) -> None:
        """Do what waits, one's own work among it."""
        turn: list[_Place[Work]] = []
        try:
            with self._lock:  # a thread may be stopped anywhere: what it leaves here is done
                turn += islice(self._places, _MOST)
                for _ in turn:
                    self._places.popleft()
            do([each.work for each in turn if not each.done])
        finally:
            for each in turn:
                each.done = True
                each.called.set()

    def _go_on(self, place: _Place[Work]) -> None:
        """Leave the line, also if this thread is stopped, and call whoever is next."""
        with self._lock:
            if place in self._places:
                self._places.remove(place)
            if self._turn is place:
                self._turn = self._places[0] if self._places else None
                if self._turn is not None:
                    self._turn.called.set()
