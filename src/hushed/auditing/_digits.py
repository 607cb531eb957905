"""A part of an output as doubles: its number, and what a double leaves out of a wider one.

Noise that is drawn in doubles and added to a wide number leaves its last bits as they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import numpy as np

FAILED = 2.0**50  # added to the codes of exceptions, so that runs that failed can be counted
EXCEPTION = "exception "  # before their names; no type of an output has a blank in its name
WHOLE = 2**53  # beyond it integers that differ may be one double
_LAST = 15  # decimal digits that a double holds, whatever they are
_ISO = datetime(1970, 1, 1)  # of all zones, which are left out: the whole text has them
_LONGEST = 17  # digits that tell a double from all others


def list_lower(part: Any) -> tuple[float, ...]:
    """Give what a double leaves out of a number; nothing of one that is a double."""
    if isinstance(part, IPv6Address | UUID):
        part = int(part)
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


def list_numbers(part: Any) -> tuple[float, ...]:
    """Numbers of a part: two of a complex one, NaN for what is none."""
    if isinstance(part, complex | np.complexfloating):
        return float(part.real), float(part.imag)
    return (_convert_to_number(part),)


def _convert_to_number(part: Any) -> float:
    convert = next((each for kinds, each in _NUMBERS if isinstance(part, kinds)), None)
    if convert is None:
        return np.nan
    try:
        return float(convert(part))
    except OverflowError:
        return np.inf if part > 0 else -np.inf
    except Exception:  # a signalling decimal, or a class of somebody's own
        return np.nan


def hash_text(text: str) -> float:
    """Hash a text to 49 bits, so that a double holds it; equal codes can only merge events."""
    content = text.encode("utf-8", "surrogatepass")
    code = float(zlib.crc32(content) * 2**17 + zlib.adler32(content) % 2**17)
    return code + FAILED if text.startswith(EXCEPTION) else code


_NUMBERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((np.datetime64, np.timedelta64), lambda part: part.astype(np.int64)),
    ((bool, int, float, np.bool_, np.number, Decimal, Fraction), lambda part: part),
    ((IPv4Address, IPv6Address, UUID), lambda part: part.__int__()),
    (str, hash_text),
    (bytes, lambda part: hash_text(repr(part))),
    (timedelta, timedelta.total_seconds),
    (datetime, lambda part: (part.replace(tzinfo=None) - _ISO).total_seconds()),
    (date, date.toordinal),
    (time, lambda part: (datetime.combine(_ISO, part.replace(tzinfo=None)) - _ISO).total_seconds()),
)
