"""What floating point adds to a sensitivity: proven bounds on the error of each computation.

An answer that is off by at most e on each of two tables moves by at most 2 e more than the exact
one: `enlarged`. Ignoring this makes the sensitivity of a plain loop over doubles too small by an
amount that grows with the square of the size: Casacuberta, Shoemate, Vadhan and Wagaman,
*Widespread Underestimation of Sensitivity in Differentially Private Libraries and How to Fix It*,
CCS 2022. Bounds are for IEEE 754 doubles rounded to nearest, with unit roundoff u = 2**-53.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import is_plain_int
from hushed._ground.numeric import finite_above
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

_U = Fraction(1, 1 << 53)
_TINY = Fraction(1, 1 << 1074)
_SLICE_BITS = 40
_BLOCK = 1 << 14  # fits the cache


@called_as("hs.transformations.enlarged(1.0, 1e-9)")
def enlarged(sensitivity: float, error: float) -> float:
    """Sensitivity of an answer computed with an error.

    Parameters
    ----------
    sensitivity : float
        Bound on the movement of the exact answer; 0 or more.
    error : float
        Bound on the error of the computed answer on every table; 0 or more.

    Returns
    -------
    float
        ``sensitivity + 2 error``, rounded up.
    """
    return finite_above(Fraction(_amount(sensitivity)) + 2 * Fraction(_amount(error)))


@called_as("hs.transformations.summation_error(1000, largest=100.0)")
def summation_error(rows: int, *, largest: float) -> float:
    """Bound the error of a sum of doubles, added up one by one, in pairs or in any other order.

    Parameters
    ----------
    rows : int
        Numbers added, at most; 0 or more, below 2**50.
    largest : float
        Largest magnitude of a number; finite.

    Returns
    -------
    float
        ``g rows largest`` with ``g = (rows - 1) u / (1 - (rows - 1) u)``, rounded up. It covers
        every order, also a different one at every run, and fused or parallel partial sums.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, or the sum could exceed every double.

    Notes
    -----
    Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition, SIAM 2002, Section
    4.2: each number goes through at most ``rows - 1`` additions, each with a relative error of
    at most u; additions that underflow are exact.
    """
    if not is_plain_int(rows) or not 0 <= rows < 1 << 50:
        raise ParameterError(
            f"rows must be an integer from 0 to 2**50 - 1, got {as_given(rows)}", parameter="rows"
        )
    steps = max(rows - 1, 0) * _U
    return finite_above(steps / (1 - steps) * rows * Fraction(_amount(largest)))


def exact_sum(values: NDArray[np.float64]) -> float:
    """Add up doubles exactly, and round once.

    The double nearest to the sum, ties to even, whatever the order: as `math.fsum`, and several
    times as fast.

    Notes
    -----
    Each block of numbers is cut into slices of 40 bits on a common grid. A slice is added up in
    64-bit integers, which cannot overflow; what is left of a number is a double again, because it
    has no more bits than the number. Long accumulators: Kulisch and Miranker, *The Arithmetic of
    the Digital Computer*, SIAM Review 28(1), 1986.
    """
    if not np.isfinite(values).all():
        raise ParameterError("only finite numbers can be added up exactly")
    total = Fraction(0)
    for start in range(0, len(values), _BLOCK):
        rest = values[start : start + _BLOCK]
        while largest := max(float(rest.max()), -float(rest.min())):
            exponent = max(math.frexp(largest)[1] - _SLICE_BITS, -1074)
            steps = np.rint(_scaled(rest, -exponent))
            total += int(steps.astype(np.int64).sum()) * Fraction(2) ** exponent
            rest = rest - _scaled(steps, exponent)
    return float(total)


def _scaled(values: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Multiply by a power of two; the slower way only where that power is no normal double."""
    if -1000 < exponent < 1000:
        return np.asarray(values * 2.0**exponent)
    return np.ldexp(values, exponent)


def rounded_sum_error(limit: float) -> float:
    """Bound the error of an exact sum that is rounded once, to the nearest double.

    ``u limit``, rounded up: half a unit in the last place. `exact_sum` and `math.fsum` compute such
    sums, and so does integer arithmetic followed by one conversion.
    """
    return finite_above(Fraction(_amount(limit)) * _U)


def mean_error(largest: float) -> float:
    """Bound the error of an exact sum rounded to a double and divided by the number of rows.

    ``(2 u + u**2) largest + 2**-1074``, rounded up: two roundings and an underflow.
    """
    return finite_above((2 * _U + _U * _U) * Fraction(_amount(largest)) + _TINY)


def variance_error(*, low: float, high: float) -> float:
    """Bound the error of the mean of squared deviations from a computed mean.

    The computation it is about: the mean m as in `mean_error`; each deviation and its square in
    doubles; the squares summed exactly and rounded once; one division.

    ``e**2 + 6 u (w**2 / 4 + e**2) + 2**-1073`` with e the error of the mean and w the width,
    rounded up.

    Notes
    -----
    The mean of ``(x - m)**2`` is the variance plus the square of the error of m, so at most
    ``w**2 / 4 + e**2``. Five roundings act on each square: a factor below ``(1 + u)**5``, which
    is below 1 + 6 u. A square that underflows is off by less than 2**-1074, and so is the
    quotient.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ParameterError(f"bounds must be finite with low <= high, got [{low}, {high}]")
    off = Fraction(mean_error(max(abs(low), abs(high)))) ** 2
    width = Fraction(high) - Fraction(low)
    return finite_above(off + 6 * _U * (width * width / 4 + off) + 2 * _TINY)


def _amount(value: float) -> float:
    if not 0 <= value < math.inf:
        raise ParameterError(f"an amount must be 0 or more and finite, got {value}")
    return value


def norm_margin(dims: int) -> Fraction:
    """Bound the relative error of `hushed.spaces.size`.

    ``(dims + 8) u``. The l1 norm adds up ``dims`` magnitudes; for l2 each quotient, square and sum
    is rounded, which the root halves: ``dims / 2 + 3`` roundings. Two more cover products of
    errors, and underflow beside a coordinate of 1.
    """
    return (dims + 8) * _U
