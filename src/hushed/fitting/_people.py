"""Users summed up, each by all rows of one's own: what a test of people compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._ground.types import Floats
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Summaries:
    """Which numbers and texts sum up a user, as columns of a table with one row for each.

    Parameters
    ----------
    columns : tuple of str
        All columns of the rows.
    kinds : tuple of {"number", "text", ""}
        What each column holds; empty for the column of users.

    Notes
    -----
    Each is a cell of the user's own, or a count of the user's rows: nothing is rounded, and the
    rows of others do not matter. So two tables that differ in one user differ in one row of these.
    """

    columns: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Words for the columns of the summaries."""
        words = {
            "number": ("the least {!r}", "the median {!r}", "the largest {!r}"),
            "text": ("the most frequent {!r}", "how many {!r}"),
            "": (),
        }
        told = zip(self.columns, self.kinds, strict=True)
        return (
            "how many rows",
            *(each.format(name) for name, kind in told for each in words[kind]),
        )

    def sum_up(self, table: Bundles) -> list[Any]:
        """Sum up each user of a table, one column after the other."""
        return list(self._list_summaries(table))

    def _list_summaries(self, table: Bundles) -> Iterator[Any]:
        starts, sizes = table.starts[:-1], np.diff(table.starts)
        whose = np.arange(len(table)).repeat(sizes)
        yield sizes.astype(np.float64)
        cells = split_columns(table.rows, self.columns)
        for column, kind in zip(cells, self.kinds, strict=True):
            if kind == "number":
                numbers = read_numbers(column)
                ordered = numbers[np.lexsort((numbers, whose))]  # what is missing comes last
                yield from (ordered[starts + at] for at in (0, (sizes - 1) // 2, sizes - 1))
            elif kind == "text":
                yield from _sum_up_texts(read_texts(column), whose, len(table))


def _sum_up_texts(texts: list[str], whose: Any, users: int) -> tuple[list[str], Floats]:
    """Most frequent text of each user, of several the first by letters, and how many there are."""
    known = sorted(set(texts))
    places = {text: place for place, text in enumerate(known)}
    codes = np.array([places[text] for text in texts], dtype=np.int64)
    pairs, counts = np.unique(whose * len(known) + codes, return_counts=True)
    owners, found = np.divmod(pairs, len(known))
    order = np.lexsort((found, -counts, owners))
    firsts = order[np.searchsorted(owners[order], np.arange(users))]
    distinct = np.bincount(owners, minlength=users).astype(np.float64)
    return [known[place] for place in found[firsts].tolist()], distinct


def choose_summaries(table: Bundles) -> Summaries:
    """Choose what sums up a user, from public rows."""
    names = name_columns(table.rows)
    kinds = []
    for name, column in zip(names, split_columns(table.rows, names), strict=True):
        if name == str(table.user):
            kinds.append("")
        elif is_numeric(column):
            kinds.append("number")
        elif is_readable(column):
            kinds.append("text")
        else:
            raise BadRows(
                f"column {name!r} of the population holds neither numbers nor times nor texts, so "
                "that nothing of it would be tested: convert it, or leave it out of both tables"
            )
    return Summaries(columns=names, kinds=tuple(kinds))
