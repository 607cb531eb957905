"""Budgets, entries and heads as rows of the tables; nothing here decides."""

# ruff: noqa: S608  (every text here is a constant)
from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import as_given
from hushed._ground.search_path import quote_name
from hushed.errors import DamagedLedger, NotFound, ParameterError
from hushed.ledger._entries import Budget, Entry, read_budget, read_entry, write_budget

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import Connection, TextClause

    Transaction = Connection | sqlite3.Connection


Head = tuple[int, str]
_BATCH = 1000
_NAMED = 10  # budgets named in a message
# Functions of the server. Types are named, for another function of the same name may fit better.
_HEAD = "@.hushed_head(CAST(:name AS text))"
_SEEN = "@.hushed_seen(CAST(:name AS text), CAST(:after AS integer), CAST(:most AS integer))"
_APPEND = (
    "SELECT @.hushed_append(CAST(:name AS text), CAST(:number AS integer), CAST(:body AS text), "
    "CAST(:link AS text))"
)


@lru_cache(maxsize=64)
def _text(statement: str, schema: str | None) -> TextClause:
    from sqlalchemy import text  # noqa: PLC0415

    # A colon would begin the name of a value.
    return text(place(statement, schema and schema.replace(":", r"\:")))


@lru_cache(maxsize=64)
def place(statement: str, schema: str | None) -> str:
    """Name tables and functions with their schema, if they have one: @ stands for it."""
    return statement.replace("@.", "" if schema is None else f"{quote_name(schema)}.")


def run(
    connection: Transaction, statement: str, values: dict[str, Any], server: str | None = None
) -> Any:
    """Run a statement on either kind of connection; ``@.`` stands before each table of ours."""
    import sqlite3  # noqa: PLC0415

    if isinstance(connection, sqlite3.Connection):
        return connection.execute(place(statement, None), values)
    schema = connection.info.get("hushed_schema")
    if server is not None and schema is not None:
        statement = server
    return connection.execute(_text(statement, schema), values)


def insert_budget(connection: Transaction, budget: Budget) -> bool:
    """Add a budget and the head of its empty chain, unless one has its name."""
    values = {"name": budget.name, "body": write_budget(budget), "link": budget.digest}
    statement = "INSERT INTO @.hushed_budgets VALUES (:name, :body, :link) ON CONFLICT DO NOTHING"
    if run(connection, statement, values).rowcount != 1:
        return False
    run(
        connection,
        "INSERT INTO @.hushed_heads VALUES (:name, 0, :link)",
        {"name": budget.name, "link": budget.digest},
    )
    return True


def budgets(connection: Transaction) -> tuple[Budget, ...]:
    """All budgets."""
    rows = run(connection, "SELECT name, body, digest FROM @.hushed_budgets ORDER BY name", {})
    return tuple(_check_budget(*row) for row in rows.fetchall())


def budget_named(connection: Transaction, name: str) -> Budget:
    """One budget."""
    if not isinstance(name, str):
        raise ParameterError(
            f"a budget is named by a text, such as 'study', got {as_given(name)}",
            parameter="budget",
        )
    statement = "SELECT name, body, digest FROM @.hushed_budgets WHERE name = :name"
    row = run(connection, statement, {"name": name}).fetchone()
    if row is None:
        raise NotFound(_unknown(connection, name))
    return _check_budget(*row)


def _unknown(connection: Transaction, name: str) -> str:
    """Say which budgets there are, for a name is soon misspelt."""
    found = run(connection, "SELECT name FROM @.hushed_budgets ORDER BY name", {}).fetchall()
    known = ", ".join(repr(row[0]) for row in found[:_NAMED]) or "none"
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = f"there is no budget {as_given(name)} in this ledger"
    return f"{named}, which has {known}{more}: open it first"


def _check_budget(name: str, body: str, link: str) -> Budget:
    budget = read_budget(body, link)
    if budget.name != name:
        raise DamagedLedger(f"the budget found under the name {name!r} has another name")
    return budget


def head_of(connection: Transaction, name: str, *, lock: bool = False) -> Head:
    """End of the chain of a budget."""
    statement = "SELECT entries, digest FROM @.hushed_heads WHERE budget = :name"
    locking = f"SELECT entries, digest FROM {_HEAD}" if lock else None
    row = run(connection, statement, {"name": name}, locking).fetchone()
    if row is None:
        raise NotFound(f"there is no budget {as_given(name)} in this ledger: open it first")
    return int(row[0]), str(row[1])


def hides_words(connection: Transaction) -> bool:
    """Whether others may read an entry without its note, key and question: on a server."""
    import sqlite3  # noqa: PLC0415

    return not isinstance(connection, sqlite3.Connection) and connection.dialect.name != "sqlite"


def append(connection: Transaction, entry: Entry, body: str) -> None:
    """Add an entry and move the head of its chain."""
    values = {
        "name": entry.budget,
        "number": entry.number,
        "body": body,
        "link": entry.digest,
    }
    if hides_words(connection):
        run(connection, _APPEND, values)
        return
    run(connection, "INSERT INTO @.hushed_entries VALUES (:name, :number, :body, :link)", values)
    moved = run(
        connection,
        "UPDATE @.hushed_heads SET entries = :number, digest = :link WHERE budget = :name",
        {"name": entry.budget, "number": entry.number, "link": entry.digest},
    )
    if moved.rowcount != 1:
        raise DamagedLedger(f"the head of budget {entry.budget!r} is gone")
    # Triggers run with each statement and none at the commit: what is there now, stays.
    found = run(
        connection,
        "SELECT h.entries, h.digest, e.digest FROM @.hushed_heads h JOIN @.hushed_entries e "
        "ON e.budget = h.budget AND e.number = h.entries WHERE h.budget = :name",
        {"name": entry.budget},
    ).fetchone()
    if found is None or tuple(found) != (entry.number, entry.digest, entry.digest):
        raise DamagedLedger(
            f"what was added to budget {entry.budget!r} was taken away again at once, by triggers "
            "or views that somebody has put into the file; nothing was charged"
        )


def is_written(connection: Transaction, entry: Entry) -> bool:
    """Whether an entry stands in the ledger."""
    statement = "SELECT digest FROM @.hushed_entries WHERE budget = :name AND number = :number"
    values = {"name": entry.budget, "number": entry.number, "after": entry.number - 1, "most": 1}
    seen = f"SELECT digest FROM {_SEEN}"
    row = run(connection, statement, values, seen).fetchone()
    return row is not None and bool(row[0] == entry.digest)


def entry_at(connection: Transaction, budget: Budget, number: int) -> Entry:
    """One entry, checked against the one before it."""
    before = (number - 1, budget.digest)
    values = {"name": budget.name, "after": number - 2, "last": number, "most": 2}
    found = run(
        connection,
        "SELECT number, body, digest, 1 FROM @.hushed_entries WHERE budget = :name "
        "AND number > :after AND number <= :last ORDER BY number",
        values,
        f"SELECT number, body, digest, mine FROM {_SEEN} WHERE number <= :last",
    ).fetchall()
    if len(found) == 2:
        before = (int(found[0][0]), str(found[0][2]))
    if not found or found[-1][0] != number or before[0] != number - 1:
        raise DamagedLedger(f"entry {number} of budget {budget.name!r} is missing")
    _, body, link, mine = found[-1]
    return read_entry(body, link, before[1] if mine else None, number, budget.name)


def entries_after(connection: Transaction, name: str, start: Head, end: Head) -> Iterator[Entry]:
    """Entries between two heads, each checked against the chain."""
    number, link = start
    statement = (
        "SELECT number, body, digest, 1 FROM @.hushed_entries WHERE budget = :name "
        "AND number > :after ORDER BY number LIMIT :most"
    )
    seen = f"SELECT number, body, digest, mine FROM {_SEEN}"
    while True:
        values = {"name": name, "after": number, "most": _BATCH}
        rows = run(connection, statement, values, seen).fetchall()
        for found, body, own, mine in rows:
            number += 1
            if found != number:
                raise DamagedLedger(f"entry {number} of budget {name!r} is missing")
            entry = read_entry(body, own, link if mine else None, number, name)
            link = own
            yield entry
        if len(rows) < _BATCH:
            break
    if (number, link) != end:
        raise DamagedLedger(
            f"budget {name!r} has {number} entries where its head says {end[0]}, or another last "
            "one: entries were lost or added by hand"
        )
