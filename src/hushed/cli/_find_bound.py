"""The command ``hushed find-bound``."""

from __future__ import annotations

from typing import Annotated

import hushed as hs
from hushed.cli._asked import ask_of_column
from hushed.cli._delivery import deliver
from hushed.cli._open_ledger import open_named
from hushed.cli._options import (
    DataArgument,
    HeaderOption,
    PrivateCountOption,
    UnitOption,
    option,
)
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._private_tables import read_column_of_users, read_private_column
from hushed.cli._records import Account, Output, take_records
from hushed.cli._statistic_options import ColumnOption
from hushed.cli._written import inputs_of
from hushed.mechanisms._bound_search import SMALLEST, Side


@take_records
def find_bound(
    data: DataArgument,
    account: Account,
    output: Output,
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
    private_count: PrivateCountOption = False,
    header: HeaderOption = None,
    unit: UnitOption = "row",
) -> None:
    """Find a bound to clip a column at, where no range is known."""
    with (
        deliver(inputs_of(data), account, output) as delivery,
        open_named(account.ledger, account.budget) as charged,
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
            **account.charge(ask_of_column(charged, column, user)),
        )
