"""What is counted or added up for each aggregate, and its sensitivity.

Every measurement is a whole number for each group: rows, users, or a sum of whole steps. Its
sensitivity is for adding or removing one unit of privacy, with everything that belongs to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hushed._types import StoredType
from hushed.errors import ParameterError
from hushed.tables._grid import Grid, check_bounds, choose_grid
from hushed.tables._requests import Aggregate, ContributionBounds, Keys
from hushed.transformations import count_sensitivity, sum_sensitivity

_VALUE_BITS = 30
_USER_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A whole number computed for every row inside the engine.

    Parameters
    ----------
    kind : {"steps", "square", "present", "bin"}
        Value on its grid; its square, centred; 1 if the value is there; which bin it falls into.
    column : str
        Column it is computed from.
    grid : Grid, optional
        For steps and squares.
    shift : int
        For squares: a step of theirs is ``2**shift`` squared steps of the grid.
    low, high, bins : float, float, int
        For bins.
    """

    kind: Literal["steps", "square", "present", "bin"]
    column: str
    grid: Grid | None = None
    shift: int = 0
    low: float = 0.0
    high: float = 1.0
    bins: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitContribution:
    """How much one unit of privacy contributes at most.

    Parameters
    ----------
    rows : int or None
        Rows; None where nothing bounds them.
    groups : int
        Groups with at least one of its rows.
    """

    rows: int | None
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A whole number, or a list of them, for each group.

    Parameters
    ----------
    output : str
        Output it belongs to.
    role : {"rows", "users", "total", "bins", "rank"}
        Number of rows, of users; sum of a feature; rows in each bin; rows in each bin, from which
        one candidate is chosen.
    feature : Feature, optional
        What is added up or binned.
    l1 : int
        l1 sensitivity for one unit, over all groups together, in steps.
    l2_squared : int
        Square of the l2 sensitivity.
    step : float
        Size of a step in the units of the output.
    offset : int
        For squares: what each present row was centred by, in steps.
    probability : float
        For a rank: which quantile.
    """

    output: str
    role: Literal["rows", "users", "total", "bins", "rank"]
    feature: Feature | None = None
    l1: int
    l2_squared: int
    step: float = 1.0
    offset: int = 0
    probability: float = 0.5


def unit_contribution(keys: Keys, bounds: ContributionBounds, *, by_user: bool) -> UnitContribution:
    """Bound the rows and groups of one unit of privacy."""
    if not by_user:
        return UnitContribution(rows=1, groups=1)
    if not keys.columns:
        return UnitContribution(rows=bounds.max_rows_per_user, groups=1)
    reach = [n for n in (bounds.max_rows_per_user, bounds.max_groups_per_user) if n is not None]
    if keys.values is not None:
        reach.append(math.prod(map(len, keys.values)))
    if not reach:
        raise ParameterError(
            "a user may have many rows: give contribution bounds",
            parameter="max_groups_per_user",
            hint="give .bound_contributions(max_groups_per_user=...) or "
            ".bound_contributions(max_rows_per_user=...)",
        )
    return UnitContribution(rows=bounds.max_rows_per_user, groups=min(reach))


def measurements(
    aggregate: Aggregate, contribution: UnitContribution, columns: Mapping[str, StoredType]
) -> tuple[Measurement, ...]:
    """List what has to be measured for an aggregate.

    Parameters
    ----------
    aggregate : Aggregate
        The aggregate.
    contribution : UnitContribution
        Contribution of one unit of privacy.
    columns : mapping of str to str
        Types of the columns.

    Returns
    -------
    tuple of Measurement
        For a mean: centred sum, and rows with a value. For a variance: the same and the centred
        sum of squares. For quantiles: one choice each.
    """
    if aggregate.kind == "users":
        g = contribution.groups
        return (Measurement(output=aggregate.name, role="users", l1=g, l2_squared=g),)
    rows = contribution.rows
    if rows is None:
        raise ParameterError(
            f"{aggregate.name!r} needs a contribution bound, the rows of one user that count",
            parameter="max_rows_per_user",
            hint="give .bound_contributions(max_rows_per_user=...)",
        )
    if aggregate.kind == "count":
        return (_count_of(aggregate, "rows", None, rows),)
    column = aggregate.column or ""
    if aggregate.kind in ("quantiles", "histogram"):
        return _bins_of(aggregate, column, rows)
    grid = choose_grid(
        low=aggregate.low,
        high=aggregate.high,
        rows=rows,
        centred=aggregate.kind != "sum",
        integers=columns[column] in ("int", "bool"),
    )
    steps = Feature(kind="steps", column=column, grid=grid)
    total = _sum_of(aggregate, steps, (grid.least, grid.largest), rows)
    if aggregate.kind == "sum":
        return (total,)
    present = _count_of(aggregate, "total", Feature(kind="present", column=column), rows)
    if aggregate.kind == "mean":
        return (total, present)
    shift, top = square_steps(grid, rows)
    square = Feature(kind="square", column=column, grid=grid, shift=shift)
    offset = top // 2
    squares = _sum_of(aggregate, square, (-offset, top - offset), rows, shift, offset)
    return (total, squares, present)


def square_steps(grid: Grid, rows: int) -> tuple[int, int]:
    """Choose the step of squares: its shift, and the largest square in such steps."""
    bits = min(_VALUE_BITS, _USER_BITS - (rows - 1).bit_length())
    shift = max(0, (grid.most**2).bit_length() - bits)
    return shift, math.floor(float(grid.most) * float(grid.most) * 2.0**-shift + 0.5)


def _count_of(
    aggregate: Aggregate, role: Literal["rows", "total"], feature: Feature | None, rows: int
) -> Measurement:
    moved = int(count_sensitivity(rows))
    return Measurement(
        output=aggregate.name, role=role, feature=feature, l1=moved, l2_squared=moved**2
    )


def _sum_of(
    aggregate: Aggregate,
    feature: Feature,
    ends: tuple[int, int],
    rows: int,
    shift: int = 0,
    offset: int = 0,
) -> Measurement:
    """Sum of a feature; all rows of a unit may be in one group and have the largest value."""
    step = feature.grid.step if feature.grid else 1.0
    moved = int(sum_sensitivity(rows, low=ends[0], high=ends[1]))  # whole numbers below 2**53
    return Measurement(
        output=aggregate.name,
        role="total",
        feature=feature,
        l1=moved,
        l2_squared=moved**2,
        step=step if feature.kind == "steps" else step * step * 2.0**shift,
        offset=offset,
    )


def _bins_of(aggregate: Aggregate, column: str, rows: int) -> tuple[Measurement, ...]:
    low, high = check_bounds(aggregate.low, aggregate.high)
    feature = Feature(kind="bin", column=column, low=low, high=high, bins=aggregate.bins)
    name = aggregate.name
    if aggregate.kind == "histogram":
        return (
            Measurement(output=name, role="bins", feature=feature, l1=rows, l2_squared=rows**2),
        )
    return tuple(
        Measurement(
            output=name, role="rank", feature=feature, l1=rows, l2_squared=rows**2, probability=p
        )
        for p in aggregate.probabilities
    )
