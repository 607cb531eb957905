"""The time that a query may take, and how an engine is stopped when it is over, or by somebody."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread

from hushed._ground.checks import is_real
from hushed._ground.printing import as_given
from hushed.errors import EngineUnavailable, ParameterError

UNPAID = "nothing was charged or read"
_LONGEST = 1e6  # seconds
LOOK = 0.1  # seconds between looks whether somebody stopped it
_AGAIN = 0.02  # seconds between attempts to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time limit of a whole query."""

    limit: float | None = None  # seconds; None for no limit
    ends: float = math.inf  # end of the time, by `time.monotonic`
    # Set by whoever does not wait for the answer any more.
    stop: Event | None = field(default=None, repr=False, compare=False)

    @classmethod
    def start(cls, limit: float | None, stop: Event | None = None) -> Clock:
        """Start the clock."""
        if stop is not None and not isinstance(stop, Event):
            raise ParameterError(
                f"stop must be a threading.Event, got {type(stop).__name__}", parameter="stop"
            )
        if limit is None:
            return cls(stop=stop)
        if not is_real(limit) or not 0 < limit <= _LONGEST:
            raise ParameterError(
                f"timeout must be a number of seconds above 0 and up to {_LONGEST:g}, "
                f"got {as_given(limit)}",
                parameter="timeout",
            )
        return cls(limit=float(limit), ends=time.monotonic() + float(limit), stop=stop)

    @property
    def left(self) -> float:
        """Seconds that are left; 0 after the end."""
        return max(0.0, self.ends - time.monotonic())

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped the query."""
        return self.stop is not None and self.stop.is_set()

    def require_left(self, so_far: str = UNPAID) -> None:
        """Refuse to go on after the end, before a row is read; the refusal tells what was done."""
        self.require_no_stop(so_far)
        if self.left == 0:
            raise EngineUnavailable(f"waiting and planning took all of the {self}; {so_far}")

    def require_no_stop(self, so_far: str = UNPAID) -> None:
        """Refuse to go on with what somebody stopped, before a row is read."""
        if self.stopped:
            raise KeyboardInterrupt(f"stopped; {so_far}")

    def after_wait(self, begun: float) -> Clock:
        """Clock that does not count a wait that began at a time, by `time.monotonic`."""
        return replace(self, ends=self.ends + time.monotonic() - begun)

    def __str__(self) -> str:
        return "no limit" if self.limit is None else f"{self.limit:g} s"


@contextmanager
def stop_after(
    clock: Clock,
    grace: float,
    stop: Callable[[], None],
    *,
    cancel: Callable[[], None] | None = None,
    pause: float = _AGAIN,
) -> Iterator[None]:
    """Stop what is done within when the time and some grace are over, until it has ended.

    Where somebody stops it, it is cancelled at once; by default that is the same. Both are done
    again and again: DuckDB forgets an interrupt that comes just before its query starts.
    """
    if clock.limit is None and clock.stop is None:
        yield
        return
    ended, overdue = Event(), clock.ends + grace

    def look() -> float:
        """Stop what has to be stopped; seconds until the next look."""
        if clock.stopped:
            (cancel or stop)()
            return pause
        left = overdue - time.monotonic()
        if left <= 0:
            stop()
            return _AGAIN
        return left if clock.stop is None else min(left, LOOK)

    def watch() -> None:
        while not ended.wait(look()):
            pass

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:  # it must not stop whoever asks next
        ended.set()
        watching.join()
