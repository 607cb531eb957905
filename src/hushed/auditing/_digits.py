"""What a double leaves out of a wider number: its lowest bits, or its last digits.

Noise that is drawn in doubles and added to a wide number leaves them as they are.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

WHOLE = 2**53  # beyond it integers that differ may be one double
_LAST = 15  # decimal digits that a double holds, whatever they are
_LONGEST = 17  # digits that tell a double from all others


def list_lower(part: Any) -> tuple[float, ...]:
    """Give what a double leaves out of a number; nothing of one that is a double."""
    if isinstance(part, int | np.integer):
        return () if abs(int(part)) <= WHOLE else (_lowest(int(part)),)
    if isinstance(part, Fraction):
        return _lowest(part.denominator), _lowest(part.numerator)
    if isinstance(part, Decimal):
        _, digits, exponent = Decimal.as_tuple(part)
        return () if isinstance(exponent, str) else (float(exponent), _last(digits))
    if isinstance(part, np.longdouble):
        rest = float(part - np.longdouble(float(part)))
        return (rest,) if rest and np.isfinite(rest) else ()
    if isinstance(part, np.clongdouble):
        return list_lower(part.real) + list_lower(part.imag)
    return ()


def list_written(number: str) -> tuple[float, ...]:
    """Give the place and the last digits of a number in a text that has more than a double has."""
    mantissa = number.lower().partition("e")[0]
    digits = mantissa.lstrip("+-").replace(".", "").lstrip("0")
    if len(digits) <= _LONGEST:
        return ()
    return float(len(mantissa.partition(".")[2])), _last(digits)


def _lowest(number: int) -> float:
    return float(number & (WHOLE - 1))


def _last(digits: Any) -> float:
    return float("".join(map(str, digits[-_LAST:])) or 0)
