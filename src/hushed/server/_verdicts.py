"""What was judged before: no row, no person and no charge decides it, so it is the same again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushed.server._datasets import Dataset
    from hushed.server._judging import Ask, AskQuote, Judged

_MOST = 500
_LONGEST = 10_000  # characters of a question that is kept
_Key = tuple[str, str, str]


@dataclass(slots=True)
class Verdicts:
    """What the questions, or prices, that were asked last cost; refusals are not among them.

    Only of tables in files, which are looked at each time: whether a database is there, and is as
    it was, is found out by judging. A function is tried each time, too.
    """

    _found: dict[_Key, Judged] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def find(self, dataset: Dataset, asked: Ask | AskQuote) -> Judged | None:
        """Find what was judged of the table as it is known."""
        key = key_of(dataset, asked)
        if key is None:
            return None
        with self._lock:
            found = self._found.pop(key, None)
            if found is not None:
                self._found[key] = found  # the last one that is forgotten
            return found

    def keep(self, dataset: Dataset, asked: Ask | AskQuote, found: Judged) -> None:
        """Keep what was judged."""
        key = key_of(dataset, asked)
        if key is None:
            return
        with self._lock:
            self._found[key] = found
            if len(self._found) > _MOST:
                self._found.pop(next(iter(self._found)))


def key_of(dataset: Dataset, asked: Ask | AskQuote) -> _Key | None:
    """Say under what the verdict on a question is kept; None if it is judged each time."""
    if not dataset.known or len(asked.text) > _LONGEST:
        return None
    return dataset.id, dataset.known, asked.text
