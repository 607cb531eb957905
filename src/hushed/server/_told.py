"""What the keeper of several web processes tells each of them, so that all are the same server."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from hushed.server._config import Settings
from hushed.server._datasets import Dataset
from hushed.server._desk import Desk
from hushed.server._functions import Function

_CHANGED = "it is not as it was when the server was started: stop the server, and start it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Settings, data sets and functions of the server when it was started."""

    settings: Settings
    known: dict[str, str]  # fingerprints of the data sets that can be asked
    functions: dict[str, str]  # digests of the records of those that can be

    @classmethod
    def of(cls, desk: Desk) -> Told:
        """Tell what a desk has."""
        datasets = [each for each in desk.datasets.values() if each.away or not each.stale]
        functions = {
            each.id: each.require_record().digest()
            for each in desk.functions.values()
            if not each.stale
        }
        return cls(
            settings=desk.settings,
            known={each.id: each.known for each in datasets},
            functions=functions,
        )

    def write(self) -> bytes:
        """Write as JSON."""
        told = {"settings": self.settings.model_dump(mode="json"), "known": self.known}
        told["functions"] = self.functions
        return json.dumps(told).encode()

    @classmethod
    def read(cls, text: bytes) -> Told:
        """Read what `write` wrote."""
        found = json.loads(text)
        settings = Settings.model_validate(found.pop("settings"))
        return cls(settings=settings, **found)

    def hold_function(self, found: Function) -> Function:
        """Let nobody ask a function of which the keeper knows nothing."""
        if found.stale or found.record is None:
            return found
        same = self.functions.get(found.id) == found.record.digest()
        return found if same else replace(found, stale=_CHANGED)

    def hold(self, found: Dataset) -> Dataset:
        """Let nobody ask what the keeper, which has the rows read, would not read."""
        same = not found.stale and self.known.get(found.id) == found.known
        return found if same or found.stale else replace(found, stale=_CHANGED)
