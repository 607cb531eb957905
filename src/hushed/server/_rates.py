"""How often somebody may knock, in this process and minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field

_MOST_KNOWN = 10_000


@dataclass(slots=True)
class Rates:
    """Times of the last minute for each name; the names that knocked longest ago are forgotten."""

    most: int
    seconds: float = 60.0
    _times: dict[str, deque[float]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self, name: str) -> bool:
        """Count one; False if there were as many as are allowed."""
        moment = time.monotonic()
        with self._lock:
            times = self._times.pop(name, None) or deque()
            self._times[name] = times  # the last one that is forgotten
            while times and times[0] <= moment - self.seconds:
                times.popleft()
            if len(times) >= self.most:
                return False
            times.append(moment)
            if len(self._times) > _MOST_KNOWN:
                self._times.pop(next(iter(self._times)))
            return True
