"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushed.cli._panels import LEDGER, OUTPUT, ROWS, SAMPLING
from hushed.cli._tables import Frame
from hushed.guarantee import Protect, RowUnit
from hushed.populations import Promise
from hushed.sensitivity import Calibration

FunctionArgument = Annotated[
    str, typer.Argument(metavar="FILE.py:FUNCTION", help="The function of the rows.")
]
PopulationOption = Annotated[
    str,
    typer.Option(
        help="Public source of rows: uniform:LOW,HIGH[:LOW,HIGH...], normal:MEAN,STD[:...], "
        "exponential:RATE[:...], a CSV or Parquet file of public rows, or FILE.py:NAME.",
        rich_help_panel=ROWS,
    ),
]
GammaOption = Annotated[
    float | None,
    typer.Option(
        help="Probability that the promise fails; 0.05 by default.", rich_help_panel=SAMPLING
    ),
]
PairsOption = Annotated[
    int | None,
    typer.Option(
        help="Pairs to draw; as few as gamma allows by default.", rich_help_panel=SAMPLING
    ),
]
PromiseOption = Annotated[
    Promise | None,
    typer.Option(
        help="For a file of public rows, what gamma is about: the population behind them "
        "(default: no two pairs share a row, so many rows are needed), tables whose other rows "
        "are given, or tables drawn from these rows only.",
        rich_help_panel=SAMPLING,
    ),
]
BlockOption = Annotated[
    int | None,
    typer.Option(
        help="Release the average of the function over blocks of so many rows: for a file of "
        "public rows that is too small for whole tables.",
        rich_help_panel=SAMPLING,
    ),
]
CalibrationOption = Annotated[
    Calibration, typer.Option(help="How the movement to keep is chosen.", rich_help_panel=SAMPLING)
]
ProtectOption = Annotated[
    Protect, typer.Option(help="Whom gamma is about.", rich_help_panel=SAMPLING)
]
FrameOption = Annotated[
    Frame, typer.Option(help="What the function gets: array or frame.", rich_help_panel=ROWS)
]
SymmetricOption = Annotated[
    bool,
    typer.Option(
        "--symmetric",
        help="State that the order of rows does not matter: then the last row is replaced in "
        "every pair, instead of one at a random place. Tried on a few orders of a few tables.",
        rich_help_panel=SAMPLING,
    ),
]
UnitOption = Annotated[
    RowUnit,
    typer.Option(
        help="What one row is. With person you declare that each row is one person, and the "
        "certificate speaks of people.",
        rich_help_panel=SAMPLING,
    ),
]
BoundsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN:LOW,HIGH",
        help="Public range of a column of the population's file or simulator, by name, or by place "
        "from 1 if it has none; private rows are moved into it. May be given for each column.",
        rich_help_panel=ROWS,
    ),
]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of CSV files names the columns. By default it does if it "
        "holds no number and a column below it is all numbers.",
        rich_help_panel=ROWS,
    ),
]
DependentOption = Annotated[
    bool,
    typer.Option(
        "--data-dependent",
        help="Admit that the population was made from the private rows: the result is marked.",
        rich_help_panel=SAMPLING,
    ),
]
SeedOption = Annotated[
    int, typer.Option(help="Seed of the sampler (never of the noise).", rich_help_panel=SAMPLING)
]
WorkersOption = Annotated[
    int | None, typer.Option(help="Worker processes.", rich_help_panel=SAMPLING)
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=OUTPUT)
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        help="A name of your own for this answer: asking the same again under it costs nothing.",
        rich_help_panel=LEDGER,
    ),
]
LedgerArgument = Annotated[
    str, typer.Argument(metavar="LEDGER", help="sqlite:///FILE or postgresql://USER@HOST/DATABASE")
]
BudgetArgument = Annotated[str, typer.Argument(metavar="BUDGET", help="Name of the budget.")]
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", help="Write a figure: .svg, .png or .html.", rich_help_panel=OUTPUT),
]
