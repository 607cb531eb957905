"""The command ``hushed check-population``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated

import typer

import hushed as hs
from hushed.cli import _release_options as files
from hushed.cli._inputs import read_bounds, read_population
from hushed.cli._kept import read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import (
    BoundsOption,
    BudgetOption,
    FrameOption,
    HeaderOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    PlotOption,
    PopulationOption,
    SeedOption,
    UnitOption,
    option,
)
from hushed.cli._outcome import BAD_USE, finish, print_line, print_note
from hushed.cli._panels import NOISE
from hushed.cli._private_tables import read_table_like
from hushed.cli._tables import check_columns
from hushed.cli._written import check_figure
from hushed.errors import ParameterError
from hushed.fitting._tests import Tests


def check_population(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")],
    population: PopulationOption,
    epsilon: Annotated[float, option("Privacy loss of the check, in nats.", NOISE)],
    tests: Annotated[
        Tests, option("What is tested: columns alone, or pairs of them, too.", NOISE)
    ] = "pairs",
    level: Annotated[float, option("Largest p-value that contradicts.", NOISE)] = 0.05,
    tables: Annotated[int, option("Public tables to compare with.", NOISE)] = 999,
    frame: FrameOption = "numpy",
    header: HeaderOption = None,
    bounds: BoundsOption = None,
    outside: files.Outside = "clamp",
    unit: UnitOption = "row",
    seed: SeedOption = 0,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    remark: files.Remark = "",
    key: KeyOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Test privately whether private rows contradict a public population."""
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    stopped = f"stopped; nothing was told{charged_first}"
    with finish(json=json, stopped=stopped, refused=BAD_USE) as result:
        check_figure(plot)
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        with open_named(ledger, budget) as charged:
            source, columns = read_population(
                population, frame, header=header, bounds=read_bounds(bounds), private=data
            )
            table = read_table_like(data, source, frame, header=header, columns=columns)
            check_columns(columns, table.columns)
            found = hs.check_population(
                table.rows,
                source,
                epsilon=epsilon,
                tests=tests,
                level=level,
                tables=tables,
                outside=outside,
                unit=unit,
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
            from hushed.plots import population_figure, save_figure  # noqa: PLC0415

            save_figure(population_figure(found), plot)
            print_note(f"written to {plot}")
