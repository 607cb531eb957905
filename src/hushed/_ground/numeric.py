"""Numbers that land on a stated side: rounding, and searches by bisection.

The side is in the name. `float_above` and `round_up` are never below the number they are given,
`round_down` is never above it. A search for the first or the last number at which a
condition holds returns one at which it was found to hold. So stopping early, or a condition that
wavers because it is computed in doubles, costs tightness and never the condition.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from hushed._ground.types import Floats
from hushed.errors import ParameterError

LARGEST = sys.float_info.max  # of the finite doubles
_ULP = 2.0**-52

# Margins of `round_up` and `round_down`, in units of 2**-52, by what they have to hide.
ARITHMETIC = 5.0  # a few operations, each good to half a unit
LIBRARY = 64.0  # a few functions of the C library as well, each good to some units
SERIES = 2.0**9  # logarithms or powers of many factors
COARSE = 2.0**13  # functions of SciPy and of statistics, and sums of thousands of terms


def float_above(number: Fraction) -> float:
    """Smallest double that is not below an exact number; infinite beyond all doubles."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -LARGEST
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def finite_above(number: Fraction) -> float:
    """Smallest double that is not below an exact number; refuses what exceeds every double."""
    above = float_above(number)
    if math.isinf(above):
        raise ParameterError("the number would exceed every double: rescale the data")
    return above


def sum_of_levels(numbers: Iterable[float]) -> float:
    """Sum of numbers of 0 or more, rounded once; infinite beyond all doubles."""
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.inf


def root_above(number: int) -> Fraction:
    """Square root of a whole number: exact for a square, otherwise above by up to ``2**-60``."""
    root = math.isqrt(number)
    if root * root == number:
        return Fraction(root)
    return Fraction(math.isqrt(number << 120) + 1, 1 << 60)


def kept_to(errors: Floats, share: float) -> float:
    """Smallest of some errors that so large a share of them, or more, are not above."""
    return float(np.quantile(errors, share, method="inverted_cdf"))


def round_up(value: float, ulps: float = 4.0, *, ceiling: float = math.inf) -> float:
    """Move a number up by some units of 2**-52 of it, but not above a ceiling; 0 stays.

    The last step goes to the next double, so the decimal that the result stands for is not below
    the value either.
    """
    if value == 0.0 or math.isinf(value):
        return min(value, ceiling)
    moved = value * (1.0 + math.copysign(ulps * _ULP, value))
    return min(math.nextafter(moved, math.inf), ceiling)


def round_down(value: float, ulps: float = 4.0) -> float:
    """Move a number of 0 or more down by some units of 2**-52 of it, but not below 0."""
    return max(0.0, math.nextafter(value * (1.0 - ulps * _ULP), -math.inf))


def first_true(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    *,
    tolerance: float = 0.0,
    absolute: float = 0.0,
) -> float:
    """Search for the first number from which on a condition holds; it holds at the result.

    The condition is known to hold at ``high``, and is not asked there; it is not asked at ``low``
    either. It may lie on either side of ``low``. The search stops at neighbouring doubles, or when
    the ends are within a tolerance of each other, relative to the larger one or absolute.
    """
    while True:
        middle, width = _between(low, high), abs(high - low)
        if not min(low, high) < middle < max(low, high):  # neighbours, or an infinite end
            return high
        if width <= max(absolute, tolerance * max(abs(low), abs(high))):
            return high
        if holds(middle):
            high = middle
        else:
            low = middle


def last_true(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    *,
    tolerance: float = 0.0,
    absolute: float = 0.0,
) -> float:
    """Search for the last number up to which a condition holds; it holds at the result.

    As `first_true`, seen from the other end: the condition is known to hold at ``low``.
    """
    return first_true(holds, high, low, tolerance=tolerance, absolute=absolute)


def _between(low: float, high: float) -> float:
    """Middle of two numbers; one of them, or no number, if there is nothing between."""
    middle = 0.5 * (low + high)
    return middle if math.isfinite(middle) else 0.5 * low + 0.5 * high


def first_true_near(
    holds: Callable[[float], bool],
    guess: float,
    *,
    least: float = 1e-300,
    most: float = 1e300,
    tolerance: float = 0.0,
) -> float:
    """Search [least, most] from a guess for the first number from which on a condition holds.

    It holds at the result; infinite if it holds nowhere. From the guess on, the number is doubled
    or halved; ``least`` is above 0.
    """
    high = min(max(guess, least), most)
    if not holds(high):
        while high < most:
            low, high = high, min(2.0 * high, most)
            if holds(high):
                return first_true(holds, low, high, tolerance=tolerance)
        return math.inf
    while high > least:
        low = max(0.5 * high, least)
        if not holds(low):
            return first_true(holds, low, high, tolerance=tolerance)
        high = low
    return high


def last_true_near(
    holds: Callable[[float], bool],
    guess: float,
    *,
    least: float = 1e-300,
    most: float = 1e300,
    tolerance: float = 0.0,
) -> float:
    """Search [least, most] from a guess for the last number up to which a condition holds.

    It holds at the result, or the result is 0, because it holds nowhere.
    """
    low = min(max(guess, least), most)
    if not holds(low):
        while low > least:
            low, high = max(0.5 * low, least), low
            if holds(low):
                return last_true(holds, low, high, tolerance=tolerance)
        return 0.0
    while low < most:
        high = min(2.0 * low, most)
        if not holds(high):
            return last_true(holds, low, high, tolerance=tolerance)
        low = high
    return low


def first_whole(holds: Callable[[int], bool], *, known: int | None = None) -> int:
    """Smallest whole number, 1 or more, from which on a condition holds; it holds there.

    If one is ``known`` at which it holds, nothing beyond is asked; otherwise there must be one.
    """
    low, high = 0, known or 1
    while known is None and not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def last_whole(holds: Callable[[int], bool], *, most: int) -> int:
    """Largest whole number, up to ``most``, up to which a condition holds; 0 if not at 1."""
    return first_whole(lambda number: number > most or not holds(number)) - 1
