"""Public sources of users: each draw gives all rows of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import is_whole
from hushed._ground.printing import as_given
from hushed._ground.types import Floats, Integers
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles, find_starts
from hushed._rows._owned import copy_rows
from hushed._rows._ranges import Range, check_columns, is_within, read_ranges
from hushed._rows._user_column import (
    add_column,
    join_tables,
    repeat_lines,
    takes_position,
    write_lines,
)
from hushed.errors import BadRows, ParameterError
from hushed.populations._laws import Exponential, Normal, Uniform
from hushed.populations._shown import ShownPopulation

_MOST_SIZES = 10_000
_FEW_SIZES = 16
_LAWS = (Exponential, Normal, Uniform)


@called_as("hs.populations.Users(hs.populations.Uniform(0, 100), sizes=3)")
@dataclass(frozen=True, slots=True, repr=False)
class Users(ShownPopulation):
    """Users drawn from a law for the number of their rows and a law for the rows.

    Parameters
    ----------
    rows : Population or callable
        What gives the rows, without a column of users: arrays, or frames. A population gives
        independent rows, whoever they belong to. A function takes a ``numpy.random.Generator`` and
        gives all rows of one user, as many as that user has, which may depend on each other.
    sizes : int, mapping or callable, optional
        How many rows a user has: a number, a mapping of numbers to their probabilities (or
        weights), or a function that takes a generator and a count and gives that many numbers of 1
        or more. To be left out where a function gives the rows of each user.
    user : str or int, default 0
        Where the column of users is put: in front of a frame, under this name, or at this position
        in an array.
    bounds : mapping, pair or sequence of pairs, optional
        As for `PublicTable`, where a function gives the rows of each user; of its columns.

    Raises
    ------
    ParameterError
        If sizes are missing, superfluous or none, or rows are a `PublicTable` whose rows are drawn
        at most once.

    Examples
    --------
    >>> import numpy as np
    >>> costs = Users(Uniform(low=0, high=100), sizes={1: 0.7, 2: 0.2, 30: 0.1})
    >>> costs.draw(np.random.default_rng(0), 5).shape
    (6, 2)
    """

    rows: Any
    sizes: Any = None
    user: str | int = 0
    bounds: Any = None
    _law: tuple[Integers, Any] | None = field(init=False, repr=False, compare=False, default=None)
    _ranges: tuple[Range, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        drawn = hasattr(self.rows, "draw") and hasattr(self.rows, "describe")
        if not drawn and not callable(self.rows):
            raise ParameterError(
                "rows of users come from a population, or from a function rng -> rows of one user; "
                f"got {type(self.rows).__name__}",
                parameter="rows",
            )
        if drawn != (self.sizes is not None):
            raise ParameterError(
                "say with sizes= how many rows a user has"
                if drawn
                else "a function gives all rows of one user, however many: leave sizes= out",
                parameter="sizes",
            )
        if drawn and self.bounds is not None:
            raise ParameterError("give bounds to the population of the rows", parameter="bounds")
        if drawn and getattr(self.rows, "promise", "table") != "table":
            raise ParameterError(
                "rows come from a public table, each at most once, so that drawn tables share "
                "them: say promise='table', or fit a model to it with hs.populations.fitted; a "
                "table that says whose its rows are is drawn from by hs.populations.PublicTable "
                "alone, with user= where it is sampled",
                parameter="rows",
            )
        whole = is_whole(self.user) and self.user >= 0
        if not whole and not isinstance(self.user, str):
            raise ParameterError(
                f"user must be the name or the position of a column, got {as_given(self.user)}",
                parameter="user",
            )
        if isinstance(self.sizes, Mapping):  # what is drawn stays what is described
            object.__setattr__(self, "sizes", dict(self.sizes))
        if drawn and not callable(self.sizes):
            object.__setattr__(self, "_law", _read_sizes(self.sizes))
        if self.bounds is not None:
            object.__setattr__(self, "_ranges", read_ranges(self.bounds))

    @property
    def _column_of_users(self) -> str | int:
        return self.user

    def support(self) -> tuple[Range, ...]:
        """Range of each column that has one; never of the column of users.

        Returns
        -------
        tuple of Range
            Those of the rows.
        """
        found: Any = self._ranges or getattr(self.rows, "support", tuple)()
        ranges: tuple[Range, ...] = found if isinstance(found, tuple) else read_ranges(found)
        if isinstance(self.user, str):
            return ranges
        return tuple(replace(one, column=_shift(one.column, self.user)) for one in ranges)

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw users.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of users.

        Returns
        -------
        array or frame
            Their rows, one user after the other, with 0, 1, 2, ... in the column of users.

        Raises
        ------
        BadRows
            If a user has no rows, or what gives them gives no table.
        """
        return self.draw_bundles(rng, count).rows

    @called_as("population.draw_bundles(np.random.default_rng(1), 100)")
    def draw_bundles(self, rng: np.random.Generator, count: int) -> Bundles:
        """Draw users, and say where the rows of each are; see `draw`.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of users.

        Returns
        -------
        Bundles
            The table of users.
        """
        if self.sizes is not None:
            return next(self.draw_tables(rng, count, 1))
        each = [self._ask(rng) for _ in range(count)]
        sizes = np.array([len(one) for one in each], dtype=np.int64)
        made = add_column(join_tables(each), self.user, sizes)
        return Bundles(made, find_starts(sizes), self.user, numbered=True)

    def draw_tables(self, rng: np.random.Generator, count: int, tables: int) -> Iterator[Bundles]:
        """Draw several tables of users, with the numbers of rows of all of them first.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of users in each.
        tables : int
            Number of tables.

        Yields
        ------
        Bundles
            One table after the other.
        """
        sizes = self._draw_sizes(rng, count * tables).reshape(tables, count)
        lines: Any = None
        for own, starts in zip(sizes, find_starts(sizes), strict=True):
            rows = self.rows.draw(rng, int(starts[-1]))
            containers.container(rows)
            if len(rows) != starts[-1]:
                raise BadRows(
                    f"the population of the rows was asked for {starts[-1]} and gave {len(rows)}: "
                    "with sizes=, draw(rng, count) gives count rows, whoever they belong to"
                )
            if lines is None and takes_position(rows, self.user):
                lines = write_lines(rows, self.user, count)
            if lines is None:
                made = add_column(rows, self.user, own)
            else:
                made = repeat_lines(lines, rows, self.user, own)
            yield Bundles(made, starts, self.user, numbered=True)

    @property
    def mean_size(self) -> float | None:
        """Rows of a user in the mean, of laws of ours alone, whose tables may be drawn together."""
        if self._law is None or type(self.rows) not in _LAWS:
            return None
        values, ends = self._law
        shares = np.diff(np.minimum(ends, 1.0), prepend=0.0)
        return float(values @ shares)

    def _ask(self, rng: np.random.Generator) -> Any:
        rows = self.rows(rng)
        containers.container(rows)
        if len(rows) == 0:
            raise BadRows("the function gave a user without rows: nobody in a table has none")
        if self._ranges:
            check_columns(self._ranges, containers.layout(rows))
            if not is_within(rows, self._ranges):
                raise BadRows("the function gave rows outside of its bounds, or missing values")
        return copy_rows(rows)  # the function may fill one table again and again

    def _draw_sizes(self, rng: np.random.Generator, count: int) -> Integers:
        if self._law is not None:
            values, ends = self._law
            if len(values) == 1:
                return np.full(count, values[0])
            drawn: Integers = values.take(_find_shares(rng.random(count), ends))
            return drawn
        found = np.asarray(self.sizes(rng, count))
        if found.shape != (count,) or found.dtype.kind not in "iu" or not (found > 0).all():
            raise BadRows(
                "sizes(rng, count) must give an array of count whole numbers of 1 or more: nobody "
                "in a table has no rows"
            )
        return found.astype(np.int64)

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind, column of users, and what rows and sizes say of themselves.
        """
        told: dict[str, Any] = {"kind": "users", "user": self.user}
        if self.sizes is None:
            return told | {"rows": {"kind": "function", "name": _name(self.rows)}}
        told["rows"] = self.rows.describe()
        if self._law is None:
            return told | {"sizes": _name(self.sizes)}
        values, _ = self._law
        weights = self.sizes if isinstance(self.sizes, Mapping) else {int(self.sizes): 1.0}
        return told | {"sizes": [[int(size), float(weights[int(size)])] for size in values]}


def _read_sizes(sizes: Any) -> tuple[Integers, Any]:
    """Read a law of sizes: the sizes, ascending, and where their shares of [0, 1) end."""
    given = sizes if isinstance(sizes, Mapping) else {sizes: 1.0} if is_whole(sizes) else {}
    whole = all(is_whole(size) and size >= 1 for size in given)
    real = all(isinstance(each, int | float | np.number) for each in given.values())
    if not whole or not real or not 1 <= len(given) <= _MOST_SIZES:
        raise ParameterError(
            "sizes must be a whole number of 1 or more, a mapping of such numbers to their "
            f"probabilities, or a function (rng, count) -> numbers; got {as_given(sizes)}",
            parameter="sizes",
        )
    values = np.array(sorted(int(size) for size in given), dtype=np.int64)
    weights = np.array([float(given[size]) for size in values.tolist()])
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ParameterError(
            "probabilities of sizes must be 0 or more, and not all 0", parameter="sizes"
        )
    ends = np.cumsum(weights / weights.sum())
    ends[-1] = np.inf  # whatever rounding left of the last share
    return values, ends


def _find_shares(drawn: Floats, ends: Floats) -> Integers:
    """Find the share of [0, 1) that each number lies in.

    A search jumps unforeseen for every number; to compare all of them with the ends of a few
    shares takes half its time.
    """
    if len(ends) > _FEW_SIZES:
        return ends.searchsorted(drawn, side="right")
    counted = np.zeros(len(drawn), dtype=np.int8)
    for end in ends[:-1].tolist():
        counted += drawn >= end
    return counted.astype(np.int64)


def _shift(column: str, user: int) -> str:
    """Name a column of an array after a column of users was put in."""
    place = int(column or 0)
    return str(place if place < user else place + 1)


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def column_of_users(population: Any) -> Any:
    """Column that a law of users puts them into: its name or position; None of what gives rows."""
    return getattr(population, "_column_of_users", None)


def users_from(told: dict[str, Any]) -> Users | None:
    """Rebuild users from what a certificate says of them; None if it does not say it all."""
    laws: dict[str, Any] = {"uniform": Uniform, "normal": Normal, "exponential": Exponential}
    rows, sizes = told.get("rows"), told.get("sizes")
    if not isinstance(rows, dict):
        return None
    law = laws.get(str(rows.get("kind")))
    if law is None or not isinstance(sizes, list) or set(told) != {"kind", "user", "rows", "sizes"}:
        return None
    numbers = {key: value for key, value in rows.items() if key != "kind"}
    return Users(law(**numbers), sizes=dict(sizes), user=told["user"])
