"""Change the key that signs certificates: what was signed before is checked by the old one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hushed._ground.printing import plain_path
from hushed.errors import LedgerUnavailable
from hushed.ledger._migrations import now
from hushed.ledger._together import reading
from hushed.server._alone import require_own, serving_alone, set_own
from hushed.server._audit import add_event, telling
from hushed.server._disk import replace_file
from hushed.server._keys import (
    KEY_FILE,
    NEXT,
    find_key,
    list_keys,
    name_key,
    read_key,
    write_former,
)
from hushed.server._opening import open_own
from hushed.server._people import MACHINE
from hushed.statements import make_key


def change_key(folder: Path) -> tuple[str, str]:
    """Make a new key for a server that is stopped; the digests of the old key and the new one.

    Only the commit makes the new key count. Whatever is cut off before it is a change that was
    none; whatever is cut off after it is ended by whoever opens the server next.
    """
    _, ledger, _ = open_own(folder)
    with ledger, serving_alone(ledger):
        with reading(ledger) as connection:  # another command may have changed it meanwhile
            key = require_own(connection, folder)
            old, *former = list_keys(connection, folder, key)
        if read_key(folder) != key:  # else the only copy of it would be written over
            raise LedgerUnavailable(
                f"{plain_path(folder / KEY_FILE)} cannot be replaced, and the change before is not "
                "ended: look at the rights of the folder, and try again"
            )
        made, _ = make_key()
        replace_file(folder / NEXT, made)
        write_former(folder, (*reversed(former), replace(old, valid_until=now())))
        with telling(ledger) as connection:
            set_own(connection, name_key(made))
            add_event(connection, actor=MACHINE, action="changed the key", about=name_key(made))
        find_key(folder, name_key(made))  # which another command may have put in its place
    return old.kid, name_key(made)
