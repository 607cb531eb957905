"""The exponential mechanism's draw: one index, with exact probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import read_array
from hushed._ground.decimals import decimal_of, read
from hushed._ground.precise import Mpf, mp
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.noise._entropy import Words, operating_system_words
from hushed.noise._grid import GRID_BITS, floor_log2
from hushed.noise._thresholds import Uniform
from hushed.noise._vectors import blocks

_LEAST_EPSILON = 2.0**-200
_LARGEST_SCALE = 2.0**1000
_FAR = 2.0**60  # a larger penalty is moved here, a lower bound
_LEAST_PREFIX = 1 << 33  # a smaller prefix leaves log(u) too vague: u is below 2**-30
_MOST_REAL = 1 - 2.0**-16  # a larger u leaves log(1 - u) too vague
_ALL_ONES = (1 << 63) - 1
_LOG_SHORT = -20.0  # u < 2**-30 has log(-log(1 - u)) < -20.7
_LOG_VAGUE = 4.0  # u <= 1 - 2**-63 has log(-log(1 - u)) < 3.8
_MARGIN = 2.0**-28  # bounds the error of a key without its penalty, see docs/noise/selection.md
_PENALTY_MARGIN = 2.0**-45  # bounds the relative error of a penalty


def _gaps(scores: Floats, best: float, exponent: int) -> Floats:
    """Count the steps from each rounded score up to the best; relative error 2**-52."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.rint(np.ldexp(scores, -exponent))
        steps = np.asarray(np.rint(np.ldexp(best, -exponent)) - rounded)
        far = ~np.isfinite(steps)  # such a score or best is a grid point itself
        steps[far] = np.ldexp(best - scores[far], -exponent)
    return steps


def _exact_gap(score: float, best: float, exponent: int) -> int:
    step = Fraction(2) ** exponent
    return round(Fraction(best) / step) - round(Fraction(score) / step)


def _times(rate: Fraction, steps: Floats) -> Floats:
    """Multiply by a rational number that may be too small or large for a double."""
    shift = floor_log2(rate)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(steps * float(rate / Fraction(2) ** shift), shift))


def _keys(words: Words, penalty: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """First digits of one uniform u a candidate, and bounds of log(-log(1 - u)) + penalty."""
    prefix = (words.take(penalty.size) >> np.uint64(1)).view(np.int64)
    real = prefix * 2.0**-63
    short, vague, far = prefix < _LEAST_PREFIX, real > _MOST_REAL, penalty > _FAR
    np.minimum(real, _MOST_REAL, out=real)
    np.minimum(penalty, _FAR, out=penalty)
    spread = _MARGIN + _PENALTY_MARGIN * penalty
    with np.errstate(divide="ignore"):  # a prefix of zeros has no lower bound
        key = np.log(-np.log1p(-real)) + penalty
    lower, upper = key - spread, key + spread
    upper[short] = penalty[short] + spread[short] + _LOG_SHORT
    upper[vague] = penalty[vague] + spread[vague] + _LOG_VAGUE
    upper[far | (prefix == _ALL_ONES)] = np.inf
    return prefix, lower, upper


def _key_bounds(number: Uniform, penalty: Fraction) -> tuple[Mpf, Mpf]:
    """Enclose the key of one candidate, given the digits drawn so far."""
    whole = 1 << number.length
    bounds = []
    with mp.workprec(2 * number.length + 64):
        shift = mp.mpf(penalty.numerator) / penalty.denominator
        margin = mp.ldexp(1 + shift, -number.length - 32)
        for digits in (number.prefix, number.prefix + 1):
            if digits in (0, whole):
                bounds.append(mp.inf if digits else -mp.inf)
                continue
            bounds.append(mp.log(-mp.log1p(-mp.mpf(digits) / whole)) + shift)
        return bounds[0] - margin, bounds[1] + margin


def _first(numbers: dict[int, Uniform], penalties: dict[int, Fraction]) -> int:
    """Find the candidate with the smallest key, drawing digits until it is certain."""
    while True:
        bounds = {i: _key_bounds(number, penalties[i]) for i, number in numbers.items()}
        least = min(upper for _, upper in bounds.values())
        numbers = {i: number for i, number in numbers.items() if bounds[i][0] <= least}
        if len(numbers) == 1:
            return next(iter(numbers))
        for number in numbers.values():
            number.refine()


def _select(words: Words, scores: Floats, exponent: int, rate: Fraction) -> int:
    best = float(scores.max())
    least = math.inf
    found: list[tuple[int, int, float]] = []
    for block in blocks(scores.size):
        penalty = _times(rate, _gaps(scores[block], best, exponent))
        prefix, lower, upper = _keys(words, penalty)
        least = min(least, float(upper.min()))
        near = np.flatnonzero(lower <= least)
        found += [(block.start + int(i), int(prefix[i]), float(lower[i])) for i in near]
    found = [candidate for candidate in found if candidate[2] <= least]
    if len(found) == 1:
        return found[0][0]
    return _first(
        {index: Uniform(prefix, 63, words) for index, prefix, _ in found},
        {index: rate * _exact_gap(float(scores[index]), best, exponent) for index, _, _ in found},
    )


def _law(width: float, epsilon: float) -> tuple[int, Fraction]:
    """Grid exponent, and the rate at which a rounded score counts; the width is enlarged.

    Whoever asks for the scale, before anything is charged, hears what a draw would refuse.
    """
    level = read("epsilon", epsilon, up=False)
    if not _LEAST_EPSILON <= level < math.inf:
        raise ParameterError(
            f"epsilon must be 2**-200 or more and finite, got {epsilon}", parameter="epsilon"
        )
    if not 0 < width < math.inf:
        raise ParameterError(f"width must be above 0 and finite, got {width}", parameter="width")
    exponent = floor_log2(Fraction(width)) - GRID_BITS
    steps = Fraction(width) * (1 + Fraction(1, 1 << 49)) / Fraction(2) ** exponent + 2
    return exponent, decimal_of(level) / steps


@called_as("hs.noise.select([1.0, 3.0], width=1.0, epsilon=1.0)")
def select(scores: Floats, *, width: float, epsilon: float) -> int:
    """Draw an index with probability proportional to ``exp(epsilon * score / width)``.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
        Finite score of each candidate, at least one; large is good.
    width : float
        Bound, between neighbours, on the largest minus the smallest change of a score; above 0.
    epsilon : float
        Privacy loss of the draw, in nats; ``2**-200`` or more, finite. It stands for its shortest
        decimal.

    Returns
    -------
    int
        Index of the winner, 0 to n - 1.

    Raises
    ------
    ParameterError
        If a parameter leaves its range. No score is shown.

    Notes
    -----
    McSherry and Talwar, *Mechanism Design via Differential Privacy*, FOCS 2007. The scores are
    rounded to multiples of a power of two near ``width * 2**-45`` and the width is enlarged by
    two steps, so that epsilon holds exactly. The draw is a race of exponential variables (its
    logarithm is the Gumbel trick), decided exactly: docs/noise/selection.md.
    """
    given = read_array("scores", scores)
    if given.ndim != 1 or given.size == 0:
        raise ParameterError(
            f"scores must be a vector of one score or more, got shape {given.shape}",
            parameter="scores",
        )
    if not np.isfinite(given).all():
        raise ParameterError(
            "every score must be finite: a candidate cannot be ruled out privately"
        )
    exponent, rate = _law(width, epsilon)
    return _select(operating_system_words(), given, exponent, rate)


@called_as("hs.noise.selection_scale(width=1.0, epsilon=1.0)")
def selection_scale(*, width: float, epsilon: float) -> tuple[float, int]:
    """Temperature that `select` draws with, the enlargement by its grid included.

    Parameters
    ----------
    width, epsilon : float
        As `select` takes them.

    Returns
    -------
    scale : float
        A score this much worse is e times less likely; in the units of the scores.
    grid : int
        Scores are rounded to multiples of ``2**grid``.

    Raises
    ------
    ParameterError
        If the width or the temperature exceeds every double, or `select` refuses epsilon.
    """
    exponent, rate = _law(width, epsilon)
    scale = Fraction(2) ** exponent / rate
    if scale > _LARGEST_SCALE:
        raise ParameterError("the noise would exceed every double: rescale the scores")
    return float(scale), exponent


@called_as("hs.noise.selection_loss(width=1.0, epsilon=1.0, moved=1.0)")
def selection_loss(*, width: float, epsilon: float, moved: float) -> Fraction:
    """Privacy loss of `select` when the scores move by another amount than it was made for.

    Parameters
    ----------
    width, epsilon : float
        As `select` takes them.
    moved : float
        Largest minus smallest change of a score between the two tables; finite, 0 or more.

    Returns
    -------
    Fraction
        In nats, exact for the rate that `select` uses; 0 if nothing moved, and at ``width`` at
        most ``epsilon``. Rounding to the grid adds two steps.
    """
    exponent, rate = _law(width, epsilon)
    return rate * (Fraction(moved) / Fraction(2) ** exponent + 2) if moved else Fraction(0)
