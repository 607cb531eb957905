"""A line that a program wrote, as the value that JSON reads in it and how it was written.

Readers of JSON drop blanks, digits, escapes and keys that stand twice; who gets the line does not.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

NUMBER = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")


@dataclass(frozen=True, slots=True)
class Written:
    """A value, and what its line is without the numbers."""

    value: Any
    form: str


class _Twice(ValueError):
    """A key stands twice in an object."""


def parse_line(line: str) -> Any:
    """Read a line as JSON; one that is none is a text, and so is one that has a key twice."""
    try:
        value = json.loads(
            line, object_pairs_hook=_make_object, parse_float=_read_number, parse_int=_read_integer
        )
        plain = json.dumps(value, default=float)
    except (ValueError, RecursionError):  # brackets a thousand deep are text, too
        return line
    form = NUMBER.sub("#", line)
    return value if form == NUMBER.sub("#", plain) else Written(value, form)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _Twice
    return dict(pairs)


def _read_integer(digits: str) -> int | float:
    return -0.0 if digits == "-0" else int(digits)


def _read_number(digits: str) -> float | Decimal:
    """Read a double that is written as Python does; of others all digits."""
    number = float(digits)
    if repr(number) == digits:
        return number
    try:
        return Decimal(digits)
    except InvalidOperation:  # an exponent beyond all decimals
        return number
