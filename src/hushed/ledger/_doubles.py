"""Sums of parameters without any rounding: every decimal of a double is a whole number of units."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from hushed._ground.decimals import decimal_of

_UNITS = 10**324  # no double needs more digits after the point: 17 from 1e-308 on


def to_units(value: float) -> int:
    """Count a parameter in units of ``10**-324``.

    That decimal times ``10**324``, exactly. Sums of these cost less than those of fractions, which
    are reduced to lowest terms each time.
    """
    return _whole(float(value))


@lru_cache(maxsize=4096)
def _whole(value: float) -> int:
    exact = decimal_of(value) * _UNITS
    return exact.numerator


def from_units(units: int) -> Fraction:
    """Read a sum of numbers of units (`to_units`)."""
    return Fraction(units, _UNITS)
