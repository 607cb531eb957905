"""Validators: what a parameter must be, said once.

Each returns the value as a plain one, or raises `ParameterError` with the name of the parameter:
what was met and what is allowed. A truth value is not a number, wherever a number is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from numbers import Rational, Real
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hushed._ground.decimals import read
from hushed._ground.numeric import finite_above
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

_MOST = 2**63 - 1  # NumPy has no larger sizes


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer, NumPy's among them, which has durations among its own."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def plain_number(value: Any) -> Any:
    """Give a number of NumPy as Python's, which does not overflow in sums and products."""
    return value.item() if isinstance(value, np.generic) else value


def is_plain_int(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer of Python: for sums and products that must not overflow."""
    return isinstance(value, int) and not isinstance(value, bool)


def list_in_order(values: Iterable[Any]) -> list[Any]:
    """List public values, those of a set sorted: its order differs from process to process."""
    found = list(values)
    if not isinstance(values, set | frozenset):
        return found
    try:
        return sorted(found)
    except TypeError:  # of several types
        return sorted(found, key=lambda value: (type(value).__name__, repr(value)))


def is_a(value: Any, *kinds: type[Any]) -> bool:
    """Whether a private cell is of one of these types, by its own type alone.

    What a class says of itself as ``__class__`` may be false, or fail.
    """
    return issubclass(type(value), kinds)


def is_one_of(value: Any, *kinds: type[Any]) -> bool:
    """Whether a private cell is of exactly one of these types; no code of its class is asked."""
    return any(type(value) is each for each in kinds)


def is_real(value: Any) -> TypeGuard[float]:
    """Whether a value is an integer or a float, NumPy's among them; it may be NaN or infinite."""
    return is_whole(value) or isinstance(value, float | np.floating)


def take_plain(value: Any) -> Any:
    """Take a whole number of NumPy as a plain one: within fractions it overflows."""
    return int(value) if isinstance(value, np.integer) else value


def require_positive(name: str, value: Any) -> float:
    """Refuse anything but a finite number above 0."""
    number = _double(value)
    if not 0 < number < math.inf:
        raise ParameterError(
            f"{name} must be a finite number above 0, got {as_given(value)}", parameter=name
        )
    return number


def read_finite(name: str, value: Any) -> float:
    """Refuse anything but a finite number; one beyond the doubles is none."""
    number = _double(value)
    if not math.isfinite(number):
        shown = "an integer beyond all doubles" if is_whole(value) else as_given(value)
        raise ParameterError(f"{name} must be a finite number, got {shown}", parameter=name)
    return number


def require_probability(name: str, value: Any) -> float:
    """Refuse anything but a number strictly between 0 and 1."""
    number = _double(value)
    if not 0 < number < 1:
        raise ParameterError(f"{name} must lie in (0, 1), got {as_given(value)}", parameter=name)
    return number


def read_epsilon(value: Any) -> float:
    """Read an epsilon that somebody asks for; exact numbers become the next decimal below."""
    level = read("epsilon", value, up=False)
    if not 0 < level < math.inf:
        raise ParameterError(
            f"epsilon must be a finite number above 0, got {as_given(value)}", parameter="epsilon"
        )
    return level


def read_bound(name: str, value: Any) -> float:
    """Read a bound as a double that is not below it: it is compared with rows, so no decimal."""
    if not isinstance(value, bool) and isinstance(value, Rational | Decimal):
        try:
            return finite_above(Fraction(value))
        except (ValueError, OverflowError):
            raise ParameterError(
                f"{name} must be finite, got {as_given(value)}", parameter=name
            ) from None
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        raise ParameterError(f"{name} must be finite, got {as_given(value)}", parameter=name)
    return read(name, value, up=True)


def require_count(name: str, value: Any, *, least: int = 1, plain: bool = False) -> int:
    """Refuse anything but an integer that is not too small; NumPy's as well if it must be plain."""
    if not (is_plain_int(value) if plain else is_whole(value)) or value < least:
        raise ParameterError(
            f"{name} must be an integer of {least} or more, got {as_given(value)}", parameter=name
        )
    if value > _MOST:
        raise ParameterError(f"{name} must be {_MOST} or less", parameter=name)
    return int(value)


def read_count(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Read a count that may come as any number: 3.0 counts as 3."""
    number = read(name, value, up=True)
    if not number.is_integer() or number < least or (most is not None and number > most):
        reach = f"from {least} to {most}" if most is not None else f"of {least} or more"
        raise ParameterError(
            f"{name} must be a whole number {reach}, got {as_given(value)}", parameter=name
        )
    return int(value)


def require_one_of(name: str, value: Any, allowed: Collection[str]) -> None:
    """Refuse anything but one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(
            f"{name} must be one of {tuple(allowed)}, got {as_given(value)}", parameter=name
        )


def require_within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside [low, high], and NaN."""
    if not low <= value <= high:
        raise ParameterError(f"{name} must lie in [{low}, {high}], got {value}", parameter=name)


def require_least(name: str, value: float, least: float = 0) -> None:
    """Refuse a number that is too small, and NaN."""
    if not value >= least:
        raise ParameterError(f"{name} must be {least} or more, got {value}", parameter=name)


def read_array(name: str, value: Any) -> NDArray[np.float64]:
    """Read an array of real numbers as doubles; texts, truth values, complex numbers are none.

    They may be infinite or NaN, and the array have any shape.
    """
    try:
        raw = np.asarray(value)
        each = raw if raw is value else np.asarray(value, dtype=object)
        mixed = each.dtype == object and any(not _is_number(one) for one in each.ravel())
        if raw.dtype.kind in "iufO" and not mixed:
            return raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(
        f"{name} must be a number or an array of numbers that doubles can hold, got "
        f"{type(value).__name__}",
        parameter=name,
    )


def read_list(name: str, values: Any, *, of: str, most: int = 10**6) -> list[Any]:
    """Read what may be an iterator as a list, but not for ever: refuse beyond so many."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ParameterError(
            f"{name} must be a list, such as {of}, got {type(values).__name__}", parameter=name
        )
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise ParameterError(f"{name} must be at most {most}, got more", parameter=name)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal | np.number) and not isinstance(value, bool | np.bool_)


def _double(value: Any) -> float:
    """Plain double of a real number; infinite beyond all doubles, NaN for anything else."""
    try:
        return float(value) if is_real(value) else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_utf16(head: bytes | bytearray) -> bool:
    """Whether a file begins with the mark of UTF-16, as Windows writes what it calls Unicode."""
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))
