"""Open what a server has, in a process that serves it or at the machine; no row is read."""

from __future__ import annotations

from pathlib import Path

from hushed.ledger import Ledger
from hushed.ledger._together import reading
from hushed.server._alone import require_own, serving_alone
from hushed.server._audit import was_moved
from hushed.server._config import Settings, ledger_address, read_settings
from hushed.server._keys import read_key
from hushed.server._mark import check_charges, check_mark, read_mark, read_spent
from hushed.server._moved import end_move
from hushed.server._schema import is_older, require_version, upgrade_tables


def mark_path(folder: Path, settings: Settings) -> Path:
    """Give the file of the mark; a path in the settings is from the folder on."""
    return folder / settings.server.mark


def open_own(folder: Path, settings: Settings | None = None) -> tuple[Settings, Ledger, bytes]:
    """Open settings, ledger and key, if the ledger is this server's and was not set back."""
    given, settings = settings, settings or read_settings(folder)
    read_key(folder)  # else nothing is opened
    ledger = Ledger(ledger_address(folder, settings), create=False)
    try:
        if given is None and was_moved(ledger) and end_move(folder):  # the move was cut off
            ledger.close()
            return open_own(folder)
        path = mark_path(folder, settings)
        mark, told = read_mark(path), read_spent(path)
        with reading(ledger) as connection:
            require_version(connection)
            key = require_own(connection, folder)
            check_mark(connection, mark)
            check_charges(connection, told)
            older = is_older(connection)
        if older:  # one of that version, at work, would keep to no limit that it does not know
            with serving_alone(ledger):
                upgrade_tables(ledger)
    except BaseException:
        ledger.close()
        raise
    return settings, ledger, key
