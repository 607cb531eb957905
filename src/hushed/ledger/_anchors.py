"""Anchors: what is kept outside of a ledger, by which a rollback is noticed."""

from __future__ import annotations

import re

from hushed._ground.printing import as_given
from hushed.errors import DamagedLedger, ParameterError

_SHOWN = 32  # digits of a digest


def anchor(head: tuple[int, str]) -> str:
    """Write the end of a chain so that it can be noted down."""
    return f"{head[0]}:{head[1][:_SHOWN]}"


def read_anchor(text: str) -> tuple[int, str]:
    """Read what `anchor` wrote."""
    found = (
        re.fullmatch(r"([0-9]{1,12}):([0-9a-f]{16,64})", text) if isinstance(text, str) else None
    )
    if found is None:
        raise ParameterError(
            f"an anchor is NUMBER:DIGEST with 16 to 64 hexadecimal digits, got {as_given(text)}"
        )
    return int(found[1]), found[2]


def check_anchor(name: str, wanted: tuple[int, str], entries: int, link: str) -> None:
    """Refuse a chain that does not hold what was noted down."""
    number, digits = wanted
    if number > entries:
        raise DamagedLedger(
            f"budget {name!r} had {number} entries and has {entries}: it was set back to an older "
            "copy, or entries were taken off; charge again what was released since"
        )
    if not link.startswith(digits):
        raise DamagedLedger(
            f"entry {number} of budget {name!r} is not the one that was noted down: the ledger was "
            "rewritten, or is another one"
        )
