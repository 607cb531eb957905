"""Measure how far a function moves between neighbours drawn from a public population."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hushed import rows as tables
from hushed.errors import BadFunction, BadRows, HushedError, ParameterError
from hushed.fingerprints import identity
from hushed.functions import answer, check_symmetric, probe
from hushed.guarantee import Protect
from hushed.populations import Population, Simulator, description
from hushed.sensitivity.plan import plan
from hushed.sensitivity.ranks import Calibration
from hushed.sensitivity.record import Sampling, Sensitivity
from hushed.spaces import NORMS, Norm, size
from hushed.trials import run_trials, seed_from, streams

__all__ = ["sample_sensitivity"]

Floats = NDArray[np.float64]
Function = Callable[[Any], Any]

# Rows drawn at once in batch mode: about what fits the second-level cache.
_BATCH_ROWS = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Movement:
    """One trial for each generator: the movement of one drawn pair, or of all n of a table."""

    function: Function
    population: Population
    rows: int
    norm: Norm
    symmetric: bool
    at_once: int  # not 0: all rows of each table, each replaced by its own draw
    like: tuple[Any, ...]  # signature of the drawn tables
    shape: tuple[int, ...]
    fresh: bool
    private: bool

    def __call__(self, generators: Iterator[np.random.Generator]) -> Floats:
        return np.array([self._largest(generator) for generator in generators])

    def _largest(self, generator: np.random.Generator) -> float:
        n, function, private = self.rows, self.function, self.private
        count = 2 * n if self.at_once else n + 1
        table = _drawn(self.population, generator, count, self.like, private=private)
        if self.at_once:
            swaps = [(i, n + i) for i in range(n)]
        else:
            swaps = [(n - 1 if self.symmetric else int(generator.random() * n), n)]
        tried = tables.variations(table, n, swaps, fresh=self.fresh)
        base = answer(function, next(tried), private=private)
        largest = 0.0
        for rows in tried:
            largest = max(largest, self._distance(base, answer(function, rows, private=private)))
        return largest

    def _distance(self, base: Floats, other: Floats) -> float:
        if base.shape != other.shape or base.shape != self.shape:
            found = base.shape if base.shape != self.shape else other.shape
            raise BadFunction(
                f"the function's answer changes shape between tables: {self.shape} and {found}; "
                "it must return the same number of values for every table of the same size"
            )
        if not base.shape:
            return abs(float(base) - float(other)) if self.norm != "range" else 0.0
        return float(size((base - other).ravel(), self.norm))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchMovement:
    """One trial for each generator: the movements of a block of pairs, evaluated at once."""

    function: Function
    population: Population
    rows: int
    norm: Norm
    symmetric: bool
    at_once: int  # tables in a block
    like: tuple[Any, ...]  # signature of the drawn tables
    shape: tuple[int, ...]
    fresh: bool
    private: bool

    def __call__(self, generators: Iterator[np.random.Generator]) -> Floats:
        return np.stack([self._measured(generator) for generator in generators])

    def _measured(self, generator: np.random.Generator) -> Floats:
        n, pairs = self.rows, np.arange(self.at_once)
        drawn = _drawn_block(
            self.population, generator, self.at_once, n + 1, self.like, private=self.private
        )
        positions = np.full(self.at_once, n - 1)
        if not self.symmetric:
            positions = generator.integers(n, size=self.at_once)
        view = drawn[:, :n]
        view.flags.writeable = False
        base = self._answers(view)
        drawn[pairs, positions] = drawn[:, n]
        moved = base - self._answers(view)
        return size(moved.reshape(self.at_once, -1), self.norm)

    def _answers(self, view: Floats) -> Floats:
        rows = view.copy() if self.fresh else view
        answers = answer(self.function, rows, private=self.private)
        if answers.shape != (self.at_once, *self.shape):
            raise BadFunction(
                f"with batch=True the function got {self.at_once} tables in an array of shape "
                f"{view.shape} and returned shape {answers.shape}; it must return one answer of "
                f"shape {self.shape} for each table along the first axis"
            )
        return answers


def _drawn(
    population: Population,
    generator: np.random.Generator,
    count: int,
    like: tuple[Any, ...] | None,
    *,
    private: bool,
) -> Any:
    """Rows that the sampler may change; checked for number, and for columns if told ``like``."""
    raised = ""
    try:
        table = population.draw(generator, count)
    except HushedError:
        raise
    except Exception as cause:
        raised = f"the population raised {type(cause).__name__} while drawing {count} rows"
        if not private:
            raise BadRows(f"{raised}: {cause}") from cause
    if raised:
        raise BadRows(f"{raised}; its message is withheld, for it may contain a private value")
    found = tables.signature(table)
    if len(table) != count:
        raise BadRows(f"the population was asked for {count} rows and gave {len(table)}")
    if like is not None and found != like:
        raise BadRows("the population gave tables with different columns at different draws")
    if isinstance(table, np.ndarray):
        flags = table.flags
        if not (flags.owndata and flags.writeable):
            return table.copy()  # its memory may be shared with another draw
    return table


def _drawn_block(
    population: Population,
    generator: np.random.Generator,
    block: int,
    count: int,
    like: tuple[Any, ...],
    *,
    private: bool,
) -> Floats:
    """Tables stacked along a first axis; a simulator is asked for one table at a time."""
    if isinstance(population, Simulator):
        each = [_drawn(population, generator, count, like, private=private) for _ in range(block)]
        return np.stack(each)
    drawn: Floats = _drawn(population, generator, block * count, like, private=private)
    return drawn.reshape(block, count, *drawn.shape[1:])


def sample_sensitivity(
    f: Function,
    population: Population,
    *,
    rows: int,
    norm: Norm = "l1",
    gamma: float | None = None,
    calibration: Calibration = "training-conditional",
    pairs: int | None = None,
    protect: Protect = "record",
    batch: bool = False,
    symmetric: bool = False,
    data_dependent: bool = False,
    seed: int | np.random.Generator | None = 0,
    workers: int | None = None,
    progress: bool = False,
) -> Sensitivity:
    """Measure how far a function moves between neighbours, for all but a gamma share of them.

    Draws pairs of tables that differ in one row from a public population, evaluates the function
    on both, and keeps one of the largest movements: which one follows from gamma.

    Parameters
    ----------
    f : callable
        The function of the rows: deterministic, returning a number or an array of numbers of
        fixed shape. It is given the container that the population yields and must not change it.
    population : Population
        Public source of independent rows. Never the private rows, nor anything fitted to them.
    rows : int
        Rows in the private table; 2 or more. A release on another number of rows is refused.
    norm : {"l1", "l2", "sup", "range"}, default "l1"
        How movement is measured: l1 for Laplace, l2 for Gaussian, sup for exponential and
        Bernstein, range (largest minus smallest change) for the exponential mechanism.
    gamma : float, optional
        Probability with which the promise may fail; in (0, 1). Without ``gamma`` and ``pairs``
        it is 0.05; with ``pairs`` alone it is the smallest that they support.
    calibration : {"training-conditional", "marginal", "dkw"}, default "training-conditional"
        How the rank is chosen; see `choose_rank`.
    pairs : int, optional
        Pairs to draw (tables, under ``protect="simultaneous"``); as few as gamma allows by
        default.
    protect : {"record", "everyone", "simultaneous"}, default "record"
        ``"record"``: gamma is per record. ``"everyone"``: gamma covers all n records at once, by
        the union bound (level gamma / n per pair). ``"simultaneous"``: the same statement, by
        taking the largest movement over the n rows of each drawn table, each replaced by its own
        fresh draw (n + 1 evaluations per table).
    batch : bool, default False
        Hand the function an array (tables, rows, columns) at once; it returns one answer for
        each table along the first axis.
    symmetric : bool, default False
        Declare that the order of the rows does not matter: the last row is then replaced instead
        of a random one.
    data_dependent : bool, default False
        Admit that the population was made from the private rows. Guarantee and certificate are
        then marked as nominal.
    seed : int, numpy.random.Generator or None, default 0
        Seed of the sampler, which must not depend on the private rows; None draws a fresh one.
        The result is the same for any number of workers.
    workers : int, optional
        Worker processes; see `hushed.trials.run_trials`.
    progress : bool, default False
        Show a progress bar on standard error, if that is a terminal.

    Returns
    -------
    Sensitivity
        The kept movement, in the units of the answer, with gamma and all that is needed to
        measure it again.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    TooFewPairs
        If ``pairs`` cannot support ``gamma``; the message says how many can.
    BadFunction, RandomFunction
        If the function raises, changes its input, is random, or returns something else than
        finite numbers of one shape.
    BadRows
        If the population gives a wrong number of rows or an unknown container.

    Notes
    -----
    Rubinstein and Alda, *Pain-Free Random Differential Privacy with Sensitivity Sampling*,
    ICML 2017, Algorithm 1, with the replaced position drawn at random, so that statements hold
    for every position on average when the order of the rows matters.

    Examples
    --------
    >>> import hushed as hs
    >>> ages = hs.populations.Uniform(low=0, high=100)
    >>> s = hs.sample_sensitivity(lambda rows: rows.mean(), ages, rows=500, gamma=0.05)
    >>> s.pairs, s.value < 100 / 500
    (112, True)
    """
    _check(rows, norm, pairs, protect, batch=batch)
    rank, total = plan(calibration, rows=rows, gamma=gamma, pairs=pairs, protect=protect)
    rows, used = int(rows), seed_from(seed)
    described = description(population)
    first = _drawn(population, next(streams(used, 0, 1)), rows + 1, None, private=data_dependent)
    if batch and not isinstance(first, np.ndarray):
        raise ParameterError(
            "batch=True needs a population that gives NumPy arrays, "
            f"this one gives {tables.layout(first)}"
        )
    shown = first[:rows] if not batch else first[None, :rows]
    known = probe(f, shown, private=data_dependent)
    if symmetric:
        check_symmetric(f, shown, batch=batch, private=data_dependent)
    shape = known.shape[1:] if batch else known.shape
    block = min(max(1, _BATCH_ROWS // (rows + 1)), rank.pairs) if batch else 1
    evaluate = (_BatchMovement if batch else _Movement)(
        function=f,
        population=population,
        rows=rows,
        norm=norm,
        symmetric=symmetric,
        at_once=block if batch else int(protect == "simultaneous"),
        like=tables.signature(first),
        shape=shape,
        fresh=known.fresh,
        private=data_dependent,
    )
    trials = -(-rank.pairs // block)
    with _progress(trials, shown=progress) as report:
        found = run_trials(evaluate, trials, seed=used, workers=workers, report=report)
    draws = np.sort(found.ravel()[: rank.pairs])
    draws.flags.writeable = False
    sampling = Sampling(
        calibration=calibration,
        pairs=rank.pairs,
        rank=rank.rank,
        gamma=total,
        share=rank.share,
        luck=rank.luck,
        asked_gamma=total if gamma is not None or pairs is None else None,
        asked_pairs=None if pairs is None else int(pairs),
        protect=protect,
        rows=rows,
        seed=used,
        symmetric=symmetric,
        batch=batch,
        population=described,
        source=population,
        called=f,
        data_dependent=data_dependent,
        layout=tables.layout(first),
        shape=shape,
        function=getattr(f, "__qualname__", type(f).__name__),
        identity=identity(f),
        draws=draws,
    )
    return Sensitivity(
        value=float(draws[rank.rank - 1]),
        norm=norm,
        argument=f"sampled: movement {rank.rank} of {rank.pairs}, {calibration} calibration",
        sampling=sampling,
    )


def _check(rows: int, norm: Norm, pairs: int | None, protect: Protect, *, batch: bool) -> None:
    """Refuse parameters that make no sense before anything is drawn."""
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 2:
        raise ParameterError(
            f"rows must be an integer of 2 or more, got {rows!r}: neighbours differ in one row "
            "and share the others"
        )
    if norm not in NORMS:
        raise ParameterError(f"norm must be one of {NORMS}, got {norm!r}")
    if protect not in get_args(Protect):
        raise ParameterError(f"protect must be one of {get_args(Protect)}, got {protect!r}")
    if batch and protect == "simultaneous":
        raise ParameterError("batch=True measures single pairs: not with protect='simultaneous'")
    if pairs is not None and (isinstance(pairs, bool) or not isinstance(pairs, int | np.integer)):
        raise ParameterError(f"pairs must be an integer, got {pairs!r}")


@contextmanager
def _progress(trials: int, *, shown: bool) -> Iterator[Callable[[int], None] | None]:
    if not (shown and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring movement", total=trials)
        yield lambda finished: bar.advance(task, finished)
