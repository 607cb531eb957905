"""The settings of a server whose ledger was moved: they name the new one from that moment on."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from hushed._ground.printing import plain_path
from hushed.errors import HushedError, NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.server._audit import was_moved
from hushed.server._config import FILE, Settings, parse_settings, read_settings
from hushed.server._disk import replace_text

_NEXT = f"{FILE}.next"  # the settings that are about to count
BY_ITS_TOOLS = (
    "A ledger on PostgreSQL is restored by its own tools; then run hushed serve restore without a "
    "file"
)
_LEDGER = re.compile(r"^\[ledger\][ \t]*(#.*)?$", re.MULTILINE)
_URL = re.compile(r"^url[ \t]*=.*$", re.MULTILINE)


def keep_next(folder: Path, text: str) -> None:
    """Write the settings that count once the ledger was moved; on the disk when this returns."""
    try:
        replace_text(folder / _NEXT, text)
    except OSError as error:
        raise NotFound(
            f"{plain_path(folder / _NEXT)} cannot be written ({error.strerror}): the server stays "
            "on its file. Drop the new tables before another try"
        ) from None


def end_move(folder: Path) -> bool:
    """Let the settings name the ledger that counts now; False if nothing tells which one it is.

    What was changed in them meanwhile stays.
    """
    try:
        made = parse_settings((folder / _NEXT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    try:
        text = rewrite(folder, read_settings(folder), made.ledger.url)
        replace_text(folder / FILE, text)
        (folder / _NEXT).unlink(missing_ok=True)  # another command may be faster
    except OSError as error:
        raise NotFound(
            f"{plain_path(folder / FILE)} cannot be written ({error.strerror}), and the ledger is "
            "on PostgreSQL by now: look at the rights of the folder, and run hushed serve check, "
            "which names it there"
        ) from None
    return True


def require_unmoved(folder: Path, address: str) -> None:
    """Refuse to put a copy in the place of a file that was moved: both would take charges.

    The settings name the new ledger then. A file that is lost does not tell whether it was moved.
    """
    try:
        with Ledger(address, create=False) as ledger:
            moved = was_moved(ledger)
    except HushedError:
        if (folder / _NEXT).exists():
            raise ParameterError(
                "a move of this server to PostgreSQL was begun, and the file of its ledger, which "
                f"tells whether it was ended, cannot be read. {_NEXT} names the new ledger: if it "
                f"has the charges of this server, name it in {FILE}, and restore it by the tools "
                f"of PostgreSQL; if not, remove {_NEXT}. Then give the command again"
            ) from None
        return
    if moved:
        named = "the settings name it now" if end_move(folder) else "name it in the settings"
        raise ParameterError(
            f"this ledger was moved to PostgreSQL, and that one counts: {named}. {BY_ITS_TOOLS}"
        )


def rewrite(folder: Path, settings: Settings, url: str) -> str:
    """Name the new ledger in the text of the settings; all else stays as it is, remarks too."""
    import tomli_w  # noqa: PLC0415

    text = (folder / FILE).read_text(encoding="utf-8-sig")
    line = tomli_w.dumps({"url": url}).strip()
    begin = _LEDGER.search(text)
    if begin is None:
        changed = f"{text.rstrip()}\n\n[ledger]\n{line}\n"
    else:
        end = text.find("\n[", begin.end())
        section = text[begin.end() : None if end < 0 else end]
        named = _URL.sub(lambda _: line, section, count=1)
        named = named if _URL.search(section) else f"\n{line}{section}"
        changed = text[: begin.end()] + named + ("" if end < 0 else text[end:])
    wanted = settings.model_copy(update={"ledger": settings.ledger.model_copy(update={"url": url})})
    with suppress(ValueError):
        if parse_settings(changed) == wanted:
            return changed
    raise ParameterError(f"{FILE} names the ledger in a way that is not changed here: use [ledger]")
