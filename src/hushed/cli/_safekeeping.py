"""The commands ``hushed ledger verify``, ``backup`` and ``roles``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

import hushed as hs
from hushed.cli._options import JsonOption, LedgerArgument
from hushed.cli._outcome import finish, print_line, print_note
from hushed.cli._written import check_targets, files_of
from hushed.errors import MissingExtra, ParameterError


def verify(
    ledger: LedgerArgument,
    budget: Annotated[
        str | None, typer.Argument(metavar="[BUDGET]", help="One budget; all by default.")
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:DIGEST",
            help="What show or verify printed before, kept where the ledger's users cannot write.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check budgets, entries and answers from end to end, and against what was noted down."""
    with finish(json=json, stopped="stopped; not everything was checked") as result:
        if expect is not None and budget is None:
            raise ParameterError("--expect is for one budget: name it")
        with hs.Ledger(ledger, create=False) as book:
            names = [each.name for each in book.budgets()] if budget is None else [budget]
            heads = {name: book.verify(name, expect) for name in names}
        result.update(heads=heads)
        if not json:
            lines = [f"budget {name!r} is whole; write down: {heads[name]}" for name in names]
            print_line("\n".join(lines) or "no budget was opened yet")


def backup(
    ledger: LedgerArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist.")],
    json: JsonOption = False,
) -> None:
    """Copy an SQLite ledger while it is in use; the only right way to copy one."""
    with finish(json=json, stopped="stopped; the copy may be missing") as result:
        check_targets({"FILE": file}, files_of(ledger), force=True)
        with hs.Ledger(ledger, create=False) as book:
            served = _is_served(book)
            book.backup(file)
        result.update(backup=str(file))
        print_note(
            "this is the ledger of a team server: keep its settings, its key and its mark, too; "
            "hushed serve restore puts the copy back, and with --accept-loss books as spent what "
            "it lacks"
            if served
            else "a backup forgets what is charged later: after restoring it, charge that again"
        )
        if not json:
            print_line(f"copied to {file}")


def _is_served(book: hs.Ledger) -> bool:
    """Whether a ledger has the tables of a team server; without its packages there is none here."""
    from hushed.ledger._together import reading  # noqa: PLC0415

    with suppress(MissingExtra):
        from hushed.server._schema import has_tables  # noqa: PLC0415

        with reading(book) as connection:
            return has_tables(connection)
    return False


def roles(json: JsonOption = False) -> None:
    """Print SQL that lets analysts append to a ledger on PostgreSQL, and no more."""
    from hushed.ledger._postgres import ROLES  # noqa: PLC0415

    with finish(json=json) as result:
        result.update(sql=ROLES)
        if not json:
            print_line(ROLES.rstrip())
