"""The time that a query may take, and how an engine is stopped when it is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread

from hushed._checks import is_real
from hushed.errors import EngineUnavailable, ParameterError

UNPAID = "nothing was charged or read"
_LONGEST = 1e6  # seconds
_AGAIN = 0.02  # seconds between attempts to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time limit of a whole query."""

    limit: float | None = None  # seconds; None for no limit
    ends: float = math.inf  # end of the time, by `time.monotonic`

    @classmethod
    def start(cls, limit: float | None) -> Clock:
        """Start the clock."""
        if limit is None:
            return cls()
        if not is_real(limit) or not 0 < limit <= _LONGEST:
            raise ParameterError(
                f"timeout must be a number of seconds above 0 and up to {_LONGEST:g}, "
                f"got {limit!r}",
                parameter="timeout",
            )
        return cls(limit=float(limit), ends=time.monotonic() + float(limit))

    @property
    def left(self) -> float:
        """Seconds that are left; 0 after the end."""
        return max(0.0, self.ends - time.monotonic())

    def require_left(self, so_far: str = UNPAID) -> None:
        """Refuse to go on after the end, before a row is read; the refusal tells what was done."""
        if self.left == 0:
            raise EngineUnavailable(f"waiting and planning took all of the {self}; {so_far}")

    def after_wait(self, begun: float) -> Clock:
        """Clock that does not count a wait that began at a time, by `time.monotonic`."""
        return replace(self, ends=self.ends + time.monotonic() - begun)

    def __str__(self) -> str:
        return "no limit" if self.limit is None else f"{self.limit:g} s"


@contextmanager
def stop_after(clock: Clock, grace: float, stop: Callable[[], None]) -> Iterator[None]:
    """Stop what is done within, when the time and some grace are over, until it has ended.

    Again and again: DuckDB forgets an interrupt that comes just before its query starts.
    """
    if clock.limit is None:
        yield
        return
    ended = Event()

    def watch() -> None:
        wait = clock.left + grace
        while not ended.wait(wait):
            stop()
            wait = _AGAIN

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:  # it must not stop whoever asks next
        ended.set()
        watching.join()
