"""Whose a row is: names of users that two rows have in common if they are equal.

Names are compared in dictionaries, after a charge. So no code of a class of the user's own may run
there: it could fail, and tell of one row, or call two rows of one person different. Names are made
of plain values of known types; what is of another type is nobody's name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import EnumType
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal
from uuid import UUID

import numpy as np

from hushed._ground.checks import is_a, is_one_of

Unnamed = Literal["missing", "unknown"]

# Of a class of the user's the plain value. Numbers and what is hashed may equal each other.
_PLAIN: tuple[tuple[tuple[type[Any], ...], Callable[[Any], tuple[Any, ...]]], ...] = (
    ((str,), lambda value: ("text", str.__str__(value))),
    ((bytes, bytearray), lambda value: ("bytes", b"".join([value]))),
    ((int,), lambda value: (int.__index__(value),)),
    ((float,), lambda value: (float.__float__(value),)),
)
_HASHED = (Decimal, Fraction, date, timedelta, UUID, IPv4Address, IPv6Address)
_MISSING = ("NA", "NaT")
_ZONES = ("datetime", "zoneinfo", "pytz", "dateutil", "pandas")  # whose classes we know
_DEEPEST = 10  # tuples within tuples


def name_user(cell: Any) -> tuple[Any, ...] | Unnamed:
    """Make of a cell the name of a user, or say that it is missing, or of no type that is known.

    Numbers, texts, times and tuples that equal each other have one name, whatever their types.
    """
    try:
        found = _name(cell, _DEEPEST)
        hash(found)
        return found if isinstance(found, str) else (found,)
    except (Exception, SystemExit, GeneratorExit):  # a time out of range, say
        return "unknown"


class _Unknown(Exception):
    """A type of which nobody knows how two are compared."""


def _name(cell: Any, deepest: int) -> tuple[Any, ...] | Unnamed:
    value = np.generic.item(cell) if is_a(cell, np.generic) else cell
    value = float(value) if is_a(value, np.floating) else value  # a wide one
    if _is_missing(value):
        return "missing"
    try:
        return _name_known(value, deepest)
    except _Unknown:
        return "unknown"


def _is_missing(value: Any) -> bool:
    if is_a(value, float):
        return float.__ne__(value, value)
    if is_one_of(value, Decimal):
        return bool(value.is_nan())
    return value is None or any(value is each for each in _of_pandas(*_MISSING))


def _of_pandas(*names: str) -> list[Any]:
    """Look up classes and values of pandas, if it is there."""
    pandas = sys.modules.get("pandas")
    return [getattr(pandas, name) for name in names if hasattr(pandas, name)]


def _name_known(value: Any, deepest: int) -> tuple[Any, ...]:
    """Name what is not missing; a key of a dictionary that is no text by itself."""
    for known, plain in _PLAIN:
        if is_a(value, *known):
            return plain(value)
    kind = type(value)
    if is_one_of(value, datetime, *_of_pandas("Timestamp")):
        return _name_time(value)
    if is_one_of(value, *_HASHED, *_of_pandas("Timedelta", "Period")):
        return (value,)
    if is_a(kind, EnumType):
        member = object.__getattribute__(value, "_name_")
        return ("member", str(kind.__module__), str(kind.__qualname__), str(member))
    if kind is not tuple or not deepest:
        raise _Unknown
    parts = [_name(each, deepest - 1) for each in value]
    if "unknown" in parts:
        raise _Unknown
    return ("tuple", *parts)


def _name_time(value: Any) -> tuple[Any, ...]:
    """Name a moment; one of a time zone by that of Greenwich."""
    zone = value.tzinfo
    if zone is None:
        return (value,)
    if str(type(zone).__module__).partition(".")[0] not in _ZONES:
        raise _Unknown
    return (value.astimezone(UTC),)
