"""The command ``hushed check-movement``."""

from __future__ import annotations

from typing import Annotated

import hushed as hs
from hushed._functions._loading import read_function
from hushed.cli._open_ledger import open_named
from hushed.cli._options import (
    DataArgument,
    FunctionArgument,
    JsonOption,
    OutsideOption,
    PlotOption,
    UnitOption,
    option,
)
from hushed.cli._panels import NOISE, SAMPLING
from hushed.cli._private_checks import finish_check, read_public_and_private, tell_check
from hushed.cli._records import Account, Pairs, Source, take_records
from hushed.spaces import Norm


@take_records
def check_movement(
    data: DataArgument,
    function: FunctionArgument,
    public: Source,
    pairs: Pairs,
    account: Account,
    rows: Annotated[
        int,
        option(
            "Rows in each table that is compared: far fewer than there are private ones.", SAMPLING
        ),
    ],
    epsilon: Annotated[float, option("Privacy loss of the check, in nats.", NOISE)],
    confidence: Annotated[float, option("Of each bound on the share of pairs.", NOISE)] = 0.95,
    norm: Annotated[Norm, option("Norm of the movement.", SAMPLING)] = "l1",
    outside: OutsideOption = "clamp",
    unit: UnitOption = "row",
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Count privately how often a function moves further than a population lets expect."""
    with finish_check(plot, account, json=json) as result:
        with open_named(account.ledger, account.budget) as charged:
            source, table = read_public_and_private(public, data)
            f = read_function(function)
            sampled = pairs.sample(f, source, rows=rows, norm=norm, unit=unit)
            found = hs.check_movement(
                f,
                table.rows,
                sampled,
                epsilon=epsilon,
                confidence=confidence,
                outside=outside,
                seed=pairs.seed,
                **account.charge(charged),
            )
        tell_check(result, found, account, plot, json=json)
