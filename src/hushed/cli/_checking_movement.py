"""The command ``hushed check-movement``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated

import typer

import hushed as hs
from hushed.cli import _release_options as files
from hushed.cli._inputs import read_bounds, read_function, read_population
from hushed.cli._kept import read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BoundsOption,
    BudgetOption,
    CalibrationOption,
    FrameOption,
    FunctionArgument,
    GammaOption,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    PairsOption,
    PlotOption,
    PopulationOption,
    PromiseOption,
    SeedOption,
    SymmetricOption,
    UnitOption,
    WorkersOption,
    option,
)
from hushed.cli._outcome import BAD_USE, finish, print_line, print_note
from hushed.cli._panels import NOISE, SAMPLING
from hushed.cli._private_tables import read_table_like
from hushed.cli._tables import check_columns
from hushed.cli._written import check_figure
from hushed.errors import ParameterError
from hushed.spaces import Norm


def check_movement(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    function: FunctionArgument,
    population: PopulationOption,
    rows: Annotated[
        int,
        option(
            "Rows in each table that is compared: far fewer than there are private ones.", SAMPLING
        ),
    ],
    epsilon: Annotated[float, option("Privacy loss of the check, in nats.", NOISE)],
    confidence: Annotated[float, option("Of each bound on the share of pairs.", NOISE)] = 0.95,
    gamma: GammaOption = None,
    norm: Annotated[Norm, option("Norm of the movement.", SAMPLING)] = "l1",
    calibration: CalibrationOption = "training-conditional",
    pairs: PairsOption = None,
    promise: PromiseOption = None,
    symmetric: SymmetricOption = False,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    bounds: BoundsOption = None,
    outside: files.Outside = "clamp",
    unit: UnitOption = "row",
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    remark: files.Remark = "",
    key: KeyOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Count privately how often a function moves further than a population lets expect."""
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    stopped = f"stopped; nothing was told{charged_first}"
    with finish(json=json, stopped=stopped, refused=BAD_USE) as result:
        check_figure(plot)
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        with open_named(ledger, budget) as charged:
            source, columns = read_population(
                population,
                frame,
                header=header,
                promise=promise,
                bounds=read_bounds(bounds),
                private=data,
            )
            table = read_table_like(data, source, frame, header=header, columns=columns)
            check_columns(columns, table.columns)
            f = read_function(function)
            sampled = hs.sample_sensitivity(
                f,
                source,
                rows=rows,
                norm=norm,
                gamma=gamma,
                calibration=calibration,
                pairs=pairs,
                symmetric=symmetric,
                unit=unit,
                seed=seed,
                workers=workers,
                progress=True,
            )
            found = hs.check_movement(
                f,
                table.rows,
                sampled,
                epsilon=epsilon,
                confidence=confidence,
                outside=outside,
                seed=seed,
                ledger=charged,
                budget=budget,
                note=remark,
                key=key,
            )
        result.update(loads(found.to_json()), verdict=found.verdict, entry=found.entry)
        result["kept"] = read_again(ledger, budget, key or found.entry)
        result["exit_code"] = int(found.verdict == "contradicted")
        if not json:
            print_line(found.explain())
        if plot is not None:
            from hushed.plots import moved_figure, save_figure  # noqa: PLC0415

            save_figure(moved_figure(found), plot)
            print_note(f"written to {plot}")
