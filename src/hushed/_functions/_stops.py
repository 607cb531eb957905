"""Whether somebody stopped this process, or code in a row only raised what looks like it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watch_stops() -> Iterator[Callable[[], bool]]:
    """Give what tells whether a signal to stop has come since.

    Signals are heard in the main thread alone: in others none comes.
    """
    came: list[int] = []
    watched = {}
    if threading.current_thread() is threading.main_thread():
        watched = {number: _watch(number, came) for number in _SIGNALS}
    try:
        yield lambda: bool(came)
    finally:
        for number, (before, own) in watched.items():
            if own is not None and signal.getsignal(number) is own:
                signal.signal(number, before)


def _watch(number: int, came: list[int]) -> tuple[Any, Any]:
    """Note a signal on its way: the handler so far, and the one that notes."""
    before = signal.getsignal(number)
    if not callable(before):
        return before, None

    def note(received: int, frame: Any) -> Any:
        came.append(received)
        return before(received, frame)

    signal.signal(number, note)
    return before, note
