"""The mark: how far the trail had come, kept outside of the ledger, which may be set back.

It is on the disk before the rows of a charge are read, and again before an answer can be seen. So
an older copy of the ledger shows: its trail lacks an event of which an answer may have been seen.
Its second line tells what had been charged to each budget: as much is missing in such a copy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushed._ground.decimals import total_of
from hushed._ground.printing import name_count, plain_path
from hushed.errors import DamagedLedger, LedgerUnavailable, NotFound, ParameterError
from hushed.ledger import _rows as rows
from hushed.ledger._anchors import read_anchor
from hushed.ledger._rows import run
from hushed.server._audit import trail_head
from hushed.server._disk import replace_text

if TYPE_CHECKING:
    from hushed.ledger._rows import Head, Transaction

_LONGEST = 50_000_000  # bytes of the file
_FIRST = 200  # and of its first line


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the charges of a budget promise, added up: all of them together keep no less."""

    entries: int
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def told(self) -> tuple[int, str, str]:
        """What the mark tells: of every budget each time, and so it is written once."""
        return self.entries, str(self.epsilon), str(self.delta)


@dataclass(slots=True)
class Tally:
    """Adds up what was charged. An entry is read once, and a budget looked at if it was charged."""

    _known: dict[str, tuple[Head, Spent]] = field(default_factory=dict, repr=False)
    _seen: tuple[Any, ...] = field(default=(), repr=False)  # how many budgets and entries there are
    _heads: set[tuple[Any, ...]] = field(default_factory=set, repr=False)

    def count(self, connection: Transaction) -> dict[str, Spent]:
        """Add up every budget, as of the moment of a transaction."""
        statement = "SELECT COUNT(*), SUM(entries) FROM @.hushed_heads"
        seen = tuple(run(connection, statement, {}).fetchone())
        if seen != self._seen:  # both only grow
            self._look(connection)
            self._seen = seen
        return {name: spent for name, (_, spent) in self._known.items()}

    def _look(self, connection: Transaction) -> None:
        """Find the budgets that were opened or charged since."""
        statement = (
            "SELECT h.budget, h.entries, h.digest, b.digest FROM @.hushed_heads h "
            "JOIN @.hushed_budgets b ON b.name = h.budget"
        )
        heads = {tuple(each) for each in run(connection, statement, {}).fetchall()}
        for name, entries, digest, link in sorted(heads - self._heads):
            self._count(connection, str(name), (0, str(link)), (int(entries), str(digest)))
        self._heads = heads

    def _count(self, connection: Transaction, name: str, start: Head, end: Head) -> None:
        empty = Spent(entries=0, epsilon=Fraction(0), delta=Fraction(0))
        head, known = self._known.get(name, (start, empty))
        if end != head:
            new = [each.guarantee for each in rows.entries_after(connection, name, head, end)]
            known = Spent(
                entries=end[0],
                epsilon=known.epsilon + total_of(each.epsilon for each in new),
                delta=known.delta + total_of(each.delta for each in new),
            )
        self._known[name] = end, known


def write_mark(path: Path, head: tuple[int, str], spent: Mapping[str, Spent]) -> None:
    """Write ``NUMBER:DIGEST``, and what was charged; on the disk when this returns."""
    told = {name: each.told for name, each in spent.items()}
    try:
        replace_text(path, f"{head[0]}:{head[1]}\n{json.dumps(told)}\n")
    except OSError as error:
        raise LedgerUnavailable(
            f"{plain_path(path)}, the mark of the server, cannot be written ({error.strerror}): no "
            "row is read before it is"
        ) from None


def read_mark(path: Path) -> tuple[int, str]:
    """Read number and digest of the event; the whole file is read by `read_spent` alone."""
    try:
        with path.open(encoding="ascii") as file:
            text = file.readline(_FIRST).strip()
    except (OSError, ValueError):
        raise NotFound(
            f"{plain_path(path)}, the mark of the server, cannot be read: without it nobody sees "
            "whether the ledger was set back. Put it back from where it was moved or kept"
        ) from None
    try:
        return read_anchor(text)
    except ParameterError:
        raise DamagedLedger(
            f"{plain_path(path)}, the mark of the server, holds no NUMBER:DIGEST"
        ) from None


def read_spent(path: Path) -> dict[str, Spent]:
    """Read what had been charged to each budget."""
    try:
        with path.open(encoding="ascii") as file:
            file.readline(_FIRST)
            found = json.loads(file.read(_LONGEST) or "{}")
        return {
            str(name): Spent(entries=int(entries), epsilon=Fraction(epsilon), delta=Fraction(delta))
            for name, (entries, epsilon, delta) in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError, ZeroDivisionError):
        raise DamagedLedger(
            f"{plain_path(path)}, the mark of the server, does not tell what was charged"
        ) from None


def count_missing(connection: Transaction, told: Mapping[str, Spent]) -> int:
    """Count the charges of which the mark tells and that are not there; it is read before.

    A charge by hand is no event of the trail, which has all events in a copy from before it, too.
    """
    rows = run(connection, "SELECT budget, entries FROM @.hushed_heads", {}).fetchall()
    there = {str(name): int(entries) for name, entries in rows}
    return sum(max(0, each.entries - there.get(name, 0)) for name, each in told.items())


def check_charges(connection: Transaction, told: Mapping[str, Spent]) -> None:
    """Refuse a ledger that lacks charges of which the mark tells."""
    missing = count_missing(connection, told)
    if missing:
        raise DamagedLedger(
            f"the mark tells of {name_count(missing, 'charge')} that the ledger does not have: "
            "it was set back to an older copy. Restore the newest copy, or book what is missing "
            "as spent, with hushed serve restore"
        )


def check_mark(connection: Transaction, mark: tuple[int, str]) -> int:
    """Refuse a ledger whose trail does not hold the event of the mark; its number.

    The mark is read before anything else of the transaction. Somebody may move it at any time, and
    a mark that is newer than what a transaction sees would look like a ledger that was set back.
    """
    number, digits = mark
    end = trail_head(connection)[0]
    if end < number:
        raise DamagedLedger(
            f"the trail has {name_count(end, 'event')} and had {number}: the ledger was set "
            "back to an older copy, and what was answered since is not charged in it. Restore "
            "the newest copy, or book what is missing as spent, with hushed serve restore"
        )
    statement = "SELECT digest FROM @.hushed_s_audit WHERE number = :number"
    row = run(connection, statement, {"number": number}).fetchone()
    if number and (row is None or not str(row[0]).startswith(digits)):
        raise DamagedLedger(
            f"event {number} of the trail is not the one of the mark: the ledger was rewritten, or "
            "is another one"
        )
    return number
