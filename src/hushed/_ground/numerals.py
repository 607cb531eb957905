"""How a number is written: the one reader of numbers in texts that a person gives.

Python's own ``float`` and ``int`` read more than people mean: ``1_0`` is ten to them, digits of any
script count, and ``1e400`` is infinite. Here a number is ASCII digits with a sign, a point and an
exponent, or one of the words ``inf`` and ``nan``; all else is no number.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,1000}")
_PLACE = re.compile(r"[0-9]{1,18}")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)
LONGEST = 1000  # characters of a number


def read_number(text: str) -> float:
    """Read a number, infinite and NaN among them; one that no double is near to is none."""
    found = read_cell(text) if text == text.strip() else None
    if found is None:
        raise ValueError("it is not written as a number, such as 0.5 or 1e-6")
    if math.isinf(found) and _INFINITE.fullmatch(text) is None:
        raise ValueError("it is larger than every number that can be computed with")
    if found == 0 and re.search(r"[1-9]", re.split("[eE]", text)[0]):
        raise ValueError("it is closer to 0 than every number that can be computed with")
    return found


def read_whole(text: str) -> int:
    """Read a whole number of at most 1,000 digits."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("it is not written as a whole number, such as 1000")
    return int(text)


def is_whole_number(text: str) -> bool:
    """Whether a text is digits only, and not too many of them: a place, or a number of an entry."""
    return _PLACE.fullmatch(text) is not None


def read_cell(text: str) -> float | None:
    """Read a cell of a file as a number, infinite and NaN among them; None where it is none.

    Blanks around it do not count; what is beyond the doubles is infinite, or 0.
    """
    if len(text) > LONGEST:
        return None
    cell = text.strip(" \t\r\n")
    plain = any(each.fullmatch(cell) for each in (_NUMBER, _INFINITE, _NAN))
    return float(cell) if plain else None
