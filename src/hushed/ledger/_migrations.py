"""The tables of a ledger, version by version; each step commits together with its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from hushed.errors import NewerLedger
from hushed.ledger._postgres import FUNCTIONS, PINNED
from hushed.ledger._rows import place, run

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hushed.ledger._rows import Transaction


Dialect = Literal["sqlite", "postgresql"]

# In the header of an SQLite file: "hush" in ASCII.
APPLICATION_ID = int.from_bytes(b"hush", "big")

# Who appended, which the server knows, and keys, of which one does not see those of others.
_OWN = {
    "sqlite": "",
    "postgresql": "author TEXT NOT NULL DEFAULT session_user, "
    "key TEXT GENERATED ALWAYS AS (body::jsonb ->> 'key') STORED, "
    "CONSTRAINT hushed_keys UNIQUE (budget, key), ",
}
MOVED = "this ledger was moved and takes nothing more"
_ONLY_ADDED = ("hushed_migrations", "hushed_budgets", "hushed_entries", "hushed_answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from a version to the next."""

    version: int  # version after the step
    name: str  # what it does
    statements: Callable[[Dialect], Sequence[str]]  # the SQL of the step, for a dialect


def now() -> str:
    """Time as it is written down."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _tables(dialect: Dialect) -> Sequence[str]:
    """Tables, and what guards them: rows are added and never changed."""
    mark = [f"PRAGMA application_id = {APPLICATION_ID}"] if dialect == "sqlite" else []
    return [
        *mark,
        "CREATE TABLE @.hushed_budgets (name TEXT PRIMARY KEY, body TEXT NOT NULL, "
        "digest TEXT NOT NULL)",
        "CREATE TABLE @.hushed_entries (budget TEXT NOT NULL REFERENCES @.hushed_budgets (name), "
        "number INTEGER NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL, "
        f"{_OWN[dialect]}PRIMARY KEY (budget, number))",
        "CREATE TABLE @.hushed_heads (budget TEXT PRIMARY KEY REFERENCES @.hushed_budgets (name), "
        "entries INTEGER NOT NULL, digest TEXT NOT NULL)",
        "CREATE TABLE @.hushed_answers (budget TEXT NOT NULL, number INTEGER NOT NULL, "
        "body TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (budget, number), "
        "FOREIGN KEY (budget, number) REFERENCES @.hushed_entries (budget, number))",
        *_guards(dialect),
    ]


def _guards(dialect: Dialect) -> Sequence[str]:
    """Rows are added and never changed; the head of a chain moves by one."""
    if dialect == "sqlite":
        return _sqlite_guards()
    refuse = (
        f"CREATE FUNCTION @.hushed_refuse() RETURNS trigger LANGUAGE plpgsql {PINNED} "
        "BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$"
    )
    step = (
        f"CREATE FUNCTION @.hushed_step() RETURNS trigger LANGUAGE plpgsql {PINNED} BEGIN "
        "IF NEW.budget <> OLD.budget OR NEW.entries <> OLD.entries + 1 THEN "
        "RAISE EXCEPTION 'the head of a ledger moves by one entry'; END IF; RETURN NEW; END $$"
    )
    rows = [
        f"CREATE TRIGGER hushed_keep BEFORE UPDATE OR DELETE ON @.{table} "
        "FOR EACH ROW EXECUTE FUNCTION @.hushed_refuse()"
        for table in _ONLY_ADDED
    ]
    whole = [
        f"CREATE TRIGGER hushed_whole BEFORE TRUNCATE ON @.{table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION @.hushed_refuse()"
        for table in (*_ONLY_ADDED, "hushed_heads")
    ]
    heads = [
        "CREATE TRIGGER hushed_step BEFORE UPDATE ON @.hushed_heads "
        "FOR EACH ROW EXECUTE FUNCTION @.hushed_step()",
        "CREATE TRIGGER hushed_keep BEFORE DELETE ON @.hushed_heads "
        "FOR EACH ROW EXECUTE FUNCTION @.hushed_refuse()",
    ]
    return [refuse, step, *rows, *whole, *heads, *FUNCTIONS]


_REFUSE = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"


def _sqlite_guards() -> Sequence[str]:
    rows = [
        f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} {_REFUSE}"
        for table in _ONLY_ADDED
        for verb in ("UPDATE", "DELETE")
    ]
    return [
        *rows,
        f"CREATE TRIGGER hushed_heads_delete BEFORE DELETE ON hushed_heads {_REFUSE}",
        "CREATE TRIGGER hushed_heads_step BEFORE UPDATE ON hushed_heads "
        "WHEN NEW.budget <> OLD.budget OR NEW.entries <> OLD.entries + 1 "
        "BEGIN SELECT RAISE(ABORT, 'the head of a ledger moves by one entry'); END",
    ]


def close_for_good(connection: Transaction) -> None:
    """Let a ledger in a file take nothing more, from the commit of this transaction on.

    What holds for every spender is in the file itself: one that waits for the lock is refused, too.
    """
    for table in ("hushed_budgets", "hushed_entries", "hushed_answers"):
        statement = f"CREATE TRIGGER {table}_moved BEFORE INSERT ON {table} "
        run(connection, f"{statement}BEGIN SELECT RAISE(ABORT, '{MOVED}'); END", {})


def answers_that_end(dialect: Dialect) -> Sequence[str]:
    """Let texts of answers be deleted, as a server does after a time; all else stays guarded."""
    kept = "NEW.body <> '' OR NEW.digest <> OLD.digest"
    kept += " OR NEW.budget <> OLD.budget OR NEW.number <> OLD.number"
    if dialect == "sqlite":
        return [
            "DROP TRIGGER hushed_answers_update",
            f"CREATE TRIGGER hushed_answers_update BEFORE UPDATE ON hushed_answers WHEN {kept} "
            f"{_REFUSE}",
        ]
    refuse = "FOR EACH ROW {}EXECUTE FUNCTION @.hushed_refuse()"
    return [
        "DROP TRIGGER hushed_keep ON @.hushed_answers",
        f"CREATE TRIGGER hushed_keep BEFORE DELETE ON @.hushed_answers {refuse.format('')}",
        "CREATE TRIGGER hushed_emptied BEFORE UPDATE ON @.hushed_answers "
        + refuse.format(f"WHEN ({kept}) "),
    ]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(version=1, name="budgets, chains of entries, and their answers", statements=_tables),
)


def read_version(connection: Connection) -> int:
    """Version of the tables in a database; 0 if there are none."""
    from sqlalchemy import inspect  # noqa: PLC0415

    schema = connection.info.get("hushed_schema")
    if not inspect(connection).has_table("hushed_migrations", schema=schema):
        return 0
    return int(_run(connection, "SELECT MAX(version) FROM @.hushed_migrations").scalar() or 0)


def _run(connection: Connection, statement: str) -> Any:
    """Run a statement as it is; psycopg has a use of its own for %."""
    schema = connection.info.get("hushed_schema")
    placed = place(statement, schema)
    return connection.exec_driver_sql(placed if schema is None else placed.replace("%", "%%"))


def migrate(connection: Connection) -> int:
    """Bring the tables to the newest version, inside the transaction that is under way."""
    newest = MIGRATIONS[-1].version
    version = read_version(connection)
    if version > newest:
        raise NewerLedger(
            f"the ledger has version {version}, this version of hushed knows up to {newest}: "
            "update hushed; nothing was changed"
        )
    if version == 0:
        _run(
            connection,
            "CREATE TABLE @.hushed_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
            "applied TEXT NOT NULL)",
        )
    dialect: Dialect = "sqlite" if connection.dialect.name == "sqlite" else "postgresql"
    for step in MIGRATIONS:
        if version < step.version:
            for statement in step.statements(dialect):
                _run(connection, statement)
            row = f"{step.version}, '{step.name}', '{now()}'"
            _run(connection, f"INSERT INTO @.hushed_migrations VALUES ({row})")  # noqa: S608
    return read_version(connection)
