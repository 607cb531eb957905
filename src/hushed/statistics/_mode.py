"""The most frequent of some public categories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import is_a, is_one_of, is_plain_int, list_in_order
from hushed._ground.printing import as_given
from hushed._ground.types import Integers
from hushed.errors import ParameterError
from hushed.guarantee import RowUnit
from hushed.statistics._lengths import mode_distance, mode_lengths
from hushed.statistics._priors import remember
from hushed.statistics._record import Described, Numeric, check_rows, check_size
from hushed.statistics._values import cells_of, only_column

Category = str | int | float | bool
_MOST = 10_000


@called_as('hs.statistics.mode(["no", "yes"])')
@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(Described):
    """The most frequent category; of equally frequent ones the first.

    Parameters
    ----------
    categories : sequence of str, int, float or bool
        Public list; rows that are none of them do not count.
    rows : int or None, default None
        Public number of rows; None if it is private.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    """

    kind: ClassVar[str] = "mode"

    categories: Sequence[Category]
    rows: int | None = None
    unit: RowUnit = "row"

    def __post_init__(self) -> None:
        check_rows(self.rows, self.unit)
        known = remember(read_categories(self.categories), self.categories)
        object.__setattr__(self, "categories", known)

    def count(self, rows: Any) -> Integers:
        """Count the rows of each category.

        Parameters
        ----------
        rows : array, list or frame
            One column.

        Returns
        -------
        ndarray of int
            Private, if the rows are.
        """
        check_size(rows, self.rows)
        known = frozenset(self.categories)  # looked up first: no other cell is ever a key
        counts = Counter(filter(known.__contains__, map(_plain, cells_of(only_column(rows)))))
        return np.array([counts.get(each, 0) for each in self.categories], dtype=np.int64)

    def __call__(self, rows: Any) -> Integers:
        """Count the rows of each category, as `count` does: a function of the rows like any other.

        Parameters
        ----------
        rows : array, list or frame
            One column.

        Returns
        -------
        ndarray of int
            Private, if the rows are.
        """
        return self.count(rows)

    def value(self, rows: Any) -> Category:
        """Most frequent category of a table."""
        return self.categories[int(np.argmax(self.count(rows)))]

    def distance(self, rows: Any) -> int:
        """Count the rows that can change, whichever they are, and the mode stays the same.

        Parameters
        ----------
        rows : array, list or frame
            One column.

        Returns
        -------
        int
            Private, if the rows are; 0 if one row can change it. Between neighbours with the same
            mode it moves by at most 1, and between others it is 0 on both.
        """
        return mode_distance(self.count(rows), replace=self.rows is not None)

    def lengths(self, rows: Any, candidates: Any, *, most: int | None = None) -> Integers:
        """Count the rows that must change before each category is the mode; all are exact."""
        del most
        if tuple(candidates) != self.categories:
            raise ParameterError(
                "the candidates of a mode are its categories", parameter="candidates"
            )
        return mode_lengths(self.count(rows), replace=self.rows is not None)


Statistic = Numeric | Mode


def place_of(cell: Any, places: dict[Category, int]) -> int:
    """Place of a category, or one beyond all; nothing is said of a cell that is none."""
    return places.get(_plain(cell), len(places))  # type: ignore[arg-type]


def _plain(cell: Any) -> Category | None:
    """Give a cell as an object of Python; None where it is none of the types of categories.

    One comparison after the other: there are as many calls as cells.
    """
    kind = type(cell)
    if kind is str or kind is int or kind is float or kind is bool:
        return cell  # type: ignore[no-any-return]
    if not is_a(cell, np.generic):
        return None
    found = np.generic.item(cell)
    return found if is_one_of(found, str, int, float, bool) else None


def read_categories(given: Any, name: str = "categories") -> tuple[Category, ...]:
    """Read a public list of categories."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ParameterError(f"{name} must be a list", parameter=name)
    listed = list_in_order(given)
    found = tuple(each.item() if isinstance(each, np.generic) else each for each in listed)
    if not 2 <= len(found) <= _MOST:
        raise ParameterError(f"{name} must be 2 to {_MOST}, got {len(found)}", parameter=name)
    for each in found:
        if not (isinstance(each, str | bool | float) or is_plain_int(each)) or (
            isinstance(each, float) and not math.isfinite(each)
        ):
            raise ParameterError(
                f"a category must be a text, a finite number or a truth value, "
                f"got {as_given(each)}",
                parameter=name,
            )
    if len(set(found)) != len(found):
        raise ParameterError(f"the {name} must all differ", parameter=name)
    return found
