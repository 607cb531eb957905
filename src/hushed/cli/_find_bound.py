"""The command ``hushed find-bound``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated

import typer

import hushed as hs
from hushed.cli import _release_options as files
from hushed.cli._kept import describe_release, read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BudgetOption,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    UnitOption,
    option,
)
from hushed.cli._outcome import finish, print_line
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._releasing import check_files, write_files
from hushed.cli._statistic_options import ColumnOption
from hushed.cli._tables import read_column_of_users, read_private_column
from hushed.cli._written import files_of, inputs_of
from hushed.errors import ParameterError
from hushed.mechanisms._bound_search import SMALLEST, Side


def find_bound(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    epsilon: Annotated[float, option("Privacy loss of the search, in nats.", NOISE)],
    side: Annotated[
        Side, option("Which end of the range; the low one is below 0.", NOISE)
    ] = "high",
    growth: Annotated[
        float, option("Each candidate is so many times the one before.", NOISE)
    ] = 2.0,
    smallest: Annotated[float, option("First candidate: public, above 0.", NOISE)] = SMALLEST,
    above: Annotated[
        float | None,
        option("About how many rows may lie beyond the bound; by default 3 / epsilon.", NOISE),
    ] = None,
    column: ColumnOption = None,
    user: Annotated[
        str | None,
        option(
            "Column that says whose a row is, by name, or by place from 1: users are counted, and "
            "the promise is for users with any number of rows.",
            ROWS,
        ),
    ] = None,
    private_count: Annotated[
        bool,
        option(
            "The number of rows is private, too: neighbours have one row more or less.",
            ROWS,
            "--private-count",
        ),
    ] = False,
    header: HeaderOption = None,
    unit: UnitOption = "row",
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    remark: files.Remark = "",
    key: KeyOption = None,
    out: files.Out = None,
    html: files.Html = None,
    force: files.Force = False,
    json: JsonOption = False,
) -> None:
    """Find a bound to clip a column at, where no range is known."""
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    with finish(json=json, stopped=f"stopped; nothing was released{charged_first}") as result:
        check_files(out, html, inputs_of(data) + files_of(ledger), force=force)
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        with open_named(ledger, budget) as charged:
            users = None
            if user is None:
                rows = read_private_column(data, column, header=header)
            else:
                rows, users = read_column_of_users(data, column, user, header=header)
            released = hs.find_bound(
                rows,
                epsilon=epsilon,
                growth=growth,
                smallest=smallest,
                above=above,
                side=side,
                users=users,
                neighbours="add-remove" if private_count else "replace-one",
                unit=unit,
                ledger=charged,
                budget=budget,
                note=remark,
                key=key,
            )
        certificate = released.certificate
        result.update(
            value=released.value, entry=released.entry, certificate=loads(certificate.to_json())
        )
        result["kept"] = read_again(ledger, budget, key or released.entry)
        if not json:
            print_line(describe_release(released.value, certificate))
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the bound was released, its files may be missing"):
        write_files(certificate, out, html)
