"""Which trials run next, and how many at once: long spans first, and short ones at the end."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from hushed.engines import Span

SECONDS = (0.2, 30.0)  # least: below, sending costs more than it brings; most
_SLOTS_A_SECOND = 100  # spans that a scheduler is sent in a second, at most
_FORGET = 0.9  # weight of what was measured before, at every span
_OVERDUE = 3  # times as long as is expected: one span waits while another one runs
_AGAIN_SECONDS = 10.0  # until a repetition is repeated: by then a silent worker is known as one


class Spans:
    """Spans of the trials that are left, made when they are asked for.

    Spans begin with ``size`` trials, and double until one takes a fifth of a second. From then on
    each is a share of what is left for every slot, so that all slots end at about the same time.

    Parameters
    ----------
    gaps : iterable of (int, int)
        What is to be run.
    slots : callable
        Counts the places where spans run.
    size : int
        Trials of the first spans.
    seconds : (float, float)
        How long spans may take, least and most; where the least is long, they grow faster.
    repeats : bool
        Whether spans that are overdue are given once more when nothing else is left, so that a
        worker that is slow, or cannot be reached, does not make all others wait. Then the iterator
        may go on after it has stopped.
    clock : callable
        Tells the time, in seconds.
    """

    def __init__(
        self,
        gaps: Iterable[Span],
        slots: Callable[[], int],
        size: int = 1,
        seconds: tuple[float, float] = SECONDS,
        *,
        repeats: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.gaps = deque(gaps)
        self.slots = slots
        self.left = sum(stop - start for start, stop in self.gaps)
        self.out: dict[int, int] = {}
        self.repeats, self.clock = repeats, clock
        self.begun: dict[int, float] = {}
        self.repeated: dict[int, tuple[float, float]] = {}  # when, and how long to wait then
        self.size = size
        self.least, self.most = seconds
        self.growth = 2 if self.least < 1 else 16
        self.grown = False
        self.trials = self.seconds = 0.0
        self.lock = threading.Lock()

    def __iter__(self) -> Spans:
        """Return itself."""
        return self

    def __next__(self) -> Span:
        """Cut the next span off; engines may ask in threads of their own."""
        with self.lock:
            if not self.left:
                return self._choose_overdue()
            span = cut_span(self.gaps, self._choose_size())
            self.left -= span[1] - span[0]
            self.out[span[0]] = span[1]
            self.begun[span[0]] = self.clock()
            return span

    def _choose_overdue(self) -> Span:
        """Choose the first span that is overdue; again when that is, too, but ever more seldom."""
        now = self.clock()
        for start, stop in self.out.items() if self.repeats and self.trials else ():
            expected = (stop - start) * self.seconds / self.trials
            wait = max(_OVERDUE * expected, self.least)
            last, patience = self.repeated.get(start, (self.begun[start], wait))
            if now - last > patience:
                again = 2 * patience if start in self.repeated else max(wait, _AGAIN_SECONDS)
                self.repeated[start] = (now, again)
                return start, stop
        raise StopIteration

    def _choose_size(self) -> int:
        slots = max(1, self.slots())
        share = math.ceil(self.left / (2 * slots))
        if not self.trials:
            return max(1, min(self.size, share))
        rate = self.trials / max(self.seconds, 1e-9)
        most = min(max(slots / _SLOTS_A_SECOND, 1.0, self.least), self.most)
        size = min(max(share, rate * self.least), rate * most)
        return max(1, int(size if self.grown else min(size, self.size, share)))

    def take_back(self, span: Span, seconds: float | None) -> bool:
        """Note that a span is done, and how long it took; False if it was not on its way."""
        with self.lock:
            if self.out.get(span[0]) != span[1]:
                return False
            del self.out[span[0]]
            if seconds is not None:
                count = span[1] - span[0]
                self.trials = _FORGET * self.trials + count
                self.seconds = _FORGET * self.seconds + max(seconds, 1e-9)
                self.grown = self.grown or seconds >= self.least / 2
                self.size = max(self.size, self.growth * count)
            return True

    @property
    def waits_in_vain(self) -> bool:
        """Whether all is done, and only repetitions are on their way."""
        return bool(self.repeated) and not (self.left or self.out)

    def lost(self) -> list[Span]:
        """List what was handed out and never came back, and what was not asked for."""
        with self.lock:
            return sorted([*self.out.items(), *self.gaps])


def cut_span(gaps: deque[Span], size: int) -> Span:
    """Cut a span of at most so many trials off the first gap."""
    start, stop = gaps.popleft()
    if stop - start > size:
        gaps.appendleft((start + size, stop))
        stop = start + size
    return start, stop
