"""Options of ``hushed blocks``, as records: the aggregate, the simulation, limits of each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import hushed as hs
from hushed._ground.numerals import read_number
from hushed.blocks import Limits
from hushed.blocks._mechanism import Aggregate as AggregateName
from hushed.cli import _options as shared
from hushed.cli._options import WORKERS, DrawingOption, option, read_workers
from hushed.cli._panels import CALLS, NOISE, ROWS, SAMPLING, STATISTICS
from hushed.errors import ParameterError
from hushed.statistics._candidates import Spacing as SpacingName

_LIMITS = Limits()
CENTRE = "Vectors: public centre of their ball; repeat for each coordinate."
RADIUS = "Vectors: public radius of that ball."
UserOption = Annotated[
    str | None,
    option(
        "Column that says whose a row is, by name, or by place from 1: the promise is then for "
        "users with any number of rows.",
        ROWS,
    ),
]


@dataclass(frozen=True, kw_only=True)
class CallLimits:
    """What one call may take."""

    cpu_seconds: Annotated[float, option("Processor time of one call.", CALLS)] = (
        _LIMITS.cpu_seconds
    )
    idle_seconds: Annotated[float, option("Time for which one call may wait.", CALLS)] = (
        _LIMITS.idle_seconds
    )
    memory: Annotated[int, option("Bytes of memory of one call.", CALLS)] = _LIMITS.memory
    disk: Annotated[int, option("Bytes that one call may write.", CALLS)] = _LIMITS.disk


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """How the answers of the blocks become one, and whom that protects."""

    epsilon: Annotated[float, option("Privacy loss, in nats.", NOISE)]
    delta: Annotated[float | None, option("Slack, for vectors and stable labels.", NOISE)] = None
    aggregate: Annotated[
        AggregateName,
        option(
            "How the answers of the blocks become one: a candidate near the middle of them, the "
            "label with most votes (drawn, or as it is where that is stable), their mean, or the "
            "mean of vectors.",
            NOISE,
        ),
    ] = "exponential"
    blocks: Annotated[
        int | None, option("Number of blocks; as many as --beta asks for by default.", NOISE)
    ] = None
    beta: Annotated[
        float, option("Probability with which an answer that says nothing is accepted.", NOISE)
    ] = 0.05
    low: Annotated[
        float | None, option("Low end of the public range of the answer.", STATISTICS)
    ] = None
    high: Annotated[
        float | None, option("High end of the public range of the answer.", STATISTICS)
    ] = None
    spacing: Annotated[
        SpacingName | None,
        option(
            "How the 101 candidates of a range are spaced; even by default, geometric if --low is "
            "above 0.",
            STATISTICS,
        ),
    ] = None
    candidates: Annotated[
        list[str] | None,
        option(
            "A public value to choose from, or a label that gets votes; give all of them.",
            STATISTICS,
            "--candidate",
        ),
    ] = None
    centre: Annotated[
        list[float] | None,
        option(CENTRE, STATISTICS),
    ] = None
    radius: Annotated[float | None, option(RADIUS, STATISTICS)] = None
    private_count: shared.PrivateCountOption = False
    user: UserOption = None
    unit: shared.UnitOption = "row"

    def make(self, limits: CallLimits, *, guessed: bool) -> hs.Blocks:
        """Make the blocks, which refuse what they can before any row is read."""
        return hs.Blocks(
            read_candidates(self.candidates, self.aggregate),
            low=self.low,
            high=self.high,
            spacing=self.spacing,
            epsilon=self.epsilon,
            delta=self.delta,
            blocks=None if guessed else self.blocks,
            aggregate=self.aggregate,
            centre=self.centre,
            radius=self.radius,
            beta=self.beta,
            neighbours="add-remove" if self.private_count else "replace-one",
            unit=self.unit,
            user=self.user,
            limits=Limits(**asdict(limits)),
        )


@dataclass(frozen=True, kw_only=True)
class Parts:
    """How a comparison deals rows to blocks, and what holds the vectors that they answer with."""

    blocks: Annotated[
        int | None,
        option("Number of blocks of the ways by blocks; as many as are usual by default.", CALLS),
    ] = None
    block_rows: shared.BlockOption = None
    centre: Annotated[list[float] | None, option(CENTRE, STATISTICS)] = None
    radius: Annotated[float | None, option(RADIUS, STATISTICS)] = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Public rows for a guess of the answer, or in place of the private ones."""

    prior_population: Annotated[
        str | None,
        option(
            "Public source of rows, as of hushed release, for a guess of the answer: fewer blocks "
            "are then enough. A wrong one costs accuracy, and no privacy.",
            SAMPLING,
        ),
    ] = None
    simulate: Annotated[
        str | None,
        option(
            "Public source of rows: release and charge nothing, print the errors on tables of it.",
            SAMPLING,
            metavar="POPULATION",
        ),
    ] = None
    promise: DrawingOption = None
    rows: Annotated[
        int | None,
        option(
            "Public guess of the number of rows, for --simulate and --prior-population where that "
            "number is private; those of DATA otherwise. With --user people are counted.",
            SAMPLING,
        ),
    ] = None
    trials: Annotated[int, option("Tables of --simulate.", SAMPLING)] = 10
    in_process: Annotated[
        bool,
        option(
            "Simulate in this process: quicker, but what a function keeps from call to call, or "
            "takes too long for, is not seen.",
            SAMPLING,
            "--in-process",
        ),
    ] = False
    seed: shared.SeedOption = 0
    workers: Annotated[
        Any,
        option(
            f"With --simulate: {WORKERS[0].lower()}{WORKERS[1:]}",
            SAMPLING,
            parser=read_workers,
            metavar="NUMBER|ADDRESS",
        ),
    ] = None
    keep: shared.KeepOption = None


def read_candidates(given: Sequence[str] | None, aggregate: str) -> list[float] | list[str] | None:
    """Read candidates: numbers, or labels if one of them is none and there are votes."""
    if not given:
        return None
    try:
        return [read_number(each.strip()) for each in given]
    except ValueError:
        if aggregate in ("votes", "stable"):
            return list(given)
        raise ParameterError(
            "--candidate must be a number; of labels, say --aggregate votes"
        ) from None
