"""The command ``hushed statistic``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

import hushed as hs
from hushed.cli._asked import ask_of_column
from hushed.cli._delivery import deliver
from hushed.cli._ledgers import open_named
from hushed.cli._options import DataArgument, HeaderOption, UnitOption, option
from hushed.cli._panels import NOISE
from hushed.cli._private_tables import read_private_column
from hushed.cli._records import Account, Output, take_records
from hushed.cli._statistic_options import Described, StatisticName, read_statistic
from hushed.cli._written import inputs_of
from hushed.errors import ParameterError
from hushed.statistics import Statistic

MechanismName = Literal["inverse", "smooth"]
LawName = Literal["lomax", "t2"]


@take_records
def statistic(
    name: Annotated[
        StatisticName,
        typer.Argument(
            metavar="STATISTIC", help="Which one; the mean is trimmed-mean with --trim 0."
        ),
    ],
    data: DataArgument,
    described: Described,
    account: Account,
    output: Output,
    epsilon: Annotated[float, option("Privacy loss, in nats.", NOISE)],
    mechanism: Annotated[
        MechanismName,
        option(
            "Draw one of many public values, or add noise in proportion to the smooth sensitivity.",
            NOISE,
        ),
    ] = "inverse",
    noise: Annotated[
        LawName | None, option("Smooth: law of the noise; lomax by default.", NOISE)
    ] = None,
    header: HeaderOption = None,
    unit: UnitOption = "row",
) -> None:
    """Release a median, a quantile, a trimmed mean or a mode: no population is needed."""
    with deliver(inputs_of(data), account, output) as delivery:
        if noise is not None and mechanism != "smooth":
            raise ParameterError("--noise goes with --mechanism smooth")
        column = described.column
        with open_named(account.ledger, account.budget) as charged:
            rows = read_private_column(data, column, header=header, text=described.holds_text)
            asked = read_statistic(name, len(rows), described, unit)
            delivery.released = hs.release(
                asked,
                rows,
                _choose(asked, mechanism, noise or "lomax", epsilon),
                **account.charge(ask_of_column(charged, column)),
            )


def _choose(
    asked: Statistic, mechanism: MechanismName, noise: LawName, epsilon: float
) -> hs.InverseSensitivity | hs.Smooth:
    """Make the mechanism, or say why the statistic has none."""
    if mechanism == "smooth":
        return hs.Smooth(asked, epsilon=epsilon, noise=noise)  # type: ignore[arg-type]
    if not asked.invertible:
        raise ParameterError(
            f"the inverse sensitivity of the {asked.kind} is known for a public number of "
            "rows only: leave --private-count out, or give --mechanism smooth"
        )
    return hs.InverseSensitivity(asked, epsilon=epsilon)
