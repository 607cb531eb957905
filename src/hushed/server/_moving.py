"""Move a server from its file to PostgreSQL: all of its ledger, as it is, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushed.errors import DamagedLedger, ParameterError
from hushed.ledger import Ledger
from hushed.ledger._migrations import close_for_good
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._alone import serving_alone
from hushed.server._audit import add_event, leave_trail, trail_head, verify_trail
from hushed.server._mark import Tally, write_mark
from hushed.server._moved import end_move, keep_next, rewrite
from hushed.server._opening import mark_path, open_own
from hushed.server._people import MACHINE
from hushed.server._schema import fetch_all, has_tables, write_tables

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

# In an order in which each refers to those before it. Of entries, PostgreSQL has an author, too.
_COPIED = {
    "hushed_budgets": "name, body, digest",
    "hushed_heads": "budget, entries, digest",
    "hushed_entries": "budget, number, body, digest",
    "hushed_answers": "budget, number, body, digest",
    "hushed_s_state": "*",
    "hushed_s_people": "*",
    "hushed_s_tokens": "*",
    "hushed_s_datasets": "*",
    "hushed_s_grants": "*",
    "hushed_s_requests": "*",
    "hushed_s_certificates": "*",
    "hushed_s_audit": "*",
}
_AT_ONCE = 1000


def move_server(folder: Path, url: str) -> str:
    """Move the ledger of a server that is stopped; where the old file is.

    The file takes nothing more only when all of it is there and was checked; from that commit on
    the new ledger counts. Whatever is cut off before it is a move that was none; whatever is cut
    off after it is ended by whoever opens the server next. Then the mark is one that the old file
    does not have. It keeps its name: who charges it by hand is told, and makes no new one there.
    """
    if not url.startswith(("postgresql://", "postgresql+psycopg://")):
        raise ParameterError("a server moves to postgresql://USER@HOST/DATABASE")
    settings, old, _ = open_own(folder)
    with old:
        if not old._store.sqlite:
            raise ParameterError("the ledger of this server is on PostgreSQL: use its own tools")
        path = old._store.path
        text = rewrite(folder, settings, url)
        with serving_alone(old), Ledger(url) as new:
            # A command that writes at this moment waits, and then finds that it came too late.
            with writing(old) as source:
                head = _copy(source, new)
                _check(old, new)
                spent = Tally().count(source)
                keep_next(folder, text)
                leave_trail(source)
                close_for_good(source)
            end_move(folder)
            write_mark(mark_path(folder, settings), head, spent)
    return str(path)


def _copy(source: Transaction, new: Ledger) -> tuple[int, str]:
    """Copy all rows in one transaction; number and digest of the event that tells of it."""
    with writing(new) as target:
        there = run(target, "SELECT COUNT(*) FROM @.hushed_budgets", {}).fetchone()[0]
        if there or has_tables(target):
            raise ParameterError(
                "there is a ledger already: give an empty database, or an empty schema in the "
                "address; what an attempt has left that was cut off may be dropped"
            )
        write_tables(target)
        for table, columns in _COPIED.items():
            _copy_table(source, target, table, columns)
        add_event(target, actor=MACHINE, action="moved the server", about="postgresql")
        return trail_head(target)


def _copy_table(source: Transaction, target: Any, table: str, columns: str) -> None:
    rows = fetch_all(source, f"SELECT {columns} FROM @.{table}")  # noqa: S608  (of the list above)
    for first in range(0, len(rows), _AT_ONCE):
        names = list(rows[0])
        values = ", ".join(f":{name}" for name in names)
        statement = f"INSERT INTO @.{table} ({', '.join(names)}) VALUES ({values})"  # noqa: S608
        run(target, statement, rows[first : first + _AT_ONCE])  # type: ignore[arg-type]


def _check(old: Ledger, new: Ledger) -> None:
    """Check chains and balances of what was copied; the settings still name the old ledger."""
    names = [each.name for each in old.budgets()]
    same = names == [each.name for each in new.budgets()]
    for name in names:
        same = same and old.verify(name) == new.verify(name)
    with reading(old) as source, reading(new) as target:
        verify_trail(target)
        for table in _COPIED.keys() - {"hushed_s_audit"}:  # which has one event more
            statement = f"SELECT COUNT(*) FROM @.{table}"  # noqa: S608
            counts = [run(each, statement, {}).fetchone()[0] for each in (source, target)]
            same = same and counts[0] == counts[1]
    if not same:
        raise DamagedLedger(
            "what arrived is not what was sent: the server stays on its file. Drop the new tables, "
            "and look for who else writes there"
        )
