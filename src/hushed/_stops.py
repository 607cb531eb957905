"""Whether somebody stopped this process, or code in a row only raised what looks like it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Noting:
    """A handler of signals that notes that one came, and then does what the one before it did.

    Parameters
    ----------
    before : callable
        The handler so far.
    """

    __slots__ = ("before", "came")

    def __init__(self, before: Callable[[int, Any], Any]) -> None:
        self.before, self.came = before, False

    def __call__(self, number: int, frame: Any) -> Any:
        self.came = True
        return self.before(number, frame)


@contextmanager
def watch_stops() -> Iterator[Callable[[BaseException], bool]]:
    """Give what tells whether an exception is a stop: Ctrl-C, and a signal has come since.

    Signals are heard in the main thread alone: in others nothing is a stop. Within another watch
    the signals of that one count.
    """
    own: dict[int, _Noting] = {}
    watching: list[_Noting] = []
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if callable(before) and not isinstance(before, _Noting):
                before = own[number] = _Noting(before)
                signal.signal(number, before)
            if isinstance(before, _Noting):
                watching.append(before)

    def is_stop(raised: BaseException) -> bool:
        return isinstance(raised, KeyboardInterrupt) and any(each.came for each in watching)

    try:
        yield is_stop
    finally:
        for each, ours in own.items():
            if signal.getsignal(each) is ours:
                signal.signal(each, ours.before)
