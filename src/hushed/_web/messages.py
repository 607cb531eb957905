"""Messages of the library, as a page shows them."""

from __future__ import annotations

import unicodedata
from typing import Any

from hushed._ground.printing import flat
from hushed.errors import HushedError

_MOST = 2000
_KEPT = "\n\r\t"


class Typed(str):
    """A text that goes back into its field as it was typed, whatever is in it."""

    __slots__ = ()


def spell_controls(value: Any) -> Any:
    """Spell out what steers the direction of writing or a terminal, in all that a page shows.

    A field, and what a template has made already, stay as they are.
    """
    if isinstance(value, Typed) or hasattr(value, "__html__"):
        return value
    text = value if isinstance(value, str) else str(value)  # a path is shown, too
    return text if text.isprintable() else "".join(map(_spell, text))


def _spell(each: str) -> str:
    plain = each.isprintable() or each in _KEPT or unicodedata.category(each) == "Zs"
    return each if plain else ascii(each)[1:-1]


def say_error(error: BaseException) -> str:
    """Message of an error as one line; control characters cleaned, a very long one cut."""
    text = flat(error.message if isinstance(error, HushedError) else str(error)).strip()
    if len(text) > _MOST:
        text = f"{text[:_MOST]}... ({len(text)} characters)"
    return text[:1].upper() + text[1:] if text else type(error).__name__


def shorten(text: str, most: int = 300) -> str:
    """Show what somebody typed: on one line, and not all of a long text."""
    clean = flat(text)
    return clean if len(clean) <= most else f"{clean[:most]}... ({len(text)} characters)"


def say_moment(at: str) -> str:
    """Write a time, ISO 8601 in UTC, as date and minute."""
    return f"{at[:16].replace('T', ' ')} UTC"
