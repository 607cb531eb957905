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


class _Watches:
    """How many watches the main thread is in."""

    inside = 0


@contextmanager
def watch_stops() -> Iterator[Callable[[BaseException], bool]]:
    """Give what tells whether an exception is a stop: Ctrl-C, and a signal has come since.

    Signals are heard in the main thread alone: in others nothing is a stop. Within another watch
    the signals of that one count.
    """
    here = threading.current_thread() is threading.main_thread()
    watching: dict[int, _Noting] = {}
    own: dict[int, _Noting] = {}

    def is_stop(raised: BaseException) -> bool:
        return isinstance(raised, KeyboardInterrupt) and any(s.came for s in watching.values())

    _Watches.inside += here
    try:
        for number in _SIGNALS if here else ():
            before: Any = signal.getsignal(number)
            if isinstance(before, _Noting) and _Watches.inside == 1:  # a stop cut its end short
                before = before.before
            if isinstance(before, _Noting):
                watching[number] = before
            elif callable(before):
                watching[number] = own[number] = _Noting(before)
                signal.signal(number, own[number])
        yield is_stop
    finally:
        _Watches.inside -= here
        for each, ours in own.items():
            held: Any = signal.getsignal(each)
            if held is ours:
                signal.signal(each, ours.before)


@contextmanager
def raise_stops() -> Iterator[None]:
    """Raise what fails after a signal came as a stop: drivers turn one into errors of their own."""
    with watch_stops() as is_stop:
        try:
            yield
        except Exception:
            if not is_stop(KeyboardInterrupt()):
                raise
        else:
            return
    raise KeyboardInterrupt from None  # what a driver says may quote a cell
