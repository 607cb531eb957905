"""Options of ``hushed query``, as records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hushed.cli._options import option
from hushed.cli._panels import BOUNDS, NOISE, OUTPUT, QUERY, STATISTICS, TABLE
from hushed.statistics._candidates import Spacing as SpacingName
from hushed.tables._plan import NoiseName
from hushed.tables._quote_for import Share as ShareName

Many = list[str] | None
OUT = (
    "Write the answer to a new file, too, whose name ends in .csv, .parquet, .arrow, .feather or "
    ".json."
)
TimeoutOption = Annotated[
    float | None,
    option(
        "Seconds that the query may take; not on Spark. A query that is stopped after "
        "the charge stays paid.",
        OUTPUT,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """How the private table is opened."""

    table: Annotated[
        str | None, option("Name of the table in a database; rows by default.", TABLE)
    ] = None
    user: Annotated[
        str | None,
        option("Column that identifies the user; without it the unit is one row.", TABLE),
    ] = None
    types: Annotated[
        Many,
        option(
            "COLUMN=TYPE, with the types int, float, string, bool, date, timestamp; repeat. "
            "The columns of a CSV file are strings unless declared.",
            TABLE,
            "--type",
        ),
    ] = None
    header: Annotated[
        str | None,
        option(
            "Column names for a CSV file without a line of names, with its delimiter: "
            "patient;city;cost. Then every line of the file is a row.",
            TABLE,
            metavar="LINE",
        ),
    ] = None
    newlines_in_values: Annotated[
        bool,
        option(
            "For a CSV file written as in RFC 4180: cells in quotation marks may hold ends of "
            "lines. In another file no promise holds with it.",
            TABLE,
            "--newlines-in-values",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of the table, option by option."""

    max_rows_per_user: Annotated[
        int | None, option("Most rows of one user that count.", BOUNDS)
    ] = None
    max_groups_per_user: Annotated[
        int | None, option("Most groups of one user that count.", BOUNDS)
    ] = None
    join: Annotated[
        Many,
        option(
            "FILE:COLUMN: add the columns of a public CSV or Parquet file, which has one row for "
            "each key in COLUMN; repeat. All of the file becomes a part of the query.",
            QUERY,
            metavar="FILE:COLUMN",
        ),
    ] = None
    users_are_public: Annotated[
        bool,
        option(
            "Allow --join by the column of the users, where everybody may know who they are and "
            "what the file says of each.",
            QUERY,
            "--users-are-public",
        ),
    ] = False
    join_users: Annotated[
        Many,
        option(
            "TABLE:USER:COLUMN,COLUMN: add columns of another private table of the database, by "
            "its user column; repeat.",
            QUERY,
            metavar="TABLE:USER:COLUMNS",
        ),
    ] = None
    default: Annotated[
        Many,
        option(
            "COLUMN=VALUE: the value of a joined column for rows without a match, which are left "
            "out otherwise; repeat.",
            QUERY,
        ),
    ] = None
    where: Annotated[Many, option('Condition such as "age >= 18"; repeat.', QUERY)] = None
    derive: Annotated[Many, option("NAME=EXPRESSION; repeat.", QUERY)] = None
    by: Annotated[Many, option("Grouping column; repeat.", QUERY)] = None
    keys: Annotated[
        Many, option("Public keys of each grouping column: A,B,C; once for each --by.", QUERY)
    ] = None
    select_partitions: Annotated[
        bool,
        option(
            "Private partition selection: find the keys with noise; needs --delta.",
            QUERY,
            "--select-partitions",
        ),
    ] = False
    count: Annotated[bool, option("Number of rows.", STATISTICS, "--count")] = False
    count_users: Annotated[bool, option("Number of users.", STATISTICS, "--count-users")] = False
    sum_of: Annotated[
        Many,
        option("COLUMN:LOW:HIGH; HIGH or LOW may be the word search; repeat.", STATISTICS, "--sum"),
    ] = None
    mean: Annotated[Many, option("COLUMN:LOW:HIGH, as for --sum; repeat.", STATISTICS)] = None
    variance: Annotated[Many, option("COLUMN:LOW:HIGH, as for --sum; repeat.", STATISTICS)] = None
    quantile: Annotated[
        Many,
        option(
            "COLUMN:LOW:HIGH:PROBABILITY, or several, whose answers are sorted: 0.25,0.5,0.75; "
            "repeat.",
            STATISTICS,
        ),
    ] = None
    median: Annotated[Many, option("COLUMN:LOW:HIGH, the quantile 0.5; repeat.", STATISTICS)] = None
    top_k: Annotated[
        int | None,
        option(
            "Choose the K keys with the most rows, all together; needs --by and --keys.", STATISTICS
        ),
    ] = None
    top_k_users: Annotated[
        int | None, option("Choose the K keys with the most users; needs --user.", STATISTICS)
    ] = None
    candidates: Annotated[
        int | None,
        option(
            "Number of values from LOW to HIGH, among which a quantile is chosen; 2 to 10001. "
            "By default 2000.",
            STATISTICS,
        ),
    ] = None
    spacing: Annotated[
        SpacingName | None,
        option("Spacing of these values; by default geometric if LOW is 0 or more.", STATISTICS),
    ] = None
    histogram: Annotated[Many, option("COLUMN:LOW:HIGH:BINS; repeat.", STATISTICS)] = None


@dataclass(frozen=True, kw_only=True)
class Price:
    """What the answer costs, and how exact it is."""

    epsilon: Annotated[
        float | None,
        option(
            "Privacy loss of the whole query, in nats; of each one, where there are several "
            "--file. This or --error.",
            NOISE,
        ),
    ] = None
    error: Annotated[
        Many,
        option(
            "NAME=VALUE: the largest error of an output, of a quantile in ranks, kept by the "
            "smallest epsilon that can; repeat.",
            NOISE,
            "--error",
        ),
    ] = None
    share: Annotated[
        ShareName,
        option("With --error: keep the weights, or solve for them, too.", NOISE),
    ] = "weights"
    delta: Annotated[float, option("For --select-partitions and Gaussian noise.", NOISE)] = 0.0
    noise: Annotated[NoiseName, option("Which noise.", NOISE)] = "laplace"
    quote: Annotated[
        bool, option("Show the price only: nothing is read or charged.", OUTPUT, "--quote")
    ] = False
    explain: Annotated[
        bool,
        option(
            "With --quote: show how far one user or row moves each number, and the noise "
            "that hides it.",
            OUTPUT,
            "--explain",
        ),
    ] = False
    rows: Annotated[
        int | None,
        option(
            "Public guess of the number of rows in a group, for the error of means and "
            "variances: with --quote or --error.",
            OUTPUT,
            "--about-rows",
            min=1,
        ),
    ] = None
    rows_per_user: Annotated[
        str | None,
        option(
            "Public guess of the rows of the users, so that error bars include what contribution "
            "bounds leave out: ROWS:USERS, such as 1:300,7:20, or a public file with the user "
            "column.",
            BOUNDS,
            metavar="PAIRS|FILE",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Files:
    """What is read and written beside the table."""

    file: Annotated[
        list[Path] | None,
        option(
            "A TOML file that says all that is asked, as --save writes it: in place of the "
            "options. With --quote several, which are priced together.",
            QUERY,
            "--file",
            metavar="QUERY.toml",
        ),
    ] = None
    question: Annotated[
        str | None,
        option("The same in JSON, as Query.to_cli of Python writes it.", QUERY, "--query"),
    ] = None
    save: Annotated[
        Path | None,
        option(
            "Write what is asked to a new TOML file, for --file; it is released all the same, "
            "except with --quote.",
            OUTPUT,
            metavar="QUERY.toml",
        ),
    ] = None
    out: Annotated[
        Path | None,
        option(
            OUT,
            OUTPUT,
            metavar="FILE",
        ),
    ] = None
    plot: Annotated[
        Path | None,
        option(
            "Draw a figure to a file that ends in .svg, .png or .html: the answer with its error "
            "bars; with --quote, the error against epsilon.",
            OUTPUT,
            metavar="FILE",
        ),
    ] = None
    force: Annotated[
        bool,
        option(
            "Replace the file of --out, and an earlier query in that of --save.", OUTPUT, "--force"
        ),
    ] = False
    json: Annotated[bool, option("Print one JSON object.", OUTPUT, "--json")] = False
