"""A population whose draws are split by their column of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.printing import name_count
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._people import bundle_rows, number_users
from hushed._rows._ranges import Range, read_ranges
from hushed.errors import BadRows
from hushed.populations._users import Users


@dataclass(frozen=True, slots=True)
class UserSource:
    """A population whose draws are split by their column of users.

    Parameters
    ----------
    population : Population
        Asked for a number of users, it gives all their rows, with the column of users.
    user : str or int
        That column.
    """

    population: Any
    user: str | int

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Bundles:
        """Draw users.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of users.

        Returns
        -------
        Bundles
            Their rows.

        Raises
        ------
        BadRows
            If the population gives another number of users.
        """
        if type(self.population) is Users:
            return self.population.draw_bundles(rng, count)
        rows = self.population.draw(rng, count)
        containers.container(rows)
        if len(rows) == 0:
            raise BadRows("the population gave no rows")
        drawn = bundle_rows(rows, self.user, public=True)
        if len(drawn) != count:
            raise BadRows(
                f"the population was asked for {name_count(count, 'user')} and gave rows of "
                f"{len(drawn)}: with "
                f"user={self.user!r}, draw(rng, count) gives all rows of count users"
            )
        return number_users(drawn)

    def support(self) -> tuple[Range, ...]:
        """Range of each column that has one, but for that of users.

        Returns
        -------
        tuple of Range
            Those of the population.
        """
        found: Any = getattr(self.population, "support", tuple)()
        known = isinstance(found, tuple) and all(isinstance(each, Range) for each in found)
        return leave_out(found if known else read_ranges(found), self.user)

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            What the population says, and the column of users.
        """
        return {**self.population.describe(), "user": self.user}


def count_rows_each(source: Any) -> float | None:
    """Count the rows of a user in the mean, where tables of users may be drawn together."""
    frame = getattr(source, "frame", None)
    if isinstance(frame, Bundles):
        return len(frame.rows) / len(frame)
    users = source.population if type(source) is UserSource else None
    return users.mean_size if type(users) is Users else None


def leave_out(ranges: tuple[Range, ...], user: str | int) -> tuple[Range, ...]:
    """Leave out the range of the column of users, in which there are places."""
    return tuple(each for each in ranges if each.column != str(user))
