"""The command ``hushed posterior``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import hushed as hs
from hushed._functions._loading import read_function
from hushed._ground.numerals import read_number, read_whole
from hushed.cli._block_options import UserOption
from hushed.cli._delivery import deliver
from hushed.cli._inputs import read_population
from hushed.cli._open_ledger import open_named
from hushed.cli._options import (
    ColumnsOption,
    DataArgument,
    FunctionArgument,
    PrivateCountOption,
    TextOption,
    UnitOption,
    option,
)
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._private_tables import read_private_table
from hushed.cli._public_cells import MISSING_ALONE
from hushed.cli._records import Account, Container, Output, take_records
from hushed.cli._tables import name_user_column
from hushed.cli._written import inputs_of
from hushed.errors import ParameterError
from hushed.populations import PublicTable

_MOST = 1_000_000
_TRIED = 100  # rows drawn for a trial


@take_records
def posterior(
    data: DataArgument,
    function: FunctionArgument,
    container: Container,
    account: Account,
    output: Output,
    epsilon: Annotated[float, option("Privacy loss of the draw, in nats.", NOISE)],
    grid: Annotated[str, option("Candidates LOW:HIGH:COUNT, evenly spaced and public.", NOISE)],
    clip: Annotated[
        float,
        option(
            "How far the log likelihood of a row may lie below that of its best candidate.", NOISE
        ),
    ],
    private_count: PrivateCountOption = False,
    columns: ColumnsOption = None,
    text: TextOption = None,
    unit: UnitOption = "row",
    user: UserOption = None,
    population: Annotated[
        str | None,
        option(
            "Public rows that the function is tried on before anything is charged: a CSV or "
            "Parquet file like the private one, a distribution, or FILE.py:NAME.",
            ROWS,
        ),
    ] = None,
) -> None:
    """Release one draw from a posterior: the function gives the log likelihoods of a row."""
    with deliver(inputs_of(data, function, population), account, output) as delivery:
        made = hs.Posterior(  # which refuses what it can before any row is read
            read_function(function),
            _read_grid(grid),
            epsilon=epsilon,
            clip=clip,
            neighbours="add-remove" if private_count else "replace-one",
            unit=unit,
            user=user,
            public_rows=_read_public(population, data, container),
        )
        with open_named(account.ledger, account.budget) as charged:
            table = read_private_table(
                data,
                container.frame,
                header=container.header,
                columns=columns,
                texts=text or (),
                user=user,
            )
            made = replace(made, user=name_user_column(user, data, table.rows, table.columns))
            delivery.released = hs.release(
                made.log_likelihood, table.rows, made, **account.charge(charged)
            )


def _read_grid(text: str) -> list[float]:
    """Read candidates that are evenly spaced."""
    try:
        low, high, count = text.split(":")
        ends, number = (
            (read_number(low.strip()), read_number(high.strip())),
            read_whole(count.strip()),
        )
    except ValueError:
        raise ParameterError(
            f"--grid is LOW:HIGH:COUNT, such as 0.01:0.99:99; got {text!r}"
        ) from None
    if not 2 <= number <= _MOST or not 0 < ends[1] - ends[0] < np.inf:
        raise ParameterError(f"--grid needs LOW below HIGH, and 2 to {_MOST} candidates")
    return [float(each) for each in np.linspace(*ends, number)]


def _read_public(spec: str | None, data: Path, container: Container) -> Any:
    """Read public rows for a trial, which are not those of the private file."""
    if spec is None:
        if container.missing is not None:
            raise ParameterError(MISSING_ALONE.format("--population"))
        return None
    source, _ = read_population(
        spec, container.frame, header=container.header, missing=container.missing, private=data
    )
    if isinstance(source, PublicTable):
        return source.frame
    return source.draw(np.random.default_rng(0), _TRIED)
