"""The command ``hushed statistic``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import hushed as hs
from hushed.cli._delivery import deliver
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BudgetOption,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    UnitOption,
)
from hushed.cli._panels import NOISE
from hushed.cli._release_options import Force, Html, Out, Remark
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
from hushed.cli._tables import read_column
from hushed.cli._written import inputs_of
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
    inputs = inputs_of(data)
    with deliver(inputs, ledger, budget, key, out, html, force=force, json=json) as delivery:
        if noise is not None and mechanism != "smooth":
            raise ParameterError("--noise goes with --mechanism smooth")
        with open_named(ledger, budget) as charged:
            rows = read_column(data, column, header=header, text=holds_text(category))
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
            delivery.released = hs.release(
                asked, rows, made, charged, budget=budget, note=remark, key=key
            )
