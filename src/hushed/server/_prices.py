"""Prices that were found before: no row and no charge decides one, so it is the same for all."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushed.server._datasets import Dataset
    from hushed.server._judging import AskQuote, Judged

_MOST = 500
_LONGEST = 10_000  # characters of a question that is kept


@dataclass(slots=True)
class Prices:
    """The prices that were asked last. What each has left of a share is not among them."""

    _found: dict[tuple[str, str, str], Judged] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def find(self, dataset: Dataset, asked: AskQuote) -> Judged | None:
        """Find a price of the table as it is known."""
        key = _key(dataset, asked)
        if key is None:
            return None
        with self._lock:
            found = self._found.pop(key, None)
            if found is not None:
                self._found[key] = found  # the last one that is forgotten
            return found

    def keep(self, dataset: Dataset, asked: AskQuote, found: Judged) -> None:
        """Keep a price, unless it is of a table in a database, which may change unseen."""
        key = _key(dataset, asked)
        if key is None:
            return
        with self._lock:
            self._found[key] = found
            if len(self._found) > _MOST:
                self._found.pop(next(iter(self._found)))


def _key(dataset: Dataset, asked: AskQuote) -> tuple[str, str, str] | None:
    told = asked.text if dataset.known else ""
    return (dataset.id, dataset.known, told) if 0 < len(told) <= _LONGEST else None
