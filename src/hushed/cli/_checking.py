"""The command ``hushed check-population``."""

from __future__ import annotations

from typing import Annotated

import hushed as hs
from hushed.cli._inputs import find_user
from hushed.cli._open_ledger import open_named
from hushed.cli._options import (
    DataArgument,
    JsonOption,
    OutsideOption,
    PlotOption,
    SeedOption,
    UnitOption,
    UserOption,
    option,
)
from hushed.cli._panels import NOISE
from hushed.cli._private_checks import finish_check, read_public_and_private, tell_check
from hushed.cli._records import Account, Public, take_records
from hushed.fitting._tests import Tests


@take_records
def check_population(
    data: DataArgument,
    public: Public,
    account: Account,
    epsilon: Annotated[float, option("Privacy loss of the check, in nats.", NOISE)],
    tests: Annotated[
        Tests, option("What is tested: columns alone, or pairs of them, too.", NOISE)
    ] = "pairs",
    level: Annotated[float, option("Largest p-value that contradicts.", NOISE)] = 0.05,
    tables: Annotated[int, option("Public tables to compare with.", NOISE)] = 999,
    outside: OutsideOption = "clamp",
    unit: UnitOption = "row",
    user: UserOption = None,
    seed: SeedOption = 0,
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Test privately whether private rows contradict a public population."""
    with finish_check(plot, account, json=json) as result:
        with open_named(account.ledger, account.budget) as charged:
            source, table = read_public_and_private(public, data, user)
            whose = find_user(user, public.frame, table.columns, source)
            found = hs.check_population(
                table.rows,
                source,
                epsilon=epsilon,
                tests=tests,
                level=level,
                tables=tables,
                outside=outside,
                unit=unit,
                user=whose,
                seed=seed,
                **account.charge(charged),
            )
        tell_check(result, found, account, plot, json=json)
