"""A population with a share of outliers, among rows or among users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import require_probability
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._owned import copy_rows, strip_rows
from hushed._rows._people import show_rows
from hushed._rows._ranges import Range
from hushed.errors import BadRows, ParameterError
from hushed.populations._shown import ShownPopulation
from hushed.populations._sources import Population, PublicTable, description, support
from hushed.populations._user_source import UserSource
from hushed.populations._users import column_of_users

_PROBE = 2  # rows by which a container is known


@called_as(
    "hs.populations.Contaminated(hs.populations.Normal(), hs.populations.Uniform(0, 100), 0.01)"
)
@dataclass(frozen=True, slots=True, repr=False)
class Contaminated(ShownPopulation):
    """Rows of a population, each of which is one of another population with some probability.

    Of two `Users` it mixes whole users: each of them is an outlier, with all rows, by itself.

    A sensitivity sampled from it holds for this mixture: rare outliers among the other rows, and as
    the row that is replaced, are then part of the promise. It is no promise for every way to
    contaminate a population with so small a share.

    Parameters
    ----------
    base, outliers : Population
        Where rows come from; both must give one container, with the same columns and types. Either
        both are `Users`, who stand in the same column, or none is.
    share : float
        Probability with which a row, or a user, is an outlier, each by itself; in (0, 1).

    Raises
    ------
    ParameterError
        If the share lies outside, or one of them is no population, or only one draws `Users`, or
        one is a `PublicTable` whose rows are drawn at most once: tables drawn from a mixture would
        share them.

    Notes
    -----
    All n + 1 rows (users) of a sampled pair are of the base with probability
    ``(1 - share)**(n + 1)``.
    So the promise holds for the base alone with gamma divided by that.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> incomes = hs.populations.Exponential(rate=1 / 40_000)
    >>> rich = hs.populations.Uniform(low=1e6, high=1e7)
    >>> rows = Contaminated(incomes, rich, share=0.01).draw(np.random.default_rng(0), 10_000)
    >>> bool(0.005 < np.mean(rows > 1e6) < 0.015)
    True
    """

    base: Population
    outliers: Population
    share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", require_probability("share", self.share))
        for name in ("base", "outliers"):
            given = getattr(self, name)
            description(given)  # refuses what is no population
            if isinstance(given, PublicTable) and given.promise != "table":
                raise ParameterError(
                    f"{name} is a public table whose rows are drawn at most once, so that drawn "
                    "tables would share them: say promise='table', or fit a model to it with "
                    "hs.populations.fitted",
                    parameter=name,
                )
        self._check_units()

    def _check_units(self) -> None:
        """Refuse users mixed with rows, or with users of another column."""
        known = {name: column_of_users(getattr(self, name)) for name in ("base", "outliers")}
        users = [name for name, column in known.items() if column is not None]
        if len(users) == 1:
            raise ParameterError(
                f"{users[0]} draws users, and the other one rows: mix two laws of users, or mix "
                "the rows of one law, hs.populations.Users(mixture, ...)",
                parameter=users[0],
            )
        if known["base"] != known["outliers"]:
            raise ParameterError(
                f"the base puts users into {known['base']!r}, and the outliers put them into "
                f"{known['outliers']!r}: give both the same column",
                parameter="outliers",
            )

    @property
    def _column_of_users(self) -> Any:
        return column_of_users(self.base)

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw rows.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows, or of users.

        Returns
        -------
        array, list or frame
            Independent rows of the mixture, or all rows of independent users.

        Raises
        ------
        BadRows
            If the two populations give different kinds of rows, or not as many as they are asked
            for.
        """
        places = np.arange(count)
        places[rng.random(count) < self.share] += count
        user = column_of_users(self)
        if user is not None:
            people = [
                UserSource(each, user).draw(rng, count) for each in (self.base, self.outliers)
            ]
            return show_rows(containers.take(_join_users(*people), places))
        # Two functions may fill the same table: what one gave is copied before the other is asked.
        parts = [
            copy_rows(strip_rows(each.draw(rng, count))) for each in (self.base, self.outliers)
        ]
        for name, part in zip(("base", "outliers"), parts, strict=True):
            if len(part) != count:
                raise BadRows(
                    f"the {name} gave {len(part)} rows where {count} were asked for; if it gives "
                    "all rows of so many users, let both be hs.populations.Users, which are mixed "
                    "user by user"
                )
        return containers.take(_join(*parts), places)

    def parts(self) -> tuple[Population, ...]:
        """Name the populations that it is made of.

        Returns
        -------
        tuple of Population
            Both.
        """
        return self.base, self.outliers

    def support(self) -> tuple[Range, ...]:
        """Range of each column that both populations keep to.

        Returns
        -------
        tuple of Range
            The smallest that holds both.
        """
        layout = containers.layout(self.base.draw(np.random.default_rng(0), _PROBE))
        ours = {each.column: each for each in support(self.base, layout)}
        theirs = {each.column: each for each in support(self.outliers, layout)}
        joined = []
        for name in ours.keys() & theirs.keys():
            one, two = ours[name], theirs[name]
            low, high = min(one.low, two.low), max(one.high, two.high)
            if np.isfinite(low) or np.isfinite(high):
                gone = [each for each in (one, two) if each.missing]
                kinds = [each.stays for each in gone]
                stays = frozenset().union(*kinds) if all(kinds) else frozenset()
                joined.append(
                    Range(column=name, low=low, high=high, missing=bool(gone), stays=stays)
                )
        return tuple(sorted(joined, key=lambda each: each.column))

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind, both populations and the share.
        """
        return {
            "kind": "contaminated",
            "base": description(self.base),
            "outliers": description(self.outliers),
            "share": self.share,
        }


def _join_users(first: Bundles, second: Bundles) -> Bundles:
    """Put two tables of users under each other."""
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return Bundles(_join(first.rows, second.rows), starts, first.user)


def _join(first: Any, second: Any) -> Any:
    """Put two tables of one kind under each other."""
    kinds = containers.signature(first), containers.signature(second)
    if not containers.has_same_signature(*kinds):
        raise BadRows(
            "the base and the outliers give different kinds of rows: "
            f"{containers.layout(first)}, and {containers.layout(second)}; containers, columns and "
            "types must be the same"
        )
    held = containers.container(first)
    if held == "array":
        return np.concatenate([first, second])
    if held == "list":
        return first + second
    if held == "polars":
        return first.vstack(second)
    import pandas  # noqa: PLC0415

    return pandas.concat([first, second], ignore_index=True)
