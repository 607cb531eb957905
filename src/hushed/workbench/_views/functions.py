"""A function of rows: what is sampled, what was found so far, and what a release would cost."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import hushed as hs
from hushed._ground.decimals import decimal_of
from hushed._ground.printing import format_up, tell_seconds
from hushed.errors import HushedError
from hushed.runs import list_runs
from hushed.sensitivity import choose_rank, read_movements
from hushed.workbench._jobs import KEPT, JobState
from hushed.workbench._views.reading import Words
from hushed.workbench._views.sources import Defined, as_argument, read_population

FRAMES = ("numpy", "pandas", "polars")
NEIGHBOURS = ("replace-one", "add-remove")
MECHANISMS = ("laplace", "gaussian")
_NORMS = {"laplace": "l1", "gaussian": "l2"}
BETA = 0.05
_MOST_SIZES = 20
_LEAST, _MOST, _USUAL = 0.01, 10.0, 1.0  # epsilons of the slider, in nats


def read_sampling(
    typed: Mapping[str, str], tables: list[str], functions: list[Defined]
) -> tuple[list[str], dict[str, str]]:
    """Read what is to be sampled: the words that the commands share, and problems by field."""
    form = Words(typed)
    specs = [each.spec for each in functions]
    chosen = form.choose("function", specs, needed="Choose the function.")
    source = read_population(form, tables, functions)
    words = ["sensitivity", as_argument(chosen), "--population", source]
    words += read_neighbours(form)
    words += ["--gamma", read_gamma(form)]
    words += ["--frame", form.choose("frame", FRAMES)]
    words += read_header(form) + (["--symmetric"] if form.is_ticked("symmetric") else [])
    words += read_people_and_blocks(form)
    words += ["--workers", form.say_whole("workers", least=1, most=256, default="1")]
    words += ["--norm", _NORMS.get(form.choose("mechanism", MECHANISMS), "l1")]
    if form.text("population_file") and form.text("population_file") == form.text("data"):
        form.refuse("population_file", "these are the private rows: choose public ones")
    return [*words, "--keep", KEPT, "--json"], form.errors


def read_neighbours(form: Words) -> list[str]:
    """Read in what neighbours differ, and the numbers of rows that the promise is for."""
    relation = form.choose("neighbours", NEIGHBOURS)
    if relation == "replace-one":
        return ["--rows", form.say_whole("rows", least=2, most=10**9)]
    if form.text("block_rows"):
        form.refuse("block_rows", "blocks are for rows that are replaced: leave this empty")
    sizes = form.text("rows").replace(",", " ").split()[: _MOST_SIZES + 1]
    if not 1 <= len(sizes) <= _MOST_SIZES:
        form.refuse("rows", f"give from 1 to {_MOST_SIZES} public numbers of rows")
    words = ["--neighbours", relation]
    for each in sizes:
        one = Words({"rows": each})
        words += ["--rows", one.say_whole("rows", least=2, most=10**9)]
        for name, message in one.errors.items():
            form.refuse(name, message)
    return words


def read_people_and_blocks(form: Words) -> list[str]:
    """Read whose each row is, and how many rows the function is given at once."""
    words = [f"--user={form.text('user')}"] if form.text("user") else []
    if form.text("block_rows"):
        words += ["--block-rows", form.say_whole("block_rows", least=1, most=10**9)]
    return words


def read_header(form: Words) -> list[str]:
    """Read whether the first line of files names their columns; it is never guessed."""
    return ["--no-header" if form.choose("header", ("yes", "no")) == "no" else "--header"]


def read_gamma(form: Words) -> str:
    """Read for one in how many pairs the promise may fail, as the share that commands take."""
    count = form.say_whole("one_in", least=2, most=10_000, default="20")
    return "" if "one_in" in form.errors else repr(float(Fraction(1, int(count))))


def count_pairs(typed: Mapping[str, str]) -> tuple[int, int] | None:
    """Count the pairs that a share needs, and which movement is kept, from the largest."""
    form = Words(typed)
    gamma = read_gamma(form)
    if form.errors:
        return None
    rank = choose_rank("training-conditional", gamma=decimal_of(float(gamma)))
    return rank.pairs, rank.pairs - rank.rank + 1


def write_trial(words: list[str]) -> list[str]:
    """Write the command that tells how long a sampling may take."""
    left_out = {"--workers", "--keep"}  # and the word after each
    told = (i for i, each in enumerate(words) if each in left_out)
    gone = {place for i in told for place in (i, i + 1)}
    return [*(each for i, each in enumerate(words) if i not in gone), "--trial"]


def tell_trial(found: Mapping[str, Any], words: list[str]) -> str:
    """Say how long a sampling may take, with its worker processes where there are processors."""
    workers = int(words[words.index("--workers") + 1])
    used = min(workers, os.cpu_count() or 1)
    with_them = f" with {workers} worker processes" if workers > 1 else ""
    return (
        f"It may take about {tell_seconds(found['seconds'] / used)}{with_them}: "
        f"{found['pairs']:,} pairs of tables, about {found['calls']:,} calls of "
        f"{format_up(found['seconds_per_call'], 2)} s each."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a sampling has found so far.

    Parameters
    ----------
    done, total : int
        Pairs.
    place : int
        Which movement is kept, counted from the largest.
    movements : tuple of float
        The largest first.
    kept : str
        The movement at that place so far, rounded up; empty where there are fewer.
    largest : str
        The largest one so far, rounded up; empty without any.
    left : str
        How long the rest may take; empty where it is not known.
    """

    done: int
    total: int
    place: int
    movements: tuple[float, ...]
    kept: str
    largest: str
    left: str

    @property
    def percent(self) -> int:
        """Whole per cent of the pairs that are done."""
        return 100 * self.done // max(1, self.total)


def watch_sampling(state: JobState, folder: Path) -> Watched:
    """Read what a job has kept of its movements."""
    gamma = float(state.job.words[state.job.words.index("--gamma") + 1])
    rank = choose_rank("training-conditional", gamma=decimal_of(gamma))
    place, found = rank.pairs - rank.rank + 1, _read_kept(folder)
    total = rank.pairs
    return Watched(
        done=len(found),
        total=total,
        place=place,
        movements=found,
        kept=format_up(found[place - 1]) if len(found) >= place else "",
        largest=format_up(found[0]) if found else "",
        left=_tell_left(state, len(found), total),
    )


def _read_kept(folder: Path) -> tuple[float, ...]:
    """Read movements, the largest first; nothing while nothing is kept, or it is being written."""
    try:
        runs = list_runs(folder) if folder.is_dir() else []
        if not runs:
            return ()
        return tuple(read_movements(folder, runs[0].key)[::-1].tolist())
    except (HushedError, OSError):
        return ()


def _tell_left(state: JobState, done: int, total: int) -> str:
    if state.status != "running" or not 0 < done < total:
        return ""
    return tell_seconds(state.seconds * (total - done) / done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What a release of a sampled function promises, and how exact it is.

    Parameters
    ----------
    epsilon, error : str
        Rounded up.
    places : tuple of int
        Where the sliders of epsilon and error stand, from 0 to 1000.
    guarantee : Guarantee
        The promise, with its gamma.
    promise : str
        The promise in a sentence.
    exactness : str
        The error in a sentence.
    """

    epsilon: str
    error: str
    places: tuple[int, int]
    guarantee: hs.Guarantee
    promise: str
    exactness: str


def price_release(
    found: Mapping[str, Any], typed: Mapping[str, str], *, mechanism: str = "laplace"
) -> tuple[Priced | None, dict[str, str]]:
    """Price a release of what was sampled, by its epsilon or its error, whichever was moved."""
    form = Words(typed)
    slack = form.number("delta") if mechanism == "gaussian" else 0.0
    if slack is None:
        form.refuse("delta", "Gaussian noise needs a delta, such as 1e-6")
        return None, form.errors
    held = "error" if form.text("moved").startswith("error") else "epsilon"
    law = _Law(found=found, mechanism=mechanism, delta=slack)
    try:
        ends = law.list_ends()
        given = _read_held(form, held, ends)
        if given is None or form.errors:
            return None, form.errors
        epsilon = given if held == "epsilon" else law.find_epsilon(given)
        return law.tell(epsilon, ends), {}
    except HushedError as refused:
        form.refuse("delta" if "delta" in refused.message[:40] else held, refused.message)
        return None, form.errors


def _read_held(form: Words, held: str, ends: tuple[float, float]) -> float | None:
    """Read the field that was moved, or its slider: in steps of equal factors."""
    if form.text("moved") == f"{held}-slider":
        place = form.number(f"{held}-slider")
        low, high = (_LEAST, _MOST) if held == "epsilon" else ends
        return None if place is None else float(f"{low * (high / low) ** (place / 1000):.4g}")
    given = form.number(held, default=None if held == "error" else _USUAL)
    if given is None:
        form.refuse(held, "give a number")
    elif not given > 0:
        form.refuse(held, "this must be above 0")
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class _Law:
    """The noise that a sampled movement needs; where the movement comes from is all one to it."""

    found: Mapping[str, Any]
    mechanism: str
    delta: float

    @property
    def numbers(self) -> int:
        """Count the numbers of an answer."""
        return math.prod(int(each) for each in self.found.get("shape", []))

    def _make(self) -> tuple[Any, Any, dict[str, float]]:
        moves = hs.proven_sensitivity(
            float(self.found["sensitivity"]),
            self.found["norm"],
            neighbours=self.found["neighbours"],
            argument="the movement that a sampling kept",
        )
        if self.mechanism == "laplace":
            return hs.Laplace, moves, {}
        return hs.Gaussian, moves, {"delta": self.delta}

    def find_error(self, epsilon: float) -> float:
        """Find the error that 95 % of releases keep to."""
        kind, moves, more = self._make()
        return float(kind(moves, epsilon=epsilon, **more).accuracy(BETA, self.numbers))

    def find_epsilon(self, error: float) -> float:
        """Find the smallest epsilon that keeps to an error."""
        kind, moves, more = self._make()
        made = kind.for_accuracy(moves, error=error, beta=BETA, dims=self.numbers, **more)
        return float(made.epsilon)

    def list_ends(self) -> tuple[float, float]:
        """Give the errors at the ends of the slider, the smallest first."""
        return self.find_error(_MOST), self.find_error(_LEAST)

    def tell(self, epsilon: float, ends: tuple[float, float]) -> Priced:
        """Say what is promised, and how exact it is."""
        error, found = self.find_error(epsilon), self.found
        promised = hs.Guarantee(
            epsilon=epsilon,
            delta=self.delta,
            gamma=found["gamma"],
            neighbours=found["neighbours"],
            protect=found["protect"],
            unit=found["unit"],
            estimates=tuple((str(name), float(gamma)) for name, gamma in found["estimates"]),
        )
        shown, slack = format_up(error), f", delta {format_up(self.delta)}" if self.delta else ""
        blocks = found["block_rows"]
        answer = "the average over blocks" if blocks else "the answer"
        what = f"{answer} is" if self.numbers == 1 else f"each of {self.numbers} numbers is"
        whose, added = _tell_protected(found)
        told = (
            f"Released is the average of the function over blocks of {blocks} {added}. "
            if blocks
            else ""
        )
        return Priced(
            epsilon=format_up(epsilon),
            error=shown,
            places=(_place(epsilon, _LEAST, _MOST), _place(error, *ends)),
            guarantee=promised,
            promise=(
                f"Privacy loss (epsilon) {format_up(epsilon)}{slack} for {whose}, "
                f"but for a share of {format_up(promised.gamma)} of the cases, in "
                f"which it may be more.{_tell_sizes(found, added)}"
            ),
            exactness=f"{told}With probability 95 %, {what} within {shown} of the one without "
            "noise.",
        )


def _tell_protected(found: Mapping[str, Any]) -> tuple[str, str]:
    """Say who is protected, and what is counted."""
    if found["neighbours"] == "replace-one":
        if found["unit"] == "user":
            return "every person, whose rows may all be replaced together", "people"
        return "everybody whose row may be replaced", "rows"
    if found["unit"] == "user":
        return "every person, who may be there with all rows or not at all", "people"
    return "everybody whose row may be there or not", "rows"


def _tell_sizes(found: Mapping[str, Any], counted: str) -> str:
    """Say which tables are covered where their number of rows is private: none is refused."""
    if found["neighbours"] == "replace-one":
        return ""
    sizes = found["rows"] if isinstance(found["rows"], list) else [found["rows"]]
    told = " or ".join(f"{each:,}" for each in sizes)
    return (
        f" It holds for a table of exactly {told} {counted}; of any other number nothing is "
        "promised, and nothing checks it."
    )


def _place(value: float, low: float, high: float) -> int:
    """Place a number on a slider in steps of equal factors."""
    if not 0 < low < high:
        return 0
    return round(1000 * math.log(min(max(value, low), high) / low) / math.log(high / low))


def write_release(
    sampled: tuple[str, ...],
    priced: Priced,
    *,
    data: str,
    mechanism: str,
    charge: tuple[str, str, str, str],
) -> list[str]:
    """Write the command that releases what was sampled, with its kept trials, and pays for it.

    ``charge`` is the address of the ledger, the budget, the remark and the key.
    """
    ledger, budget, note, key = charge
    norm = sampled.index("--norm")
    same = [each for i, each in enumerate(sampled[1:]) if i + 1 not in (norm, norm + 1)]
    words = ["release", as_argument(data), *same]
    words += ["--mechanism", mechanism, "--epsilon", repr(priced.guarantee.epsilon)]
    if mechanism == "gaussian":
        words += ["--delta", repr(priced.guarantee.delta)]
    words += ["--ledger", ledger, "--budget", budget, "--key", key]
    return words + (["--note", note] if note else [])
