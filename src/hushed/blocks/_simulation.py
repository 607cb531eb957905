"""What the error would be, tried on public rows; and a public guess of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._isolation import Isolation
from hushed._functions._kept import run_kept
from hushed._functions._streams import Streams
from hushed._functions._turns import Turn
from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_within
from hushed._ground.notebook import Shown
from hushed._ground.numeric import kept_to
from hushed._ground.printing import format_up, percent_up
from hushed._ground.progress import show_progress
from hushed._ground.types import Floats, Integers
from hushed.blocks._calls import answered_with_none, ask_here, ask_once, open_calls
from hushed.blocks._choosing import Ranks, Votes, read_numbers
from hushed.blocks._parts import split_rows
from hushed.blocks._tried import note_trial
from hushed.engines._choice import Workers
from hushed.errors import BadFunction, ParameterError
from hushed.populations import Population
from hushed.populations._drawing import count_public, draw_shown, give_units, say_shared
from hushed.runs import Keep
from hushed.statistics._mode import Statistic, place_of, read_categories
from hushed.statistics._priors import make_prior

if TYPE_CHECKING:
    from hushed.blocks._mechanism import Blocks

_DRAWS = 200  # of the noise for each table
_FEW = 8  # blocks that tell early whether calls fail
_GUESSED, _SIMULATED, _ELSEWHERE = 0, 1, 2  # what is drawn with a seed: each has its own stream
_TRIED = 64  # blocks before a function is refused: one that fails on 60 % fails on all by 1e-14


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Simulation(Shown):
    """Errors of blocks on tables of a public population.

    An error is the distance from the released value to the function on the whole table; of labels
    it is 0 or 1.

    Parameters
    ----------
    error_50, error_95 : float
        Half of the released values, and 95 % of them, are no farther away.
    error_of_blocks : float
        Median error of the blocks alone, without noise: what their small size costs.
    failed : float
        Share of calls that failed, took too long or answered with something else.
    calls : int
        Calls of the function, those on whole tables included.
    trials, rows, blocks : int
        Tables, their number of rows, or of users where `unit` says so, and the blocks of each.
    isolated : bool
        Whether the calls were in processes of their own, as those of a release.
    remark : str
        That the tables share rows, where a public table is too small for tables of their own.
    unit : str
        What `rows` counts: "row", or "user" for blocks of whole users.
    """

    error_50: float
    error_95: float
    error_of_blocks: float
    failed: float
    calls: int
    trials: int
    rows: int
    blocks: int
    isolated: bool
    remark: str = ""
    unit: str = "row"

    def __str__(self) -> str:
        """Say it in one line."""
        where = "" if self.isolated else ", in one process: what it keeps between calls is not seen"
        return (
            f"{self.trials} public tables of {self.rows} {self.unit}s in {self.blocks} blocks: "
            f"error {format_up(self.error_50, 3)} (median), {format_up(self.error_95, 3)} (95 %); "
            f"without noise {format_up(self.error_of_blocks, 3)}; "
            f"{percent_up(self.failed)} % of the calls failed"
            f"{where}" + (f". {self.remark}" if self.remark else "")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableTrial:
    """What a simulation finds on the table of each trial: failed calls, then errors.

    `calls` are open processes; without them each span of trials opens its own, for one call at a
    time: several may run on one machine.
    """

    mechanism: Blocks
    function: Callable[[Any], Any]
    population: Population
    rows: int
    seed: int
    isolated: bool
    calls: Isolation | None = None

    def __call__(self, generators: Streams) -> Floats:
        """Return one row for each trial."""
        opened: Any = nullcontext(self.calls)
        if self.isolated and self.calls is None:
            opened = open_calls(self.mechanism, self.function, 1, at_once=1)
        with opened as calls:
            ask = partial(ask_here, self.mechanism, self.function) if calls is None else calls.call
            return np.array([self._measure(ask, generators.trial) for _ in generators])

    def _measure(self, ask: Callable[..., Floats], trial: int) -> list[float]:
        """Count calls that failed; the error without noise, and errors with it."""
        mechanism, drawn = self.mechanism, self.mechanism.aggregation
        rng = np.random.default_rng([self.seed, trial, _SIMULATED])
        table = draw_shown(self.population, rng, self.rows)
        whole = _read_whole(mechanism, ask_once(mechanism, self.function, table))
        parts = _split(mechanism, table, rng)
        answers = self._ask_first(ask, parts) if trial == 0 else ask(parts)
        failed = int(np.isnan(answers.reshape(len(answers), -1)).any(axis=1).sum())
        noisy = [_distance(each, whole) for each in drawn.imitate(answers, rng, _DRAWS)]
        return [failed, _distance(drawn.middle(answers), whole), *noisy]

    def _ask_first(self, ask: Callable[..., Floats], parts: list[Any]) -> Floats:
        """Ask about the blocks of the first table; refuse a function that never answers."""
        few, rest = parts[:_FEW], parts[_FEW:]
        answers = ask(few)
        if len(few) == _FEW and _all_failed(answers) and self._fails_elsewhere(ask):
            self._refuse_silent(few[0])
        if not rest:
            return answers
        return np.concatenate([answers, ask(rest, **self._numbered(_FEW, len(rest)))])

    def _fails_elsewhere(self, ask: Callable[..., Floats]) -> bool:
        """Whether all calls on further public blocks fail, too: to fail mostly is allowed."""
        rng, asked = np.random.default_rng([self.seed, 0, _ELSEWHERE]), _FEW
        while asked < _TRIED:
            table = draw_shown(self.population, rng, self.rows)
            parts = _split(self.mechanism, table, rng)[: _TRIED - asked]
            if not _all_failed(ask(parts, **self._numbered(asked, len(parts)))):
                return False
            asked += len(parts)
        return True

    def _numbered(self, first: int, calls: int) -> dict[str, range]:
        """Give calls in processes of their own the seeds that follow."""
        return {"seeds": range(first, first + calls)} if self.isolated else {}

    def _refuse_silent(self, part: Any) -> NoReturn:
        """Say why each call failed on public blocks, as far as this process can tell."""
        silent = f"each call on the first {_TRIED} blocks of public tables failed"
        try:
            ask_once(self.mechanism, self.function, part)
        except BadFunction as failure:
            raise BadFunction(f"{silent}: {failure}") from failure
        raise BadFunction(
            f"{silent}, or gave no answer of the right shape. In this process the function answers "
            "(isolated=False asks here): a call of its own has limits (limits=), an empty folder, "
            "and nothing that was made in this process meanwhile"
        )


def simulate(
    mechanism: Blocks,
    f: Callable[[Any], Any],
    population: Population,
    rows: int,
    *,
    trials: int,
    seed: int,
    isolated: bool,
    workers: Workers,
    progress: bool,
    keep: str | PathLike[str] | Keep | None,
) -> Simulation:
    """Draw tables, ask the function about the whole and about the blocks, and draw noise often."""
    _check_asked(f, population)
    rows, trials = require_count("rows", rows), require_count("trials", trials)
    population = give_units(population, mechanism.user)
    unit = "row" if mechanism.user is None else "user"
    trial = _TableTrial(
        mechanism=mechanism,
        function=f,
        population=population,
        rows=rows,
        seed=seed,
        isolated=isolated,
    )
    with (
        open_calls(mechanism, f, 1) if isolated and workers == 1 else nullcontext() as calls,
        show_progress("asking about public tables", trials, shown=progress) as report,
    ):
        found = run_kept(
            replace(trial, calls=calls),
            trials,
            seed=0,
            workers=workers,
            keep=keep,
            name=f"simulation of {getattr(f, '__qualname__', type(f).__name__)}",
            content=(trial, _SIMULATED),
            report=report,
        )
    note_trial(f)
    blocks = int(mechanism.blocks or 1)
    return Simulation(
        error_50=kept_to(found[:, 2:], 0.5),
        error_95=kept_to(found[:, 2:], 0.95),
        error_of_blocks=float(np.median(found[:, 1])),
        failed=int(found[:, 0].sum()) / (trials * blocks),
        calls=trials * (blocks + 1),
        trials=trials,
        rows=rows,
        blocks=blocks,
        isolated=isolated,
        remark=say_shared(count_public(population), rows, trials, unit),
        unit=unit,
    )


def _all_failed(answers: Floats) -> bool:
    return bool(np.isnan(answers.reshape(len(answers), -1)).any(axis=1).all())


def _split(mechanism: Blocks, table: Any, rng: np.random.Generator) -> list[Any]:
    """Deal public rows to blocks by a seeded generator."""
    mechanism.check(table)

    def draw(bound: int, count: int) -> Integers:
        return rng.integers(bound, size=count)

    blocks = int(mechanism.blocks or 1)
    return split_rows(table, blocks, mechanism.user, even=mechanism.even, draw=draw)


def _check_asked(f: Any, population: Any) -> None:
    if isinstance(f, Statistic):
        raise ParameterError(
            "blocks are asked with a function: give one that computes the statistic on however "
            "many rows"
        )
    if not callable(f):
        raise ParameterError(f"the first argument must be a function, got {type(f).__name__}")
    if not isinstance(population, Population):
        raise ParameterError(
            "the population must be a public source of rows, from hs.populations, with methods "
            "draw(rng, count) and describe(); rows that are public are said to be so by "
            f"PublicTable(rows). Got {type(population).__name__}",
            parameter="population",
        )


def _read_whole(mechanism: Blocks, whole: Floats) -> Any:
    """Answer on the whole table, as it is released."""
    wanted = mechanism.aggregation.shape
    if whole.shape != wanted:
        raise BadFunction(
            f"the function's answer has shape {whole.shape}, where "
            + (
                f"shape {wanted} is asked for"
                if wanted
                else "one number is asked for: return answer[0], say, or give aggregate='vector'"
            )
        )
    if not mechanism.labelled:
        return whole if wanted else float(whole)
    if math.isnan(float(whole)):
        raise answered_with_none(mechanism.values)
    return mechanism.values[int(whole)]


def _distance(released: Any, whole: Any) -> float:
    if released is None:  # a refusal is an error, too
        return 1.0
    if isinstance(whole, np.ndarray):
        return float(np.linalg.norm(released - whole))
    if isinstance(whole, float) and not isinstance(released, str):
        return abs(float(released) - whole)
    return float(released != whole)


@called_as("hs.public_prior(f, population, rows=1000, blocks=20, candidates=range(101))")
def public_prior(
    f: Callable[[Any], Any],
    population: Population,
    *,
    rows: int,
    blocks: int,
    candidates: Sequence[Any],
    floor: float = 0.1,
    draws: int = 200,
    seed: int = 0,
    progress: bool = False,
    user: str | int | None = None,
) -> tuple[float, ...]:
    """Guess what blocks will answer, from a public population, as weights for `hushed.Blocks`.

    With a good guess far fewer blocks are enough. A wrong one costs accuracy, and no privacy.

    Parameters
    ----------
    f : callable
        The function; it is called in this process, on public rows.
    population : Population
        Public source of rows, thought to be like the private ones.
    rows, blocks : int
        Rows of the private table, roughly, and blocks that it will be dealt to.
    candidates : sequence of float, or of labels
        What is chosen from, as `Blocks` takes it.
    floor : float, default 0.1
        Share of all weight that is spread evenly over the candidates; in [0, 1]. What the
        population never answers has no other weight.
    draws : int, default 200
        Public blocks to ask about.
    seed : int, default 0
        Seed of the draws.
    progress : bool, default False
        Show a progress bar in a terminal or a notebook.
    user : str or int, optional
        Column that says whose a row is, as `Blocks` takes it. Then `rows` counts users, and each
        block has users with all their rows.

    Returns
    -------
    tuple of float
        Weight of each candidate; their sum is 1. A release of the very rows that the population
        holds refuses them.

    Raises
    ------
    ParameterError
        If a parameter cannot be used.
    BadFunction
        If the function fails on every public block.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> people = hs.populations.Normal(mean=3.0, std=1.0)
    >>> values = np.linspace(0, 10, 11)
    >>> prior = hs.public_prior(np.median, people, rows=1000, blocks=10, candidates=values)
    >>> round(prior[3], 2)
    0.91
    """
    _check_asked(f, population)
    require_within("floor", floor, 0, 1)
    size = max(1, require_count("rows", rows) // require_count("blocks", blocks))
    given = np.asarray(candidates)
    ascending = given.dtype.kind in "iuf" and bool((np.diff(given) > 0).all())
    find = _find_number if ascending else _find_label  # numbers in any other order are labels
    count, place = find(candidates)
    counts, last, source = np.zeros(count), None, give_units(population, user)
    draws = require_count("draws", draws)
    with show_progress("asking about public blocks", draws, shown=progress) as report:
        for draw in range(draws):
            rng = np.random.default_rng([seed, draw, _GUESSED])
            table = draw_shown(source, rng, size)
            if report is not None and draw:
                report(1)
            try:
                found = place(f, table)
            except BadFunction as failure:
                last = failure
                continue
            if found is not None:
                counts[found] += 1
    if not counts.any():
        raise BadFunction(
            f"the function gave no answer on {draws} public blocks of {size} rows"
        ) from last
    note_trial(f)
    weights = (1 - floor) * counts / counts.sum() + floor / count
    return make_prior(weights.tolist(), (f, population))


Find = Callable[[Callable[[Any], Any], Any], int | None]


def _find_number(candidates: Sequence[float]) -> tuple[int, Find]:
    ranks = Ranks(read_numbers(candidates), 1.0)

    def place(f: Callable[[Any], Any], table: Any) -> int:
        found = answer(f, table, private=False)
        return int(ranks.round(found.reshape(-1)[:1])[0])

    return len(ranks.values), place


def _find_label(candidates: Sequence[Any]) -> tuple[int, Find]:
    votes = Votes(read_categories(candidates, "candidates"), 1.0)
    places = {each: at for at, each in enumerate(votes.values)}

    def place(f: Callable[[Any], Any], table: Any) -> int | None:
        try:
            with Turn(f):
                found = place_of(f(table), places)
        except Exception as cause:
            raise BadFunction(f"the function raised {type(cause).__name__}") from cause
        return found if found < len(places) else None

    return len(places), place
