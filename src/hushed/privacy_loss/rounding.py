"""Rounding towards the side that protects people."""

from __future__ import annotations

import math
from fractions import Fraction

from hushed.errors import ParameterError

__all__ = ["double_above", "round_down", "round_up"]

_ULP = 2.0**-52


def double_above(number: Fraction) -> float:
    """Convert an exact number to the smallest double that is not below it.

    Parameters
    ----------
    number : Fraction
        Any rational number.

    Returns
    -------
    float
        The number itself if it is a double.

    Raises
    ------
    ParameterError
        If it exceeds every double.
    """
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf
    above = nearest if nearest >= number else math.nextafter(nearest, math.inf)
    if math.isinf(above):
        raise ParameterError("the number would exceed every double: rescale the data")
    return above


def round_up(value: float, ulps: float = 4.0, *, ceiling: float = math.inf) -> float:
    """Move a number away from zero by some units in the last place.

    Parameters
    ----------
    value : float
        Number to move; 0 or more.
    ulps : float, default 4
        Relative move, in units of 2**-52.
    ceiling : float, default infinity
        Largest number returned.

    Returns
    -------
    float
        Not below ``value`` unless ``ceiling`` is; nor is the decimal that it stands for, because
        the last step goes to the next double.
    """
    if value == 0.0 or math.isinf(value):
        return min(value, ceiling)
    return min(math.nextafter(value * (1.0 + ulps * _ULP), math.inf), ceiling)


def round_down(value: float, ulps: float = 4.0) -> float:
    """Move a number towards zero by some units in the last place.

    Parameters
    ----------
    value : float
        Number to move; 0 or more.
    ulps : float, default 4
        Relative move, in units of 2**-52.

    Returns
    -------
    float
        Not above ``value``, 0 or more.
    """
    return max(0.0, math.nextafter(value * (1.0 - ulps * _ULP), -math.inf))
