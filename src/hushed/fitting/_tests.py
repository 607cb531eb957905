"""Test functions of one row, fixed before private rows are looked at, and how often each holds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushed._ground.types import Floats, Integers
from hushed._rows._bundles import Bundles
from hushed.errors import BadRows
from hushed.fitting._columns import (
    is_numeric,
    is_readable,
    name_columns,
    read_numbers,
    read_texts,
    split_columns,
)
from hushed.fitting._people import Summaries, choose_summaries

Tests = Literal["marginals", "pairs"]

_QUANTILES = 500  # of a column, as thresholds
_CATEGORIES = 100
_FEW_CATEGORIES = 6  # up to so many, all groups of them are test functions
_CORNERS = 3  # thresholds or categories of a column, for products


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """Test functions of one column: whether a cell is at most a threshold, or of a group.

    Parameters
    ----------
    thresholds : ndarray of float
        Sorted upwards, the last one infinite; empty for a column of texts.
    categories : dict of str to int
        Place of each category; empty for a column of numbers.
    groups : ndarray of int, shape (functions, categories + 1)
        Which categories each function asks for, the last one being all others; of few categories
        all groups, of many each by itself. Empty for a column of numbers.
    corners : ndarray
        Some of the thresholds, or places of categories, whose products with those of other columns
        are test functions, too.
    """

    thresholds: Floats
    categories: dict[str, int]
    groups: Integers
    corners: Any

    @property
    def size(self) -> int:
        """Number of test functions."""
        return self.thresholds.size if self.numeric else len(self.groups)

    @property
    def numeric(self) -> bool:
        """Whether it is a column of numbers."""
        return bool(self.thresholds.size)

    def read(self, column: Any) -> Any:
        """Read cells as numbers, or as places of categories; the last place is of all others."""
        if self.numeric:
            return read_numbers(column)
        others = len(self.categories)
        places = [self.categories.get(text, others) for text in read_texts(column)]
        return np.array(places, dtype=np.int64)

    def count(self, cells: Any) -> Integers:
        """Count the rows for which each test function of this column holds."""
        if self.numeric:
            size = self.thresholds.size
            places = np.searchsorted(self.thresholds, cells, side="left")  # NaN is beyond all
            return np.cumsum(np.bincount(places, minlength=size + 1))[:size]
        found: Integers = self.groups @ np.bincount(cells, minlength=len(self.categories) + 1)
        return found

    def mark(self, cells: Any) -> Floats:
        """Tell for each row which corners hold, as columns of 0 and 1."""
        if self.numeric:
            return np.asarray(cells[:, None] <= self.corners, dtype=np.float64)
        return np.asarray(cells[:, None] == self.corners, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestFunctions:
    """All test functions of a table.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    columns : tuple of Column
        Test functions of each.
    pairs : bool
        Whether products of corners of two columns are test functions, too.
    """

    __test__ = False  # no class of tests

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    pairs: bool
    summaries: Summaries | None = None

    @property
    def bounds(self) -> int:
        """Number of deviations that are bounded apart from each other.

        All thresholds of a column are one, by the inequality of Dvoretzky, Kiefer, Wolfowitz and
        Massart; each other function is one, by that of Hoeffding. Both are ``2 exp(-2 n u**2)``.
        """
        return sum(1 if each.numeric else each.size for each in self.columns) + self.products

    @property
    def products(self) -> int:
        """Number of products of corners."""
        sizes = [len(each.corners) for each in self.columns]
        return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2 if self.pairs else 0

    @property
    def size(self) -> int:
        """Number of test functions."""
        return sum(each.size for each in self.columns) + self.products

    def count(self, rows: Any) -> Integers:
        """Count the rows of a table, or its users, for which each function holds."""
        if self.summaries is not None:
            found = self.summaries.sum_up(rows)
        else:
            found = split_columns(rows, self.names)
        cells = [column.read(each) for column, each in zip(self.columns, found, strict=True)]
        counts = [column.count(each) for column, each in zip(self.columns, cells, strict=True)]
        if self.products:
            counts.append(self._count_products(cells))
        return np.concatenate(counts).astype(np.int64)

    def _count_products(self, cells: list[Any]) -> Integers:
        """Count the rows in each corner of two columns; sums of 0 and 1 are exact in doubles."""
        marks = [column.mark(each) for column, each in zip(self.columns, cells, strict=True)]
        owner = np.repeat(np.arange(len(marks)), [each.shape[1] for each in marks])
        all_marks = np.concatenate(marks, axis=1)
        both = np.rint(all_marks.T @ all_marks).astype(np.int64)
        found: Integers = both[owner[:, None] < owner]
        return found


def choose_tests(rows: Any, tests: Tests) -> TestFunctions:
    """Choose test functions from public rows, or users, which nothing else is computed from."""
    if isinstance(rows, Bundles):
        summaries = choose_summaries(rows)
        columns = tuple(map(_choose, summaries.sum_up(rows)))
        return TestFunctions(
            names=summaries.names, columns=columns, pairs=tests == "pairs", summaries=summaries
        )
    names = name_columns(rows)
    if 0 in getattr(rows, "shape", ())[1:]:
        raise BadRows("the population has no column that could be compared")
    found = split_columns(rows, names)
    for name, column in zip(names, found, strict=True):
        if not (is_numeric(column) or is_readable(column)):
            raise BadRows(
                f"column {name!r} of the population holds neither numbers nor times nor texts, so "
                "that nothing of it would be tested: convert it, or leave it out of both tables"
            )
    columns = tuple(map(_choose, found))
    return TestFunctions(names=names, columns=columns, pairs=tests == "pairs" and len(columns) > 1)


def _choose(column: Any) -> Column:
    if not is_numeric(column):
        return _choose_categories(column)
    values = read_numbers(column)
    values = np.sort(values[np.isfinite(values)])
    if not values.size:
        values = np.zeros(1)
    places = np.linspace(0, values.size - 1, _QUANTILES + 1).round().astype(np.int64)
    chosen = np.unique(values[places])
    # Just below each, too: a value that many rows have is seen from both sides.
    thresholds = np.unique([*chosen, *np.nextafter(chosen, -math.inf), math.inf])
    quarters = values[(np.arange(1, _CORNERS + 1) * values.size) // (_CORNERS + 1)]
    nothing = np.empty((0, 0), dtype=np.int64)
    return Column(thresholds=thresholds, categories={}, groups=nothing, corners=np.unique(quarters))


def _choose_categories(column: Any) -> Column:
    common = [text for text, _ in Counter(read_texts(column)).most_common(_CATEGORIES)]
    return Column(
        thresholds=np.empty(0),
        categories={text: place for place, text in enumerate(common)},
        groups=_group(len(common)),
        corners=np.arange(min(_CORNERS, len(common))),
    )


def _group(categories: int) -> Integers:
    """List the groups of categories that are asked for; the last place is that of all others.

    The complement of a group is off by as much as the group, so that one of the two is enough.
    """
    if categories > _FEW_CATEGORIES:
        return np.eye(categories + 1, dtype=np.int64)
    numbers = np.arange(1, 1 << categories)
    found = (numbers[:, None] >> np.arange(categories + 1)) & 1
    return found.astype(np.int64)
