"""Quantiles, trimmed means and the interquartile range: what one row can move, and how far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of
from hushed._ground.numeric import float_above
from hushed._ground.types import Floats, Integers
from hushed.errors import ParameterError
from hushed.statistics._lengths import (
    Rounding,
    interval_lengths,
    mean_intervals,
    quantile_lengths,
    rank_lengths,
    spread_intervals,
)
from hushed.statistics._record import Numeric, read_share
from hushed.statistics._values import exact_sum
from hushed.statistics._windows import Window

_QUARTERS = (Fraction(1, 4), Fraction(3, 4))


def _window_at(q: Fraction, rows: int) -> Window:
    """Window around the rank of a quantile: ``max(1, ceil(q n))``."""
    rank = max(1, math.ceil(q * rows))
    return Window(lower=rank, upper=rank)


def _middle_window(rows: int) -> Window:
    """Window around the median of a private number of rows, which grows by turns."""
    rank = (rows + 1) // 2
    return Window(lower=rank, upper=rank, grows="down" if rows % 2 else "up")


def _at(values: Floats, window: Window) -> Fraction:
    return Fraction(float(values[window.lower - 1]))


@called_as("hs.statistics.quantile(0.9, low=0, high=365)")
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Numeric):
    """The value of rank ``max(1, ceil(q n))`` among n rows; of an empty table the low end.

    Parameters
    ----------
    rows : int or None
        Public number of rows; None if it is private.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.
    q : float
        Share of the rows at or below the value; in [0, 1]. It stands for its shortest decimal.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.

    Notes
    -----
    For q = 1/2 and an even number of rows it is the lower of the two middle values.
    """

    kind: ClassVar[str] = "quantile"

    q: float

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        object.__setattr__(self, "q", read_share("q", self.q, Fraction(1)))

    def _windows(self, rows: int) -> tuple[Window, ...]:
        if self.rows is None and self.q == 0.5:
            return (_middle_window(rows),)
        return (_window_at(decimal_of(self.q), rows),)

    def _value(self, values: Floats) -> Fraction:
        return _at(values, *self._windows(values.size))

    def _lengths(
        self, values: Floats, candidates: Floats, changes: int, rounding: Rounding
    ) -> Integers:
        del changes  # they are not counted one by one
        values = rounding(values)  # the rank of rounded rows is the rounded one
        if self.rows is None:
            return quantile_lengths(values, decimal_of(self.q), candidates)
        return rank_lengths(values, self._windows(values.size)[0].lower, candidates)


@called_as("hs.statistics.trimmed_mean(0.05, rows=1000, low=0, high=365)")
@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean(Numeric):
    """Mean of what is left when the smallest and largest rows are dropped.

    Parameters
    ----------
    rows : int
        Public number of rows.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.
    trim : float
        Share of the rows dropped at each end, rounded down to whole rows; in [0, 1/2]. It stands
        for its shortest decimal.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, the number of rows is not given, or no row is left.
    """

    kind: ClassVar[str] = "trimmed mean"

    trim: float

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        object.__setattr__(self, "trim", read_share("trim", self.trim, Fraction(1, 2)))
        if self.rows is None:
            raise ParameterError(
                "a trimmed mean needs a public number of rows: its divisor moves with it",
                parameter="rows",
                hint="give rows=NUMBER",
            )
        if self._windows(self.rows)[0].parts < 1:
            raise ParameterError("nothing is left: trim fewer rows", parameter="trim")

    @property
    def global_sensitivity(self) -> float:
        """How far one row can move it on the worst table, rounded up."""
        (window,) = self._windows(self.rows or 0)
        return float_above((Fraction(self.high) - Fraction(self.low)) / window.parts)

    def _windows(self, rows: int) -> tuple[Window, ...]:
        dropped = math.floor(decimal_of(self.trim) * rows)
        return (Window(lower=dropped + 1, upper=rows - dropped, parts=rows - 2 * dropped),)

    def _value(self, values: Floats) -> Fraction:
        (window,) = self._windows(values.size)
        return exact_sum(values[window.lower - 1 : window.upper]) / window.parts

    def _lengths(
        self, values: Floats, candidates: Floats, changes: int, rounding: Rounding
    ) -> Integers:
        (window,) = self._windows(values.size)
        least, most = mean_intervals(values, window, self.low, self.high, changes)
        return interval_lengths(rounding(least), rounding(most), candidates)


@called_as("hs.statistics.interquartile_range(low=0, high=365)")
@dataclass(frozen=True, slots=True, kw_only=True)
class InterquartileRange(Numeric):
    """Distance of the two quartiles, the values of rank ``ceil(n/4)`` and ``ceil(3n/4)``.

    Parameters
    ----------
    rows : int or None
        Public number of rows, 2 or more; None if it is private. Then `hushed.Smooth` alone can
        release it.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.

    Notes
    -----
    One row, replaced, added or removed, moves both quartiles the same way, so that their distance
    moves by no more than one of them does.
    """

    kind: ClassVar[str] = "interquartile range"
    quadratic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Numeric.__post_init__(self)
        if self.rows == 1:
            raise ParameterError("the quartiles of one row are the same", parameter="rows")

    @property
    def invertible(self) -> bool:
        """Whether `lengths` are known: with a public number of rows only."""
        return self.rows is not None

    @property
    def span(self) -> tuple[float, float]:
        """Public range of the distance."""
        return 0.0, self.high - self.low

    def _windows(self, rows: int) -> tuple[Window, ...]:
        return tuple(_window_at(q, rows) for q in _QUARTERS)

    def _value(self, values: Floats) -> Fraction:
        first, last = self._windows(values.size)
        return _at(values, last) - _at(values, first)

    def _lengths(
        self, values: Floats, candidates: Floats, changes: int, rounding: Rounding
    ) -> Integers:
        first, last = (window.lower for window in self._windows(values.size))
        least, most = spread_intervals(values, first, last, self.low, self.high, changes)
        return interval_lengths(rounding(least), rounding(most), candidates)
