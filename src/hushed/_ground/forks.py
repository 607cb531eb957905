"""What a forked child does first: of all threads only the one that forked lives on in it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def do_in_forked_children(begin: Callable[[], None]) -> None:
    """Call something first in each child that this process forks, where the system can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=begin)


class ForkSafeLock:
    """A reentrant lock of the whole program; in a child, what another thread held is free."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        do_in_forked_children(self._begin_in_child)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _begin_in_child(self) -> None:
        """Keep what the present thread holds, for it releases that; nobody releases the rest."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()
