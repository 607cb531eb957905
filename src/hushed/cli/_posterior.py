"""The command ``hushed posterior``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import hushed as hs
from hushed.cli import _release_options as files
from hushed.cli._inputs import read_function
from hushed.cli._kept import describe_release, plain_value, read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BudgetOption,
    FrameOption,
    FunctionArgument,
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
from hushed.cli._tables import read_table
from hushed.cli._written import files_of, inputs_of
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
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    with finish(json=json, stopped=f"stopped; nothing was released{charged_first}") as result:
        check_files(out, html, inputs_of(data, function) + files_of(ledger), force=force)
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        made = hs.Posterior(  # which refuses what it can before any row is read
            read_function(function),
            _read_grid(grid),
            epsilon=epsilon,
            clip=clip,
            neighbours="add-remove" if private_count else "replace-one",
            unit=unit,
        )
        with open_named(ledger, budget) as charged:
            rows = read_table(data, frame, header=header).rows
            released = hs.release(
                made.log_likelihood, rows, made, charged, budget=budget, note=remark, key=key
            )
        certificate = released.certificate
        value = plain_value(released.value)
        result.update(value=value, entry=released.entry, certificate=loads(certificate.to_json()))
        result["kept"] = read_again(ledger, budget, key or released.entry)
        if not json:
            print_line(describe_release(value, certificate))
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the draw was released, its files may be missing"):
        write_files(certificate, out, html)


def _read_grid(text: str) -> list[float]:
    """Read candidates that are evenly spaced."""
    try:
        low, high, count = text.split(":")
        ends, number = (float(low), float(high)), int(count)
    except ValueError:
        raise ParameterError(
            f"--grid is LOW:HIGH:COUNT, such as 0.01:0.99:99; got {text!r}"
        ) from None
    if not 2 <= number <= _MOST or not -np.inf < ends[0] < ends[1] < np.inf:
        raise ParameterError(f"--grid needs LOW below HIGH, and 2 to {_MOST} candidates")
    return [float(each) for each in np.linspace(*ends, number)]
