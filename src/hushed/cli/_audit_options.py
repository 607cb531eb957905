"""Options of the commands that run a mechanism, as records: the claim, the pairs, the effort."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from hushed._functions._loading import read_function
from hushed.auditing import Claim, Command, Relation, Renyi, ZeroConcentrated
from hushed.cli._options import WORKERS, JsonOption, KeepOption, option, read_keep, read_workers
from hushed.cli._panels import AUDIT, CLAIM, OUTPUT, PAIRS
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours

ANSWERS, ROWS = 5, 4


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """What a mechanism claims."""

    claim_epsilon: Annotated[float | None, option("Claimed privacy loss.", CLAIM)] = None
    claim_delta: Annotated[float, option("Claimed slack.", CLAIM)] = 0.0
    claim_rho: Annotated[float | None, option("Claimed rho of zCDP, instead.", CLAIM)] = None
    claim_order: Annotated[
        float | None, option("Order of the Renyi divergence that epsilon bounds.", CLAIM)
    ] = None
    neighbours: Annotated[Neighbours, option("Relation of the claim.", CLAIM)] = "replace-one"

    def read(self) -> Claim:
        """Read the claim."""
        epsilon, rho, order = self.claim_epsilon, self.claim_rho, self.claim_order
        if (epsilon is None) == (rho is None):
            raise ParameterError("give --claim-epsilon or --claim-rho, one of them")
        if rho is not None:
            return ZeroConcentrated(rho=rho, neighbours=self.neighbours)
        if order is not None:
            return Renyi(order=order, epsilon=float(epsilon or 0), neighbours=self.neighbours)
        return Guarantee(
            epsilon=float(epsilon or 0), delta=self.claim_delta, neighbours=self.neighbours
        )


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The pairs of inputs that a mechanism is run on."""

    pairs: Annotated[
        str | None,
        option(
            "Needed. For a function of rows: extremes, with --low and --high, or a JSON file "
            "with a list of [ROWS, NEIGHBOUR]. For a function of query answers: patterns, "
            "histogram, or the name of a pattern.",
            PAIRS,
        ),
    ] = None
    low: Annotated[
        str | None, option("Lowest value of a row, LOW[,LOW...] for columns.", PAIRS)
    ] = None
    high: Annotated[
        str | None, option("Highest value of a row, HIGH[,HIGH...] for columns.", PAIRS)
    ] = None
    rows: Annotated[
        int | None, option(f"Rows of a table of extremes; {ROWS} by default.", PAIRS)
    ] = None
    relation: Annotated[Relation | None, option("How two inputs of a pair may differ.", PAIRS)] = (
        None
    )
    answers: Annotated[
        int | None, option(f"Query answers in a pattern; {ANSWERS} by default.", PAIRS)
    ] = None

    @property
    def domain(self) -> dict[str, object]:
        """Options that are for tables at the ends of a domain."""
        return {"--low": self.low, "--high": self.high, "--rows": self.rows}

    @property
    def count(self) -> int:
        """Query answers in a pattern."""
        return ANSWERS if self.answers is None else self.answers


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How a mechanism is run."""

    batch: Annotated[
        bool, option("The function is (rows, rng, size) -> outputs.", AUDIT, "--batch")
    ] = False
    command: Annotated[
        bool, option("The argument is a program, not FILE.py:FUNCTION.", AUDIT, "--command")
    ] = False
    seed: Annotated[int, option("Seed of the audit.", AUDIT)] = 0
    workers: Annotated[
        Any, option(WORKERS, AUDIT, parser=read_workers, metavar="NUMBER|ADDRESS")
    ] = None
    keep: KeepOption = None

    def read(self, mechanism: str) -> Any:
        """Read the mechanism: a function in a file, or a program."""
        return Command(mechanism.split()) if self.command else read_function(mechanism)

    def settings(self) -> dict[str, Any]:
        """Give the settings of every run as the library takes them."""
        kept = read_keep(self.keep, private=False)
        return {"seed": self.seed, "workers": self.workers, "keep": kept}


@dataclass(frozen=True, kw_only=True)
class Effort(Runs):
    """How hard an audit tries."""

    samples: Annotated[int, option("Runs on each side of the pairs, all in all.", AUDIT)] = 100_000
    confidence: Annotated[float, option("Of everything certified.", AUDIT)] = 0.95
    sequential: Annotated[
        bool, option("Stop as soon as the claim is contradicted.", AUDIT, "--sequential")
    ] = False
    bits: Annotated[
        bool | None,
        option(
            "Look at the bit patterns of doubles. Of the zoo, by default, only where a mechanism "
            "is stated for doubles: the verdicts on the others are about real numbers.",
            AUDIT,
            "--bits/--no-bits",
            show_default="bits",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Give the settings of an audit as the library takes them."""
        return {
            **super().settings(),
            "samples": self.samples,
            "confidence": self.confidence,
            "sequential": self.sequential,
            "bits": self.bits is not False,
        }


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Where the report of an audit goes."""

    out: Annotated[
        Path | None,
        option("Write the certificate of the audit as JSON, for hushed verify.", OUTPUT),
    ] = None
    html: Annotated[Path | None, option("Write the report as a page.", OUTPUT)] = None
    force: Annotated[
        bool, option("Replace a file that is not an earlier report.", OUTPUT, "--force")
    ] = False
    json: JsonOption = False
