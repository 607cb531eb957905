"""What a question is about, where it is a column of a file: part of what is asked under a key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import hushed as hs
from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile


@dataclass(frozen=True, slots=True)
class AskedOfColumn:
    """A ledger that knows another column for another question."""

    ledger: hs.Ledger
    columns: tuple[str | None, ...]

    def charge(
        self,
        budget: str,
        guarantee: Guarantee,
        note: str = "",
        *,
        loss: PrivacyProfile | None = None,
        key: str | None = None,
        question: str = "",
    ) -> Any:
        """Charge the ledger for a question about these columns."""
        text = json.dumps([question, *self.columns])
        named = hashlib.sha256(text.encode()).hexdigest() if any(self.columns) else question
        return self.ledger.charge(budget, guarantee, note, loss=loss, key=key, question=named)

    def keep_answer(self, *given: Any) -> Any:
        """Store an answer as the ledger does."""
        return self.ledger.keep_answer(*given)

    def answer(self, budget: str, entry: int | str) -> Any:
        """Tell a stored answer as the ledger does."""
        return self.ledger.answer(budget, entry)


def ask_of_column(ledger: hs.Ledger | None, *columns: str | None) -> AskedOfColumn | None:
    """Name the columns among what is asked; without a ledger nothing is."""
    return None if ledger is None else AskedOfColumn(ledger, columns)
