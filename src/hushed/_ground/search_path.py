"""Where names are looked up on PostgreSQL: in its own schema alone, in every transaction.

Of functions and operators with one name, PostgreSQL calls the one that fits the types of a call
best, in whichever schema of the search path it lies, and with the rights of who calls. Whoever may
create functions in such a schema could stand in, also after somebody looked. So nothing is looked
up there: tables and functions of a ledger, and private tables, are named with their schema.
"""

from __future__ import annotations

from typing import Any

_PINNED = "SET LOCAL search_path TO pg_catalog, pg_temp"  # a pooler gives sessions to others
_SCHEMAS = "SELECT pg_catalog.current_schemas(false)"
_HOLDERS = (
    "SELECT n.nspname, pg_get_userbyid(c.relowner) FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
)


def pin_search_path(driver: Any) -> None:
    """Look names up in PostgreSQL's own schema alone, to the end of this transaction."""
    driver.execute(_PINNED)


def find_schemas(driver: Any, table: str) -> tuple[list[str], dict[str, str]]:
    """Schemas in which this login looks, in their order; those with such a table, and its owner.

    Asked in a transaction, whose search path is pinned after it.
    """
    listed = driver.execute(_SCHEMAS).fetchone()[0]
    path = [each for each in listed if not each.startswith("pg_")]  # no schema of a user's
    pin_search_path(driver)
    owners: dict[str, str] = dict(driver.execute(_HOLDERS, [table]).fetchall())
    return path, {each: owners[each] for each in path if each in owners}


def quote_name(name: str) -> str:
    """Name as PostgreSQL reads it letter by letter."""
    return '"' + name.replace('"', '""') + '"'
