"""Noise whose scale may follow the rows: two-sided Lomax and Student t(2), exact, then rounded.

A real number is drawn lazily, as far as the comparison needs its digits, and what is released is
the cell of a public grid that it falls into. So the law before rounding is exact, and rounding is
post-processing: nothing of it depends on the scale, which is private. The proof is in
docs/noise/heavy.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count
from hushed._ground.numeric import last_whole
from hushed.errors import ParameterError
from hushed.noise._entropy import Words, operating_system_words
from hushed.noise._grid import GRID_BITS, floor_log2
from hushed.noise._thresholds import Uniform

_LEAST_EXPONENT = -1074
_WORD_BITS = 64

Exceeds = Callable[[Uniform, int, int], bool]  # whether |Z| exceeds a quotient of whole numbers


@called_as("hs.noise.range_grid(0.0, 100.0)")
def range_grid(low: float, high: float) -> int:
    """Lay the grid for answers in a public range.

    Parameters
    ----------
    low, high : float
        The range; both finite, low below high.

    Returns
    -------
    int
        The grid is the multiples of 2 to this exponent: between ``2**-46`` and ``2**-45`` of the
        length of the range.

    Raises
    ------
    ParameterError
        If it is no range.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"low must be below high, both finite, got {low} and {high}")
    return max(floor_log2(Fraction(high) - Fraction(low)) - GRID_BITS, _LEAST_EXPONENT)


def _lomax_exceeds(tail: int) -> Exceeds:
    """Compare |Z| with t = far / unit: it exceeds t if ``u < (1 + t)**-tail``."""

    def exceeds(number: Uniform, far: int, unit: int) -> bool:
        top, bottom = unit**tail, (far + unit) ** tail
        while True:
            scaled = top << number.length
            if (number.prefix + 1) * bottom <= scaled:
                return True
            if number.prefix * bottom >= scaled:
                return False
            number.refine()

    return exceeds


def _student_exceeds(number: Uniform, far: int, unit: int) -> bool:
    """Compare |Z| with t: it exceeds t if ``u > t / sqrt(2 + t**2)``; both are squared."""
    square = far * far
    whole = 2 * unit * unit + square
    while True:
        bound = square << (2 * number.length)
        if number.prefix * number.prefix * whole >= bound:
            return True
        if (number.prefix + 1) * (number.prefix + 1) * whole <= bound:
            return False
        number.refine()


def _release(
    words: Words, value: Fraction, scale: Fraction, exceeds: Exceeds, low: float, high: float
) -> float:
    """Nearest grid point to ``value + scale Z``, in the range; found by bisection with one Z."""
    step = Fraction(2) ** range_grid(low, high)
    common = math.lcm(step.denominator, value.denominator, scale.denominator)
    cell, centre, unit = (int(common * each) for each in (step, 2 * value, 2 * scale))
    upwards = bool(words.word() & 1)
    size = Uniform(words.word(), _WORD_BITS, words)

    def reaches(point: int) -> bool:
        """Whether the sum is at the lower end of the cell of a grid point, or above it."""
        far = (2 * point - 1) * cell - centre
        if upwards:
            return far <= 0 or exceeds(size, far, unit)
        return far < 0 and not exceeds(size, -far, unit)

    least, most = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
    found = last_whole(lambda count: reaches(least - 1 + count), most=most + 2 - least)
    if found == 0:
        return low
    point = least - 1 + found
    return high if point > most else min(max(float(point * step), low), high)


def _checked(value: Fraction | float, scale: Fraction | float) -> tuple[Fraction, Fraction]:
    """Take value and scale as they are; neither is shown."""
    for name, number in (("value", value), ("scale", scale)):
        if not isinstance(number, Fraction) and not math.isfinite(number):
            raise ParameterError(f"{name} must be finite")
    if not scale > 0:
        raise ParameterError("scale must be above 0", parameter="scale")
    return Fraction(value), Fraction(scale)


@called_as("hs.noise.add_lomax(10.0, scale=1.0, tail=3, low=0.0, high=100.0)")
def add_lomax(
    value: Fraction | float, *, scale: Fraction | float, tail: int, low: float, high: float
) -> float:
    """Release a number with two-sided Lomax noise, rounded to a grid and clipped to its range.

    Parameters
    ----------
    value : Fraction or float
        The exact number; finite.
    scale : Fraction or float
        Factor of the noise; above 0, finite. It may depend on the rows: the grid does not.
    tail : int
        Exponent m of the law; 1 or more.
    low, high : float
        Public range of the answer: what falls outside becomes its end.

    Returns
    -------
    float
        A double in the range.

    Raises
    ------
    ParameterError
        If a parameter leaves its range. No value is shown.

    Notes
    -----
    Z has density ``(m/2) (1 + abs(z))**-(m + 1)``, so that ``abs(Z)`` exceeds t with probability
    ``(1 + t)**-m``. The law before rounding is exact.
    """
    exact, spread = _checked(value, scale)
    exceeds = _lomax_exceeds(require_count("tail", tail))
    return _release(operating_system_words(), exact, spread, exceeds, low, high)


@called_as("hs.noise.add_student(10.0, scale=1.0, low=0.0, high=100.0)")
def add_student(
    value: Fraction | float, *, scale: Fraction | float, low: float, high: float
) -> float:
    """Release a number with Student t noise of 2 degrees, rounded to a grid and clipped.

    Parameters
    ----------
    value : Fraction or float
        The exact number; finite.
    scale : Fraction or float
        Factor of the noise; above 0, finite. It may depend on the rows: the grid does not.
    low, high : float
        Public range of the answer: what falls outside becomes its end.

    Returns
    -------
    float
        A double in the range.

    Raises
    ------
    ParameterError
        If a parameter leaves its range. No value is shown.

    Notes
    -----
    ``abs(Z)`` exceeds t with probability ``1 - t / sqrt(2 + t**2)``. The law before rounding is
    exact.
    """
    exact, spread = _checked(value, scale)
    return _release(operating_system_words(), exact, spread, _student_exceeds, low, high)
