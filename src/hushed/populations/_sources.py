"""Public sources of rows: ranges, distributions, public tables, simulators."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._digest import digest
from hushed._rows._people import bundle_rows, number_users
from hushed._rows._ranges import Range, check_columns, check_ranges, is_within, read_ranges
from hushed.errors import BadRows, ParameterError
from hushed.populations._laws import Exponential, Normal, Uniform
from hushed.populations._shown import ShownPopulation
from hushed.populations._user_source import UserSource, leave_out
from hushed.populations._users import Users, column_of_users, users_from

Promise = Literal["population", "given-the-rest", "table"]

_NAMED = 12  # columns on a card
_UNNAMED = "public table"


@runtime_checkable
class Population(Protocol):
    """A public source of independent rows.

    Anything with these two methods can be sampled. Equal generators must yield equal rows. A third
    one, ``support()``, may give the bounds of its columns, as `PublicTable` takes them: private
    rows are then moved into them before a release. A fourth, ``parts()``, may name the populations
    that it is made of: a release of the rows of one of them is then refused.
    """

    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw rows, using only the generator given.

        Parameters
        ----------
        rng : numpy.random.Generator
            Where all randomness comes from.
        count : int
            Number of rows.

        Returns
        -------
        object
            The rows: an array, a list or a frame.
        """

    def describe(self) -> dict[str, Any]:
        """Describe the source in plain values for a certificate; its kind is none of ours."""


@called_as("hs.populations.PublicTable(public)")
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublicTable(Shown):
    """The rows of a table that is public.

    Parameters
    ----------
    frame : array, list, pandas.DataFrame or polars.DataFrame
        Public rows; at least one. What is drawn comes in the same container. Rows that are equal
        must all be there, as they came: a table without its duplicates has another law.
    name : str, optional
        What to call the table in a certificate.
    promise : {"population", "given-the-rest", "table"}, default "population"
        What a sampled sensitivity is about. ``"population"``: the law that public and private
        rows come from; every sampled pair is made of rows of its own, so that the number of rows
        limits how small gamma can be. The function must not be fitted to these rows.
        ``"given-the-rest"``: the weaker promise for tables whose other rows are drawn from these
        rows; only the record replaced and its replacement are fresh. ``"table"``: tables drawn
        with replacement from these very rows, and nothing else.
    bounds : mapping, pair or sequence of pairs, optional
        Public range of columns of numbers, into which private rows are moved before a release:
        ``{"age": (0, 120)}``, ``(0, 1)`` where a row is one number, or a pair for each column of
        an array. Take it from what the column means, not from the rows.

    Raises
    ------
    BadRows
        If the table is empty or not of a known kind.
    ParameterError
        If ``promise`` is none of these, the bounds are none, or public rows lie outside of them.
    """

    frame: Any
    name: str = _UNNAMED
    promise: Promise = "population"
    bounds: Any = None
    _ranges: tuple[Range, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        containers.container(self.frame)
        if len(self.frame) == 0:
            raise BadRows("the public table has no rows; a population needs at least one")
        require_one_of("promise", self.promise, get_args(Promise))
        if self.bounds is not None:
            object.__setattr__(self, "_ranges", check_ranges(self.frame, read_ranges(self.bounds)))

    def _card(self) -> Card:
        found = containers.layout(self.frame)
        names = ", ".join(found.columns[:_NAMED]) or "no names"
        more = len(found.columns) - _NAMED
        return card_of_facts(
            "Public table" if self.name == _UNNAMED else f"Public table {self.name}",
            (
                ("rows", f"{len(self.frame):,}"),
                ("columns", f"{names} and {more} more" if more > 0 else names),
                ("held as", found.container),
                ("gamma is about", self.promise),
                ("bounds", "stated" if self._ranges else "none: no row is moved into any"),
            ),
        )

    def support(self) -> tuple[Range, ...]:
        """Range of each column that was given bounds.

        Returns
        -------
        tuple of Range
            Empty without bounds: the table's own extremes are no bounds.

        Raises
        ------
        ParameterError
            If rows lie outside of them by now.
        """
        # Asked again, because the frame may have been changed since.
        return check_ranges(self.frame, self._ranges) if self._ranges else ()

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw one table of rows, each row of the public table at most once.

        Two tables drawn in this way share rows, and so are not independent of each other; see
        `hushed.sensitivity._designs` for those that are.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows; at most those of the table, unless ``promise="table"``.

        Returns
        -------
        array, list or frame
            Rows of the table in random order, in the container of ``frame``; with
            ``promise="table"`` independent ones, which may repeat.

        Raises
        ------
        BadRows
            If there are fewer rows.
        """
        known = len(self.frame)
        if self.promise == "table":
            return containers.take(self.frame, rng.integers(known, size=count))
        if count > known:
            raise BadRows(
                f"{count} rows were asked of a public table of {known}, each at most once; give "
                "more public rows or smaller tables, or say promise='table' to draw with "
                "replacement, for a statement about these very rows"
            )
        return containers.take(self.frame, rng.choice(known, size=count, replace=False))

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind, name, layout, number of rows, a digest of the content, and the promise.
        """
        shape = containers.layout(self.frame)
        frame, told = self.frame, {}
        if isinstance(frame, Bundles):
            told = {"users": len(frame), "user": frame.user}
            frame = frame.rows
        return told | {
            "kind": "public table",
            "name": self.name,
            "rows": len(frame),
            "container": shape.container,
            "columns": list(shape.columns),
            "sha256": digest(self.frame),
            "promise": self.promise,
        }


@called_as("hs.populations.Simulator(lambda n, rng: rng.random(n), bounds=(0, 1))")
@dataclass(frozen=True, slots=True, repr=False)
class Simulator(ShownPopulation):
    """Rows made by a function.

    Parameters
    ----------
    function : callable
        Takes a ``numpy.random.Generator`` and a count, gives that many independent rows. It must
        use no other randomness.
    name : str, optional
        What to call it in a certificate; the name of the function by default.
    bounds : mapping, pair or sequence of pairs, optional
        As for `PublicTable`. The function must keep to them, without missing values.
    """

    function: Callable[[np.random.Generator, int], Any]
    name: str = ""
    bounds: Any = None
    _ranges: tuple[Range, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError(
                "Simulator takes a function (rng, count) -> rows, "
                f"got {type(self.function).__name__}"
            )
        if not self.name:
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            object.__setattr__(self, "name", name)
        if self.bounds is not None:
            object.__setattr__(self, "_ranges", read_ranges(self.bounds))

    def support(self) -> tuple[Range, ...]:
        """Range of each column that was given bounds.

        Returns
        -------
        tuple of Range
            Empty without bounds.
        """
        return self._ranges

    @called_as("population.draw(np.random.default_rng(1), 100)")
    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw rows.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness; consumed.
        count : int
            Number of rows.

        Returns
        -------
        array, list or frame
            What the function gives.

        Raises
        ------
        BadRows
            If that leaves the bounds.
        """
        rows = self.function(rng, count)
        if self._ranges:
            check_columns(self._ranges, containers.layout(rows))
            if not is_within(rows, self._ranges):
                raise BadRows("the simulator gave rows outside of its bounds, or missing values")
        return rows

    def describe(self) -> dict[str, Any]:
        """Describe the source.

        Returns
        -------
        dict
            Kind and name.
        """
        return {"kind": "simulator", "name": self.name}


_PACKAGE = "hushed.populations."
_KINDS = frozenset(
    {
        "uniform", "normal", "exponential", "public table", "simulator", "users", "contaminated",
        "fitted",
    }
)  # fmt: skip

OWN = (Uniform, Normal, Exponential, PublicTable)


"""What surely draws independent rows from its generator alone, unless a subclass does otherwise."""


@called_as("hs.populations.description(population)")
def description(population: Population) -> dict[str, Any]:
    """Describe a population in values that survive a trip through JSON.

    Parameters
    ----------
    population : Population
        Source of rows.

    Returns
    -------
    dict
        What ``describe`` gave, tuples turned into lists.

    Raises
    ------
    ParameterError
        If it has no ``describe``, or that gives anything but plain values.
    """
    given: object = population
    several = list(given) if isinstance(given, list | tuple) else []
    if several and all(isinstance(each, Population) for each in several):
        raise ParameterError(
            "one population at a time: sample each, and keep the largest movement, "
            "hs.largest_sensitivity([hs.sample_sensitivity(f, each, ...) for each in populations])",
            parameter="population",
        )
    if not isinstance(population, Population):
        raise ParameterError(
            "the population must be a public source of rows, from hs.populations, with methods "
            "draw(rng, count) and describe(); rows that are public are said to be so by "
            f"PublicTable(rows). Got {type(population).__name__}"
        )
    told = population.describe()
    try:
        plain = json.loads(json.dumps(told, allow_nan=False))
    except (TypeError, ValueError) as cause:
        raise ParameterError(
            f"describe() must give plain values that fit into JSON (use .tolist()): {cause}"
        ) from cause
    if not isinstance(plain, dict):
        raise ParameterError(f"describe() must give a dict, got {type(told).__name__}")
    _check_kind(population, plain)
    return plain


def _check_kind(population: Any, told: dict[str, Any]) -> None:
    """Refuse a class of the user's that says to be one of ours: a certificate would repeat it."""
    if type(population) is UserSource:
        population = population.population
    own = [getattr(type(population), name, None) for name in ("draw", "describe")]
    if str(told.get("kind")) in _KINDS and not all(
        str(getattr(each, "__module__", "")).startswith(_PACKAGE) for each in own
    ):
        raise ParameterError(
            f"{type(population).__name__} draws or describes its rows in its own way, and "
            f"describe() says that its kind is {told['kind']!r}, which is one of hs.populations: a "
            "certificate would tell of another law. Give it a kind of its own",
            parameter="population",
        )
    if type(population) is Users and population.sizes is not None:
        description(population.rows)


def support(population: Population, layout: containers.Layout) -> tuple[Range, ...]:
    """Ask a population for its ranges, one for each column that has one.

    Parameters
    ----------
    population : Population
        Source of rows. It may have a method ``support()``, which gives bounds as `PublicTable`
        takes them.
    layout : Layout
        Of its rows.

    Returns
    -------
    tuple of Range
        Empty if nothing is known.

    Raises
    ------
    ParameterError
        If what ``support()`` gives are no bounds of these columns.
    """
    found: Any = getattr(population, "support", tuple)()
    known = isinstance(found, tuple) and all(isinstance(each, Range) for each in found)
    ranges = found if known else read_ranges(found)
    check_columns(ranges, layout)
    return ranges


@called_as('hs.populations.by_user(hs.populations.PublicTable(visits), "patient")')
def by_user(population: Population, user: str | int) -> Population:
    """Let a population give users, with all their rows, where it gave rows.

    Parameters
    ----------
    population : Population
        A public table, whose rows are then put together for each user, or a source which, asked
        for a number of users, gives all their rows.
    user : str or int
        The column that says whose a row is.

    Returns
    -------
    Population
        Its draws are tables of users.

    Raises
    ------
    BadRows
        If a public table has no such column, or rows of nobody.
    ParameterError
        If ``user`` names another column than the population does.
    """
    named = column_of_users(population)
    if named is not None and named != user:
        raise ParameterError(
            f"the population puts users into {named!r}: say user={named!r}",
            parameter="user",
        )
    if type(population) is not PublicTable:
        return UserSource(population, user)
    kept = {each.column: (each.low, each.high) for each in leave_out(population.support(), user)}
    bundled = number_users(bundle_rows(population.frame, user, public=True))
    return replace(population, frame=bundled, bounds=kept or None)


@called_as("hs.populations.keeps_its_range(population)")
def keeps_its_range(population: Any) -> bool:
    """Whether each draw of a population is known to be within its ranges.

    Parameters
    ----------
    population : Population
        Source of rows, or of users.

    Returns
    -------
    bool
        False if nothing but its word speaks for that.
    """
    if type(population) is UserSource:
        return keeps_its_range(population.population)
    if type(population) is Users:
        return population.sizes is None or keeps_its_range(population.rows)
    return type(population) in (Simulator, *OWN)


@called_as("hs.populations.from_description(hs.populations.description(population))")
def from_description(description: dict[str, Any]) -> Population | None:
    """Rebuild a population from what a certificate says of it.

    Parameters
    ----------
    description : dict
        What ``describe`` gave.

    Returns
    -------
    Population or None
        None for tables and simulators, and wherever the description does not say it all.

    Raises
    ------
    ParameterError
        If a number in it is out of range.
    """
    kinds: dict[str, tuple[type[Any], set[str]]] = {
        "uniform": (Uniform, {"low", "high"}),
        "normal": (Normal, {"mean", "std"}),
        "exponential": (Exponential, {"rate"}),
    }
    made, wanted = kinds.get(str(description.get("kind")), (None, set()))
    numbers = {key: value for key, value in description.items() if key != "kind"}
    if description.get("kind") == "users":
        return users_from(description)
    if made is None or set(numbers) != wanted:
        return None
    rebuilt: Population = made(**numbers)
    return rebuilt
