"""Recognise private rows in a table that is said to be public, and name tables by content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._people import drop_users, list_bundles, show_rows
from hushed._types import Floats

_NEARLY_ALL = 0.9
_FEW = 20
_BY_CHANCE = 0.35  # of the private rows found in the other table
_BY_CHANCE_ROUNDED = 0.1  # for it is asked of many ways of rounding
_CELLS = 20_000  # of private rows that are rounded in every way
_DECIMALS, _DIGITS = range(-3, 13), range(3, 17)

_Keys = Callable[[Floats], list[Any]]


def shares_rows(frame: Any, private: Any) -> bool:
    """Tell whether a table was visibly made of the private rows.

    True if it is the private table, shares its memory, holds the same rows in any order, or shares
    at least half of the rows of the smaller table (if that has 20 different rows or more; of the
    private table otherwise), if the private rows are nearly all different and so many would not be
    found by chance. Numbers that one of them kept in single precision are compared in it. True,
    too, if half of the private rows are in the other table after they were rounded: to half or
    single precision, to a number of decimals or of digits.

    Notes
    -----
    Rounded incomes are found in any large table of such. How often two rows are equal by chance is
    taken from both tables; where that leaves a third of the private rows to be found, nothing is
    said unless half of the other table is private.

    The answer depends on private rows and is not paid for. A table of few rows therefore tells
    nothing: whoever may try tables could otherwise ask for single people by name.
    """
    if isinstance(frame, Bundles):
        return _shares_users(frame, private)
    if frame is private:
        return True
    arrays = isinstance(frame, np.ndarray) and isinstance(private, np.ndarray)
    if arrays and np.shares_memory(frame, private):
        return True
    plain = _matrix(private) is not None and _matrix(frame) is not None
    (ours, our_keys), (theirs, their_keys) = (_read(each, plain) for each in (private, frame))
    exact = our_keys(ours), their_keys(theirs)
    if _is_beyond_chance(*exact):
        return True
    short = _short(ours), _short(theirs)
    kept_short = np.array_equal(ours, short[0]) or np.array_equal(theirs, short[1])
    if kept_short and _is_beyond_chance(our_keys(short[0]), their_keys(short[1])):
        return True
    step = -(-ours.size // _CELLS)
    if step > 1:
        ours, our_keys = _read(containers.take(private, np.arange(0, len(private), step)), plain)
    known = set(exact[1])
    return any(
        _holds_rounded((ours, our_keys), (theirs, their_keys), known, each) for each in _ROUNDINGS
    )


def _shares_users(frame: Bundles, private: Bundles) -> bool:
    """Ask the same of tables of users, of their rows and of all that a user has."""
    ours, theirs = drop_users(private), drop_users(frame)
    if ours is None or theirs is None:  # nothing is known of users but their number of rows
        return False
    whole = [list_bundles(table, _rows(rows)) for table, rows in ((private, ours), (frame, theirs))]
    return shares_rows(theirs, ours) or _is_beyond_chance(
        *(list(map(repr, each)) for each in whole)
    )


def _holds_rounded(
    private: tuple[Floats, _Keys],
    frame: tuple[Floats, _Keys],
    known: set[Any],
    rounding: Callable[[Floats], Floats],
) -> bool:
    """Tell whether half of the private rows, rounded, are in a table more often than by chance.

    Only rows of the table that rounding leaves as they are can be such copies.
    """
    numbers = rounding(private[0])
    ours = private[1](numbers)
    distinct = set(ours)
    if len(distinct) < max(_FEW, _NEARLY_ALL * len(ours)) or np.array_equal(numbers, private[0]):
        return False
    if len(distinct & known) < len(distinct) / 2:
        return False
    before, after = (frame[1](each) for each in (frame[0], rounding(frame[0])))
    theirs = [key for key, same in zip(before, after, strict=True) if key == same]
    return len(theirs) * _chance(ours, theirs) < _BY_CHANCE_ROUNDED


def _is_beyond_chance(ours: list[Any], theirs: list[Any]) -> bool:
    """Tell whether private rows, the first, are found among others more often than by chance."""
    if len(ours) == len(theirs) and sorted(ours) == sorted(theirs):
        return True
    distinct, known = set(ours), set(theirs)
    if len(distinct) < _NEARLY_ALL * len(ours):
        return False
    # A bootstrap sample of the private rows repeats some, so that half of them may be distinct.
    smaller = min(len(distinct), len(known)) if len(known) >= len(theirs) / 2 else len(distinct)
    if smaller < _FEW:
        smaller = len(distinct)
    shared = len(distinct & known)
    if shared < smaller / 2:
        return False
    return shared >= len(known) / 2 or len(theirs) * _chance(ours, theirs) < _BY_CHANCE


def _chance(ours: list[Any], theirs: list[Any]) -> float:
    """Bound how often two independent rows are equal, by the tables themselves.

    A table made of the private ones repeats rows that these do not, and the other way round: the
    smaller number counts.
    """
    return min(_equal_pairs(ours), _equal_pairs(theirs))


def _equal_pairs(rows: list[Any]) -> float:
    equal = sum(times * (times - 1) for times in Counter(rows).values()) / 2
    return (equal + 1) / max(1.0, len(rows) * (len(rows) - 1) / 2)


def _matrix(frame: Any) -> Floats | None:
    """Rows as doubles, shape (rows, columns), if all cells are numbers."""
    if containers.container(frame) == "list" or "other" in containers.layout(frame).kinds:
        return None
    if any("128" in str(each) for each in getattr(frame, "dtypes", ())):  # NumPy has none such
        return None
    columns = frame if isinstance(frame, np.ndarray) else frame.to_numpy()
    if columns.dtype.kind not in "biuf":
        return None
    return columns.reshape(len(columns), -1).astype(np.float64) + 0.0  # negative zero is zero


def _read(frame: Any, plain: bool) -> tuple[Floats, _Keys]:
    """Numbers of a table, and what makes of such numbers one key for each of its rows."""
    matrix = _matrix(frame) if plain else None
    if matrix is not None:
        return matrix, _row_bytes
    rows = _rows(frame)
    numbers = [cell for row in rows for cell in row if isinstance(cell, float)]

    def keys(given: Floats) -> list[Any]:
        left = iter(given.tolist())
        return [
            repr(tuple(next(left) if isinstance(cell, float) else cell for cell in row))
            for row in rows
        ]

    return np.array(numbers, dtype=np.float64), keys


def _row_bytes(numbers: Floats) -> list[Any]:
    """One bytes object for each row: what `_row_keys` does, thirty times faster."""
    width = numbers.shape[1] * numbers.itemsize
    return list(np.ascontiguousarray(numbers).view(f"V{width}").ravel().tolist())


def _row_keys(frame: Any) -> list[Any]:
    """One text for each row, equal for equal rows whatever container holds them."""
    return list(map(repr, _rows(frame)))


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    """Cells of each row: a double for a number, a text for all else."""
    held = containers.container(frame)
    if held == "polars":
        return [tuple(map(_cell, row)) for row in frame.iter_rows()]
    if held == "pandas":
        return [tuple(map(_cell, row)) for row in frame.itertuples(index=False, name=None)]
    return [tuple(map(_cell, np.ravel(np.asarray(row, dtype=object)))) for row in frame]


def _cell(value: Any) -> Any:
    real = isinstance(value, int | float | np.integer | np.floating | np.bool_)
    if not real or isinstance(value, np.timedelta64):  # which NumPy calls an integer
        return _describe_object(value)
    try:
        return float(value) + 0.0  # negative zero is zero
    except OverflowError:  # a whole number beyond the doubles
        return hex(value)


def _describe_object(value: Any) -> str:
    """Text of what is not a number; of an object that shows only its address, of its content."""
    kind: Any = type(value)
    if kind.__repr__ is not object.__repr__ or kind.__str__ is not object.__str__:
        return str(value)
    try:
        return f"{kind.__qualname__} {value.__reduce_ex__(4)[1:3]!r}"
    except Exception:  # pickle keeps nothing of it
        return str(value)


def _cast(numbers: Floats, kind: type[np.floating[Any]]) -> Floats:
    with np.errstate(over="ignore"):
        return numbers.astype(kind).astype(np.float64) + 0.0


def _round_decimals(numbers: Floats, decimals: int) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.round(numbers, decimals) + 0.0


def _round_digits(numbers: Floats, digits: int) -> Floats:
    found = [float(f"{each:.{digits}g}") for each in numbers.ravel().tolist()]
    return np.array(found, dtype=np.float64).reshape(numbers.shape) + 0.0


_short = partial(_cast, kind=np.float32)
_ROUNDINGS: tuple[Callable[[Floats], Floats], ...] = (
    _short,
    partial(_cast, kind=np.float16),
    *(partial(_round_decimals, decimals=each) for each in _DECIMALS),
    *(partial(_round_digits, digits=each) for each in _DIGITS),
)


def digest(frame: Any) -> str:
    """Name a table by its content."""
    frame = show_rows(frame)
    found = hashlib.sha256()
    if isinstance(frame, np.ndarray) and frame.dtype.kind in "biuf":
        found.update(repr((str(frame.dtype), frame.shape)).encode())
        found.update(np.ascontiguousarray(frame).tobytes())
    else:
        for key in _row_keys(frame):
            found.update(key.encode() + b"\n")
    return found.hexdigest()
