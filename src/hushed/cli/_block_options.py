"""Options of ``hushed blocks`` alone; which default each has, the command says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from hushed.blocks import Limits
from hushed.blocks._mechanism import Aggregate as AggregateName
from hushed.cli._options import option
from hushed.cli._panels import CALLS, NOISE, ROWS, SAMPLING, STATISTICS
from hushed.errors import ParameterError
from hushed.populations import Promise
from hushed.statistics._candidates import Spacing as SpacingName

Epsilon = Annotated[float, option("Privacy loss, in nats.", NOISE)]
Delta = Annotated[float | None, option("Slack, for vectors.", NOISE)]
Aggregate = Annotated[
    AggregateName,
    option(
        "How the answers of the blocks become one: a candidate near the middle of them, the label "
        "with most votes, their mean, or the mean of vectors.",
        NOISE,
    ),
]
Low = Annotated[float | None, option("Low end of the public range of the answer.", STATISTICS)]
High = Annotated[float | None, option("High end of the public range of the answer.", STATISTICS)]
Spacing = Annotated[
    SpacingName | None,
    option(
        "How the 101 candidates of a range are spaced; even by default, geometric if --low is "
        "above 0.",
        STATISTICS,
    ),
]
Candidates = Annotated[
    list[str] | None,
    option(
        "A public value to choose from, or a label that gets votes; give all of them.",
        STATISTICS,
        "--candidate",
    ),
]
Centre = Annotated[
    list[float] | None,
    option("Vectors: public centre of their ball; repeat for each coordinate.", STATISTICS),
]
Radius = Annotated[float | None, option("Vectors: public radius of that ball.", STATISTICS)]
BlocksNumber = Annotated[
    int | None, option("Number of blocks; as many as --beta asks for by default.", NOISE)
]
Beta = Annotated[
    float, option("Probability with which an answer that says nothing is accepted.", NOISE)
]
PrivateCount = Annotated[
    bool,
    option(
        "The number of rows is private, too: neighbours have one row more or less.",
        ROWS,
        "--private-count",
    ),
]
User = Annotated[
    str | None,
    option(
        "Column that says whose a row is, by name, or by place from 1: the promise is then for "
        "users with any number of rows.",
        ROWS,
    ),
]
PriorPopulation = Annotated[
    str | None,
    option(
        "Public source of rows, as of hushed release, for a guess of the answer: fewer blocks are "
        "then enough. A wrong one costs accuracy, and no privacy.",
        SAMPLING,
    ),
]
Simulate = Annotated[
    str | None,
    option(
        "Public source of rows: release and charge nothing, print the errors on tables of it.",
        SAMPLING,
        metavar="POPULATION",
    ),
]
Promises = Annotated[
    Promise | None,
    option(
        "How tables are drawn from a file of public rows: each row at most once (default), or, "
        "with table, again and again, for files that are small.",
        SAMPLING,
        "--promise",
    ),
]
AboutRows = Annotated[
    int | None,
    option(
        "Public guess of the number of rows, for --simulate and --prior-population where that "
        "number is private; those of DATA otherwise.",
        SAMPLING,
    ),
]
Trials = Annotated[int, option("Tables of --simulate.", SAMPLING)]
InProcess = Annotated[
    bool,
    option(
        "Simulate in this process: quicker, but what a function keeps from call to call, or takes "
        "too long for, is not seen.",
        SAMPLING,
        "--in-process",
    ),
]
CpuSeconds = Annotated[float, option("Processor time of one call.", CALLS)]
IdleSeconds = Annotated[float, option("Time for which one call may wait.", CALLS)]
Memory = Annotated[int, option("Bytes of memory of one call.", CALLS)]
Disk = Annotated[int, option("Bytes that one call may write.", CALLS)]
LIMITS = Limits()


def read_candidates(given: Sequence[str] | None, aggregate: str) -> list[float] | list[str] | None:
    """Read candidates: numbers, or labels if one of them is none and there are votes."""
    if not given:
        return None
    try:
        return [float(each) for each in given]
    except ValueError:
        if aggregate == "votes":
            return list(given)
        raise ParameterError(
            "--candidate must be a number; of labels, say --aggregate votes"
        ) from None
