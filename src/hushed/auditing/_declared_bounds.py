"""Declared sensitivities on a population: which share of its pairs moves farther than declared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._kept import run_kept
from hushed._functions._streams import Streams
from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_one_of
from hushed._ground.decimals import decimal_of, read
from hushed._ground.notebook import Shown
from hushed._ground.printing import as_given, format_down, format_up
from hushed._ground.types import Floats
from hushed.auditing._audit import allowed_error
from hushed.auditing._bounds import clopper_pearson_high, clopper_pearson_low
from hushed.auditing._pairs import Pair
from hushed.auditing._population import DrawnPairs, PopulationPairs, prepare_pairs
from hushed.auditing._sensitivity import (
    check_tolerance,
    is_beyond,
    measure_movement,
    read_declaration,
    refuse_unsteady,
    round_movement,
)
from hushed.auditing._vacuous import require_orderless, require_refutable
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import BadFunction, ParameterError
from hushed.guarantee import Neighbours
from hushed.populations import Population, by_user
from hushed.populations._users import column_of_users
from hushed.runs import Keep
from hushed.spaces import NORMS, Norm, SensitivityBound

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SensitivityTest(Shown):
    """What pairs drawn from a population say of a declared sensitivity.

    Parameters
    ----------
    verdict : {"refuted", "not refuted"}
        ``"refuted"``: with ``gamma = 0`` a pair moves farther than declared, which needs no
        statistics; with gamma above 0 more than a share gamma of pairs does, with the confidence.
        ``"not refuted"`` is never a proof.
    declared : float
        The declared bound.
    gamma : float
        Share of pairs that was declared to move farther.
    norm : {"l1", "l2", "sup", "range"}
        Norm of the movement.
    pairs, violations : int
        Pairs drawn, and how many of them move farther than declared.
    share_low, share_high : float
        Clopper-Pearson bounds on the share of all pairs that moves farther. Each holds with the
        confidence; both together with twice the error.
    confidence : float
        Confidence of each of the bounds.
    largest : float
        Largest movement; infinite if the answer changed its shape or failed on one side.
    worst : Pair
        Where it moved so far: two tables of public rows.
    rounding : bool
        True if the largest movement exceeds the bound by less than a billionth of it, which is how
        doubles compute, and not what the function is.
    seed : int
        Seed of the pairs.
    unanswered : int
        Pairs on which the function failed on both tables: they count as moving nothing.
    """

    verdict: Literal["refuted", "not refuted"]
    declared: float
    gamma: float
    norm: Norm
    pairs: int
    violations: int
    share_low: float
    share_high: float
    confidence: float
    largest: float
    worst: Pair
    rounding: bool
    seed: int
    unanswered: int

    def explain(self) -> str:
        """Say it in words.

        Returns
        -------
        str
            The verdict, the two bounds, the worst pair and what was not seen.
        """
        share = f", for all but a share {format_up(self.gamma)} of pairs" if self.gamma else ""
        return " ".join(
            (
                f"{self.verdict.upper()}: a sensitivity of {self.declared!r} in the {self.norm} "
                f"norm{share}.",
                f"{self.violations} of {self.pairs} pairs drawn from the population move farther.",
                f"The share of such pairs is at least {format_down(self.share_low, 3)}, and at "
                f"most {format_up(self.share_high, 3)}, each with confidence "
                f"{format_down(self.confidence)}.",
                f"The largest movement is {self.largest!r} ({self.worst.name}).",
                *self._describe_unanswered(),
                *self._describe_rest(),
            )
        )

    def __str__(self) -> str:
        return self.explain()

    def _describe_unanswered(self) -> tuple[str, ...]:
        if not self.unanswered:
            return ()
        return (
            f"On {self.unanswered} of the pairs the function failed on both tables, which counts "
            "as no movement: of answers there they say nothing.",
        )

    def _describe_rest(self) -> tuple[str, ...]:
        if self.rounding:
            return (
                "It exceeds the bound by less than a billionth of it, by rounding in floating "
                "point: declare that much more, or pass over it with tolerance=1e-9.",
            )
        if self.verdict == "not refuted":
            return (
                "Not refuted is not verified: nothing is said of pairs that the population does "
                "not yield, and rare ones may have been missed.",
            )
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Plain record.

        Returns
        -------
        dict
            What JSON can hold; an infinite movement is None, and the tables are left out.
        """
        return {
            "verdict": self.verdict,
            "declared": self.declared,
            "gamma": self.gamma,
            "norm": self.norm,
            "pairs": self.pairs,
            "violations": self.violations,
            "share_low": self.share_low,
            "share_high": self.share_high,
            "confidence": self.confidence,
            "largest": self.largest if math.isfinite(self.largest) else None,
            "worst": self.worst.name,
            "rounding": self.rounding,
            "seed": self.seed,
            "unanswered": self.unanswered,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Movements:
    """How far each pair moves, whether farther than declared, and whether nothing was answered."""

    function: Callable[[Any], Any]
    pairs: DrawnPairs
    norm: Norm
    limit: float
    tolerance: float

    def __call__(self, streams: Streams) -> Floats:
        """One row for each trial, which is the pair of that number."""
        return np.array([self._measure(streams.trial) for _ in streams], dtype=np.float64)

    def _measure(self, number: int) -> tuple[float, bool, bool]:
        moved = measure_movement(self.function, self.pairs.draw(number), self.norm)
        beyond = is_beyond(moved.size, self.limit, self.tolerance, self.norm)
        failed = moved.cause == "failure" and not moved.size
        return round_movement(moved.size, self.norm), beyond, failed


@called_as("hs.test_sensitivity(f, population, 100, bound=1.0)")
@opens_engine
def test_sensitivity(
    f: Callable[[Any], Any],
    population: Population,
    rows: int,
    *,
    bound: float | SensitivityBound,
    gamma: float | None = None,
    pairs: int = 1000,
    confidence: float = 0.95,
    norm: Norm = "l1",
    neighbours: Neighbours = "replace-one",
    user: str | int | None = None,
    symmetric: bool = False,
    tolerance: float = 0.0,
    seed: int | None = 0,
    workers: Workers = 1,
    keep: str | PathLike[str] | Keep | None = None,
) -> SensitivityTest:
    """Test a declared sensitivity on pairs of neighbours drawn from a population.

    Parameters
    ----------
    f : callable
        ``f(rows)``; gives a number or an array of numbers.
    population : Population
        Public source of rows, such as `hushed.populations.PublicTable`. Of a public table no two
        pairs share a row, but under ``promise="table"``, where rows are drawn with replacement.
    rows : int
        Rows of a table, or with ``user`` its users; 2 or more.
    bound : float or sensitivity
        What is declared; a sensitivity brings its norm, its neighbours and its gamma along.
    gamma : float, optional
        Share of pairs that may move farther, in [0, 1): 0 for a bound that is said to hold always.
        By default that of a sensitivity, and 0 for a number.
    pairs : int, default 1000
        Pairs to draw; 59 are enough to bound the share by 0.05 at confidence 0.95, and 2,995 to
        bound it by 0.001, if none moves farther.
    confidence : float, default 0.95
        Confidence of each bound on the share; in (0.5, 1).
    norm : {"l1", "l2", "sup", "range"}, default "l1"
        Norm of the movement.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    user : str or int, optional
        Column that says whose a row is: then the population gives users with all their rows, as in
        `hushed.sample_sensitivity`, and two tables differ in all rows of one user. The function
        finds 0, 1, 2, ... in it.
    symmetric : bool, default False
        True if the order of the rows has no effect: then the last row, or user, changes instead
        of one at a random position. Tried on a few orders of a few tables.
    tolerance : float, default 0
        Share of the bound that a movement may exceed it by; 1e-9 passes over rounding.
    seed : int or None, default 0
        Seed of the pairs; None for fresh entropy.
    workers : int, str, Engine or distributed.Client, default 1
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`. What is found is the same.
    keep : str, path or hushed.runs.Keep, optional
        Folder, or address of an object store, in which movements are kept: the same call goes on
        where an earlier one was interrupted.

    Returns
    -------
    SensitivityTest
        ``"refuted"`` or ``"not refuted"``, never verified, with the worst pair. Movements are
        compared as exact fractions. An answer that changes its shape or names, or that fails on
        one of two tables, moves infinitely far.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, a public table has too few rows for the pairs, or the
        sensitivity is not about one row, or user, of so many (or has
        ``calibration="marginal"``), or users are given without their column, or the pairs are too
        few to refute the bound whatever they show.
    BadFunction
        If the function gives no answer on any of the tables: then nothing was tested; if it is
        random, as `RandomFunction`; if it is not symmetric, though declared so.
    BadRows
        If the rows of the population are not independent.

    Notes
    -----
    An exact binomial test: Clopper and Pearson, *The use of confidence or fiducial limits*,
    Biometrika 26, 1934. That no such test can verify: Gilbert and McMillan, *Property Testing for
    Differential Privacy*, 2018.

    Examples
    --------
    >>> import hushed as hs
    >>> ages = hs.populations.Uniform(low=0, high=100)
    >>> found = hs.test_sensitivity(lambda rows: rows.mean(), ages, 50, bound=1.0, pairs=200)
    >>> found.verdict, found.violations > 20
    ('refuted', True)
    """
    if user is None and (named := column_of_users(population)) is not None:
        raise ParameterError(f"the population draws users: say user={named!r}", parameter="user")
    declared = read_declaration(bound, norm, neighbours, rows=rows, user=user, parameter="bound")
    limit, norm, neighbours, own = declared
    gamma = own if gamma is None else gamma
    require_one_of("norm", norm, NORMS)
    require_one_of("neighbours", neighbours, get_args(Neighbours))
    check_tolerance(tolerance)
    share, alpha, root = _read_share(gamma), allowed_error(confidence), seed_from(seed)
    source = PopulationPairs(
        population=population if user is None else by_user(population, user),
        rows=require_count("rows", rows, least=2),
        count=require_count("pairs", pairs),
        symmetric=symmetric,
    )
    trial = _Movements(
        function=f,
        pairs=prepare_pairs(source, neighbours, root),
        norm=norm,
        limit=limit,
        tolerance=tolerance,
    )
    require_refutable(share, source.count, alpha)
    if symmetric:
        require_orderless(f, trial.pairs, source.count, user, norm)
    named = getattr(f, "__qualname__", type(f).__name__)
    found = run_kept(
        trial, source.count, seed=0, workers=workers, keep=keep, name=f"test of {named}"
    )
    drawn, far, failed = source.count, int(found[:, 1].sum()), int(found[:, 2].sum())
    place = int(found[:, 0].argmax())
    worst, largest = trial.pairs.draw(place), float(found[place, 0])
    if failed == drawn:
        answer(f, worst.rows, private=False)  # says what is wrong
        raise BadFunction("the function gave no finite answer for any of the tables drawn")
    best = measure_movement(f, worst, norm)
    if round_movement(best.size, norm) != largest:
        raise refuse_unsteady()
    low = clopper_pearson_low(far, drawn, alpha)
    return SensitivityTest(
        verdict="refuted" if far and low > share else "not refuted",
        declared=limit,
        gamma=gamma,
        norm=norm,
        pairs=drawn,
        violations=far,
        share_low=low,
        share_high=clopper_pearson_high(far, drawn, alpha),
        confidence=confidence,
        largest=largest,
        worst=worst,
        rounding=_is_rounding(best.size, limit, tolerance, norm),
        seed=root,
        unanswered=failed,
    )


test_sensitivity.__test__ = False  # type: ignore[attr-defined]  # pytest would run it


def _read_share(gamma: float) -> Fraction:
    given = read("gamma", gamma, up=True)
    if not 0 <= given < 1:
        raise ParameterError(f"gamma must be in [0, 1), got {as_given(gamma)}", parameter="gamma")
    return decimal_of(given)


def _is_rounding(size: Fraction | float, limit: float, tolerance: float, norm: Norm) -> bool:
    """Whether the farthest movement exceeds the bound, but by no more than doubles compute."""
    over = is_beyond(size, limit, tolerance, norm)
    return over and limit > 0 and not is_beyond(size, limit, _ROUNDING, norm)
