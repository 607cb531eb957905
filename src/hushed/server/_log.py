"""Structured logs: one JSON object in a line, of names that stand in the source and of ids."""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from hushed.ledger._migrations import now


@dataclass(frozen=True, slots=True)
class Log:
    """Writes lines; no query, header or name goes in, nor the text of an error of a library."""

    stream: TextIO | None = None
    _counts: Counter[tuple[str, ...]] = field(default_factory=Counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, event: str, **told: str | int) -> None:
        """Write one event."""
        line = json.dumps({"at": now(), "event": event, **told})
        kind = tuple(map(str, told.values())) if event == "http" else ()
        with self._lock:
            self._counts[event, *kind] += 1
            with suppress(OSError, ValueError):  # a full disk, a closed pipe: nobody waits for it
                print(line, file=self.stream or sys.stderr, flush=True)

    def read_counts(self) -> dict[tuple[str, ...], int]:
        """Tell how often each event was written; those of HTTP by method, route and status."""
        with self._lock:
            return dict(self._counts)


class _Heard(logging.Handler):
    """Writes that a library said something, and which one: its words may be anybody's."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write the name of who said it."""
        self._log("library", name=record.name[:60], level=record.levelname[:20])


@contextmanager
def hearing_libraries(log: Log) -> Iterator[None]:
    """Have what libraries say in the log, and what ends a thread: else it is plain text beside it.

    Whoever sends what is no HTTP makes Uvicorn say so, as often as it is sent.
    """
    heard, before = _Heard(log), threading.excepthook

    def tell(stopped: threading.ExceptHookArgs) -> None:
        log("thread stopped", error=stopped.exc_type.__name__)

    logging.getLogger().addHandler(heard)
    threading.excepthook = tell
    try:
        yield
    finally:
        threading.excepthook = before
        logging.getLogger().removeHandler(heard)


def end_in_silence() -> None:
    """Let nothing be said any more once the program of this process has ended.

    Libraries list there, line by line, what Python left of their objects: that is no log.
    """
    atexit.register(_close_stream)


def _close_stream() -> None:
    with Path(os.devnull).open("ab") as nothing:
        os.dup2(nothing.fileno(), 2)
