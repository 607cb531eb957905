"""A table whose unit is a user: the rows of each of them lie together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushed._ground.types import Integers


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """Rows of users, one user after the other; its length is the number of users.

    Parameters
    ----------
    rows : array, list or frame
        All rows. Whatever the column of users holds, functions are given the place of each user
        in the table there; see `hushed._rows._people.show_rows`.
    starts : ndarray of int, shape (users + 1,)
        Where the rows of each user start, and the end of the last one's.
    user : str or int
        The column of users: its name, or its position in an array or in tuples.
    numbered : bool, default False
        Whether each user's place stands in that column already.
    """

    rows: Any
    starts: Integers
    user: str | int
    numbered: bool = False

    def __len__(self) -> int:
        """Count the users."""
        return len(self.starts) - 1

    def __getitem__(self, part: slice) -> Bundles:
        """First users of the table."""
        starts = self.starts[: part.indices(len(self))[1] + 1]
        return replace(self, rows=self.rows[: starts[-1]], starts=starts)


def find_rows(table: Bundles, users: Integers) -> tuple[Integers, Integers, Integers]:
    """Say which rows users have, in their order, whose each is, and where those of each start."""
    begins = table.starts[:-1].take(users)
    sizes = table.starts[1:].take(users) - begins
    starts = find_starts(sizes)
    found = (begins - starts[:-1]).repeat(sizes)
    found += np.arange(starts[-1])
    return found, np.arange(len(users)).repeat(sizes), starts


def find_starts(sizes: Integers) -> Integers:
    """Say where the rows of each user start, and the last ones end, in one table or in several."""
    starts = np.zeros((*sizes.shape[:-1], sizes.shape[-1] + 1), dtype=np.int64)
    sizes.cumsum(axis=-1, out=starts[..., 1:])
    return starts


def holds_numbers(rows: Any) -> bool:
    """Whether rows are an array of plain numbers, whose column of users is written in place."""
    return type(rows) is np.ndarray and rows.dtype.kind in "iuf"
