"""Results of trials, in one array that is filled in any order; and those that were kept before."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from hushed._ground.types import Floats
from hushed.engines import Span


class Kept(Protocol):
    """Results that outlive a run, as a journal has them."""

    def spans(self, first: int, stop: int) -> Iterator[tuple[int, Floats, str]]:
        """Give what is kept of these trials: the first one of each piece, results, and its note."""

    def add(self, first: int, values: Floats, note: str = "") -> None:
        """Keep the results of a span that begins with a trial, and what differed where it ran."""


class Results:
    """Results of the trials from one on: each span is told once it is filled in, and kept.

    Parameters
    ----------
    first, trials : int
        Number of the first trial, and how many there are.
    told : callable
        Called with a number of trials that are done.
    kept : Kept or None
        What outlives the run.
    """

    def __init__(
        self, first: int, trials: int, told: Callable[[int], None], kept: Kept | None
    ) -> None:
        self.first, self.trials = first, trials
        self.told, self.kept = told, kept
        self.array: Floats = np.empty(0)
        self.done = 0
        self.notes: Counter[str] = Counter()

    def read_kept(self) -> deque[Span]:
        """Fill in what is kept, and return what is left to run."""
        stop, position = self.first + self.trials, self.first
        gaps: deque[Span] = deque()
        known = []
        pieces = self.kept.spans(self.first, stop) if self.kept is not None else ()
        for start, values, note in pieces:
            begin, end = max(start, self.first), min(start + len(values), stop)
            if begin < end:
                self._write(begin, values[begin - start : end - start])
                known.append((begin, end))
                self._count(end - begin, note)
        for begin, end in sorted(known):
            if begin > position:
                gaps.append((position, begin))
            position = max(position, end)
        if position < stop:
            gaps.append((position, stop))
        found = self.trials - sum(b - a for a, b in gaps)
        if found:
            self.done += found
            self.told(found)
        return gaps

    def fill(self, start: int, values: Floats, note: str = "") -> None:
        """Fill in the results of a span, and keep them; a note says what differed where it ran."""
        self._write(start, values)
        self._count(len(values), note)
        if self.kept is not None:
            self.kept.add(start, values, note)
        self.done += len(values)
        self.told(len(values))

    def are_alike(self, values: object) -> bool:
        """Whether something is like the results that are there; NumPy would fit in nearly all."""
        if not isinstance(values, np.ndarray) or not values.ndim:
            return False
        known = self.array
        return not known.size or (
            values.shape[1:] == known.shape[1:] and values.dtype == known.dtype
        )

    def _count(self, trials: int, note: str) -> None:
        if note:
            self.notes[note] += trials

    def _write(self, start: int, values: Floats) -> None:
        if not self.array.size:
            self.array = np.empty((self.trials, *values.shape[1:]), dtype=values.dtype)
        self.array[start - self.first : start - self.first + len(values)] = values
