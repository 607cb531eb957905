"""The tables of a server, beside those of its ledger.

The SQL is what SQLite and PostgreSQL have in common. Times are texts, ISO 8601 in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from hushed.errors import NewerLedger, NotFound, ParameterError
from hushed.ledger import Ledger
from hushed.ledger._migrations import answers_that_end
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

VERSION = "6"
Made = TypeVar("Made")
# A question may be long, and what stands behind it in a row is found only by reading it: with each
# charge of somebody who had asked five thousand, 300 MB.
INDEXES = (
    "CREATE INDEX hushed_s_own ON @.hushed_s_requests (person, state)",
    "CREATE INDEX hushed_s_unread ON @.hushed_s_requests (person, readable_at, done_at)",
    "CREATE INDEX hushed_s_own_newest ON @.hushed_s_requests (person, asked_at)",
    "CREATE INDEX hushed_s_newest ON @.hushed_s_requests (asked_at)",
    "CREATE INDEX hushed_s_shown ON @.hushed_s_requests (state, readable_at)",
)
TABLES = (
    "CREATE TABLE @.hushed_s_state (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE @.hushed_s_people (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
    "role TEXT NOT NULL, active INTEGER NOT NULL, made TEXT NOT NULL, "
    "kept BIGINT NOT NULL DEFAULT 0)",
    "CREATE TABLE @.hushed_s_tokens (id TEXT PRIMARY KEY, "
    "person TEXT NOT NULL REFERENCES @.hushed_s_people (id), digest TEXT NOT NULL, "
    "scope TEXT NOT NULL, maker TEXT NOT NULL, made TEXT NOT NULL, expires TEXT NOT NULL, "
    "revoked TEXT, last_used TEXT)",
    "CREATE TABLE @.hushed_s_datasets (id TEXT PRIMARY KEY, config_digest TEXT NOT NULL, "
    "budget TEXT NOT NULL, fingerprint TEXT NOT NULL)",
    "CREATE TABLE @.hushed_s_grants (person TEXT NOT NULL REFERENCES @.hushed_s_people (id), "
    "dataset TEXT NOT NULL, number INTEGER NOT NULL, budget TEXT NOT NULL, "
    "reserved INTEGER NOT NULL, made TEXT NOT NULL, ended TEXT, "
    "per_day TEXT, day TEXT, day_spent TEXT, PRIMARY KEY (person, dataset, number))",
    "CREATE TABLE @.hushed_s_requests (id TEXT PRIMARY KEY, "
    "person TEXT NOT NULL REFERENCES @.hushed_s_people (id), dataset TEXT NOT NULL, "
    "key TEXT NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL, "
    "token TEXT NOT NULL, asked_at TEXT NOT NULL, budget TEXT NOT NULL, entry INTEGER, "
    "quota TEXT NOT NULL, quota_entry INTEGER, question TEXT NOT NULL, attempts INTEGER NOT NULL, "
    "charged_at TEXT, done_at TEXT, readable_at TEXT, decided_by TEXT, reason TEXT, "
    "deleted_at TEXT, answer_sha256 TEXT, size BIGINT NOT NULL DEFAULT 0, "
    "UNIQUE (person, key))",
    "CREATE INDEX hushed_s_open ON @.hushed_s_requests (state)",
    *INDEXES,
    "CREATE TABLE @.hushed_s_certificates ("
    "request TEXT PRIMARY KEY REFERENCES @.hushed_s_requests (id), body TEXT NOT NULL)",
    "CREATE TABLE @.hushed_s_audit (number INTEGER PRIMARY KEY, body TEXT NOT NULL, "
    "digest TEXT NOT NULL)",
)
# What makes tables of an earlier version those of this one.
_STEPS = {
    "3": tuple(
        f"ALTER TABLE @.hushed_s_{table} ADD COLUMN {name} TEXT"
        for table, names in (
            ("grants", ("per_day", "day", "day_spent")),
            ("requests", ("deleted_at", "answer_sha256")),
        )
        for name in names
    )
    + INDEXES,
    "4": INDEXES,
    "5": (),
}
BESIDES = 4000  # bytes of a request that are in no text of it: entries, events, indexes
_KEPT = (  # the bytes of each answer, and of all that somebody asked
    "UPDATE @.hushed_s_requests SET size = COALESCE((SELECT SIZE(a.body) FROM @.hushed_answers a "
    "WHERE a.budget = hushed_s_requests.budget AND a.number = hushed_s_requests.entry), 0) + "
    "COALESCE((SELECT SIZE(c.body) FROM @.hushed_s_certificates c "
    "WHERE c.request = hushed_s_requests.id), 0) WHERE state = 'answered'",
    f"UPDATE @.hushed_s_people SET kept = COALESCE((SELECT SUM({BESIDES} + SIZE(r.body) + r.size) "  # noqa: S608
    "FROM @.hushed_s_requests r WHERE r.person = hushed_s_people.id), 0)",
)
_VERSION = "SELECT value FROM @.hushed_s_state WHERE name = 'version'"
_HAS = {
    "sqlite": "SELECT COUNT(*) FROM sqlite_master WHERE name = 'hushed_s_state'",
    "server": "SELECT COUNT(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
    "ON n.oid = c.relnamespace WHERE c.relname = 'hushed_s_state' AND n.nspname = :schema",
}


def has_tables(connection: Transaction) -> bool:
    """Whether the tables of a server are there."""
    schema = getattr(connection, "info", {}).get("hushed_schema")
    values = {} if schema is None else {"schema": schema}
    return bool(run(connection, _HAS["sqlite"], values, _HAS["server"]).fetchone()[0])


def make_tables(ledger: Ledger, claim: Callable[[Transaction], Made]) -> Made:
    """Make the tables of a new server, and claim the ledger for it."""
    with writing(ledger) as connection:
        if has_tables(connection):
            raise ParameterError(
                "this ledger belongs to a server already; make a new one for another server"
            )
        write_tables(connection)
        run(
            connection,
            "INSERT INTO @.hushed_s_state VALUES ('version', :value)",
            {"value": VERSION},
        )
        run(connection, "INSERT INTO @.hushed_s_state VALUES ('audit', '0:')", {})
        return claim(connection)


def write_tables(connection: Transaction) -> None:
    """Make empty tables, in a ledger whose answers a server may delete."""
    for each in TABLES:
        run(connection, each, {})
    _let_answers_end(connection)


def _let_answers_end(connection: Transaction) -> None:
    schema = getattr(connection, "info", {}).get("hushed_schema")
    for each in answers_that_end("sqlite" if schema is None else "postgresql"):
        run(connection, each, {})


def _count_kept(connection: Transaction) -> None:
    for table, name in (("people", "kept"), ("requests", "size")):
        column = f"ALTER TABLE @.hushed_s_{table} ADD COLUMN {name} BIGINT NOT NULL DEFAULT 0"
        run(connection, column, {})
    for each in _KEPT:
        here = re.sub(r"SIZE\(([a-z.]+)\)", r"LENGTH(CAST(\1 AS BLOB))", each)
        run(connection, here, {}, each.replace("SIZE", "OCTET_LENGTH"))


def require_version(connection: Transaction) -> None:
    """Refuse tables that are not there, or that a version has made which this one cannot read."""
    if not has_tables(connection):
        raise NotFound("this ledger belongs to no server: make one with hushed serve init")
    version = run(connection, _VERSION, {}).fetchone()
    if version is None or version[0] not in (VERSION, *_STEPS):
        raise NewerLedger(
            f"the tables of the server are not of version {VERSION}, the one that this version of "
            "hushed knows: use the version that made them, or a newer one; nothing was changed"
        )


def is_older(connection: Transaction) -> bool:
    """Whether the tables are those of an earlier version."""
    return run(connection, _VERSION, {}).fetchone()[0] in _STEPS


def upgrade_tables(ledger: Ledger) -> None:
    """Make tables of an earlier version those of this one, all of them or none."""
    with reading(ledger) as connection:
        if not is_older(connection):
            return
    with writing(ledger) as connection:
        found = run(connection, _VERSION, {}, f"{_VERSION} FOR UPDATE").fetchone()[0]
        if found not in _STEPS:  # another process was faster
            return
        for each in _STEPS[found]:
            run(connection, each, {})
        if found == "3":  # later ones are made so
            _let_answers_end(connection)
        _count_kept(connection)
        statement = "UPDATE @.hushed_s_state SET value = :value WHERE name = 'version'"
        run(connection, statement, {"value": VERSION})


def fetch_all(connection: Transaction, statement: str, **values: Any) -> list[dict[str, Any]]:
    """Fetch rows with the names of their columns."""
    found = run(connection, statement, values)
    described = found.keys() if hasattr(found, "keys") else [each[0] for each in found.description]
    names = list(described)
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def fetch_one(connection: Transaction, statement: str, **values: Any) -> dict[str, Any] | None:
    """Fetch the first row."""
    return next(iter(fetch_all(connection, statement, **values)), None)
