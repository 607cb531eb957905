"""Structured logs: one JSON object in a line, of names that stand in the source and of ids."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass, field
from typing import TextIO

from hushed.ledger._migrations import now


@dataclass(frozen=True, slots=True)
class Log:
    """Writes lines; no query, no header, no name, no text of an exception goes in."""

    stream: TextIO | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, event: str, **told: str | int) -> None:
        """Write one event."""
        line = json.dumps({"at": now(), "event": event, **told})
        with self._lock:
            print(line, file=self.stream or sys.stderr, flush=True)
