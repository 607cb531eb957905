"""The command ``hushed statistic``."""

from __future__ import annotations

from typing import Annotated

import typer

import hushed as hs
from hushed.cli._asked import ask_of_column
from hushed.cli._delivery import deliver
from hushed.cli._open_ledger import open_named
from hushed.cli._options import DataArgument, HeaderOption, UnitOption
from hushed.cli._private_tables import read_private_column
from hushed.cli._records import Account, Output, take_records
from hushed.cli._statistic_mechanism import Chosen
from hushed.cli._statistic_options import Described, StatisticName, read_statistic
from hushed.cli._written import inputs_of


@take_records
def statistic(
    name: Annotated[
        StatisticName,
        typer.Argument(metavar="STATISTIC", help="Which one."),
    ],
    data: DataArgument,
    described: Described,
    account: Account,
    output: Output,
    chosen: Chosen,
    header: HeaderOption = None,
    unit: UnitOption = "row",
) -> None:
    """Release a median, a quantile, a trimmed mean or a mode: no population is needed."""
    with deliver(inputs_of(data, chosen.public), account, output) as delivery:
        column, public = described.column, chosen.read_population(described, str(data))
        with open_named(account.ledger, account.budget) as charged:
            rows = read_private_column(data, column, header=header, text=described.holds_text)
            asked = read_statistic(name, len(rows), described, unit)
            delivery.released = hs.release(
                asked,
                rows,
                chosen.make(asked, public),
                **account.charge(ask_of_column(charged, column)),
            )
