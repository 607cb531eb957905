"""What is asked of a table, as plain records: aggregates, keys, steps, limits of a user."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import product
from numbers import Real
from typing import Any, Literal, SupportsFloat

import numpy as np

from hushed._checks import is_plain_int
from hushed._printing import brief
from hushed.errors import ParameterError
from hushed.tables._expressions import Expression, Kind, advice_on, find_column, is_text

AggregateKind = Literal["count", "users", "sum", "mean", "variance", "quantiles", "histogram"]
_MOST_KEYS = 1_000_000
_MOST_CANDIDATES = 10_001
GROUPABLE: tuple[Kind, ...] = ("whole", "text", "truth", "day")
KEY_KINDS = "whole numbers, texts, truths and dates name things (floor(x) makes a number whole)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One number or list of numbers asked for.

    Parameters
    ----------
    kind : str
        count, users, sum, mean, variance, quantiles or histogram.
    name : str
        Name of the output.
    column : str, optional
        Column it is about.
    low, high : float
        Public bounds of the column.
    bins : int
        Bins of a histogram; intervals between the candidates of quantiles.
    probabilities : tuple of float
        Which quantiles; in (0, 1).
    weight : float
        Share of the budget relative to the other aggregates; above 0.
    """

    kind: AggregateKind
    name: str
    column: str | None = None
    low: float = 0.0
    high: float = 1.0
    bins: int = 1
    probabilities: tuple[float, ...] = ()
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_name("an output", self.name)
        for name in ("low", "high", "weight"):  # one form each: an equal number asks the same
            object.__setattr__(self, name, _double(name, getattr(self, name)))
        if not 0 < self.weight < math.inf:
            raise ParameterError(f"weight must be a finite number above 0, got {self.weight}")
        if self.kind == "quantiles" and not self.probabilities:
            raise ParameterError("give at least one probability, such as [0.5] for the median")
        if not all(0.0001 <= p <= 0.9999 for p in self.probabilities):
            raise ParameterError(
                f"probabilities of quantiles must lie in [0.0001, 0.9999], got {self.probabilities}"
            )
        if not 1 <= require_whole("bins", self.bins) <= 10_000:
            raise ParameterError(f"bins must lie in [1, 10000], got {self.bins}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Keep the rows for which a condition holds."""

    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Derive:
    """Add a column, computed row by row."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """By what rows are grouped.

    Parameters
    ----------
    columns : tuple of str
        Grouping columns; empty for one group of all rows.
    kinds : tuple of str
        Their kinds.
    values : tuple of tuple, optional
        Public values of each column; every combination is answered. None for private keys.
    """

    columns: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    values: tuple[tuple[Any, ...], ...] | None = ()

    @property
    def private(self) -> bool:
        """Whether the keys themselves are to be protected."""
        return self.values is None

    def combinations(self) -> list[tuple[Any, ...]]:
        """Every public key; one empty key without grouping."""
        return list(product(*(self.values or ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a user counts.

    Parameters
    ----------
    rows : int, optional
        Rows of one user that are kept, over all groups together.
    groups : int, optional
        Groups of one user that are kept.
    """

    rows: int | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "groups"):
            value = getattr(self, name)
            if value is not None and require_whole(name, value) < 1:
                raise ParameterError(f"{name} must be 1 or more, got {value}")


def columns_of(aggregate: Aggregate) -> set[str]:
    """Names of the columns that an output makes in an answer."""
    name = aggregate.name
    found = {name}
    if aggregate.kind != "quantiles":
        found |= {f"{name}_low", f"{name}_high"}
    if aggregate.kind in ("mean", "variance"):
        found.add(f"{name}_rows")
    return found


def require_apart(aggregates: Sequence[Aggregate], columns: Sequence[str]) -> None:
    """Refuse outputs and grouping columns of which one would stand in another's place."""
    taken = set(columns)
    for each in aggregates:
        twice = taken & columns_of(each)
        if twice:
            names = ", ".join(map(brief, sorted(twice)))
            raise ParameterError(
                f"the answer has a column {names} already, which the output {brief(each.name)} "
                "would make, too (an output x is there already as x, with x_low, x_high, x_rows): "
                "ask for each output once, and under a name of its own",
                parameter="name",
            )
        taken |= columns_of(each)


def require_name(what: str, name: object) -> str:
    """Refuse a name that is none, or that no database and no screen can be sent."""
    if not isinstance(name, str) or not name or not is_text(name):
        raise ParameterError(f"{what} needs a name, got {name!r}")
    return name


def _double(name: str, value: Any) -> float:
    """Take a number of any kind as the nearest double."""
    if type(value) is not bool and isinstance(value, Real | Decimal | np.number):
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError):  # beyond all doubles, complex, signalling
            pass
    raise ParameterError(f"{name} must be a finite number within 1e100, got {brief(repr(value))}")


def require_whole(name: str, value: int) -> int:
    """Refuse anything but an integer."""
    if not is_plain_int(value):
        raise ParameterError(f"{name} must be a whole number, got {value!r}")
    return value


def intervals_of(candidates: int) -> int:
    """Intervals between so many candidates of quantiles; refuses too few and too many."""
    if not 2 <= require_whole("candidates", candidates) <= _MOST_CANDIDATES:
        raise ParameterError(f"candidates must lie in [2, {_MOST_CANDIDATES}], got {candidates}")
    return candidates - 1


def probabilities_of(given: Any) -> tuple[float, ...]:
    """Probabilities as a tuple of floats; refuses a bare number and what is none."""
    found: list[float] = []
    if isinstance(given, Iterable) and not isinstance(given, str):
        for each in given:
            if isinstance(each, bool) or not isinstance(each, SupportsFloat):
                raise ParameterError(f"a probability of a quantile is a number, got {each!r}")
            found.append(float(each))
        return tuple(found)
    raise ParameterError(f"probabilities of quantiles are a list such as [0.5], got {given!r}")


def require_numeric(known: Mapping[str, Kind], column: str, what: str) -> None:
    """Refuse to add up what is no number."""
    found = known[find_column(column, known)]
    if found not in ("whole", "real", "truth"):
        raise ParameterError(
            f"column {brief(column)} is of kind {found}; {what} needs a numeric one",
            **advice_on(found),
        )


def grouping(
    known: Mapping[str, Kind],
    columns: Sequence[str],
    keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
    *,
    private_keys: bool,
) -> Keys:
    """Check a grouping; see `Table.group_by`."""
    if not all(isinstance(column, str) for column in columns):
        raise ParameterError(
            "group_by takes names of columns; public keys go into keys=[...], as in "
            "group_by('city', keys=['Rome', 'Oslo'])"
        )
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError("group_by needs at least one column, and none twice")
    kinds = tuple(known[find_column(column, known)] for column in columns)
    for column, kind in zip(columns, kinds, strict=True):
        if kind not in GROUPABLE:
            raise ParameterError(f"cannot group by {brief(column)} of kind {kind}; {KEY_KINDS}")
    if (keys is None) == (private_keys is False):
        raise ParameterError(
            "which keys exist is private: list the public ones, or have them selected privately, "
            "which costs a delta; do one of the two",
            parameter="keys",
            hint="give keys=[...] or private_keys=True",
        )
    values = None if keys is None else public_values(columns, kinds, keys)
    return Keys(columns=tuple(columns), kinds=kinds, values=values)


def public_values(
    columns: Sequence[str], kinds: Sequence[Kind], keys: Sequence[Any] | Mapping[str, Sequence[Any]]
) -> tuple[tuple[Any, ...], ...]:
    """Check public keys against the columns they are for."""
    if not isinstance(keys, Mapping):
        if len(columns) != 1 or isinstance(keys, str) or not isinstance(keys, Iterable):
            raise ParameterError(
                "give the public keys of each column: keys={'city': ['Rome', 'Oslo'], ...}"
            )
        keys = {columns[0]: keys}
    if set(keys) != set(columns):
        raise ParameterError(f"keys must name the columns {list(columns)}, got {list(keys)}")
    found = tuple(
        tuple(_key(value, kind, column) for value in keys[column])
        for column, kind in zip(columns, kinds, strict=True)
    )
    for column, values in zip(columns, found, strict=True):
        if not values or len(set(values)) < len(values):
            raise ParameterError(f"keys of {column!r} must be at least one, and none twice")
    if math.prod(map(len, found)) > _MOST_KEYS:
        raise ParameterError(f"at most {_MOST_KEYS} combinations of keys can be answered")
    return found


def _key(value: Any, kind: Kind, column: str) -> Any:
    """Take a public key as the plain value that the engine will answer with."""
    found = value.item() if isinstance(value, np.generic) else value
    told = f"a key of {brief(column)} must be of kind {kind}, got {brief(repr(found))}"
    if kind == "day":
        return _day(found, told)
    wanted: dict[str, type] = {"whole": int, "text": str, "truth": bool}
    good = isinstance(found, wanted[kind]) and (kind != "whole" or not isinstance(found, bool))
    if not good or (kind == "whole" and not -(2**63) < found < 2**63):
        raise ParameterError(told)
    if kind == "truth":
        return found
    plain: Any = str.__str__(found) if kind == "text" else int.__index__(found)
    if kind == "text" and not is_text(plain):
        raise ParameterError(f"{told}: no database holds such a text")
    return plain


def _day(value: Any, told: str) -> date:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            raise ParameterError(f"{brief(value)} is no date YYYY-MM-DD") from None
    if not isinstance(value, date) or not isinstance(value.year, int):  # as pandas' missing time
        raise ParameterError(told)
    if isinstance(value, datetime):  # equal to no date, so that its group would always be empty
        if value.tzinfo is not None or value.time() != time.min:
            raise ParameterError(f"{told}: a day has no time")
        return value.date()
    return date(value.year, value.month, value.day)
