"""What a privacy parameter given as a float means: its shortest decimal.

Who writes 0.1 means one tenth, though the double is a little more. So every epsilon, delta, gamma,
rho and budget in this package stands for the shortest decimal that reads back as the same double:
``Fraction(repr(x))``. This module is the only reader. Bounds, scales, sensitivities and data are
never read so: they are what they are, because code compares rows with them as doubles.

Three facts carry everything else; proofs in docs/noise/decimals.md:

* The decimal grows with the double, and different doubles have different decimals. So parameters
  are compared as doubles.
* The decimal of a double lies strictly between the doubles on either side of it. So a bound that
  was computed in doubles and then moved one double up is a bound when it is read as a decimal.
* Formulas that are evaluated in doubles take `upper_double` or `lower_double`, whichever costs
  more privacy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import Any

import numpy as np

from hushed.errors import ParameterError

_FAR = 400  # powers of ten; no double is as far from 1


def read(name: str, value: Any, *, up: bool) -> float:
    """Read a privacy parameter as the float whose shortest decimal it stands for; no NaN, no -0.0.

    Floats, NumPy's among them, are taken as doubles: ``np.float32(0.1)`` is 0.10000000149011612.
    Other numbers are exact; where one is no decimal of a double, ``up`` takes the next one above
    (for what is promised), and otherwise the next one below (for what is allowed).
    """
    if type(value) is not float:
        value = _converted(name, value, up=up)
    if math.isnan(value):
        raise ParameterError(f"{name} must be a number, got NaN", parameter=name)
    return value + 0.0  # type: ignore[no-any-return]  # -0.0 is written otherwise, and no amount


def _converted(name: str, value: Any, *, up: bool) -> float:
    """Read what is no plain float."""
    if isinstance(value, float) or (isinstance(value, np.floating) and value == float(value)):
        return float(value)
    # Of a complex number a double takes the real part alone, and of a time its number of units.
    refused = bool | np.bool_ | np.complexfloating | np.timedelta64
    if isinstance(value, refused) or not isinstance(value, Real | Decimal | np.number):
        raise ParameterError(
            f"{name} must be a real number, got {type(value).__name__}", parameter=name
        )
    try:
        exact = _exact(value)
    except OverflowError:  # infinite
        return float(value)
    except ValueError:
        return math.nan
    except TypeError:
        raise ParameterError(
            f"{name} must be a real number, got {type(value).__name__}", parameter=name
        ) from None
    return stated_above(exact) if up else stated_below(exact)


def _exact(value: Any) -> Fraction:
    """Exact value of a finite number."""
    if isinstance(value, Decimal) and value and abs(value.adjusted()) > _FAR and value.is_finite():
        far = Fraction(10) ** int(math.copysign(_FAR, value.adjusted()))
        return far if value > 0 else -far
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if hasattr(value, "as_integer_ratio"):
        return Fraction(*map(int, value.as_integer_ratio()))
    return Fraction(float(value))


@lru_cache(maxsize=1 << 14)
def _decimal_of(value: float) -> Fraction:
    return Fraction(repr(value))


def decimal_of(value: float) -> Fraction:
    """Give the number that a parameter stands for: the shortest decimal of the same double."""
    # Plain floats alone reach the cache: Fraction(0.1) has the same hash as 0.1 and equals it.
    return _decimal_of(float(value))


def stated_above(exact: Fraction) -> float:
    """Smallest float whose decimal is not below an exact number; 7/10 gives 0.7."""
    try:
        found = float(exact)
    except OverflowError:
        found = math.inf if exact > 0 else -math.inf
    if found == -math.inf:
        return -math.nextafter(math.inf, 0.0)
    while found < math.inf and decimal_of(found) < exact:
        found = math.nextafter(found, math.inf)
    return found


def stated_below(exact: Fraction) -> float:
    """Largest float whose decimal is not above an exact number."""
    return 0.0 - stated_above(-exact)


def total_of(values: Iterable[float]) -> Fraction:
    """Exact sum of parameters."""
    return sum(map(decimal_of, values), Fraction(0))


def upper_double(value: float) -> float:
    """Smallest double that is not below the decimal of a parameter; infinity stays.

    It is the float itself, or the next one: 0.1 is above one tenth, 0.3 below three tenths.
    """
    if math.isinf(value) or decimal_of(value) <= Fraction(value):
        return value
    return math.nextafter(value, math.inf)


def lower_double(value: float) -> float:
    """Largest double that is not above the decimal of a parameter; infinity stays."""
    if math.isinf(value) or decimal_of(value) >= Fraction(value):
        return value
    return math.nextafter(value, -math.inf)
