"""The command ``hushed statistic``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import hushed as hs
from hushed.cli import _options as shared
from hushed.cli import _statistic_options as described
from hushed.cli._delivery import deliver
from hushed.cli._ledgers import open_named
from hushed.cli._options import option
from hushed.cli._panels import NOISE
from hushed.cli._private_tables import read_private_column
from hushed.cli._release_options import Force, Html, Out, Remark
from hushed.cli._statistic_options import StatisticName, holds_text, read_statistic
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
    epsilon: Annotated[float, option("Privacy loss, in nats.", NOISE)],
    mechanism: Annotated[
        Literal["inverse", "smooth"],
        option(
            "Draw one of many public values, or add noise in proportion to the smooth sensitivity.",
            NOISE,
        ),
    ] = "inverse",
    noise: Annotated[
        Literal["lomax", "t2"] | None, option("Smooth: law of the noise; lomax by default.", NOISE)
    ] = None,
    low: described.LowOption = None,
    high: described.HighOption = None,
    q: described.QOption = None,
    trim: described.TrimOption = None,
    category: described.CategoryOption = None,
    private_count: described.PrivateRowsOption = False,
    column: described.ColumnOption = None,
    header: shared.HeaderOption = None,
    unit: shared.UnitOption = "row",
    ledger: shared.LedgerOption = None,
    budget: shared.BudgetOption = None,
    remark: Remark = "",
    key: shared.KeyOption = None,
    out: Out = None,
    html: Html = None,
    force: Force = False,
    json: shared.JsonOption = False,
) -> None:
    """Release a median, a quantile, a trimmed mean or a mode: no population is needed."""
    inputs = inputs_of(data)
    with deliver(inputs, ledger, budget, key, out, html, force=force, json=json) as delivery:
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
            if mechanism == "inverse" and not asked.invertible:
                raise ParameterError(
                    f"the inverse sensitivity of the {asked.kind} is known for a public number of "
                    "rows only: leave --private-count out, or give --mechanism smooth"
                )
            made: hs.InverseSensitivity | hs.Smooth
            if mechanism == "inverse":
                made = hs.InverseSensitivity(asked, epsilon=epsilon)
            else:
                made = hs.Smooth(asked, epsilon=epsilon, noise=noise or "lomax")  # type: ignore[arg-type]
            delivery.released = hs.release(
                asked, rows, made, charged, budget=budget, note=remark, key=key
            )
