"""What the keeper of several web processes tells each of them, so that all are the same server."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from hushed.server._config import Settings
from hushed.server._datasets import Dataset
from hushed.server._desk import Desk

_CHANGED = "it is not as it was when the server was started: stop the server, and start it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Settings and data sets of the server when it was started."""

    settings: Settings
    known: dict[str, str]  # fingerprints of the data sets that can be asked

    @classmethod
    def of(cls, desk: Desk) -> Told:
        """Tell what a desk has."""
        known = {each.id: each.known for each in desk.datasets.values() if not each.stale}
        return cls(settings=desk.settings, known=known)

    def write(self) -> bytes:
        """Write as JSON."""
        told = {"settings": self.settings.model_dump(mode="json"), "known": self.known}
        return json.dumps(told).encode()

    @classmethod
    def read(cls, text: bytes) -> Told:
        """Read what `write` wrote."""
        found = json.loads(text)
        return cls(settings=Settings.model_validate(found["settings"]), known=found["known"])

    def hold(self, found: Dataset) -> Dataset:
        """Let nobody ask what the keeper, which has the rows read, would not read."""
        same = not found.stale and self.known.get(found.id) == found.known
        return found if same or found.stale else replace(found, stale=_CHANGED)
