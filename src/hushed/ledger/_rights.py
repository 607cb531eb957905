"""Whether a ledger takes charges at all, asked before anybody relies on it."""

from __future__ import annotations

from hushed.ledger import _rows as rows
from hushed.ledger._advice import LACKS_A_RIGHT, TAKES_NO_CHANGES
from hushed.ledger._store import Store

_ASKED = """SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
has_function_privilege(CAST(:name AS text), 'EXECUTE')"""


def find_write_problem(store: Store) -> str:
    """Say why a ledger on a server takes no charge of this login; nothing if it does.

    A file that cannot be written gives no balance either, so that it needs no word here.
    """
    if store.sqlite:
        return ""
    with store.reading() as connection:
        schema = connection.info.get("hushed_schema")
        name = rows.place("@.hushed_append(text, integer, text, text)", schema)
        ((stands_still, granted),) = rows.run(connection, _ASKED, {"name": name})
    if stands_still:
        return TAKES_NO_CHANGES
    return "" if granted else LACKS_A_RIGHT
