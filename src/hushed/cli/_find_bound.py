"""The command ``hushed find-bound``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import hushed as hs
from hushed.cli import _options as shared
from hushed.cli import _release_options as files
from hushed.cli._delivery import deliver
from hushed.cli._ledgers import open_named
from hushed.cli._options import option
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._private_tables import read_column_of_users, read_private_column
from hushed.cli._statistic_options import ColumnOption
from hushed.cli._written import inputs_of
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
    header: shared.HeaderOption = None,
    unit: shared.UnitOption = "row",
    ledger: shared.LedgerOption = None,
    budget: shared.BudgetOption = None,
    remark: files.Remark = "",
    key: shared.KeyOption = None,
    out: files.Out = None,
    html: files.Html = None,
    force: files.Force = False,
    json: shared.JsonOption = False,
) -> None:
    """Find a bound to clip a column at, where no range is known."""
    inputs = inputs_of(data)
    with (
        deliver(inputs, ledger, budget, key, out, html, force=force, json=json) as delivery,
        open_named(ledger, budget) as charged,
    ):
        users = None
        if user is None:
            rows = read_private_column(data, column, header=header)
        else:
            rows, users = read_column_of_users(data, column, user, header=header)
        delivery.released = hs.find_bound(
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
