"""Transformations over disjoint parts: split by public keys, then answer for each part."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.numeric import round_up
from hushed.errors import ParameterError, SpaceMismatch
from hushed.spaces import (
    L1,
    L2,
    ONE_SIDED,
    SUP,
    SYMMETRIC,
    Distance,
    Groups,
    Numbers,
    Space,
    Table,
)
from hushed.spaces._cells import keys_of, missing_in
from hushed.transformations._chain import Step, Transformation, linear
from hushed.transformations._matching import take_domain

_METRICS = {"l1": L1, "l2": L2, "sup": SUP, "one-sided": ONE_SIDED}
_PartNorm = Literal["l1", "l2", "sup", "one-sided"]


@called_as('hs.transformations.group_by("city", ["Bonn", "Ulm"])')
def group_by(column: str | Sequence[str], keys: Iterable[Any]) -> Step[Transformation]:
    """Split a table into disjoint parts by public keys.

    Parameters
    ----------
    column : str or sequence of str
        Column of strings, integers or truth values that says where a row belongs; or several, which
        say it together.
    keys : iterable
        Public keys: all that may be named; tuples, one entry for each column, where there are
        several (``itertools.product`` makes all of them). Rows with another key are left out. Keys
        taken from the private rows themselves would give away which ones occur.

    Returns
    -------
    Step
        From a table to one table for each key, of unknown number of rows, under rows added or
        removed over all parts; a replaced row counts twice.
    """
    wanted = keys_of(keys)

    def build(space: Space) -> Transformation:
        table = take_domain(space, Table, "group_by", "a table", "")
        names = check_keys("group_by", table, column, wanted)
        factor = 2 if space.metric.name == "change-one" else 1

        def function(data: dict[str, Any]) -> dict[Any, dict[str, Any]]:
            masks = {key: rows_with(data, names, key) for key in wanted}
            return {
                key: {name: values[mask] for name, values in data.items()}
                for key, mask in masks.items()
            }

        return Transformation(
            name=f"group_by({', '.join(map(repr, names))}, {len(wanted)} keys)",
            source=space,
            target=Space(
                domain=Groups(keys=wanted, table=replace(table, size=None, least=None)),
                metric=SYMMETRIC,
            ),
            function=function,
            relation=linear(lambda rows: factor * rows),
            settings=(column, wanted),
        )

    return Step("group_by", build)


def check_keys(
    step: str, table: Table, column: str | Sequence[str], keys: Sequence[Any]
) -> tuple[str, ...]:
    """Refuse columns that group nothing and keys that no row can have; name the columns."""
    names = (column,) if isinstance(column, str) else tuple(column)
    if not names or len(set(names)) != len(names):
        raise ParameterError(f"{step} needs one column or several distinct ones, got {column!r}")
    many = not isinstance(column, str)
    if many and not all(isinstance(key, tuple) and len(key) == len(names) for key in keys):
        raise ParameterError(
            f"{step} of the columns {list(names)} takes keys that are tuples of {len(names)}, one "
            "entry for each column"
        )
    for at, name in enumerate(names):
        cell = table.cell(name)
        if cell.type == "float":
            raise ParameterError(f"cannot group by {name!r}, a column of floats: cast it first")
        entries = [key[at] for key in keys] if many else list(keys)
        if missing_in(cell.check(entries, name=name)).any():
            raise ParameterError(f"a key of {name!r} is missing: keys are values of the column")
    return names


def rows_with(data: dict[str, Any], names: Sequence[str], key: Any) -> NDArray[np.bool_]:
    """Tell which rows have a key, in all of its columns."""
    entries = key if isinstance(key, tuple) else (key,)
    masks = [data[name] == entry for name, entry in zip(names, entries, strict=True)]
    return np.asarray(np.logical_and.reduce(masks), dtype=np.bool_)


@called_as("hs.transformations.each(hs.transformations.count())")
def each(step: Step[Transformation], *, norm: _PartNorm = "l1") -> Any:
    """Answer the same question for each part.

    Parameters
    ----------
    step : Step
        From a table to one number, such as ``select("cost") >> clip(0, 100) >> sum_of()``.
    norm : {"l1", "l2", "sup", "one-sided"}, default "l1"
        Norm in which the movement of the vector of answers is bounded.

    Returns
    -------
    Step
        From groups to a vector of answers in the order of the keys. The bound is the largest
        over all ways to spread the changed rows over the parts.

    Raises
    ------
    ParameterError
        If the norm is unknown.
    """
    require_one_of("norm", norm, _METRICS)

    def build(space: Space) -> Transformation:
        groups = take_domain(space, Groups, "each", "groups", "group_by(column, keys)")
        inner = Space(domain=groups.table, metric=SYMMETRIC) >> step
        if not isinstance(inner, Transformation) or inner.target.metric.name != "absolute":
            raise SpaceMismatch(f"each takes a step from a table to one number, got {step.name}")
        kind = inner.target.domain
        dims = len(groups.keys)
        return Transformation(
            name=f"each({inner.name})",
            source=space,
            target=Space(
                domain=Numbers(type=kind.type if isinstance(kind, Numbers) else "float", dims=dims),
                metric=_METRICS[norm],
            ),
            function=lambda data: np.array([inner.function(data[key]) for key in groups.keys]),
            relation=_spread(inner, dims, norm),
            settings=(inner, norm),
        )

    return Step(f"each({step.name})", build)


def _spread(inner: Transformation, parts: int, norm: _PartNorm) -> Callable[[Distance], Distance]:
    """Bound the movement of the vector when rows change in any of the parts."""

    def bound(rows: int) -> float:
        def moved(share: int) -> float:
            return inner.map(share).value

        if norm == "sup":
            return max(moved(share) for share in range(rows + 1))
        if norm == "l1":
            return worst_split(moved, rows, parts)
        if norm == "one-sided":  # one part rises most, another one falls most
            return worst_split(moved, rows, min(parts, 2))
        top = moved(rows)  # scaled, so that no square leaves the doubles
        if not 0 < top < math.inf:
            return top
        squares = worst_split(lambda share: (moved(share) / top) ** 2, rows, parts)
        return round_up(top * round_up(math.sqrt(squares)), 8.0)

    return linear(bound)


def worst_split(amount: Callable[[int], float], rows: int, parts: int) -> float:
    """Largest sum of amounts over all ways to spread changed rows over disjoint parts.

    The maximum, rounded up. For amounts that grow at least in proportion it is that of all rows in
    one part, the rule of parallel composition (McSherry, *Privacy Integrated Queries*, SIGMOD 2009,
    Theorem 4).
    """
    single = [amount(share) for share in range(rows + 1)]
    best = [0.0] * (rows + 1)
    for _ in range(reached_parts(rows, parts) or 0):
        best = [
            max(single[share] + best[total - share] for share in range(total + 1))
            for total in range(rows + 1)
        ]
    return round_up(best[rows], 4.0 * max(rows, 1)) if rows > 1 else best[rows]


def reached_parts(*limits: int | None) -> int | None:
    """Disjoint parts that changed rows can be in: no more than rows, nor than any other limit."""
    return min((limit for limit in limits if limit is not None), default=None)
