"""The command ``hushed statistic``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated, Literal

import typer

import hushed as hs
from hushed.cli._kept import describe_release, plain_value, read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BudgetOption,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    UnitOption,
)
from hushed.cli._outcome import finish, print_line
from hushed.cli._panels import NOISE
from hushed.cli._release_options import Force, Html, Out, Remark
from hushed.cli._releasing import check_files, write_files
from hushed.cli._statistic_options import (
    CategoryOption,
    ColumnOption,
    HighOption,
    LowOption,
    PrivateRowsOption,
    QOption,
    StatisticName,
    TrimOption,
    holds_text,
    read_statistic,
)
from hushed.cli._tables import read_private_column
from hushed.cli._written import files_of, inputs_of
from hushed.errors import ParameterError


def statistic(
    name: Annotated[
        StatisticName,
        typer.Argument(
            metavar="STATISTIC", help="Which one; the mean is trimmed-mean with --trim 0."
        ),
    ],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    epsilon: Annotated[float, typer.Option(help="Privacy loss, in nats.", rich_help_panel=NOISE)],
    mechanism: Annotated[
        Literal["inverse", "smooth"],
        typer.Option(
            help="Draw one of many public values, or add noise in proportion to the smooth "
            "sensitivity.",
            rich_help_panel=NOISE,
        ),
    ] = "inverse",
    noise: Annotated[
        Literal["lomax", "t2"] | None,
        typer.Option(help="Smooth: law of the noise; lomax by default.", rich_help_panel=NOISE),
    ] = None,
    low: LowOption = None,
    high: HighOption = None,
    q: QOption = None,
    trim: TrimOption = None,
    category: CategoryOption = None,
    private_count: PrivateRowsOption = False,
    column: ColumnOption = None,
    header: HeaderOption = None,
    unit: UnitOption = "row",
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    remark: Remark = "",
    key: KeyOption = None,
    out: Out = None,
    html: Html = None,
    force: Force = False,
    json: JsonOption = False,
) -> None:
    """Release a median, a quantile, a trimmed mean or a mode: no population is needed."""
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    with finish(json=json, stopped=f"stopped; nothing was released{charged_first}") as result:
        check_files(out, html, inputs_of(data) + files_of(ledger), force=force)
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        if noise is not None and mechanism != "smooth":
            raise ParameterError("--noise goes with --mechanism smooth")
        with open_named(ledger, budget) as charged:
            rows = read_private_column(data, column, header=header, text=holds_text(category))
            asked = read_statistic(
                name,
                None if private_count else len(rows),
                low=low,
                high=high,
                q=q,
                trim=trim,
                category=category,
                unit=unit,
            )
            made: hs.InverseSensitivity | hs.Smooth
            if mechanism == "inverse":
                made = hs.InverseSensitivity(asked, epsilon=epsilon)
            else:
                made = hs.Smooth(asked, epsilon=epsilon, noise=noise or "lomax")  # type: ignore[arg-type]
            released = hs.release(asked, rows, made, charged, budget=budget, note=remark, key=key)
        certificate = released.certificate
        value = plain_value(released.value)
        result.update(value=value, entry=released.entry, certificate=loads(certificate.to_json()))
        result["kept"] = read_again(ledger, budget, key or released.entry)
        if not json:
            print_line(describe_release(value, certificate))
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the answer was released, its files may be missing"):
        write_files(certificate, out, html)
