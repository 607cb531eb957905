"""Statistics by their usual names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed._ground.calls import called_as, explained
from hushed.errors import ParameterError
from hushed.guarantee import RowUnit
from hushed.statistics._mode import Category, Mode, Statistic
from hushed.statistics._numeric_statistics import InterquartileRange, Quantile, TrimmedMean

KINDS: dict[str, Any] = {
    each.kind: each for each in (Quantile, TrimmedMean, InterquartileRange, Mode)
}

_RANGE = "give the public range of a row, from what it means and not from the rows, as in {}"
_CATEGORIES = (
    "list all public categories that a row may be, as in hs.statistics.mode(['no', 'yes'])"
)


@explained(_RANGE.format("hs.statistics.quantile(0.9, low=0, high=365)"))
def quantile(
    q: float, *, rows: int | None = None, low: float, high: float, unit: RowUnit = "row"
) -> Quantile:
    """Value that a share of the rows is at or below.

    Parameters
    ----------
    q : float
        The share; in [0, 1].
    rows : int, optional
        Public number of rows; without it the number is private, too.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Quantile
        The value of rank ``max(1, ceil(q n))``.

    Examples
    --------
    >>> from hushed import statistics
    >>> s = statistics.quantile(0.5, rows=7, low=0, high=30)
    >>> s.lengths([1, 2, 4, 7, 11, 16, 22], [0, 7, 8, 30]).tolist()
    [4, 0, 1, 4]
    """
    return Quantile(q=q, rows=rows, low=low, high=high, unit=unit)


@explained(_RANGE.format("hs.statistics.median(low=0, high=365)"))
def median(*, rows: int | None = None, low: float, high: float, unit: RowUnit = "row") -> Quantile:
    """Middle value; the lower one of two.

    Parameters
    ----------
    rows : int, optional
        Public number of rows; without it the number is private, too.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Quantile
        With q = 1/2.
    """
    return quantile(0.5, rows=rows, low=low, high=high, unit=unit)


@explained(_RANGE.format("hs.statistics.minimum(low=0, high=365)"))
def minimum(*, rows: int | None = None, low: float, high: float, unit: RowUnit = "row") -> Quantile:
    """Smallest value.

    Parameters
    ----------
    rows : int, optional
        Public number of rows; without it the number is private, too.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Quantile
        With q = 0.
    """
    return quantile(0.0, rows=rows, low=low, high=high, unit=unit)


@explained(_RANGE.format("hs.statistics.maximum(low=0, high=365)"))
def maximum(*, rows: int | None = None, low: float, high: float, unit: RowUnit = "row") -> Quantile:
    """Largest value.

    Parameters
    ----------
    rows : int, optional
        Public number of rows; without it the number is private, too.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Quantile
        With q = 1.
    """
    return quantile(1.0, rows=rows, low=low, high=high, unit=unit)


@explained(_RANGE.format("hs.statistics.mean(rows=1000, low=0, high=365)"))
def mean(*, rows: int, low: float, high: float, unit: RowUnit = "row") -> TrimmedMean:
    """Mean of all rows.

    Parameters
    ----------
    rows : int
        Public number of rows.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    TrimmedMean
        With trim = 0.
    """
    return trimmed_mean(0.0, rows=rows, low=low, high=high, unit=unit)


@explained(_RANGE.format("hs.statistics.trimmed_mean(0.05, rows=1000, low=0, high=365)"))
def trimmed_mean(
    trim: float = 0.1, *, rows: int, low: float, high: float, unit: RowUnit = "row"
) -> TrimmedMean:
    """Mean without the smallest and largest rows.

    Parameters
    ----------
    trim : float, default 0.1
        Share of the rows dropped at each end, rounded down to whole rows.
    rows : int
        Public number of rows.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    TrimmedMean
        With ``trim=0`` the mean.
    """
    return TrimmedMean(trim=trim, rows=rows, low=low, high=high, unit=unit)


@explained(_RANGE.format("hs.statistics.interquartile_range(low=0, high=365)"))
def interquartile_range(
    *, rows: int | None = None, low: float, high: float, unit: RowUnit = "row"
) -> InterquartileRange:
    """Distance of the two quartiles.

    Parameters
    ----------
    rows : int, optional
        Public number of rows; without it the number is private, too.
    low, high : float
        Public range: each row is moved into it.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    InterquartileRange
        Of the ranks ``ceil(n/4)`` and ``ceil(3n/4)``.
    """
    return InterquartileRange(rows=rows, low=low, high=high, unit=unit)


@explained(_CATEGORIES)
def mode(categories: Sequence[Category], *, rows: int | None = None, unit: RowUnit = "row") -> Mode:
    """Most frequent of some public categories.

    Parameters
    ----------
    categories : sequence of str, int, float or bool
        Public list; rows that are none of them do not count.
    rows : int, optional
        Public number of rows; without it the number is private, too.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Mode
        Of equally frequent ones the first.
    """
    return Mode(categories=categories, rows=rows, unit=unit)


@called_as("hs.statistics.from_description(hs.statistics.median(low=0, high=100).description())")
def from_description(
    description: dict[str, Any],
) -> Statistic:
    """Make the statistic that a description speaks of.

    Parameters
    ----------
    description : dict
        What the method ``description`` of a statistic gave.

    Returns
    -------
    Quantile, TrimmedMean, InterquartileRange or Mode
        An equal statistic.

    Raises
    ------
    ParameterError
        If it describes none.
    """
    known = {name: value for name, value in description.items() if name != "kind"}
    kind = description.get("kind")
    if kind not in KINDS:
        raise ParameterError(f"no statistic is of the kind {kind!r}; there are {tuple(KINDS)}")
    try:
        made: Statistic = KINDS[kind](**known)
    except (TypeError, ParameterError) as problem:
        raise ParameterError(f"that describes no {kind}: {problem}") from None
    return made
