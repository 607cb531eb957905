"""What one cell of a table may hold, and how a column of them is read and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import is_a, list_in_order, require_one_of
from hushed._ground.exact import LARGEST_INT, is_small
from hushed._ground.printing import format_exactly
from hushed._ground.types import ColumnType
from hushed.errors import BadRows, ParameterError

CELL_TYPES: tuple[ColumnType, ...] = ("int", "float", "string", "bool")
LARGEST_FLOAT: float = 2.0**970  # sums of 2**50 of them stay finite, and so do their errors


@called_as('hs.spaces.Cell(type="float", low=0, high=100)')
@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one cell may hold.

    Parameters
    ----------
    type : {"int", "float", "string", "bool"}, default "float"
        Type of the values; "bool" is true or false.
    low, high : float, optional
        Bounds, both or none; numbers only. At most ``2**970`` in magnitude for floats and
        ``2**53`` for integers.
    missing : bool, default False
        Whether a value may be missing: NaN among floats, None among strings. A column of integers
        or truth values with missing values is one of floats.

    Raises
    ------
    ParameterError
        If the bounds are swapped, not finite or of the wrong type.
    """

    type: ColumnType = "float"
    low: float | None = None
    high: float | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        require_one_of("type", self.type, CELL_TYPES)
        if self.type == "int" and self.missing:
            raise ParameterError("integers with missing values are read as floats: type='float'")
        if self.type == "bool" and self.missing:
            raise ParameterError(
                "truth values with missing ones are read as floats, 0, 1 and NaN: type='float'"
            )
        if (self.low is None) != (self.high is None):
            raise ParameterError("give both bounds or none")
        if self.low is None or self.high is None:
            return
        if self.type in ("string", "bool"):
            raise ParameterError(f"{_PLURALS[self.type]} have no bounds")
        if not -math.inf < self.low <= self.high < math.inf:
            raise ParameterError(
                f"bounds must be finite with low <= high, got [{self.low}, {self.high}]"
            )
        if self.type == "int" and not (
            float(self.low).is_integer() and float(self.high).is_integer()
        ):
            raise ParameterError(f"integers need integer bounds, got [{self.low}, {self.high}]")
        limit = LARGEST_INT if self.type == "int" else LARGEST_FLOAT
        if max(abs(self.low), abs(self.high)) > limit:
            raise ParameterError(f"bounds must lie within {limit:g}, got [{self.low}, {self.high}]")
        number = int if self.type == "int" else float
        object.__setattr__(self, "low", number(self.low))
        object.__setattr__(self, "high", number(self.high))

    def __str__(self) -> str:
        """Words for messages."""
        bounds = ""
        if self.low is not None and self.high is not None:
            bounds = f" in [{format_exactly(self.low)}, {format_exactly(self.high)}]"
        return f"{self.type}{bounds}{', maybe missing' if self.missing else ''}"

    def check(self, values: Any, *, name: str | None = None) -> NDArray[Any]:
        """Read a column of cells and refuse what is not in the domain.

        Parameters
        ----------
        values : array_like, shape (n,)
            The cells.
        name : str, optional
            Public name of the column, for messages.

        Returns
        -------
        ndarray, shape (n,)
            Doubles, 64-bit integers, truth values, or strings in an array of objects; a copy.

        Raises
        ------
        BadRows
            If a cell is of another type, missing or out of bounds; none is shown.
        """
        column = "a column" if name is None else f"column {name!r}"
        readers = {"string": _strings, "bool": _read_flags}
        reader = readers.get(self.type)
        read = read_numbers(values, self.type) if reader is None else reader(values)
        if read is None or read.ndim != 1:
            raise BadRows(f"{column} does not hold {self}: other types of values or dimensions")
        absent = missing_in(read)
        if absent.any() and not self.missing:
            raise BadRows(f"{column} declared as {self} has missing values; declare or impute them")
        if self.low is not None and not ((read >= self.low) & (read <= self.high) | absent).all():
            raise BadRows(f"{column} declared as {self} has values out of bounds; clip it first")
        return read

    def nearest(self, value: object) -> float | str | bool | None:
        """Turn anything into what this cell may hold, without ever refusing.

        Parameters
        ----------
        value : object
            What is to be put here.

        Returns
        -------
        float, int, bool, str or None
            A number moved into the bounds; in a cell of integers rounded to the nearest one, ties
            to even, and moved to within ``2**53``; in one of truth values to 0 or 1,
            false or true. NaN, None, and what is not a number here, or no string in a cell of
            strings, becomes missing (NaN among floats, None among strings). Where nothing may be
            missing it becomes the constant of the cell: the low bound, 0 without bounds, false,
            the empty string.
        """
        if self.type == "bool":
            return bool(_FLAG.nearest(value))
        if self.type == "string":
            if is_a(value, str):
                return str.__str__(value)
            return None if self.missing else ""
        number = _number(value)
        if number is None:
            if self.missing:
                return math.nan
            number = 0 if self.low is None else self.low
        if self.low is not None and self.high is not None:
            number = min(max(number, self.low), self.high)
        elif self.type == "int":
            number = min(max(number, -LARGEST_INT), LARGEST_INT)
        elif isinstance(number, int) and abs(number) > LARGEST_FLOAT:  # perhaps beyond all doubles
            number = math.inf if number > 0 else -math.inf
        return round(number) if self.type == "int" else float(number)


_FLAG = Cell(type="int", low=0, high=1)
_PLURALS = {"string": "strings", "bool": "truth values"}


def _number(value: object) -> float | None:
    """Read a number, a whole one exactly; None if it is none, or NaN."""
    found: Any = value
    if is_a(found, np.ndarray) and found.ndim == 0:
        found = np.ndarray.item(found)
    if is_a(found, np.integer, np.floating, np.bool_):
        found = np.generic.item(found)
    if is_a(found, int):
        return int.__index__(found)
    if not is_a(found, float, np.floating):  # a wide one of NumPy stays one
        return None
    number = float.__float__(found) if is_a(found, float) else float(found)
    return None if math.isnan(number) else number


def missing_in(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which cells of a checked column are missing."""
    if values.dtype.kind == "O":
        return np.array([value is None for value in values], dtype=np.bool_)
    return np.asarray(np.isnan(values))


def read_numbers(values: Any, column_type: ColumnType) -> NDArray[Any] | None:
    """Read an array of numbers without loss."""
    read = _array(values)
    if read is None:
        return None
    if read.size == 0:
        return read.astype(np.int64 if column_type == "int" else np.float64)
    if read.dtype.kind == "O":  # numbers with None among them
        plain = [math.nan if _absent(value) else value for value in read.ravel()]
        if not all(map(_is_double, plain)):
            return None
        read = np.array(plain, dtype=np.float64).reshape(read.shape)
    if column_type == "int":
        return read.astype(np.int64) if read.dtype.kind in "biu" and is_small(read) else None
    lossless = read.dtype.kind in "bf" and read.dtype.itemsize <= 8
    if lossless or (read.dtype.kind in "iu" and is_small(read)):
        return read.astype(np.float64)
    return None


def _is_double(value: object) -> bool:
    """Whether a double holds a number as it is."""
    if isinstance(value, int | np.integer):
        return abs(int(value)) <= LARGEST_INT
    return isinstance(value, float | np.bool_ | np.floating)


def _strings(values: Any) -> NDArray[Any] | None:
    found = [None if _absent(value) else value for value in values]
    if not all(value is None or isinstance(value, str) for value in found):
        return None
    read = np.empty(len(found), dtype=object)
    read[:] = [None if value is None else str(value) for value in found]
    return read


def _read_flags(values: Any) -> NDArray[Any] | None:
    """Read truth values; None if there is anything else, a missing one or a number included."""
    read = _array(values)
    if read is None or read.dtype.kind == "b" or read.size == 0:
        return None if read is None else read.astype(np.bool_)
    held = read.ravel().tolist() if read.dtype.kind == "O" else [None]
    if not all(isinstance(value, bool | np.bool_) for value in held):
        return None
    return read.astype(np.bool_)


def _absent(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _array(values: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(values)
    except (Exception, SystemExit):  # raised by an object, with a text that may show a value
        return None


def keys_of(values: Iterable[Any]) -> tuple[Any, ...]:
    """Public keys or categories: distinct, none missing."""
    found = tuple(list_in_order(values))
    if not found or len(set(found)) != len(found) or any(_absent(key) for key in found):
        raise ParameterError("keys must be distinct and not missing, and at least one")
    return found
