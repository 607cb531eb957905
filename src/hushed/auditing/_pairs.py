"""Pairs of neighbouring inputs to try: pattern families, extremes, and those of the user."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.calls import called_as
from hushed._ground.checks import is_whole, read_array, require_count
from hushed._ground.printing import as_given
from hushed._rows import _containers as containers
from hushed.errors import BadRows, ParameterError
from hushed.guarantee import Neighbours

Relation = Literal["replace-one", "add-remove", "answers"]


@called_as('hs.auditing.Pair(rows=[0.0], neighbour=[1.0], name="one row moves")')
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Two inputs that must look alike.

    Parameters
    ----------
    rows : object
        One input.
    neighbour : object
        The other one.
    name : str
        Words for the pair.
    """

    rows: Any
    neighbour: Any
    name: str


def _one_below(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [0.0] + [1.0] * (k - 1)


def _one_above(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [2.0] + [1.0] * (k - 1)


def _one_above_rest_below(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [2.0] + [0.0] * (k - 1)


def _one_below_rest_above(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [0.0] + [2.0] * (k - 1)


def _half_half(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [0.0] * ((k + 1) // 2) + [2.0] * (k // 2)


def _all_above(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [2.0] * k


def _all_below(k: int) -> tuple[list[float], list[float]]:
    return [1.0] * k, [0.0] * k


def _x_shape(k: int) -> tuple[list[float], list[float]]:
    half = k // 2
    return [1.0] * half + [0.0] * (k - half), [0.0] * half + [1.0] * (k - half)


_FOR_ANSWERS = "for query answers, each of which may move by 1, say relation='answers'"
_PATTERNS: dict[str, Callable[[int], tuple[list[float], list[float]]]] = {
    "one below": _one_below,
    "one above": _one_above,
    "one above, rest below": _one_above_rest_below,
    "one below, rest above": _one_below_rest_above,
    "half and half": _half_half,
    "all above": _all_above,
    "all below": _all_below,
    "X shape": _x_shape,
}
FAMILIES: dict[str, tuple[str, ...]] = {
    "patterns": tuple(_PATTERNS),
    "histogram": ("one below", "one above"),
    **{name: (name,) for name in _PATTERNS},
}


def describe_families() -> str:
    """Tell which families there are, and for which mechanisms they are right."""
    return (
        "'patterns' (every answer may move by 1, as for several queries of sensitivity 1 each), "
        "'histogram' (a single answer moves by 1), or one pattern by its name: "
        f"{', '.join(map(repr, _PATTERNS))}"
    )


def pattern_pairs(family: str = "patterns", answers: int = 5) -> list[Pair]:
    """Make vectors of query answers, each of which moves by at most 1.

    They fit mechanisms whose input is the list of answers. On a function of rows they would not be
    neighbours: all entries move where one row may (see `extreme_pairs`).

    All ones, against one of the patterns; arrays of float. "patterns" are all eight, "histogram"
    the two in which a single answer moves.

    Notes
    -----
    Ding, Wang, Wang, Zhang, Kifer, *Detecting violations of differential privacy*, CCS 2018,
    Table 1. With a single answer several patterns are the same; each is tried once.
    """
    if family not in FAMILIES:
        raise ParameterError(
            f"pairs must be one of {', '.join(FAMILIES)}, for a mechanism whose input is a list of "
            f"query answers; got {as_given(family)}. For a function of rows give "
            "hs.auditing.extreme_pairs(low, high, rows), or a list of (rows, neighbour)",
            parameter="pairs",
        )
    if not is_whole(answers) or answers < 1:
        raise ParameterError(
            f"answers must be an integer of 1 or more, got {as_given(answers)}", parameter="answers"
        )
    found: dict[str, Pair] = {}
    for name in FAMILIES[family]:
        one, other = _PATTERNS[name](int(answers))
        pair = Pair(rows=np.array(one), neighbour=np.array(other), name=name)
        found.setdefault(repr((one, other)), pair)
    return list(found.values())


@called_as("hs.auditing.extreme_pairs(0, 100, 3)")
def extreme_pairs(
    low: ArrayLike, high: ArrayLike, rows: int, neighbours: Neighbours = "replace-one"
) -> list[Pair]:
    """Make tables at the ends of a domain, where functions of rows move farthest.

    Parameters
    ----------
    low, high : float or array of float, shape (columns,)
        Ends of the domain of each column; low below high.
    rows : int
        Rows of a table; 1 or more.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How the two tables differ.

    Returns
    -------
    list of Pair
        All rows low, all high, and half each, with one row moved to the other end or taken away;
        each pair once.

    Raises
    ------
    ParameterError
        If the ends are in the wrong order, or the rows too few.
    """
    bottom, top = read_array("low", low), read_array("high", high)
    if bottom.shape != top.shape or not bool(np.all(bottom < top)):
        raise ParameterError("low must lie below high in every column", parameter="low")
    require_count("rows", rows)
    upper = np.arange(rows) >= rows // 2
    starts = {"all low": np.zeros(rows, bool), "all high": np.ones(rows, bool), "halves": upper}
    found: dict[tuple[bytes, bytes], Pair] = {}
    for name, flags in starts.items():
        mask = flags.reshape(-1, *(1,) * bottom.ndim)
        table = np.where(mask, top, bottom)
        for at, where in ((0, "first"), (rows - 1, "last")):
            if neighbours == "add-remove":
                other = np.delete(table, at, axis=0)
                words = f"{name}, {where} row taken away"
            else:
                other = table.copy()
                other[at] = bottom if flags[at] else top
                words = f"{name}, {where} row at the other end"
            pair = Pair(rows=table, neighbour=other, name=words)
            found.setdefault((table.tobytes(), other.tobytes()), pair)
    return list(found.values())


def read_pairs(
    pairs: str | Iterable[Any] | None,
    *,
    relation: Relation,
    answers: int,
    distance: int | None = 1,
) -> list[Pair]:
    """Pairs that a user asked for, checked: at least one, and all of them neighbours.

    `pairs` is the name of a family (of vectors of `answers` answers) or the pairs themselves. None
    is refused: no family is right for every mechanism. The relation "answers" lets every entry of
    a vector of answers move by at most 1. `distance` is the number of rows in which tables differ;
    None for all those of a user, who may have any number.
    """
    if pairs is None:
        raise ParameterError(
            "an audit needs pairs of neighbouring inputs. For a function of rows give pairs of "
            "tables that differ in one row: hs.auditing.extreme_pairs(low, high, rows), or a list "
            "of (rows, neighbour). For a function of a list of query answers name a family: "
            f"{describe_families()}"
        )
    if relation not in get_args(Relation):
        raise ParameterError(
            f"relation must be one of {get_args(Relation)}, got {as_given(relation)}",
            parameter="relation",
        )
    if isinstance(pairs, str):
        found = pattern_pairs(pairs, answers)
    elif not isinstance(pairs, Iterable):
        raise ParameterError(
            "pairs must be a list of (rows, neighbour), the name of a family, or "
            "hs.PopulationPairs(population=..., rows=..., count=...), got "
            f"{type(pairs).__name__}",
            parameter="pairs",
        )
    else:
        found = [_read_pair(each, number) for number, each in enumerate(pairs, start=1)]
    if not found:
        raise ParameterError(
            "no pairs were given; list one or more of (rows, neighbour)", parameter="pairs"
        )
    for pair in found:
        reason = _find_difference(pair.rows, pair.neighbour, relation, distance)
        if reason:
            of_one = relation != "answers" and distance in (1, None)
            would_fit = of_one and not _find_moved(pair.rows, pair.neighbour)
            raise ParameterError(
                f"{pair.name} holds no {relation} neighbours: {reason}",
                parameter="relation",
                hint=_FOR_ANSWERS if would_fit else "",
            )
    return _name_apart(found)


def _name_apart(pairs: list[Pair]) -> list[Pair]:
    """Add a number to a name that an earlier pair has: a report tells pairs by their names."""
    named: dict[str, Pair] = {}
    for pair in pairs:
        name, number = pair.name, 1
        while name in named:
            number += 1
            name = f"{pair.name} ({number})"
        named[name] = replace(pair, name=name)
    return list(named.values())


def _read_pair(given: Any, number: int) -> Pair:
    if isinstance(given, Pair):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise ParameterError(
            f"pair {number} must be (rows, neighbour); pairs is a list of such, as in "
            "[(rows, neighbour)]",
            parameter="pairs",
        )
    return Pair(rows=given[0], neighbour=given[1], name=f"pair {number}")


def _find_difference(one: Any, other: Any, relation: Relation, distance: int | None) -> str:
    """Reason why two inputs are no neighbours; empty if they are."""
    if relation == "answers":
        return _find_moved(one, other)
    try:
        kinds = containers.container(one), containers.container(other)
    except BadRows as cause:
        return str(cause)
    if other_layout := _find_other_layout(one, other, kinds):
        return other_layout
    if distance is None:
        return "they are equal" if containers.is_same(one, other) else ""
    find = _find_replaced if relation == "replace-one" else _find_removed
    return find(one, other, distance)


def _find_other_layout(one: Any, other: Any, kinds: tuple[str, str]) -> str:
    if kinds[0] != kinds[1]:
        return f"one is held in a {kinds[0]}, the other in a {kinds[1]}"
    names, inner = zip(*map(_list_columns, (one, other)), strict=True)
    if names[0] != names[1]:
        return "their columns have other names"
    return (
        ""
        if inner[0] == inner[1]
        else f"a row has shape {inner[0]} in one, {inner[1]} in the other"
    )


def _list_columns(table: Any) -> tuple[list[Any], tuple[int, ...]]:
    """List names of columns, of a structured array its fields, and give the shape of a row."""
    fields = getattr(getattr(table, "dtype", None), "names", None)
    return list(getattr(table, "columns", fields or ())), getattr(table, "shape", ())[1:]


def _find_replaced(one: Any, other: Any, distance: int) -> str:
    if len(one) != len(other):
        return f"they have {len(one)} and {len(other)} rows; replacing one keeps the number"
    moved = sum(
        not containers.is_same(_take_row(one, i), _take_row(other, i)) for i in range(len(one))
    )
    differ = "row differs" if moved == 1 else "rows differ"
    return "" if moved == distance else f"{moved} {differ} instead of {distance}"


def _find_removed(one: Any, other: Any, distance: int) -> str:
    if abs(len(one) - len(other)) != distance:
        allowed = "one" if distance == 1 else str(distance)
        return f"they have {len(one)} and {len(other)} rows; {allowed} more or less is allowed"
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    more = "one row" if distance == 1 else f"{distance} rows"
    return "" if _is_within(longer, shorter) else f"more differs than {more}"


def _take_row(table: Any, index: int) -> Any:
    return containers.take(table, np.array([index]))


def _is_within(longer: Any, shorter: Any) -> bool:
    """Whether rows were taken away, and no more: the others are there, in their order."""

    def differ(count: int) -> bool:
        first = np.arange(count)
        return not containers.is_same(*(containers.take(each, first) for each in (longer, shorter)))

    counts = range(1, len(shorter) + 1)
    while len(longer) > len(shorter):
        gone = bisect_left(counts, True, key=differ)  # the first row that is not there
        longer = containers.take(longer, np.delete(np.arange(len(longer)), gone))
    return not differ(len(shorter))


def _find_moved(one: Any, other: Any) -> str:
    try:
        first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    except (TypeError, ValueError):
        return "query answers must be numbers"
    if first.shape != second.shape:
        return f"they have shapes {first.shape} and {second.shape}"
    if np.isnan(first).any() or np.isnan(second).any():
        return "an answer is missing (None or NaN), so that nobody can tell how far it moves"
    moved = np.abs(first - second)
    if not bool(np.all(moved <= 1)):
        return f"an answer moves by {np.max(moved):g}, more than 1"
    return "" if moved.any() else "they are equal"
