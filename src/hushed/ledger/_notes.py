"""The one note that an entry of the ledger has: what for, and who asked."""

from __future__ import annotations

from hushed._ground.printing import flat
from hushed.errors import ParameterError

_BY, _SEPARATOR = "by ", ": "
_LONGEST_NAME = 100
_LONGEST_NOTE = 200


def write_note(actor: str, note: str) -> str:
    """Write who asked before what for; a colon in a name would end it, and becomes a comma."""
    name = flat(actor).strip().replace(":", ",")[:_LONGEST_NAME]
    said = note.replace("\x00", " ").strip()
    return f"{_BY}{name}{_SEPARATOR}{said}" if name else said


def read_note(note: str) -> tuple[str, str]:
    """Read who asked, and what for; the name is empty if none was written."""
    name, separator, said = note.partition(_SEPARATOR)
    if separator and name.startswith(_BY):
        return name.removeprefix(_BY), said
    return "", note


def choose_note(given: object, usual: str) -> str:
    """Take the note of the caller, or the usual one where there is none."""
    if given is None or isinstance(given, str):
        return given or usual
    raise ParameterError(f"note must be a text, got {type(given).__name__}", parameter="note")


def default_note(text: str) -> str:
    """Make a remark for the ledger that fits on a line."""
    plain = flat(text)
    return plain if len(plain) <= _LONGEST_NOTE else plain[: _LONGEST_NOTE - 3] + "..."
