"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hushed._functions._gate import Outside
from hushed._ground.numerals import read_whole
from hushed.cli._panels import LEDGER, OUTPUT, ROWS, SAMPLING
from hushed.cli._public_cells import Missing
from hushed.cli._tables import Frame
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours, Protect, RowUnit
from hushed.populations import Promise
from hushed.runs import Keep
from hushed.sensitivity import Calibration, Position


def option(words: str, panel: str, *names: str, **settings: Any) -> Any:
    """Make an option of a command, under a heading of its help; its default is the parameter's."""
    return typer.Option(*names, help=words, rich_help_panel=panel, **settings)


FunctionArgument = Annotated[
    str, typer.Argument(metavar="FILE.py:FUNCTION", help="The function of the rows.")
]
PopulationOption = Annotated[
    str,
    option(
        "Public source of rows: uniform:LOW,HIGH[:LOW,HIGH...], normal:MEAN,STD[:...], "
        "exponential:RATE[:...], a CSV or Parquet file of public rows, or FILE.py:NAME.",
        ROWS,
    ),
]
GammaOption = Annotated[
    float | None, option("Probability that the promise fails; 0.05 by default.", SAMPLING)
]
PairsOption = Annotated[
    int | None, option("Pairs to draw; as few as gamma allows by default.", SAMPLING)
]
PromiseOption = Annotated[
    Promise | None,
    option(
        "For a file of public rows, what gamma is about: the population behind them "
        "(default: no two pairs share a row, so many rows are needed), tables whose other rows "
        "are given, or tables drawn from these rows only.",
        SAMPLING,
    ),
]
DrawingOption = Annotated[
    Promise | None,
    option(
        "How tables are drawn from a file of public rows: each row at most once (default), or, "
        "with table, again and again, for files that are small.",
        SAMPLING,
        "--promise",
    ),
]
BlockOption = Annotated[
    int | None,
    option(
        "Release the average of the function over blocks of so many rows: for a file of "
        "public rows that is too small for whole tables.",
        SAMPLING,
    ),
]
CalibrationOption = Annotated[Calibration, option("How the movement to keep is chosen.", SAMPLING)]
ProtectOption = Annotated[Protect, option("Whom gamma is about.", SAMPLING)]
RowsOption = Annotated[
    list[int] | None,
    option(
        "Rows in the private table; a release on another number is refused. With add-remove their "
        "number is private: give a public one, or several, each with --rows; the promise is for "
        "tables of these numbers of rows.",
        SAMPLING,
    ),
]
NeighboursOption = Annotated[
    Neighbours, option("A row of the table is replaced, or one is added or removed.", SAMPLING)
]
DistanceOption = Annotated[
    int, option("Rows that are replaced at once; epsilon is for all of them together.", SAMPLING)
]
PositionOption = Annotated[
    Position, option("Place of the changed row: a random one, or every one in turn.", SAMPLING)
]
ValuesOption = Annotated[
    list[str] | None,
    option(
        "With --protect table: a public row that any row may be replaced by, its cells with "
        "commas between. May be given for each such row.",
        SAMPLING,
        metavar="ROW",
    ),
]
MonotoneOption = Annotated[
    bool,
    option(
        "With --protect table: state that the answer is monotone in each cell of a row, so "
        "that the ends of the public range stand for all rows. Tried on a few rows.",
        SAMPLING,
        "--monotone",
    ),
]
FrameOption = Annotated[Frame, option("What the function gets: array or frame.", ROWS)]
SymmetricOption = Annotated[
    bool,
    option(
        "State that the order of rows does not matter: then the last row is replaced in "
        "every pair, instead of one at a random place. Tried on a few orders of a few tables.",
        SAMPLING,
        "--symmetric",
    ),
]
TrialOption = Annotated[
    bool,
    option(
        "Sample nothing: call the function a few times on public rows, and tell how long the "
        "sampling may take.",
        SAMPLING,
        "--trial",
    ),
]
PrivateCountOption = Annotated[
    bool,
    option(
        "The number of rows is private, too: neighbours have one row more or less.",
        ROWS,
        "--private-count",
    ),
]
DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="The private rows: CSV or Parquet.")
]
UnitOption = Annotated[
    RowUnit,
    option(
        "What one row is. With person you declare that each row is one person, and the "
        "certificate speaks of people.",
        SAMPLING,
    ),
]
UserOption = Annotated[
    str | None,
    option(
        "Column that says whose a row is, by its name or its place from 1: people with several "
        "rows are then protected with all of them, and whatever counts rows counts people.",
        SAMPLING,
    ),
]
BoundsOption = Annotated[
    list[str] | None,
    option(
        "Public range of a column of the population's file or simulator, by name, or by place "
        "from 1 if it has none; private rows are moved into it. May be given for each column.",
        ROWS,
        metavar="COLUMN:LOW,HIGH",
    ),
]
HeaderOption = Annotated[
    bool | None,
    option(
        "Whether the first row of CSV files names the columns. In a public file it does by "
        "default if it holds no number and a column below it is all numbers. For private rows it "
        "has to be said, unless a column is called by its name or the public file has a header.",
        ROWS,
        "--header/--no-header",
    ),
]
MissingOption = Annotated[
    Missing | None,
    option(
        "What becomes of missing cells in a file of public rows: drop leaves their rows out, and "
        "what is promised is about tables without them; keep gives the function NaN for a number "
        "and None for a text, as it gets them for private rows.",
        ROWS,
        "--missing",
    ),
]
ColumnsOption = Annotated[
    int | None,
    option(
        "How many columns a private CSV file without a header has: public, and not told from rows.",
        ROWS,
        "--columns",
        min=1,
        max=100_000,
    ),
]
TextOption = Annotated[
    list[str] | None,
    option(
        "Column of texts of the private file, by name, or by place from 1, with --frame pandas or "
        "polars; all others are of numbers. Can be repeated.",
        ROWS,
        "--text",
    ),
]
DependentOption = Annotated[
    bool,
    option(
        "Admit that the population was made from the private rows: the result is marked.",
        SAMPLING,
        "--data-dependent",
    ),
]
OutsideOption = Annotated[
    Outside, option("What to do with private rows outside of the public range.", ROWS)
]
SeedOption = Annotated[int, option("Seed of the sampler (never of the noise).", SAMPLING)]


def read_workers(value: str) -> int | str:
    """Read a number of processes, or the address of a cluster."""
    try:
        return read_whole(value)
    except ValueError:
        return value


WORKERS = "Worker processes, or a cluster: dask://HOST:8786, ray, ray://HOST:10001 or spark."
WorkersOption = Annotated[
    Any, option(WORKERS, SAMPLING, parser=read_workers, metavar="NUMBER|ADDRESS")
]
KeepOption = Annotated[
    str | None,
    option(
        "Folder, or address of an object store, in which finished work is kept: the same command "
        "goes on where an earlier one was stopped.",
        OUTPUT,
    ),
]
KeepPrivateOption = Annotated[
    bool,
    option(
        "Keep what is private, too, in a folder that nobody else may read.",
        OUTPUT,
        "--keep-private",
    ),
]
JsonOption = Annotated[bool, option("Print one JSON object.", OUTPUT, "--json")]
KeyOption = Annotated[
    str | None,
    option(
        "A name of your own for this answer: asking the same again under it costs nothing.", LEDGER
    ),
]
LedgerArgument = Annotated[
    str, typer.Argument(metavar="LEDGER", help="sqlite:///FILE or postgresql://USER@HOST/DATABASE")
]
BudgetArgument = Annotated[str, typer.Argument(metavar="BUDGET", help="Name of the budget.")]
PlotOption = Annotated[
    Path | None, option("Write a figure: .svg, .png or .html.", OUTPUT, "--plot")
]
LedgerOption = Annotated[
    str | None, option("Ledger to charge first: sqlite:///FILE or postgresql://...", LEDGER)
]
BudgetOption = Annotated[str | None, option("Name of the budget in the ledger.", LEDGER)]


def read_keep(keep: str | None, *, private: bool) -> Keep | None:
    """Read where finished work is kept."""
    if keep is None:
        if private:
            raise ParameterError("--keep-private says how --keep is meant: give that, too")
        return None
    return Keep(keep, private=private)
