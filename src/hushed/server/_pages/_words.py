"""What pages say of a request: its question in words, its price, where it stands."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final

from hushed._ground.printing import format_up
from hushed.server._problems import Problem
from hushed.server._requests import State
from hushed.tables._distances import DISTANCES

STATES: Final[Mapping[State, str]] = {
    "pending": "waits for approval",
    "charged": "charged, no answer yet",
    "answered": "answered",
    "failed": "failed; the charge stays",
    "declined": "declined",
    "cancelled": "taken back",
    "expired": "waited too long",
}


def read_key(fields: Mapping[str, str]) -> str:
    """Read the key that a page has made for what it pays."""
    try:
        return str(uuid.UUID(fields.get("key", "")))
    except ValueError:
        raise Problem("no_key") from None


def split_words(words: str) -> tuple[list[str], list[str]]:
    """Split what the library says of a price: the errors, and how the noise follows."""
    lines = words.split("\n")[1:]  # the first one is the price
    cut = next((i for i, each in enumerate(lines) if each.startswith(DISTANCES)), len(lines))
    return lines[:cut], lines[cut:]


def say_delta(epsilon: float, delta: float) -> str:
    """Say a price; rounded up."""
    return f"epsilon {format_up(epsilon, 4)}" + (f", delta {format_up(delta, 3)}" if delta else "")
