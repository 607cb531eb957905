"""Options of ``hushed audit`` alone; which default each has, the command says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from hushed.auditing import Relation as Relations
from hushed.cli._options import WORKERS, option, read_workers
from hushed.cli._panels import AUDIT, CLAIM, OUTPUT, PAIRS
from hushed.guarantee import Neighbours as Neighbouring

ANSWERS, ROWS = 5, 4

ClaimEpsilon = Annotated[float | None, option("Claimed privacy loss.", CLAIM)]
ClaimDelta = Annotated[float, option("Claimed slack.", CLAIM)]
ClaimRho = Annotated[float | None, option("Claimed rho of zCDP, instead.", CLAIM)]
ClaimOrder = Annotated[
    float | None, option("Order of the Renyi divergence that epsilon bounds.", CLAIM)
]
Neighbours = Annotated[Neighbouring, option("Relation of the claim.", CLAIM)]
Pairs = Annotated[
    str | None,
    option(
        "Needed. For a function of rows: extremes, with --low and --high, or a JSON file "
        "with a list of [ROWS, NEIGHBOUR]. For a function of query answers: patterns, "
        "histogram, or the name of a pattern.",
        PAIRS,
    ),
]
Low = Annotated[str | None, option("Lowest value of a row, LOW[,LOW...] for columns.", PAIRS)]
High = Annotated[str | None, option("Highest value of a row, HIGH[,HIGH...] for columns.", PAIRS)]
Rows = Annotated[int | None, option(f"Rows of a table of extremes; {ROWS} by default.", PAIRS)]
Relation = Annotated[Relations | None, option("How two inputs of a pair may differ.", PAIRS)]
Answers = Annotated[int | None, option(f"Query answers in a pattern; {ANSWERS} by default.", PAIRS)]
Samples = Annotated[int, option("Runs on each side of the pairs, all in all.", AUDIT)]
Confidence = Annotated[float, option("Of everything certified.", AUDIT)]
Batch = Annotated[bool, option("The function is (rows, rng, size) -> outputs.", AUDIT, "--batch")]
Sequential = Annotated[
    bool, option("Stop as soon as the claim is contradicted.", AUDIT, "--sequential")
]
Bits = Annotated[bool, option("Look at the bit patterns of doubles.", AUDIT)]
Command = Annotated[
    bool, option("The argument is a program, not FILE.py:FUNCTION.", AUDIT, "--command")
]
Seed = Annotated[int, option("Seed of the audit.", AUDIT)]
Workers = Annotated[Any, option(WORKERS, AUDIT, parser=read_workers, metavar="NUMBER|ADDRESS")]
Html = Annotated[Path | None, option("Write the report as a page.", OUTPUT)]
Force = Annotated[bool, option("Replace a file that is not an earlier report.", OUTPUT, "--force")]
