"""What a statistic is: a value that knows how far rows can move it, on every table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, cast, get_args

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import is_real, require_count, require_one_of
from hushed._ground.decimals import decimal_of
from hushed._ground.numeric import first_whole, float_above
from hushed._ground.printing import as_given, name_count
from hushed._ground.types import Floats, Integers
from hushed._rows import _containers as containers
from hushed.errors import BadRows, ParameterError
from hushed.guarantee import Neighbours, RowUnit
from hushed.statistics._candidates import CANDIDATES, Spacing, list_candidates
from hushed.statistics._lengths import Rounding, leave, round_to_nearest
from hushed.statistics._values import check_numbers, check_range, only_column, read_numbers
from hushed.statistics._windows import Window, largest_move, smooth_bound

_ABOVE = 1 + 2.0**-50  # whatever is this much below the global sensitivity is exceeded somewhere


def check_rows(rows: int | None, unit: RowUnit) -> None:
    """Refuse what is no public number of rows, and no unit."""
    if rows is not None:
        require_count("rows", rows, plain=True)
    require_one_of("unit", unit, get_args(RowUnit))


def check_size(rows: Any, wanted: int | None) -> None:
    """Refuse a table of another size than the public one; a private size is never refused."""
    containers.container(containers.as_table(rows))
    rows = containers.take_plain(rows)
    if wanted is not None and len(rows) != wanted:
        raise BadRows(
            f"the statistic is for {name_count(wanted, 'row')}, the table has {len(rows)}; give "
            f"rows={len(rows)} "
            "if the number of rows is public, and rows=None if not"
        )


class Described:
    """What all statistics have in common."""

    __slots__ = ()

    kind: ClassVar[str]
    quadratic: ClassVar[bool] = False  # whether lengths take the square of the changes

    rows: int | None

    def description(self) -> dict[str, Any]:
        """Name and parameters, as JSON holds them.

        Returns
        -------
        dict
            What `from_description` makes the same statistic of.
        """
        given = ((each.name, getattr(self, each.name)) for each in fields(cast(Any, self)))
        kept = {name: list(value) if isinstance(value, tuple) else value for name, value in given}
        return {"kind": self.kind, **kept}

    @property
    def neighbours(self) -> Neighbours:
        """Relation between two tables: a replaced row, or one more or less."""
        return "add-remove" if self.rows is None else "replace-one"

    @property
    def invertible(self) -> bool:
        """Whether `lengths` are known."""
        return True

    def check(self, rows: Any) -> None:
        """Refuse a table by its public size and by its types; no value is looked at.

        Parameters
        ----------
        rows : array, list or frame
            One column.

        Raises
        ------
        BadRows
            If the number of rows is public and another one, there is more than one column, or a
            column for numbers holds none by its type.
        """
        check_size(rows, self.rows)
        only_column(rows)

    def value(self, rows: Any) -> Any:
        """Value on a table.

        Parameters
        ----------
        rows : array, list or frame
            One column.

        Returns
        -------
        Fraction, str, int, float or bool
            A number, exact; of an empty table, which a private number of rows allows, the low end
            of its range. Or a category.
        """
        raise NotImplementedError

    def lengths(self, rows: Any, candidates: Any, *, most: int | None = None) -> Integers:
        """Count the rows that must change before the statistic equals each candidate.

        Parameters
        ----------
        rows : array, list or frame
            One column.
        candidates : sequence
            Values that the statistic can have; of a mode all categories, in their order.
        most : int, optional
            Longer lengths may be returned as this one, which saves time.

        Returns
        -------
        ndarray of int
            Private, if the rows are. One changed row moves none of them by more than 1.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Numeric(Described):
    """What all statistics of numbers have: a public range, and a number of rows that is public.

    Parameters
    ----------
    rows : int or None
        Public number of rows: a neighbour has one row replaced. None if the number is private: a
        neighbour has one row more or less.
    low, high : float
        Public range: each row is moved into it; what is not a number counts as its low end.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    """

    rows: int | None = None
    low: float
    high: float
    unit: RowUnit = "row"

    def __post_init__(self) -> None:
        check_rows(self.rows, self.unit)
        low, high = check_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def span(self) -> tuple[float, float]:
        """Public range of the statistic itself."""
        return self.low, self.high

    @property
    def global_sensitivity(self) -> float:
        """How far one row can move the statistic on the worst table, rounded up."""
        return float_above(Fraction(self.high) - Fraction(self.low))

    def __call__(self, rows: Any) -> float:
        """Value on a table, rounded to a double: a function of the rows like any other.

        Parameters
        ----------
        rows : array, list or frame
            One column of numbers.

        Returns
        -------
        float
            Private, if the rows are.
        """
        return float(self.value(rows))

    def check(self, rows: Any) -> None:
        """Refuse a table by its public size and by its types; no value is looked at."""
        check_size(rows, self.rows)
        check_numbers(only_column(rows))

    def read(self, rows: Any) -> Floats:
        """Read rows as sorted numbers of the range.

        Parameters
        ----------
        rows : array, list or frame
            One column of numbers.

        Returns
        -------
        ndarray of float
            Sorted; what is not a number counts as the low end.

        Raises
        ------
        BadRows
            As `check` does.
        """
        if type(rows) is ReadRows and rows.statistic == self:
            return rows.values
        self.check(rows)
        return read_numbers(only_column(rows), self.low, self.high)

    def value(self, rows: Any) -> Fraction:
        """Exact value on a table; of an empty one the low end of `span`."""
        values = self.read(rows)
        return self._value(values) if values.size else Fraction(self.span[0])

    def local_sensitivity(self, rows: Any, changes: int = 0) -> float:
        """How far one more row can move it after some changes of this table.

        Parameters
        ----------
        rows : array, list or frame
            One column of numbers.
        changes : int, default 0
            Rows that may change first.

        Returns
        -------
        float
            Private, if the rows are. Exact to rounding where the number of rows is public, an upper
            bound where it is not.
        """
        values = self.read(rows)
        require_count("changes", changes, least=0)
        if not values.size:
            return self.global_sensitivity
        windows = self._windows(values.size)
        return max(largest_move(values, each, self.low, self.high, changes) for each in windows)

    @called_as("statistic.smooth_sensitivity(public_rows, Fraction(1, 10))")
    def smooth_sensitivity(self, rows: Any, smoothing: Fraction) -> float:
        """Smooth sensitivity: between neighbours it changes by a factor ``exp(smoothing)`` at most.

        Parameters
        ----------
        rows : array, list or frame
            One column of numbers.
        smoothing : Fraction
            Above 0.

        Returns
        -------
        float
            Private, if the rows are; rounded up.
        """
        values = self.read(rows)
        if not smoothing > 0:
            raise ParameterError(
                f"smoothing must be above 0, got {smoothing}", parameter="smoothing"
            )
        if not values.size:
            return self.global_sensitivity
        windows = self._windows(values.size)
        return max(smooth_bound(values, each, self.low, self.high, smoothing) for each in windows)

    @called_as("statistic.distance(public_rows, 5.0)")
    def distance(self, rows: Any, bound: float) -> int:
        """Count the rows that must change before one more can move it by more than a bound.

        Parameters
        ----------
        rows : array, list or frame
            One column of numbers.
        bound : float
            Above 0, and below `global_sensitivity`.

        Returns
        -------
        int
            Private, if the rows are; 0 if one row can do so now. One changed row moves it by at
            most 1. Where `local_sensitivity` is an upper bound the true number may be larger.
        """
        values = self.read(rows)
        if not 0 < bound * _ABOVE < self.global_sensitivity:
            raise ParameterError(
                f"bound must be above 0 and below {self.global_sensitivity}, got {bound}",
                parameter="bound",
            )
        if not values.size:
            return 0
        windows = self._windows(values.size)

        def exceeds(changes: int) -> bool:
            reach = (values, self.low, self.high, changes)
            return any(_moves_by_more(bound, each, *reach) for each in windows)

        return first_whole(lambda count: exceeds(count - 1), known=values.size + 1) - 1

    def lengths(
        self, rows: Any, candidates: Any, *, most: int | None = None, nearest: bool = False
    ) -> Integers:
        """Count the rows that must change before the statistic equals each candidate.

        Parameters
        ----------
        rows : array, list or frame
            One column of numbers.
        candidates : sequence of float
            Values in `span`.
        most : int, optional
            Longer lengths may be returned as this one, which saves time.
        nearest : bool, default False
            Count the rows that must change before a candidate is the one nearest to the statistic,
            the lower one of two. Then one of them needs none.

        Returns
        -------
        ndarray of int
            Private, if the rows are. One changed row moves none of them by more than 1.
        """
        if not self.invertible:
            raise ParameterError(f"no lengths are known of the {self.kind} without rows=NUMBER")
        values, wanted = self.read(rows), read_candidates(candidates, self.span)
        changes = values.size if most is None else min(values.size, max(most - 1, 0))
        rounding = round_to_nearest(wanted) if nearest else leave
        return self._lengths(values, wanted, changes, rounding)

    def _value(self, values: Floats) -> Fraction:
        """Value on sorted numbers, one or more."""
        raise NotImplementedError

    def _windows(self, rows: int) -> tuple[Window, ...]:
        """Windows whose differences bound the movement: the largest one does."""
        raise NotImplementedError

    def _lengths(
        self, values: Floats, candidates: Floats, changes: int, rounding: Rounding
    ) -> Integers:
        """Lengths on sorted numbers, as far as so many changes; the statistic is rounded so."""
        raise NotImplementedError

    def candidates(self, count: int = CANDIDATES) -> tuple[Floats, Spacing]:
        """List the values to choose from by default; they follow from public numbers only.

        Parameters
        ----------
        count : int, default 2000
            How many; 2 or more.

        Returns
        -------
        values : ndarray of float
            Ascending, from one end of the statistic's range to the other.
        spacing : {"geometric", "even"}
            Geometric where the range is above 0, and where it begins at 0: then 0 and the numbers
            from a millionth of the high end on. Otherwise even.
        """
        require_count("count", count, least=2)
        return list_candidates(*self.span, count)


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows as a statistic has read them: what is asked of it again need not sort them again."""

    statistic: Numeric
    values: Floats

    @classmethod
    def of(cls, statistic: Numeric, rows: Any) -> ReadRows:
        """Read rows once; nobody may write into what was read."""
        values = statistic.read(rows)
        values.flags.writeable = False
        return cls(statistic, values)


def _moves_by_more(
    bound: float, window: Window, values: Floats, low: float, high: float, changes: int
) -> bool:
    """Whether the local sensitivity at a distance, in doubles, exceeds a bound."""
    return largest_move(values, window, low, high, changes) > bound


def read_candidates(candidates: Any, span: tuple[float, float]) -> Floats:
    """Read values that a caller wants to choose from."""
    given = np.asarray(candidates)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iuf":
        raise ParameterError(
            "candidates must be a list of one number or more", parameter="candidates"
        )
    values = given.astype(np.float64)
    if not ((values >= span[0]) & (values <= span[1])).all():
        raise ParameterError(
            f"every candidate must lie in [{span[0]}, {span[1]}], where the statistic lies",
            parameter="candidates",
        )
    if np.unique(values).size != values.size:
        raise ParameterError("the candidates must all differ", parameter="candidates")
    return values


def read_share(name: str, value: Any, most: Fraction) -> float:
    """Read a share, which stands for its shortest decimal: 0.1 is one tenth."""
    if not is_real(value):
        raise ParameterError(f"{name} must be a number, got {as_given(value)}", parameter=name)
    if not 0 <= value <= 1 or decimal_of(value) > most:
        raise ParameterError(
            f"{name} must lie in [0, {most}], got {as_given(value)}", parameter=name
        )
    return float(value)
