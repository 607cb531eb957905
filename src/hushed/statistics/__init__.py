"""Statistics that know how far one row can move them: on every table, and on this one.

They are what `hushed.InverseSensitivity` and `hushed.Smooth` release, with a promise that holds for
every table. The sensitivities themselves are private where the rows are: look at them on public
tables only.
"""

from typing import TYPE_CHECKING, Never

from hushed.statistics._constructors import (
    from_description,
    interquartile_range,
    maximum,
    mean,
    median,
    minimum,
    mode,
    quantile,
    trimmed_mean,
)
from hushed.statistics._mode import Category, Mode, Statistic
from hushed.statistics._numeric_statistics import InterquartileRange, Quantile, TrimmedMean
from hushed.statistics._record import Numeric

__all__ = [
    "Category",
    "InterquartileRange",
    "Mode",
    "Numeric",
    "Quantile",
    "Statistic",
    "TrimmedMean",
    "from_description",
    "interquartile_range",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "quantile",
    "trimmed_mean",
]

if not TYPE_CHECKING:  # a type checker knows which names there are

    def __getattr__(name: str) -> Never:
        """Say why there is no variance; other names are not there either."""
        if name == "variance":
            raise AttributeError(
                "there is no statistic variance: on every table one row can move a variance by an "
                "eighth, or more, of what one row can on any table, so noise that follows the rows "
                "gains little. Use hs.statistics.interquartile_range, or the variance of a table "
                "query"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
