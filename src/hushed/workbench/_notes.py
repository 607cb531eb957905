"""Who asked, and what for, as the one note that an entry of the ledger has."""

from __future__ import annotations

from hushed._printing import flat

_BY, _SEPARATOR = "by ", ": "
_LONGEST_NAME = 100


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
