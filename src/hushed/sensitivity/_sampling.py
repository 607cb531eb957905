"""Measure how far a function moves between neighbours drawn from a public population."""

from __future__ import annotations

from typing import get_args

import numpy as np

from hushed._checks import is_whole, require_one_of
from hushed._functions._trials import seed_from
from hushed.errors import ParameterError
from hushed.guarantee import Protect, RowUnit
from hushed.populations import Population
from hushed.sensitivity._blockwise import Blockwise
from hushed.sensitivity._pairs import Function
from hushed.sensitivity._plan import plan
from hushed.sensitivity._ranks import Calibration
from hushed.sensitivity._record import Sensitivity, describe_sampling
from hushed.sensitivity._sampler import Request, run_sampling
from hushed.spaces import NORMS, Norm

_MOST_PAIRS = 10_000_000  # drawn without being asked for: minutes at least


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
    unit: RowUnit = "row",
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
        A `Blockwise` function is measured on tables of one block.
    population : Population
        Public source of independent rows. Never the private rows, nor anything fitted to them.
        The pairs drawn from a `PublicTable` have no row in common, so that it must be larger than
        the private table many times over; `Blockwise` and its ``promise`` are the ways out.
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
        default, but more than ten million only if the number is given.
    protect : {"record", "everyone", "simultaneous"}, default "record"
        ``"record"``: gamma is per record. ``"everyone"``: gamma covers all n records at once, by
        the union bound (level gamma / n per pair). ``"simultaneous"``: the same statement, by
        taking the largest movement over the n rows of each drawn table, each replaced by its own
        fresh draw (n + 1 evaluations per table).
    batch : bool, default False
        Hand the function an array (tables, rows, columns) at once; it returns one answer for
        each table along the first axis. Tried: some tables of a block are asked on their own.
    symmetric : bool, default False
        Declare that the order of the rows does not matter: the last row is then replaced instead
        of a random one. Tried: on three tables, rows are reversed and shuffled, and the last one
        changes places with a random one; none may move the answer by more than a millionth of
        the sensitivity.
    data_dependent : bool, default False
        Admit that the population was made from the private rows. Guarantee and certificate are
        then marked as nominal.
    unit : {"row", "person"}, default "row"
        ``"person"`` declares that each row is one person: certificates then speak of people. What
        is promised is the same, for rows.
    seed : int, numpy.random.Generator or None, default 0
        Seed of the sampler, which must not depend on the private rows; None draws a fresh one.
        The result is the same for any number of workers.
    workers : int, optional
        Worker processes; see `hushed._functions._trials.run_trials`.
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
    TooFewRows
        If a public table has too few rows for ``gamma``; the message says how many would be
        enough, and which gamma they support.
    BadFunction, RandomFunction
        If the function raises, changes its input, is random, returns something else than finite
        numbers of one shape, or is not what it was declared to be.
    BadRows
        If the population gives a wrong number of rows or an unknown container, or its rows do
        not follow from the generator it is given.

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
    _check(rows, norm, pairs, protect, unit, batch=batch)
    rows, seed = int(rows), seed_from(seed)
    blocks = _blocks(f, rows, norm, batch=batch)
    rank, total = plan(
        calibration, rows=rows, gamma=gamma, pairs=pairs, protect=protect, blocks=blocks
    )
    if pairs is None:
        _check_cost(rank.pairs, total, protect)
    request = Request(
        function=f,
        population=population,
        rows=rows,
        blocks=blocks,
        norm=norm,
        calibration=calibration,
        rank=rank,
        gamma=total,
        requested_gamma=total if gamma is not None or pairs is None else None,
        asked_pairs=None if pairs is None else int(pairs),
        protect=protect,
        batch=batch,
        symmetric=symmetric,
        data_dependent=data_dependent,
        seed=seed,
    )
    sampling = run_sampling(request, workers=workers, progress=progress)
    return Sensitivity(
        value=float(sampling.draws[rank.rank - 1]),
        norm=norm,
        argument=describe_sampling(rank.rank, rank.pairs, calibration, blocks),
        sampling=sampling,
        person=unit == "person",
    )


def _check(
    rows: int, norm: Norm, pairs: int | None, protect: Protect, unit: RowUnit, *, batch: bool
) -> None:
    """Refuse parameters that make no sense before anything is drawn."""
    if not is_whole(rows) or rows < 2:
        raise ParameterError(
            f"rows must be an integer of 2 or more, got {rows!r}: neighbours differ in one row "
            "and share the others",
            parameter="rows",
        )
    require_one_of("norm", norm, NORMS)
    require_one_of("protect", protect, get_args(Protect))
    if batch and protect == "simultaneous":
        raise ParameterError("batch=True measures single pairs: not with protect='simultaneous'")
    if pairs is not None and not is_whole(pairs):
        raise ParameterError(f"pairs must be an integer, got {pairs!r}", parameter="pairs")
    if unit not in get_args(RowUnit):
        raise ParameterError(
            f"unit must be one of {get_args(RowUnit)}, got {unit!r}; a user with several rows "
            "needs a proven sensitivity, or a table query",
            parameter="unit",
        )


def _check_cost(pairs: int, gamma: float, protect: Protect) -> None:
    """Refuse to start what nobody would wait for, unless the number is asked for."""
    if pairs > _MOST_PAIRS:
        drawn = "tables" if protect == "simultaneous" else "pairs of tables"
        part = "" if protect == "record" else f" with protect={protect!r}"
        raise ParameterError(
            f"gamma={gamma:g}{part} takes {pairs:,} {drawn}, and more than {_MOST_PAIRS:,} are not "
            "drawn unless they are asked for: take a larger gamma, or give the number of pairs",
            parameter="pairs",
            hint=f"as in pairs={pairs}",
        )


def _blocks(f: Function, rows: int, norm: Norm, *, batch: bool) -> int:
    """Count the blocks whose answers the function averages; 1 if it takes the table whole."""
    if type(f) is not Blockwise:  # a subclass may do something else than average
        return 1
    if batch != f.batch:
        raise ParameterError(
            "batch=True stacks tables: with hs.Blockwise say it there, too, batch=True in both"
        )
    # An average is held to a limit, which keeps ranges if no score is above the best one's 0.
    if norm == "range" and not f.relative:
        raise ParameterError(
            "averages over blocks need scores that are counted from the best of each block in the "
            "norm 'range': hs.Blockwise(f, rows=..., relative=True)",
            parameter="norm",
        )
    return f.blocks(rows)
