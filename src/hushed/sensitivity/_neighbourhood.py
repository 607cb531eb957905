"""Which neighbours a trial compares: all that tells one sampled promise from another.

A trial draws a table and some further rows, asks the function about the table and about some
neighbours of it, and keeps the largest movement. Whatever is kept is a function of independent
draws, so the trials and the private table are exchangeable, and the ranks of `choose_rank` hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushed._ground.checks import is_whole, require_one_of
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours, Protect

Position = Literal["random", "worst"]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Which neighbours of a drawn table are asked about, and what follows from that.

    Parameters
    ----------
    rows : int
        Rows in the private table; the largest of ``sizes`` where these are given.
    blocks : int, default 1
        Blocks of the table whose answers are averaged: a drawn table is one of them.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Relation between the tables.
    distance : int, default 1
        Rows that are replaced at once.
    position : {"random", "worst"}, default "random"
        Where a row is replaced, or added and removed: at one place, or at each in turn.
    protect : {"record", "everyone", "simultaneous", "table"}, default "record"
        Whom gamma is about.
    sizes : tuple of int, default ()
        Numbers of rows that the promise is for, where a row is added or removed.
    values : int, default 0
        Given rows, of which each takes every place in turn, under ``"table"``.
    user : str or int, optional
        Column of users: whatever is said of rows is then about users, with all rows of each.

    Raises
    ------
    ParameterError
        If the parts do not go together.
    """

    rows: int
    blocks: int = 1
    neighbours: Neighbours = "replace-one"
    distance: int = 1
    position: Position = "random"
    protect: Protect = "record"
    sizes: tuple[int, ...] = ()
    values: int = 0
    user: str | int | None = None

    def __post_init__(self) -> None:
        require_one_of("neighbours", self.neighbours, get_args(Neighbours))
        require_one_of("position", self.position, get_args(Position))
        require_one_of("protect", self.protect, get_args(Protect))
        if not is_whole(self.distance) or not 1 <= self.distance < self.rows:
            raise ParameterError(
                f"distance must be a whole number from 1 to rows - 1 = {self.rows - 1}, got "
                f"{as_given(self.distance)}: so many rows are replaced at once, and one is shared",
                parameter="distance",
            )
        wrong = self._list_wrong()
        if wrong:
            raise ParameterError(wrong[0])

    def _list_wrong(self) -> list[str]:
        """List what does not go together."""
        plain = self.protect == "record" and self.position == "random"
        added = self.neighbours == "add-remove"
        rules = {
            "protect='table' is about given rows: it does not go with user": self.user is None
            or self.protect != "table",
            "distance above 1 is for replaced rows at random places: with protect='record', "
            "position='random' and neighbours='replace-one' alone": self.distance == 1
            or (plain and not added),
            "position='worst' is for protect='record': the others have every place in turn, or "
            "all rows at random places": self.position == "random" or self.protect == "record",
            "an average over blocks is over a fixed number of them, and a record is in one: "
            "it goes with neighbours='replace-one', distance=1, position='random', and not with "
            "protect='table'": self.blocks == 1
            or (
                not added
                and self.distance == 1
                and self.position == "random"
                and self.protect != "table"
            ),
        }
        return [text for text, holds in rules.items() if not holds]

    @property
    def size(self) -> int:
        """Rows of a drawn table, the largest where they are of several sizes."""
        return self.rows // self.blocks

    @property
    def fresh(self) -> int:
        """Rows drawn for a trial besides its table."""
        if self.protect == "table":
            return 0
        if self.neighbours == "add-remove":
            return 1
        return self.size if self.protect == "simultaneous" else self.distance

    @property
    def drawn(self) -> int:
        """Rows drawn for a trial."""
        return self.size + self.fresh

    @property
    def involved(self) -> int:
        """Random rows that the promise is about: those of the private table, and the fresh ones."""
        if self.protect in ("everyone", "simultaneous") and self.neighbours == "replace-one":
            return 2 * self.rows
        return self.rows + self.fresh

    @property
    def parts(self) -> int:
        """Among how many events gamma is divided."""
        if self.protect == "everyone":
            return self.rows
        return self.blocks if self.protect == "simultaneous" else 1

    @property
    def whole(self) -> bool:
        """Whether a trial has one table with many neighbours, and not a pair."""
        return self.position == "worst" or self.protect in ("simultaneous", "table")

    @property
    def swapped(self) -> bool:
        """Whether each neighbour has one row replaced: that is done in place, without a copy."""
        return self.neighbours == "replace-one" and self.distance == 1

    def is_reordered(self, *, symmetric: bool) -> bool:
        """Whether each release is about another pair: it puts users into a new random order.

        An order that means nothing to the function decides who is in which block all the same.
        """
        return self.user is not None and not (symmetric and self.blocks == 1)

    @property
    def tables(self) -> tuple[int, ...]:
        """Sizes of the tables of a trial."""
        return self.sizes or (self.size,)

    def count_calls(self, *, symmetric: bool = False) -> int:
        """Count the tables that the function is asked about in a trial."""
        values = max(1, self.values)
        if self.neighbours == "replace-one":
            return 1 + (self.size * values if self.whole else 1)
        if not self.whole:
            return 3 * len(self.tables)
        return sum(1 + n + (1 if symmetric else n + 1) * values for n in self.tables)

    def swaps(self, places: Any) -> Iterator[tuple[Any, int]]:
        """List replaced places, of one table or each of a stack, and the row that comes there."""
        n = self.size
        if not self.whole:
            yield places, n
            return
        for place in range(n):
            if self.protect == "table":
                yield from ((place, n + i) for i in range(self.values))
            else:
                yield place, n + (place if self.protect == "simultaneous" else 0)

    def list_swaps(self, place: int) -> Places:
        """List the same of one table, as two columns."""
        n, each = self.size, max(1, self.values)
        if not self.whole:
            return np.array([[place, n]])
        places = np.arange(n).repeat(each)
        fresh = np.arange(n) if self.protect == "simultaneous" else np.tile(np.arange(each), n)
        return np.stack([places, n + fresh], axis=1)

    def orders(
        self, rows: int, places: Places, added: Places, *, symmetric: bool
    ) -> Iterator[Places]:
        """List the drawn rows that make up a neighbour, for each table of a stack."""
        fresh = self.size
        if self.neighbours == "replace-one":
            yield replace_rows(rows, places, np.arange(fresh, fresh + self.distance))
            return
        sources = range(fresh, fresh + max(1, self.values))
        everywhere = [np.full(1, place) for place in range(rows + 1)]
        for place in (everywhere[-1:] if symmetric else everywhere) if self.whole else [added]:
            yield from (insert_row(rows, place, source) for source in sources)
        for place in everywhere[:-1] if self.whole else [places[:, 0]]:
            yield leave_out(rows, place)


def replace_rows(rows: int, places: Places, sources: Places) -> Places:
    """Positions of a table with rows replaced: ``places`` has one line for each table."""
    orders = np.tile(np.arange(rows), (len(places), 1))
    np.put_along_axis(orders, places, np.broadcast_to(sources, places.shape), axis=1)
    return orders


def insert_row(rows: int, places: Places, source: int) -> Places:
    """Positions of a table with a row put in before the given place."""
    order = np.arange(rows + 1)
    kept = order - (order > places[:, None])
    return np.where(order == places[:, None], source, kept)


def leave_out(rows: int, places: Places) -> Places:
    """Positions of a table without the row at the given place."""
    order = np.arange(rows - 1)
    return order + (order >= places[:, None])
