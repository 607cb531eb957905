"""Released answers, stored once with their entries; nothing here decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushed.errors import DamagedLedger, NotFound, ParameterError
from hushed.ledger._entries import Entry, digest
from hushed.ledger._postgres import LONGEST_ANSWER
from hushed.ledger._rows import run

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction


def insert_answer(connection: Transaction, entry: Entry, body: str) -> None:
    """Store the answer of an entry, unless one is stored: the first stays."""
    if len(body) > LONGEST_ANSWER:
        raise ParameterError(
            f"an answer in a ledger takes at most {LONGEST_ANSWER:,} characters, and this one has "
            f"{len(body):,}: ask for fewer numbers, or by shorter keys"
        )
    run(
        connection,
        "INSERT INTO @.hushed_answers VALUES (:name, :number, :body, :link) ON CONFLICT DO NOTHING",
        {
            "name": entry.budget,
            "number": entry.number,
            "body": body,
            "link": digest(entry.digest, body),
        },
        "SELECT @.hushed_keep(CAST(:name AS text), CAST(:number AS integer), CAST(:body AS text), "
        "CAST(:link AS text))",
    )


def answer_at(connection: Transaction, name: str, number: int) -> str | None:
    """Answer of an entry."""
    row = _find(connection, name, number)
    if row is None:
        return None
    body, link, before = row
    if digest(before, body) != link and body == "":  # what a server does when its time is over
        raise NotFound(
            f"the answer of entry {number} of budget {name!r} was deleted after the time for which "
            "answers are kept; its digest stays, and so does the charge"
        )
    if digest(before, body) != link:
        raise DamagedLedger(
            f"the answer of entry {number} of budget {name!r} is not what was stored: its digest "
            "does not fit"
        )
    return body


def was_answer(connection: Transaction, name: str, number: int, text: str) -> bool:
    """Whether a text is the answer of an entry, or was: its digest stays when it is deleted."""
    row = _find(connection, name, number)
    return row is not None and digest(row[2], text) == row[1]


def _find(connection: Transaction, name: str, number: int) -> tuple[str, str, str] | None:
    """Find the text of an answer, its digest, and that of its entry."""
    row = run(
        connection,
        "SELECT a.body, a.digest, e.digest FROM @.hushed_answers a JOIN @.hushed_entries e "
        "ON e.budget = a.budget AND e.number = a.number "
        "WHERE a.budget = :name AND a.number = :number",
        {"name": name, "number": number},
        "SELECT body, digest, entry "
        "FROM @.hushed_answer(CAST(:name AS text), CAST(:number AS integer))",
    ).fetchone()
    return None if row is None else (str(row[0]), str(row[1]), str(row[2]))


def empty_answer(connection: Transaction, name: str, number: int) -> str:
    """Delete the text of an answer, and nothing else, where the tables allow it; the text."""
    body = answer_at(connection, name, number)
    if body is None:
        raise DamagedLedger(f"entry {number} of budget {name!r} has no answer")
    values = {"name": name, "number": number}
    statement = "UPDATE @.hushed_answers SET body = '' WHERE budget = :name AND number = :number"
    run(connection, statement, values)
    return body


def list_answered(connection: Transaction, name: str) -> tuple[int, ...]:
    """Numbers of the entries whose answers are stored."""
    statement = "SELECT number FROM @.hushed_answers WHERE budget = :name ORDER BY number"
    seen = "SELECT number FROM @.hushed_answered(CAST(:name AS text))"
    found = run(connection, statement, {"name": name}, seen).fetchall()
    return tuple(int(row[0]) for row in found)
