"""Drafts: what was typed, written down at each change, so that a killed server loses nothing."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hushed.errors import NotFound, ParameterError

Kind = Literal["table", "function", "audit", "population", "comparison"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS drafts (id TEXT PRIMARY KEY, changed TEXT, body TEXT)",
    "CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, draft TEXT, at TEXT, "
    "kind TEXT, text TEXT)",
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT)",
)


class Result(BaseModel):
    """Where the answer to a draft lies in the ledger, and what it is an answer about."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: str
    number: int
    key: str
    data: str = ""  # name of the data set then; a draft may be about another one now
    source: str = ""
    place: str = "rows"
    header: str | None = None  # how the lines of a CSV file were read
    newlines_in_values: bool = False

    @property
    def entry(self) -> tuple[str, int]:
        """The entry of the ledger."""
        return self.budget, self.number


class Draft(BaseModel):
    """A form as it was typed, and what came of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    id: str
    kind: Kind
    name: str
    fields: dict[str, str] = {}
    made: str
    changed: str
    request: str = ""
    results: tuple[Result, ...] = ()

    def part(self, prefix: str) -> dict[str, str]:
        """Fields of one page, without the prefix that is the page's own."""
        return {
            name.removeprefix(prefix): text
            for name, text in self.fields.items()
            if name.startswith(prefix)
        }


class Event(BaseModel):
    """Something that happened to a draft: a price was asked, an answer was released."""

    model_config = ConfigDict(frozen=True)

    draft: str
    at: str
    kind: str
    text: str


class Drafts:
    """The drafts of a workspace, in one SQLite file; every method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turns: dict[tuple[str, str], int] = {}  # the latest request that wrote a page

    def list(self, kind: Kind | None = None) -> tuple[Draft, ...]:
        """All drafts that can be read, the last changed first."""
        if not self._path.exists():
            return ()
        with self._open(reads=True) as connection:
            rows = connection.execute(
                "SELECT body FROM drafts ORDER BY changed DESC, id"
            ).fetchall()
        found = (_read_draft(body) for (body,) in rows)
        return tuple(each for each in found if each is not None and kind in (None, each.kind))

    def get(self, identity: str) -> Draft:
        """Read one draft."""
        with self._open(reads=True) as connection:
            return _require_draft(connection, identity)

    def create(self, kind: Kind, name: str, fields: Mapping[str, str] | None = None) -> Draft:
        """Begin a draft."""
        at = _now()
        draft = Draft(
            id=uuid.uuid4().hex,
            kind=kind,
            name=name,
            fields=dict(fields or {}),
            made=at,
            changed=at,
            request=f"workbench-{uuid.uuid4().hex}",
        )
        with self._open() as connection:
            _write_draft(connection, draft)
        return draft

    def change(
        self,
        identity: str,
        fields: Mapping[str, str],
        *,
        prefix: str = "",
        name: str | None = None,
        turn: int = 0,
    ) -> Draft:
        """Take what a page's form holds in place of what it held; names come without the prefix.

        Requests are worked on side by side: one that arrived before the last that wrote is late,
        and changes nothing. ``turn`` counts them; 0 is never late.
        """
        try:
            with self._open() as connection:
                draft = _require_draft(connection, identity)
                page = (identity, prefix)
                if 0 < turn < self._turns.get(page, 0):
                    return draft
                self._turns[page] = max(turn, self._turns.get(page, 0))
                changed = _fill_in(draft, fields, prefix, name)
                _write_draft(connection, changed)
        except ParameterError:
            # What is typed into a folder that cannot be written is shown, and lost: every page
            # says so. What has to be written down, such as what is paid for, is refused.
            if not turn or not self.find_problem():
                raise
            return _fill_in(self.get(identity), fields, prefix, name)
        return changed

    def add_result(self, identity: str, result: Result) -> Draft:
        """Note where an answer lies; the same one is noted once."""
        with self._open() as connection:
            draft = _require_draft(connection, identity)
            if any(each.entry == result.entry for each in draft.results):
                return draft
            changed = draft.model_copy(
                update={"results": (*draft.results, result), "changed": _now()}
            )
            _write_draft(connection, changed)
        return changed

    def renew_request(self, identity: str) -> Draft:
        """Give a draft a new request id: its next release is a new question."""
        with self._open() as connection:
            draft = _require_draft(connection, identity)
            changed = draft.model_copy(update={"request": f"workbench-{uuid.uuid4().hex}"})
            _write_draft(connection, changed)
        return changed

    def copy(self, identity: str) -> Draft:
        """Begin a draft with what another holds, but nothing of what came of it."""
        draft = self.get(identity)
        return self.create(draft.kind, f"{draft.name} (copy)", draft.fields)

    def delete(self, identity: str) -> None:
        """Delete a draft; what was released stays, in the ledger."""
        with self._open() as connection:
            _require_draft(connection, identity)
            connection.execute("DELETE FROM drafts WHERE id = ?", (identity,))

    def add_event(self, identity: str, kind: str, text: str) -> None:
        """Note what happened; never with a private value in it."""
        with self._open() as connection:
            connection.execute(
                "INSERT INTO events (draft, at, kind, text) VALUES (?, ?, ?, ?)",
                (identity, _now(), kind, text),
            )

    def events(self, limit: int = 200) -> tuple[Event, ...]:
        """List what happened, the last first."""
        if not self._path.exists():
            return ()
        with self._open(reads=True) as connection:
            rows = connection.execute(
                "SELECT draft, at, kind, text FROM events ORDER BY number DESC LIMIT ?", (limit,)
            ).fetchall()
        return tuple(
            Event(draft=draft, at=at, kind=kind, text=text) for draft, at, kind, text in rows
        )

    def setting(self, name: str, default: str) -> str:
        """Read a setting."""
        if not self._path.exists():
            return default
        with self._open(reads=True) as connection:
            row = connection.execute(
                "SELECT value FROM settings WHERE name = ?", (name,)
            ).fetchone()
        return default if row is None else str(row[0])

    def change_setting(self, name: str, value: str) -> None:
        """Write a setting."""
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def find_problem(self) -> str:
        """Say why nothing can be written down; nothing if it can."""
        place = next(each for each in self._path.parents if each.exists())
        try:
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            return f"{place} cannot be written: {error.strerror}"
        if self._path.exists() and not _is_open_to_us(self._path):
            return f"{self._path} cannot be written"
        return ""

    @contextmanager
    def _open(self, *, reads: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction; the file is for its owner alone."""
        if reads and self._path.exists() and not _is_open_to_us(self._path):
            with self._open_for_reading() as connection:
                yield connection
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(self._path, timeout=30)) as connection:
                for statement in _TABLES:
                    connection.execute(statement)
                if not reads:  # who reads waits for nobody who writes
                    connection.execute("BEGIN IMMEDIATE")
                with connection:
                    yield connection
        except (OSError, sqlite3.Error) as error:
            raise ParameterError(
                f"drafts cannot be written to {self._path}: {error}; what you typed is not saved"
            ) from None

    @contextmanager
    def _open_for_reading(self) -> Iterator[sqlite3.Connection]:
        """Read a file that cannot be written."""
        try:
            address = f"{self._path.as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise ParameterError(f"drafts cannot be read from {self._path}: {error}") from None


def _fill_in(draft: Draft, fields: Mapping[str, str], prefix: str, name: str | None) -> Draft:
    """Put what was typed in place of what a page held."""
    kept = {key: text for key, text in draft.fields.items() if not key.startswith(prefix)}
    typed = {prefix + key: text for key, text in fields.items()}
    changes: dict[str, object] = {"fields": kept | typed, "changed": _now()}
    if name is not None:
        changes["name"] = name
    return draft.model_copy(update=changes)


def _is_open_to_us(path: Path) -> bool:
    """Whether a file may be written."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


def _read_draft(body: str) -> Draft | None:
    try:
        return Draft.model_validate_json(body)
    except ValidationError:
        return None  # of a newer version, or damaged: the others stay usable


def _require_draft(connection: sqlite3.Connection, identity: str) -> Draft:
    row = connection.execute("SELECT body FROM drafts WHERE id = ?", (identity,)).fetchone()
    draft = None if row is None else _read_draft(row[0])
    if draft is None:
        raise NotFound("there is no such draft; the history lists those that there are")
    return draft


def _write_draft(connection: sqlite3.Connection, draft: Draft) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO drafts (id, changed, body) VALUES (?, ?, ?)",
        (draft.id, draft.changed, draft.model_dump_json()),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
