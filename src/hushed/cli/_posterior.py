"""The command ``hushed posterior``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import hushed as hs
from hushed.cli import _release_options as files
from hushed.cli._delivery import deliver
from hushed.cli._inputs import read_function
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BudgetOption,
    FrameOption,
    FunctionArgument,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    TextOption,
    UnitOption,
    option,
)
from hushed.cli._panels import NOISE, ROWS
from hushed.cli._private_tables import read_private_table
from hushed.cli._written import inputs_of
from hushed.errors import ParameterError

_MOST = 1_000_000


def posterior(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    function: FunctionArgument,
    epsilon: Annotated[float, option("Privacy loss of the draw, in nats.", NOISE)],
    grid: Annotated[str, option("Candidates LOW:HIGH:COUNT, evenly spaced and public.", NOISE)],
    clip: Annotated[
        float,
        option(
            "How far the log likelihood of a row may lie below that of its best candidate.", NOISE
        ),
    ],
    private_count: Annotated[
        bool,
        option(
            "The number of rows is private, too: neighbours have one row more or less.",
            ROWS,
            "--private-count",
        ),
    ] = False,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    text: TextOption = None,
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
    """Release one draw from a posterior: the function gives the log likelihoods of a row."""
    inputs = inputs_of(data, function)
    with deliver(inputs, ledger, budget, key, out, html, force=force, json=json) as delivery:
        made = hs.Posterior(  # which refuses what it can before any row is read
            read_function(function),
            _read_grid(grid),
            epsilon=epsilon,
            clip=clip,
            neighbours="add-remove" if private_count else "replace-one",
            unit=unit,
        )
        with open_named(ledger, budget) as charged:
            rows = read_private_table(data, frame, header=header, texts=text or ()).rows
            delivery.released = hs.release(
                made.log_likelihood, rows, made, charged, budget=budget, note=remark, key=key
            )


def _read_grid(text: str) -> list[float]:
    """Read candidates that are evenly spaced."""
    try:
        low, high, count = text.split(":")
        ends, number = (float(low), float(high)), int(count)
    except ValueError:
        raise ParameterError(
            f"--grid is LOW:HIGH:COUNT, such as 0.01:0.99:99; got {text!r}"
        ) from None
    if not 2 <= number <= _MOST or not 0 < ends[1] - ends[0] < np.inf:
        raise ParameterError(f"--grid needs LOW below HIGH, and 2 to {_MOST} candidates")
    return [float(each) for each in np.linspace(*ends, number)]
