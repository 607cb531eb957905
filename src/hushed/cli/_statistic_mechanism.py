"""What releases a statistic, as the options of ``hushed statistic`` say it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from hushed._ground.printing import plain_path
from hushed.cli._options import DrawingOption, MissingOption, option
from hushed.cli._panels import NOISE, SAMPLING, STATISTICS
from hushed.cli._records import Source
from hushed.cli._statistic_options import Described, read_statistic_population
from hushed.cli._written import shares_files
from hushed.errors import ParameterError, PrivateRowsAsPopulation
from hushed.mechanisms import (
    InverseSensitivity,
    Laplace,
    NoisyMax,
    ProposeTest,
    Smooth,
    StableMode,
    TopK,
)
from hushed.mechanisms._smooth import HeavyNoise
from hushed.populations import Population
from hushed.sensitivity import global_sensitivity
from hushed.statistics import Numeric, Statistic

MechanismName = Literal[
    "inverse", "smooth", "laplace", "propose-test", "stable-mode", "noisy-max", "top-k"
]

_KINDS: dict[str, Any] = {
    "inverse": InverseSensitivity,
    "smooth": Smooth,
    "propose-test": ProposeTest,
    "stable-mode": StableMode,
}
# Which of the options below belong to which mechanism.
_TAKEN = {
    "inverse": ("candidates",),
    "smooth": ("noise", "tail", "smoothing"),
    "laplace": (),
    "propose-test": ("bound", "delta"),
    "stable-mode": ("delta",),
    "noisy-max": (),
    "top-k": ("k",),
}
_NEEDED = ("bound", "delta", "k")
_SPELT = {"candidates": "--candidate"}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A mechanism on a statistic as the options of a command describe it."""

    epsilon: Annotated[float, option("Privacy loss, in nats.", NOISE)]
    mechanism: Annotated[
        MechanismName,
        option(
            "Draw one of many public values; add noise in proportion to the smooth sensitivity, or "
            "Laplace noise for the whole range, which is best for a mean; "
            "propose a bound and test it, or tell the mode as it is: these two may refuse, which "
            "is charged, too; of a mode tell also how far ahead it is (noisy-max), or the best "
            "categories (top-k).",
            NOISE,
        ),
    ] = "inverse"
    delta: Annotated[
        float | None, option("Slack of propose-test and stable-mode; in (0, 1).", NOISE)
    ] = None
    k: Annotated[
        int | None, option("top-k: how many categories are chosen, together.", NOISE, "--k")
    ] = None
    bound: Annotated[
        float | None,
        option("propose-test: how far one row moves the statistic at most, as you guess.", NOISE),
    ] = None
    noise: Annotated[
        HeavyNoise | None, option("smooth: law of the noise; lomax by default.", NOISE)
    ] = None
    tail: Annotated[int | None, option("smooth: exponent of lomax noise; 5 by default.", NOISE)] = (
        None
    )
    smoothing: Annotated[
        float | None,
        option(
            "smooth: by how much the logarithm of the sensitivity may differ between neighbours.",
            NOISE,
        ),
    ] = None
    candidates: Annotated[
        list[float] | None,
        option(
            "inverse: a public value to choose from; repeat for each, or leave out for 2,000.",
            STATISTICS,
            "--candidate",
        ),
    ] = None

    public: Annotated[
        str | None,
        option(
            "smooth: public source of rows, as of hushed compare, by which law, tail and smoothing "
            "are chosen; a wrong one costs accuracy, and no privacy.",
            SAMPLING,
            "--population",
        ),
    ] = None
    promise: DrawingOption = None
    missing: MissingOption = None

    def read_population(self, described: Described, data: str) -> Population | None:
        """Read the public rows by which smooth noise is chosen, before any private one."""
        if self.public is None:
            for name, value in (("promise", self.promise), ("missing", self.missing)):
                if value is not None:
                    raise ParameterError(f"--{name} goes with --population, a file of public rows")
            return None
        if self.mechanism != "smooth":
            raise ParameterError("--population goes with --mechanism smooth")
        if self.tail is not None or self.smoothing is not None:
            raise ParameterError(
                "--population chooses the tail and the smoothing: leave --tail and --smoothing out"
            )
        if described.private_count:
            raise ParameterError(
                "--population needs a public number of rows: leave --private-count out, or give "
                "--tail or --smoothing"
            )
        if shares_files(Path(self.public), data):
            raise PrivateRowsAsPopulation(
                f"the public population {plain_path(self.public)} holds the private rows, and "
                "whatever follows from it leaks about them; give public rows, a range or a "
                "simulator"
            )
        source = Source(population=self.public, promise=self.promise, missing=self.missing)
        return read_statistic_population(described, source)

    def make(self, statistic: Statistic, population: Population | None = None) -> Any:
        """Make the mechanism, or say why the statistic has none."""
        given = {name: getattr(self, name) for name in ("delta", "bound", "noise", "tail", "k")}
        given |= {"smoothing": self.smoothing, "candidates": self.candidates or None}
        taken = _TAKEN[self.mechanism]
        for name, value in given.items():
            if value is not None and name not in taken:
                raise ParameterError(f"{_option(name)} goes with {_takers(name)}")
            if value is None and name in taken and name in _NEEDED:
                raise ParameterError(f"--mechanism {self.mechanism} needs {_option(name)}")
        if population is not None and isinstance(statistic, Numeric):
            return Smooth.for_population(
                statistic, population, epsilon=self.epsilon, noise=self.noise
            )
        if self.mechanism == "inverse" and not statistic.invertible:
            raise ParameterError(
                f"the inverse sensitivity of the {statistic.kind} is known for a public number of "
                "rows only: leave --private-count out, or give --mechanism smooth"
            )
        if self.mechanism == "laplace":
            if not isinstance(statistic, Numeric):
                raise ParameterError(
                    "categories are no numbers that noise could be added to; noisy-max and top-k "
                    "choose by how many rows hold each"
                )
            return Laplace(global_sensitivity(statistic), epsilon=self.epsilon)
        if self.mechanism in ("noisy-max", "top-k"):
            return self._choose(statistic)
        stated = {name: value for name, value in given.items() if value is not None}
        return _KINDS[self.mechanism](statistic, epsilon=self.epsilon, **stated)

    def _choose(self, statistic: Statistic) -> NoisyMax | TopK:
        """Choose by the numbers of rows of the categories of a mode."""
        if isinstance(statistic, Numeric):
            raise ParameterError(
                f"--mechanism {self.mechanism} chooses among the categories of a mode: give mode "
                "and --category for each"
            )
        moved = global_sensitivity(statistic, "range")
        if self.k is None:
            return NoisyMax(moved, epsilon=self.epsilon)
        if self.k > len(statistic.categories):
            raise ParameterError(
                f"--k must be at most the number of categories, {len(statistic.categories)}, got "
                f"{self.k}"
            )
        return TopK(self.k, moved, epsilon=self.epsilon)


def _option(name: str) -> str:
    return _SPELT.get(name, f"--{name}")


def _takers(name: str) -> str:
    """Say with which mechanisms an option goes."""
    return " or ".join(f"--mechanism {kind}" for kind, taken in _TAKEN.items() if name in taken)
