"""JSON that other programs read alike."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hushed._ground.printing import flat
from hushed.errors import DoesNotHold


def load_once(text: str | bytes, what: str) -> Any:
    """Parse JSON that gives no field twice: other readers may take the other one.

    ValueError or RecursionError if it is not JSON.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = ", ".join(sorted(name for name, count in counts.items() if count > 1))
            raise DoesNotHold(f"{what} states {flat(twice)} twice")
        return found

    return json.loads(drop_mark(text), object_pairs_hook=once)


def drop_mark(text: str | bytes) -> str | bytes:
    """Drop the byte-order mark that editors may write; of bytes the parser of JSON does it."""
    return text.removeprefix("\ufeff") if isinstance(text, str) else text
