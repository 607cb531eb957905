"""Releases under way: each is started once under its request id, whatever is clicked.

The ledger decides. A request id is the key of the charge: the same one again charges nothing, and
gives the stored answer. What is remembered here is only who is waiting, and what was refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hushed._ground.printing import flat
from hushed.errors import HushedError, Overspent
from hushed.ledger import Entry, Ledger

State = Literal["ready", "waiting", "answered", "failed", "refused", "paid"]
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a release stands.

    ``ready``: nothing was charged. ``waiting``: the rows are being read. ``answered``: the answer
    is stored. ``failed``: it failed after the charge, which stays. ``refused``: nothing was charged
    (or perhaps, if the message says so). ``paid``: it was charged, and the workbench was stopped
    before an answer was stored: to read again costs nothing more.
    """

    state: State
    seconds: float = 0.0
    message: str = ""
    entry: Entry | None = None
    overspent: bool = False
    stopping: bool = False


@dataclass(slots=True)
class _Work:
    started: float
    stop: threading.Event = field(default_factory=threading.Event)
    done: bool = False
    message: str = ""
    overspent: bool = False

    def tell_waiting(self) -> Standing:
        """Say how long the rows have been read."""
        seconds = time.monotonic() - self.started
        return Standing(state="waiting", seconds=seconds, stopping=self.stop.is_set())


class Releases:
    """The releases of one server, by budget and request id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: dict[tuple[str, str], _Work] = {}

    def start(
        self, budget: str, request: str, release: Callable[[threading.Event], object]
    ) -> None:
        """Start a release in a thread, unless it is under way; the event that it gets stops it."""
        key = (budget, request)
        with self._lock:
            work = self._works.get(key)
            if work is not None and not work.done:
                return
            work = self._works[key] = _Work(started=time.monotonic())
            for old in [k for k, w in self._works.items() if w.done][: -_REMEMBERED or None]:
                del self._works[old]
        threading.Thread(
            target=_run, args=(work, release), name="hushed release", daemon=True
        ).start()

    def wait_for(self, request: str) -> Standing | None:
        """Say how long the rows have been read for a request; None if they are not being read."""
        found = self._find_running(request)
        return None if found is None else found.tell_waiting()

    def stop(self, request: str) -> None:
        """Stop reading the rows for a request; what was charged stays charged."""
        found = self._find_running(request)
        if found is not None:
            found.stop.set()

    def _find_running(self, request: str) -> _Work | None:
        with self._lock:
            works = [work for (_, key), work in self._works.items() if key == request]
        return next((each for each in works if not each.done), None)

    def look(self, ledger: Ledger, budget: str, request: str) -> Standing:
        """Say where a release stands; the ledger is asked unless the rows are being read."""
        with self._lock:
            work = self._works.get((budget, request))
        if work is not None and not work.done:
            return work.tell_waiting()
        entry = find_entry(ledger, budget, request)
        message = "" if work is None else work.message
        if entry is None:
            state: State = "refused" if message else "ready"
            if work is not None and work.stop.is_set():
                message = f"{message} Nothing was charged."
            over = work is not None and work.overspent
            return Standing(state=state, message=message, overspent=over)
        stored = ledger.answer(budget, entry.number)
        if stored is None:
            return Standing(state="paid", message=message, entry=entry)
        failure = read_failure(stored)
        if failure:
            return Standing(state="failed", message=failure, entry=entry)
        return Standing(state="answered", entry=entry)


def find_entry(ledger: Ledger, budget: str, request: str) -> Entry | None:
    """Find the charge of a request."""
    entries = reversed(ledger.entries(budget))
    return next((each for each in entries if each.key == request), None)


def read_failure(stored: str) -> str:
    """Give what a stored failure says; nothing for an answer."""
    from hushed.ledger._failures import raise_failure  # noqa: PLC0415

    try:
        raise_failure(stored)
    except HushedError as error:
        return error.message
    return ""


def _run(work: _Work, release: Callable[[threading.Event], object]) -> None:
    """Release, and remember what was refused; a text that is not hushed's own may be private."""
    try:
        release(work.stop)
    except KeyboardInterrupt:  # whether it was charged before is for the ledger to say
        work.message = "You stopped the reading."
    except Overspent as error:
        work.message, work.overspent = error.message, True
    except HushedError as error:
        work.message = error.message
    except BaseException as error:
        work.message = flat(f"the release failed ({type(error).__name__})")
    finally:
        work.done = True
