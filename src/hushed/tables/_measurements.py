"""What is counted or added up for each aggregate, and its sensitivity.

Every measurement is a whole number for each group: rows, users, or a sum of whole steps. Its
sensitivity is for adding or removing one unit of privacy, with everything that belongs to it. All
numbers come from the maps of `hushed.transformations`, as those of a chain do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hushed._ground.types import StoredType
from hushed.errors import ParameterError
from hushed.tables._grid import Grid, check_bounds, choose_grid
from hushed.tables._ladders import Ladder, find_nearest
from hushed.tables._requests import Aggregate, ContributionBounds, Keys
from hushed.transformations._aggregates import (
    histogram_sensitivity,
    squared_counts,
    sum_sensitivity,
)
from hushed.transformations._grouping import reached_parts
from hushed.transformations._resizing import rows_of_users

_Role = Literal["rows", "users", "total", "bins", "rank", "top", "top users"]
_VALUE_BITS = 30
_USER_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A whole number computed for every row inside the engine."""

    # Value on its grid; its square, centred; 1 if the value is there; which bin it falls into,
    # equally wide or between the edges of a ladder.
    kind: Literal["steps", "square", "present", "bin", "rung"]
    column: str  # column it is computed from
    grid: Grid | None = None  # for steps and squares
    shift: int = 0  # for squares: a step of theirs is ``2**shift`` squared steps of the grid
    # For bins; of a ladder, the number of rungs only.
    low: float = 0.0
    high: float = 1.0
    bins: int = 0
    ladder: Ladder | None = None  # for rungs


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitContribution:
    """How much one unit of privacy contributes at most."""

    rows: int | None  # rows; None where nothing bounds them
    groups: int  # groups with at least one of its rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A whole number, or a list of them, for each group."""

    output: str  # output it belongs to
    # Number of rows, of users; sum of a feature; rows in each bin; rows nearest to each candidate,
    # one of which is chosen; number of rows, or of users, of each group, some of which are chosen.
    role: _Role
    feature: Feature | None = None  # what is added up or binned
    l1: int  # l1 sensitivity for one unit, over all groups together, in steps
    l2_squared: int  # square of the l2 sensitivity
    step: float = 1.0  # size of a step in the units of the output
    offset: int = 0  # for squares: what each present row was centred by, in steps
    probability: float = 0.5  # for a rank: which quantile


def unit_contribution(keys: Keys, bounds: ContributionBounds, *, by_user: bool) -> UnitContribution:
    """Bound the rows and groups of one unit of privacy."""
    most = bounds.max_rows_per_user
    rows: int | None = 1
    if by_user:
        rows = None if most is None else rows_of_users(1, most=most)
    parts = None if keys.values is None else math.prod(map(len, keys.values))  # 1 without keys
    groups = reached_parts(rows, bounds.max_groups_per_user, parts)
    if groups is None:
        raise ParameterError(
            "a user may have many rows: bound max_rows_per_user or max_groups_per_user",
            parameter="max_groups_per_user",
            hint="give .bound_contributions(max_groups_per_user=...) or "
            ".bound_contributions(max_rows_per_user=...)",
        )
    return UnitContribution(rows=rows, groups=groups)


def measurements(
    aggregate: Aggregate, contribution: UnitContribution, columns: Mapping[str, StoredType]
) -> tuple[Measurement, ...]:
    """List what has to be measured for an aggregate.

    For a mean: centred sum, and rows with a value. For a variance: the same and the centred sum of
    squares. For quantiles: one choice each.
    """
    by_users = aggregate.kind == "top" and aggregate.of == "users"
    if aggregate.kind == "users" or by_users:  # a user counts once in each group
        counted: _Role = "top users" if by_users else "users"
        return (_count_of(aggregate, counted, None, contribution.groups, per_cell=1),)
    rows = contribution.rows
    if rows is None:
        raise ParameterError(
            f"{aggregate.name!r} needs a contribution bound: max_rows_per_user, the rows of one "
            "user that count",
            parameter="max_rows_per_user",
            hint="give .bound_contributions(max_rows_per_user=...)",
        )
    if aggregate.kind in ("count", "top"):  # all rows of a unit may be in one group
        role: _Role = "top" if aggregate.kind == "top" else "rows"
        return (_count_of(aggregate, role, None, rows),)
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
    aggregate: Aggregate,
    role: _Role,
    feature: Feature | None,
    rows: int,
    *,
    per_cell: int | None = None,
    probability: float = 0.5,
) -> Measurement:
    """Count rows, or users, in disjoint cells: groups, or bins of groups."""
    return Measurement(
        output=aggregate.name,
        role=role,
        feature=feature,
        l1=int(histogram_sensitivity(rows, norm="l1", per_bin=per_cell)),
        l2_squared=squared_counts(rows, per_bin=per_cell or rows),
        probability=probability,
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
    if aggregate.kind == "histogram":
        feature = Feature(kind="bin", column=column, low=low, high=high, bins=aggregate.bins)
        return (_count_of(aggregate, "bins", feature, rows),)
    feature = _find_nearest(aggregate, column, low, high)
    return tuple(
        _count_of(aggregate, "rank", feature, rows, probability=p) for p in aggregate.probabilities
    )


def _find_nearest(aggregate: Aggregate, column: str, low: float, high: float) -> Feature:
    """Round each value to the nearest candidate of a quantile."""
    count = aggregate.bins
    if aggregate.spacing == "geometric":
        ladder = find_nearest(low, high, count)
        return Feature(kind="rung", column=column, bins=count, ladder=ladder)
    half = (high - low) / (count - 1) / 2
    return Feature(kind="bin", column=column, low=low - half, high=high + half, bins=count)
