"""Options of ``hushed query`` alone; which default each has, the command says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hushed.cli._options import option
from hushed.cli._panels import BOUNDS, LEDGER, NOISE, OUTPUT, QUERY, STATISTICS, TABLE
from hushed.statistics._candidates import Spacing as SpacingName
from hushed.tables._plan import NoiseName
from hushed.tables._quote_for import Share as ShareName

Many = list[str] | None
Epsilon = Annotated[
    float | None, option("Privacy loss of the whole query, in nats. This or --error.", NOISE)
]
Error = Annotated[
    Many,
    option(
        "NAME=VALUE: the largest error of an output, kept by the smallest epsilon that can; "
        "repeat.",
        NOISE,
        "--error",
    ),
]
Share = Annotated[
    ShareName,
    option("With --error: keep the weights, or solve for them, too.", NOISE),
]
Table = Annotated[str, option("Name of the table in a database.", TABLE)]
User = Annotated[
    str | None, option("Column that identifies the user; without it the unit is one row.", TABLE)
]
Types = Annotated[
    Many,
    option(
        "COLUMN=TYPE, with the types int, float, string, bool, date, timestamp; repeat. "
        "The columns of a CSV file are strings unless declared.",
        TABLE,
        "--type",
    ),
]
Header = Annotated[
    str | None,
    option(
        "Column names for a CSV file without a line of names, with its delimiter: "
        "patient;city;cost. Then every line of the file is a row.",
        TABLE,
        metavar="LINE",
    ),
]
MaxRowsPerUser = Annotated[int | None, option("Most rows of one user that count.", BOUNDS)]
MaxGroupsPerUser = Annotated[int | None, option("Most groups of one user that count.", BOUNDS)]
Where = Annotated[Many, option('Condition such as "age >= 18"; repeat.', QUERY)]
Derive = Annotated[Many, option("NAME=EXPRESSION; repeat.", QUERY)]
By = Annotated[Many, option("Grouping column; repeat.", QUERY)]
Keys = Annotated[
    Many, option("Public keys of each grouping column: A,B,C; once for each --by.", QUERY)
]
SelectPartitions = Annotated[
    bool,
    option(
        "Private partition selection: find the keys with noise; needs --delta.",
        QUERY,
        "--select-partitions",
    ),
]
Count = Annotated[bool, option("Number of rows.", STATISTICS, "--count")]
CountUsers = Annotated[bool, option("Number of users.", STATISTICS, "--count-users")]
Sum = Annotated[
    Many,
    option("COLUMN:LOW:HIGH; HIGH or LOW may be the word search; repeat.", STATISTICS, "--sum"),
]
Mean = Annotated[Many, option("COLUMN:LOW:HIGH, as for --sum; repeat.", STATISTICS)]
Variance = Annotated[Many, option("COLUMN:LOW:HIGH, as for --sum; repeat.", STATISTICS)]
Quantile = Annotated[
    Many,
    option(
        "COLUMN:LOW:HIGH:PROBABILITY, or several, whose answers are sorted: 0.25,0.5,0.75; repeat.",
        STATISTICS,
    ),
]
Median = Annotated[Many, option("COLUMN:LOW:HIGH, the quantile 0.5; repeat.", STATISTICS)]
TopK = Annotated[
    int | None,
    option(
        "Choose the K keys with the most rows, all together; needs --by and --keys.", STATISTICS
    ),
]
TopKUsers = Annotated[
    int | None, option("Choose the K keys with the most users; needs --user.", STATISTICS)
]
Candidates = Annotated[
    int | None,
    option(
        "Number of values from LOW to HIGH, among which a quantile is chosen; 2 to 10001. "
        "By default 2000.",
        STATISTICS,
    ),
]
Spacing = Annotated[
    SpacingName | None,
    option("Spacing of these values; by default geometric if LOW is 0 or more.", STATISTICS),
]
Histogram = Annotated[Many, option("COLUMN:LOW:HIGH:BINS; repeat.", STATISTICS)]
Delta = Annotated[float, option("For --select-partitions and Gaussian noise.", NOISE)]
Noise = Annotated[NoiseName, option("Which noise.", NOISE)]
Quote = Annotated[
    bool, option("Show the price only: nothing is read or charged.", OUTPUT, "--quote")
]
Explain = Annotated[
    bool,
    option(
        "With --quote: show how far one user or row moves each number, and the noise "
        "that hides it.",
        OUTPUT,
        "--explain",
    ),
]
AboutRows = Annotated[
    int | None,
    option(
        "Public guess of the number of rows in a group, for the error of means and "
        "variances: with --quote or --error.",
        OUTPUT,
        "--about-rows",
        min=1,
    ),
]
Ledger = Annotated[str | None, option("Address of the ledger to charge.", LEDGER)]
Note = Annotated[str, option("Note in the ledger.", LEDGER)]
Timeout = Annotated[
    float | None,
    option(
        "Seconds that the query may take; not on Spark. A query that is stopped after "
        "the charge stays paid.",
        OUTPUT,
    ),
]
QueryFile = Annotated[
    Path | None,
    option(
        "A TOML file that says all that is asked, as --save writes it: in place of the options.",
        QUERY,
        "--file",
        metavar="QUERY.toml",
    ),
]
Question = Annotated[
    str | None,
    option("The same in JSON, as Query.to_cli of Python writes it.", QUERY, "--query"),
]
Save = Annotated[
    Path | None,
    option("Write what is asked to a new TOML file, for --file.", OUTPUT, metavar="QUERY.toml"),
]
Out = Annotated[
    Path | None,
    option(
        "Write the answer to a new file, too, whose name ends in .csv, .parquet or .json.",
        OUTPUT,
        metavar="FILE",
    ),
]
Force = Annotated[bool, option("With --save and --out: replace the file.", OUTPUT, "--force")]
Json = Annotated[bool, option("Print one JSON object.", OUTPUT, "--json")]
