"""Declared sensitivities: search for a pair that moves a function farther than was said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._functions._calls import answer_named
from hushed._ground.calls import called_as
from hushed._ground.checks import is_real, require_count
from hushed._ground.notebook import Shown
from hushed._ground.numeric import root_above
from hushed._ground.printing import as_given, format_up
from hushed._rows._owned import copy_rows
from hushed.auditing._pairs import Pair, extreme_pairs
from hushed.errors import BadFunction, ParameterError, RandomFunction
from hushed.guarantee import Neighbours
from hushed.spaces import Norm, SensitivityBound

Floats = NDArray[np.float64]
Cause = Literal["function", "rounding", "shape", "failure", "none"]

_ROUNDING = 1e-9
_KINDS = 6
_FARTHEST = 1e300  # the span of a column is a double


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SensitivityCheck(Shown):
    """What a search for a counterexample found.

    Parameters
    ----------
    exceeded : bool
        True if a pair moves the function farther than declared: no statistics. It is a
        counterexample, unless `cause` is ``"rounding"``. False means that none was found, not that
        there is none.
    declared : float
        Declared sensitivity.
    largest : float
        Largest movement found; infinite if the answer changes its shape or names, or fails on one
        side.
    norm : {"l1", "l2", "sup"}
        Norm of the movement.
    pair : Pair
        Where it moved so far.
    cause : {"function", "rounding", "shape", "failure", "none"}
        What exceeded it; ``"rounding"`` if the excess is below 1e-9 of what was declared, which is
        how doubles compute and not what the function is, ``"failure"`` if the function raises or
        gives no finite numbers.
    tried : int
        Pairs tried.
    """

    exceeded: bool
    declared: float
    largest: float
    norm: Norm
    pair: Pair
    cause: Cause
    tried: int

    def __str__(self) -> str:
        if not self.exceeded:
            return (
                f"no counterexample in {self.tried} pairs: the largest {self.norm} movement is "
                f"{self.largest:.17g}, declared {self.declared:.17g} (pair: {self.pair.name}); "
                "this proves nothing"
            )
        if self.cause == "rounding":
            return (
                f"no counterexample but for rounding in floating point: the {self.norm} movement "
                f"{self.largest:.17g} exceeds {self.declared:.17g} by less than a billionth of it "
                f"(pair: {self.pair.name}); declare that much more, or pass over it with "
                "tolerance=1e-9"
            )
        why = {
            "function": "the function moves farther than declared",
            "shape": "the answer changes its shape, or the names of its numbers, which shows",
            "failure": "the function fails on one of the two, which shows in the output",
            "none": "",
        }[self.cause]
        return (
            f"counterexample: {why}; {self.norm} movement {self.largest:.17g} > "
            f"{self.declared:.17g} (pair: {self.pair.name})"
        )


@called_as("hs.check_sensitivity(np.mean, 0.01, low=0, high=1, rows=100)")
def check_sensitivity(
    function: Callable[[Any], Any],
    declared: float | SensitivityBound,
    *,
    low: ArrayLike,
    high: ArrayLike,
    rows: int,
    norm: Norm = "l1",
    neighbours: Neighbours = "replace-one",
    tries: int = 2000,
    seed: int = 0,
    tolerance: float = 0.0,
) -> SensitivityCheck:
    """Search for neighbours that move a function farther than its declared sensitivity.

    Parameters
    ----------
    function : callable
        ``f(rows)``; gives a number or an array of numbers.
    declared : float or sensitivity
        What is claimed; a sensitivity brings its norm and its neighbours along. One with a gamma
        is for `hushed.test_sensitivity`.
    low, high : float or array of float, shape (columns,)
        Domain of each column. Tables have shape (rows,) or (rows, columns).
    rows : int
        Rows of a table; 2 or more.
    norm : {"l1", "l2", "sup"}, default "l1"
        Norm of the movement.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    tries : int, default 2000
        Pairs to try beyond the fixed extremes, half of them changes of the best so far.
    seed : int, default 0
        Seed of the search.
    tolerance : float, default 0
        Share of what was declared that a movement may exceed it by; 1e-9 passes over rounding.

    Returns
    -------
    SensitivityCheck
        A counterexample, an excess by rounding, or the largest movement found. Movements are
        compared as exact fractions, so that one in the last bit counts.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, or the sensitivity is not about one row of so many.
    BadFunction
        If the function gives no answer for any of the tables: then nothing was searched; if it is
        random, as `RandomFunction`.
    """
    limit, norm, neighbours, gamma = read_declaration(declared, norm, neighbours, rows=rows)
    if gamma:
        raise ParameterError(
            f"the sensitivity is for all but a share {format_up(gamma)} of pairs, and one pair "
            "contradicts it nowhere: use hs.test_sensitivity, or give its value to search for "
            "pairs beyond it",
            parameter="declared",
        )
    if norm not in ("l1", "l2", "sup"):
        raise ParameterError(f"norm must be l1, l2 or sup, got {as_given(norm)}", parameter="norm")
    if neighbours not in get_args(Neighbours):
        raise ParameterError(
            f"neighbours must be one of {get_args(Neighbours)}", parameter="neighbours"
        )
    rows, tries = require_count("rows", rows, least=2), require_count("tries", tries, least=0)
    seed = require_count("seed", seed, least=0)
    check_tolerance(tolerance)
    search = _Search(function=function, norm=norm, low=_ends(low), high=_ends(high))
    extremes = extreme_pairs(search.low, search.high, rows, neighbours)
    found = [(search.measure(pair), pair) for pair in extremes]
    rng = np.random.Generator(np.random.PCG64DXSM(seed))
    best, pair = max(found, key=lambda each: each[0].size)
    tried, answered = len(found), any(each.cause != "failure" for each, _ in found)
    for number in range(tries):
        if best.size == math.inf:
            break
        table = (
            search.change_table(pair, rng, number)
            if number % 2
            else search.draw_table(rng, rows, number // 2)
        )
        candidate = search.make_pair(table, rng, neighbours, number)
        movement = search.measure(candidate)
        tried += 1
        answered |= movement.cause != "failure"
        if movement.size > best.size:
            best, pair = movement, candidate
    if best.size < math.inf and not answered:
        answer_named(function, pair.rows.copy(), private=False)  # says what is wrong
        raise BadFunction("the function gave no finite answer for any of the tables tried")
    require_steady(function, best, pair, norm)
    return _make_verdict(best, pair, (limit, tolerance, norm, tried))


def read_declaration(
    declared: float | SensitivityBound,
    norm: Norm,
    neighbours: Neighbours,
    *,
    rows: int,
    user: str | int | None = None,
    parameter: str = "declared",
) -> tuple[float, Norm, Neighbours, float]:
    """Read a declared sensitivity: its value, norm, neighbours, and gamma.

    One that is a record brings them along. It is refused where tables of so many rows that differ
    in one row, or of users that differ in one of them, are not what it is about: they would accuse
    a right one, or pass a wrong one.
    """
    gamma = 0.0
    if is_real(declared):
        limit = float(declared)
    elif not isinstance(declared, int | float) and hasattr(declared, "norm"):
        limit, norm, neighbours = declared.value, declared.norm, declared.neighbours
        gamma = _read_promise(declared, rows, user, parameter)
    else:
        raise ParameterError(
            f"{parameter} must be a number, or a sensitivity such as hs.proven_sensitivity gives, "
            f"got {as_given(declared)}",
            parameter=parameter,
        )
    if not 0 <= limit < math.inf:
        raise ParameterError(
            f"a declared sensitivity is 0 or more and finite, got {limit}", parameter=parameter
        )
    return limit, norm, neighbours, gamma


def _read_promise(
    declared: SensitivityBound, rows: int, user: str | int | None, parameter: str
) -> float:
    """Gamma of a sensitivity that is about one row, or user, of so many; refuse another one."""
    promise = declared.guarantee(1.0)
    sampling = getattr(declared, "sampling", None)
    sizes = (sampling.sizes or (sampling.rows,)) if sampling else (rows,)
    one, units = ("row", "rows") if user is None else ("user", "users")
    other = {
        "all rows of one user": promise.unit == "user" and user is None,
        "one row, whoever it belongs to": promise.unit != "user" and user is not None,
        f"{promise.distance} {units} that change at once": promise.distance > 1,
        "given new rows (protect='table')": promise.protect == "table",
        f"tables of {' or '.join(map(str, sizes))} {units}": rows not in sizes,
        "the average over all samplings (calibration='marginal'), and not about its own number": (
            promise.marginal
        ),
    }
    wrong = [words for words, found in other.items() if found]
    if wrong:
        raise ParameterError(
            f"the sensitivity is about {wrong[0]}: pairs of tables of {rows} {units} that differ "
            f"in one {one}, drawn like the others, say nothing of it",
            parameter=parameter,
        )
    return promise.gamma


def check_tolerance(tolerance: Any) -> None:
    """Refuse what is no share of a declared sensitivity."""
    if not is_real(tolerance) or not 0 <= tolerance < math.inf:
        raise ParameterError(
            f"tolerance must be 0 or more and finite, got {as_given(tolerance)}",
            parameter="tolerance",
        )


def _ends(values: ArrayLike) -> Floats:
    """Read ends of a domain; tables that hold no number would accuse any function."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as failure:
        raise ParameterError("low and high must be numbers, or one for each column") from failure
    if not bool((np.abs(found) <= _FARTHEST).all()):
        raise ParameterError(f"low and high must be finite, and within {_FARTHEST:g} of 0")
    return found


@dataclass(frozen=True, slots=True)
class Movement:
    """How far an answer moves, exactly: for l2 its square."""

    size: Fraction | float
    cause: Cause = "function"


def measure_movement(function: Callable[[Any], Any], pair: Pair, norm: Norm) -> Movement:
    """Movement of an answer between the two tables of a pair, exactly; its square for l2."""
    answers: list[tuple[Floats, tuple[str, ...]] | None] = []
    for table in (pair.rows, pair.neighbour):
        try:
            answers.append(answer_named(function, copy_rows(table), private=False))
        except BadFunction:
            answers.append(None)
    first, second = answers
    if first is None or second is None:
        return Movement(0.0 if first is second else math.inf, "failure")
    (one, names), (other, others) = first, second
    if one.shape != other.shape or names != others:
        return Movement(math.inf, "shape")
    steps = [
        Fraction(a) - Fraction(b)
        for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
    ]
    if norm == "range":
        return Movement(max(steps) - min(steps))
    if norm == "sup":
        return Movement(max(map(abs, steps)))
    sizes = (s * s for s in steps) if norm == "l2" else map(abs, steps)
    return Movement(sum(sizes, Fraction(0)))


def require_steady(function: Callable[[Any], Any], found: Movement, pair: Pair, norm: Norm) -> None:
    """Refuse a function that moves another way when it is asked again: it accuses itself."""
    if measure_movement(function, pair, norm) != found:
        raise refuse_unsteady()


def refuse_unsteady() -> RandomFunction:
    """Make the error of a function that gave two answers."""
    return RandomFunction(
        "the function gave two answers on the same rows, so that how far it moves between "
        "neighbours is not known: test it without its noise, fix its seed, or wrap it as "
        "hs.fixed_seed(f, seed=0) if it uses the global generators"
    )


def is_beyond(size: Fraction | float, limit: float, tolerance: float, norm: Norm) -> bool:
    """Whether a movement, as `measure_movement` gives it, exceeds what was declared; exactly."""
    allowed = Fraction(limit) * (1 + Fraction(tolerance))
    return bool(size > (allowed * allowed if norm == "l2" else allowed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    function: Callable[[Any], Any]
    norm: Norm
    low: Floats
    high: Floats

    def measure(self, pair: Pair) -> Movement:
        """Movement between the two tables."""
        return measure_movement(self.function, pair, self.norm)

    def draw_table(self, rng: np.random.Generator, rows: int, number: int) -> Floats:
        """Table of one of several kinds: uniform, corners, ties, offsets, magnitudes, near ties."""
        shape = (rows, *self.low.shape)
        span, unit = self.high - self.low, rng.random(shape)
        kind = number % _KINDS
        if kind == 0:
            table = self.low + span * unit
        elif kind == 1:
            table = np.where(unit < rng.random(), self.low, self.high)
        elif kind == 2:
            table = np.broadcast_to(self.low + span * rng.random(self.low.shape), shape)
        elif kind == 3:  # a large offset, and differences of a few units in the last place
            steps = rng.integers(0, 8, size=shape)
            far = np.where(np.abs(self.high) > np.abs(self.low), self.high, self.low)
            table = far - np.sign(far) * steps * np.spacing(np.abs(far))
        elif kind == 4:
            table = np.where(rng.random(shape) < 0.5, -1, 1) * 2.0 ** (-60 * unit)
            table = table * np.maximum(np.abs(self.low), np.abs(self.high))
        else:
            table = self.low + span * rng.integers(0, 3, size=shape) / 2
        return np.asarray(np.clip(np.array(table, dtype=float), self.low, self.high))

    def change_table(self, pair: Pair, rng: np.random.Generator, number: int) -> Floats:
        """Best table so far with a few rows changed."""
        table = np.array(pair.rows, dtype=float)
        fresh = self.draw_table(rng, len(table), number // 2)
        chosen = rng.random(len(table)) < min(0.5, 2 / len(table))
        chosen[rng.integers(len(table))] = True
        table[chosen] = fresh[chosen]
        return table

    def make_pair(
        self, table: Floats, rng: np.random.Generator, neighbours: Neighbours, number: int
    ) -> Pair:
        """Table with one row replaced or taken away."""
        at = int(rng.integers(len(table)))
        if neighbours == "add-remove":
            return Pair(
                rows=table, neighbour=np.delete(table, at, axis=0), name=f"search {number + 1}"
            )
        other = table.copy()
        choices = (self.low, self.high, self.draw_table(rng, 2, number)[0])
        other[at] = choices[int(rng.integers(3))]
        return Pair(rows=table, neighbour=other, name=f"search {number + 1}")


def _make_verdict(
    best: Movement, pair: Pair, terms: tuple[float, float, Norm, int]
) -> SensitivityCheck:
    limit, tolerance, norm, tried = terms
    exceeded = is_beyond(best.size, limit, tolerance, norm)
    largest = round_movement(best.size, norm)
    cause: Cause = best.cause if exceeded else "none"
    if cause == "function" and largest <= limit * (1 + _ROUNDING) and limit:
        cause = "rounding"
    return SensitivityCheck(
        exceeded=exceeded,
        declared=limit,
        largest=largest,
        norm=norm,
        pair=pair,
        cause=cause,
        tried=tried,
    )


def round_movement(size: Fraction | float, norm: Norm) -> float:
    """Movement as a double; infinite beyond all doubles."""
    if norm == "l2" and isinstance(size, Fraction):
        size = root_above(size.numerator * size.denominator) / size.denominator
    try:
        return float(size)
    except OverflowError:
        return math.inf
