"""What databases have in common: lists of tables, tables that are missing, words about views."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from hushed._ground.printing import brief, plain_path, shown
from hushed.errors import MissingExtra, NotFound, ParameterError

_NAMED = 10  # tables named in a message
_NAME_ONE = "name one: hs.table(ADDRESS, 'NAME')"
ALL_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, 2"
)
_CONDITION = (
    "the guarantee holds only if each of its rows comes from rows of its own user alone (without "
    "users: from one row): no window, LIMIT, DISTINCT, aggregate or join with rows of others"
)
SOME_DAY = "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END"
SOME_TIME = (
    "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01 00:00:00' "
    "AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
)


def check_installed() -> None:
    """Refuse where the engines of the extra `tables` are not installed."""
    if any(find_spec(name) is None for name in ("duckdb", "ibis", "pyarrow")):
        raise MissingExtra("a query on a table", "tables")


def require_distinct(names: Iterable[str]) -> list[str]:
    """Refuse two columns of one name."""
    found = list(names)
    if len(set(found)) < len(found):
        raise ParameterError(
            "two columns of the table have the same name, or one in other capitals where the "
            "engine does not tell these apart; rename one"
        )
    return found


def tell_tables(rows: Iterable[tuple[str, str]], usual: str) -> str:
    """Name the tables of a database, for a message about a wrong name."""
    names = [name if place == usual else f"{place}.{name}" for place, name in rows]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    named = ", ".join(map(shown, names[:_NAMED])) + more if names else "none"
    return f"; its tables: {named}"


def missing_table(name: str, listed: str, reason: str = "") -> NotFound:
    """Say that there is no table of this name, and which ones there are."""
    why = f" ({reason})" if reason else ""
    return NotFound(
        f"there is no table {plain_path(name, brief)}{why}{listed}",
        parameter="table",
        hint=_NAME_ONE,
    )


def view_warning(name: str, kind: str = "a view") -> str:
    """Warn of a view, and say what its rows must be like."""
    return f"{shown(name)} is {kind}: {_CONDITION}."


def computed_warning(name: str) -> str:
    """Warn of a table with a column that the database computes when it is read."""
    return (
        f"{shown(name)} has a column that is computed when it is read: where its expression fails "
        "on a value, every query on that column fails, stays charged, and tells that the value is "
        "there. Use expressions that cannot fail, such as TRY_CAST in DuckDB."
    )


def is_operational(error: Exception) -> bool:
    """Whether the engine is not available, by the common words of Python's database drivers."""
    return isinstance(error, OSError | MemoryError) or any(
        each.__name__ in ("OperationalError", "InterfaceError") for each in type(error).mro()
    )
