"""The parts of a query, as plain records: aggregates, keys, steps, contribution bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import product
from numbers import Real
from typing import Any, Literal, SupportsFloat, get_args

import numpy as np

from hushed._ground.checks import is_plain_int, list_in_order, require_one_of
from hushed._ground.printing import as_given, brief
from hushed._ground.types import ColumnType, StoredType
from hushed.errors import ParameterError
from hushed.statistics._candidates import CANDIDATES, Spacing, choose_spacing
from hushed.tables._expression_parts import declaring_advice
from hushed.tables._expressions import Expression, find_column, is_sendable
from hushed.tables._grid import FARTHEST

Bound = float | Literal["search"]
AggregateKind = Literal[
    "count", "users", "sum", "mean", "variance", "quantiles", "histogram", "top"
]
Counted = Literal["rows", "users"]
_MOST_KEYS = 1_000_000
_MOST_CANDIDATES, _MOST_BINS = 10_001, 10_000
_LEAST, _MOST = 0.0001, 0.9999
_IN_RANGE = f"probabilities of quantiles must lie in [{_LEAST}, {_MOST}]"
GROUPABLE: tuple[ColumnType, ...] = ("int", "string", "bool", "date")
KEY_TYPES = "keys are of type int, string, bool or date (floor(x) makes an int of a float)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One number, or one list of numbers, of the answer."""

    kind: AggregateKind  # count, users, sum, mean, variance, quantiles, histogram or top
    name: str  # name of the output
    column: str | None = None  # its column
    # Public bounds of the column.
    low: float = 0.0
    high: float = 1.0
    # Which of the two are to be found in the rows; they hold the farthest one that can be found.
    search: tuple[Literal["low", "high"], ...] = ()
    # Number of bins of a histogram, of candidates of quantiles, or of keys that a top is of.
    bins: int = 1
    k: int = 1  # how many keys a top chooses
    of: Counted = "rows"  # what a top counts
    spacing: Spacing = "even"  # how the candidates of quantiles are spaced
    probabilities: tuple[float, ...] = ()  # which quantiles; in (0, 1)
    weight: float = 1.0  # share of the budget relative to the other aggregates; above 0

    def __post_init__(self) -> None:
        require_name("an output", self.name)
        for name in ("low", "high", "weight"):  # one form each: an equal number asks the same
            object.__setattr__(self, name, _double(name, getattr(self, name)))
        if not 0 < self.weight < math.inf:
            raise ParameterError(f"weight must be a finite number above 0, got {self.weight}")
        if self.kind == "quantiles" and not self.probabilities:
            raise ParameterError("give at least one probability, such as [0.5] for the median")
        if not all(_LEAST <= p <= _MOST for p in self.probabilities):
            raise ParameterError(f"{_IN_RANGE}, got {_tell_numbers(self.probabilities)}")
        most = {"quantiles": _MOST_CANDIDATES, "top": _MOST_KEYS}.get(self.kind, _MOST_BINS)
        if not 1 <= require_int("bins", self.bins) <= most:
            raise ParameterError(f"bins must lie in [1, {most}], got {self.bins}", parameter="bins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Keep the rows that fulfil a condition."""

    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Derive:
    """Add a column, computed row by row."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """How rows are grouped."""

    columns: tuple[str, ...] = ()  # grouping columns; empty for one group of all rows
    types: tuple[ColumnType, ...] = ()  # their types
    # Public values of each column; every combination is answered. None for partition selection.
    values: tuple[tuple[Any, ...], ...] | None = ()

    @property
    def selected(self) -> bool:
        """Whether the keys are found by private partition selection."""
        return self.values is None

    def combinations(self) -> list[tuple[Any, ...]]:
        """Every public key; one empty key without grouping."""
        return list(product(*(self.values or ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionBounds:
    """How much one user may contribute."""

    max_rows_per_user: int | None = None  # rows of one user that are kept, over all groups together
    max_groups_per_user: int | None = None  # groups of one user that are kept

    def __post_init__(self) -> None:
        for name in ("max_rows_per_user", "max_groups_per_user"):
            value = getattr(self, name)
            if value is not None and require_int(name, value) < 1:
                raise ParameterError(f"{name} must be 1 or more, got {value}")


def name_quantiles(name: str, probabilities: Sequence[float]) -> tuple[str, ...]:
    """Name the columns of several quantiles; one quantile has the name of its output."""
    if len(probabilities) == 1:
        return (name,)
    return tuple(f"{name}_{p}" for p in probabilities)


def output_columns(aggregate: Aggregate) -> set[str]:
    """Names of the columns of an answer that belong to an output."""
    name = aggregate.name
    found = {name}
    if aggregate.kind not in ("quantiles", "top"):
        found |= {f"{name}_low", f"{name}_high"}
    if aggregate.kind in ("mean", "variance"):
        found.add(f"{name}_rows")
    if aggregate.kind == "histogram":
        found.add(f"{name}_edges")
    if aggregate.kind == "quantiles":
        found |= set(name_quantiles(name, aggregate.probabilities))
    return found


def require_distinct_outputs(aggregates: Sequence[Aggregate], columns: Sequence[str]) -> None:
    """Refuse outputs and grouping columns with the same name."""
    taken = set(columns)
    for each in aggregates:
        twice = taken & output_columns(each)
        if twice:
            names = ", ".join(map(brief, sorted(twice)))
            raise ParameterError(
                f"the answer has a column {names} already, and the output {brief(each.name)} needs "
                "it, too (an output x has the columns x, x_low, x_high, x_rows and x_edges): ask "
                "for each output once, and under a name of its own",
                parameter="name",
            )
        taken |= output_columns(each)


def require_name(what: str, name: object) -> str:
    """Refuse what is not a name, or cannot be sent to a database or a screen."""
    if not isinstance(name, str) or not name or not is_sendable(name):
        raise ParameterError(f"{what} needs a name, got {as_given(name)}")
    return name


def _tell_numbers(given: tuple[float, ...]) -> str:
    """Tell the one number that was given; of many, which may be a column, how many there are."""
    return as_given(given[0]) if len(given) == 1 else f"{len(given)} numbers"


def _double(name: str, value: Any) -> float:
    """Convert a number of any type to the nearest double."""
    if type(value) is not bool and isinstance(value, Real | Decimal | np.number):
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError):  # beyond all doubles, complex, signalling
            pass
    raise ParameterError(f"{name} must be a finite number within 1e100, got {as_given(value)}")


def require_int(name: str, value: int) -> int:
    """Refuse anything but an integer."""
    if not is_plain_int(value):
        raise ParameterError(f"{name} must be an integer, got {as_given(value)}")
    return value


def read_candidates(candidates: int | None, spacing: Any, low: Any) -> tuple[int, Spacing]:
    """Read the number of candidates of quantiles and their spacing; refuse too few and too many.

    A number alone means evenly spaced ones.
    """
    if spacing is not None:
        require_one_of("spacing", spacing, get_args(Spacing))
    start = _double("low", low)
    if spacing == "geometric" and start < 0:
        raise ParameterError(
            f"geometric candidates begin at 0 or above it, got low={low}; the default for a range "
            "that begins below 0 is even",
            parameter="spacing",
        )
    if candidates is None:
        return CANDIDATES, spacing or choose_spacing(start)
    if not 2 <= require_int("candidates", candidates) <= _MOST_CANDIDATES:
        raise ParameterError(
            f"candidates must lie in [2, {_MOST_CANDIDATES}], got {candidates}",
            parameter="candidates",
        )
    return candidates, spacing or "even"


def read_searched(low: Bound, high: Bound) -> dict[str, Any]:
    """Read the bounds of an aggregate, of which some are to be searched."""
    found: dict[str, Any] = {"low": low, "high": high}
    farthest = math.ldexp(1.0, math.floor(math.log2(FARTHEST)))
    for name, end in (("low", -farthest), ("high", farthest)):
        if isinstance(found[name], str):
            if found[name] != "search":
                raise ParameterError(
                    f"{name} must be a finite number or 'search', got {as_given(found[name])}",
                    parameter=name,
                )
            found[name] = end
            found["search"] = (*found.get("search", ()), name)
    return found


def read_probabilities(given: Any) -> tuple[float, ...]:
    """Read probabilities as a tuple of floats; refuse a bare number and what is not a number."""
    found: list[float] = []
    if isinstance(given, Iterable) and not isinstance(given, str):
        for each in given:
            if isinstance(each, bool) or not isinstance(each, SupportsFloat):
                raise ParameterError(
                    f"a probability of a quantile must be a number, got {type(each).__name__}"
                )
            found.append(float(each))
        listed = isinstance(given, list | tuple)  # else it may be a column: none of it is shown
        if not listed and not all(_LEAST <= each <= _MOST for each in found):
            raise ParameterError(f"{_IN_RANGE}, got {as_given(given)}")
        return tuple(found)
    raise ParameterError(
        f"probabilities of quantiles must be a list such as [0.5], got {as_given(given)}"
    )


def require_numeric(known: Mapping[str, StoredType], column: str, what: str) -> None:
    """Refuse a column that is not numeric."""
    found = known[find_column(column, known)]
    if found not in ("int", "float", "bool"):
        raise ParameterError(
            f"column {brief(column)} is of type {found}; {what} needs int, float or bool",
            **(declaring_advice(column) if found == "string" else {}),
        )


def read_grouping(
    known: Mapping[str, StoredType],
    columns: Sequence[str],
    keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None,
    *,
    select_partitions: bool,
) -> Keys:
    """Check a grouping; see `Table.group_by`."""
    if not all(isinstance(column, str) for column in columns):
        first: Any = columns[0]
        if isinstance(first, list | tuple) and {*map(type, first)} == {str}:
            raise ParameterError(
                "group_by takes names of columns one after the other, and not in a list, as in "
                "group_by('city', 'year', keys={'city': ['Rome', 'Oslo'], 'year': [2024, 2025]})"
            )
        raise ParameterError(
            "group_by takes names of columns. Give public keys with keys=[...], as in "
            "group_by('city', keys=['Rome', 'Oslo'])"
        )
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError("group_by needs at least one column, and no column twice")
    types = tuple(_key_type(known, column) for column in columns)
    if (keys is None) == (select_partitions is False):
        both = "" if keys is None else "keys and partition selection were both asked for, and "
        raise ParameterError(
            f"{both}which keys exist is private: list public keys, or ask for partition selection, "
            "which needs a delta",
            parameter="keys",
            hint="give keys=[...] or select_partitions=True",
        )
    values = None if keys is None else read_public_keys(columns, types, keys)
    return Keys(columns=tuple(columns), types=types, values=values)


def _key_type(known: Mapping[str, StoredType], column: str) -> ColumnType:
    """Type of a grouping column; refuse one that cannot be a key."""
    found = known[find_column(column, known)]
    if found == "other" or found not in GROUPABLE:
        raise ParameterError(f"cannot group by {brief(column)} of type {found}; {KEY_TYPES}")
    return found


def read_public_keys(
    columns: Sequence[str],
    types: Sequence[ColumnType],
    keys: Sequence[Any] | Mapping[str, Sequence[Any]],
) -> tuple[tuple[Any, ...], ...]:
    """Check public keys against the types of their columns."""
    if not isinstance(keys, Mapping):
        if len(columns) != 1 or isinstance(keys, str) or not isinstance(keys, Iterable):
            raise ParameterError(
                "give the public keys of each column: keys={'city': ['Rome', 'Oslo'], ...}"
            )
        keys = {columns[0]: keys}
    if set(keys) != set(columns):
        raise ParameterError(
            f"keys must name the columns {list(columns)}, got {list(keys)}", parameter="keys"
        )
    found = tuple(
        _read_keys(keys[column], key_type, column)
        for column, key_type in zip(columns, types, strict=True)
    )
    for column, values in zip(columns, found, strict=True):
        if not values or len(set(values)) < len(values):
            raise ParameterError(f"keys of {column!r} must be at least one, and no key twice")
    if math.prod(map(len, found)) > _MOST_KEYS:
        raise ParameterError(f"at most {_MOST_KEYS} combinations of keys can be answered")
    return found


def _read_keys(values: Any, key_type: ColumnType, column: str) -> tuple[Any, ...]:
    """Read the keys of a column."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(
            f"the keys of {brief(column)} must be listed, got {type(values).__name__}"
        )
    listed = list_in_order(values)
    if any(is_missing(value) for value in listed):
        asked = f"is_null(column({column!r}))"
        raise ParameterError(
            f"a key of {brief(column)} is missing (None or NaN): rows without a value belong to no "
            f"key. Leave it out; a table with filter({brief(asked)}) answers about these rows",
            parameter="keys",
        )
    return tuple(read_key(value, key_type, column) for value in listed)


def is_missing(key: Any) -> bool:
    """Whether a key is None, or NaN of whatever kind: some of them are compared with nothing."""
    with suppress(TypeError, ArithmeticError):
        return key is None or (np.ndim(key) == 0 and bool(key != key))  # noqa: PLR0124
    return True


def read_key(value: Any, key_type: ColumnType, column: str) -> Any:
    """Convert a public key to the plain value that the engine answers with."""
    found = value.item() if isinstance(value, np.generic) else value
    message = f"a key of {brief(column)} must be of type {key_type}, got {as_given(found)}"
    if key_type == "date":
        return _read_date(found, message)
    wanted: dict[str, type] = {"int": int, "string": str, "bool": bool}
    good = isinstance(found, wanted[key_type]) and (
        key_type != "int" or not isinstance(found, bool)
    )
    if not good:
        raise ParameterError(message)
    if key_type == "int" and not -(2**63) <= found < 2**63:
        raise ParameterError(f"{message}: keys that are listed have 64 bits, with their sign")
    if key_type == "bool":
        return found
    plain: Any = str.__str__(found) if key_type == "string" else int.__index__(found)
    if key_type == "string" and not is_sendable(plain):
        raise ParameterError(f"{message}: no database can store this string")
    return plain


def _read_date(value: Any, message: str) -> date:
    """Convert a public key to a date; refuse a date with a time."""
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            raise ParameterError(f"{brief(value)} is not a date YYYY-MM-DD") from None
    if not isinstance(value, date) or not isinstance(
        value.year, int
    ):  # such as pandas' missing time
        raise ParameterError(message)
    if isinstance(value, datetime):  # equal to no date, so its group would always be empty
        if value.tzinfo is not None or value.time() != time.min:
            raise ParameterError(f"{message}: a date has no time")
        return value.date()
    return date(value.year, value.month, value.day)
