"""Transformations that work row by row: one row in, one row or none out.

A row added, removed or replaced in the input is one row added, removed or replaced in the output,
so distances stay as they are; where rows are left out, a replaced row may be one removed and one
added. A function of the caller must look at its own row only and always answer the same: that is
declared by handing it in. No step fails on a value: whether it did would be an answer without
noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.printing import format_exactly
from hushed.errors import ParameterError
from hushed.spaces import CHANGE_ONE, SYMMETRIC, Cell, Column, Space, Table, Vectors
from hushed.spaces import size as size_in
from hushed.spaces._cells import missing_in
from hushed.transformations._arithmetic import norm_margin
from hushed.transformations._chain import Step, Transformation
from hushed.transformations._matching import refuse, take_column, take_domain
from hushed.transformations._row_steps import Values, drop_some_rows, keep_rows, map_each_row


@called_as('hs.transformations.select("cost")')
def select(name: str) -> Step[Transformation]:
    """Take one column of a table.

    Parameters
    ----------
    name : str
        Name of the column.

    Returns
    -------
    Step
        From a table to a column; distances stay as they are.
    """

    def build(space: Space) -> Transformation:
        table = take_domain(space, Table, f"select({name!r})", "a table", "")
        column = Column(cell=table.cell(name), size=table.size, least=table.least)
        return map_each_row(f"select({name!r})", space, column, lambda data: data[name], name)

    return Step("select", build)


@called_as("hs.transformations.clip(0, 100)")
def clip(low: float, high: float) -> Step[Transformation]:
    """Move numbers into bounds.

    Parameters
    ----------
    low, high : float
        Bounds; finite. Public: chosen without a look at the rows.

    Returns
    -------
    Step
        From a column of numbers to one with bounds; distances stay as they are. Missing values
        stay missing, infinities go to the bounds.

    Raises
    ------
    ParameterError
        If the bounds are swapped or not finite.
    """
    Cell(low=low, high=high)

    def build(space: Space) -> Transformation:
        column = take_column(space, "clip", numeric=True)
        cell = replace(column.cell, low=low, high=high)
        least, most = cell.low, cell.high
        return map_each_row(
            f"clip({format_exactly(low)}, {format_exactly(high)})",
            space,
            replace(column, cell=cell),
            lambda values: np.clip(values, least, most),
            low,
            high,
        )

    return Step("clip", build)


@called_as("hs.transformations.impute(0.0)")
def impute(value: float | str) -> Step[Transformation]:
    """Put a public constant in place of missing values.

    Parameters
    ----------
    value : float or str
        The constant; within the bounds of the column.

    Returns
    -------
    Step
        From a column to one without missing values; distances stay as they are.
    """

    def build(space: Space) -> Transformation:
        column = take_column(space, "impute")
        cell = replace(column.cell, missing=False)
        if cell.check([value])[0] != value:
            raise ParameterError(f"a column of {cell} cannot be imputed with {value!r}")

        def fill(values: Values) -> Values:
            found = values.copy()
            found[missing_in(values)] = value
            return found

        return map_each_row(f"impute({value!r})", space, replace(column, cell=cell), fill, value)

    return Step("impute", build)


@called_as("hs.transformations.drop_missing()")
def drop_missing() -> Step[Transformation]:
    """Leave out the rows with a missing value.

    Returns
    -------
    Step
        From a column to one without missing values and of unknown number of rows, under rows
        added or removed; a replaced row counts twice.
    """

    def build(space: Space) -> Transformation:
        column = take_column(space, "drop_missing")
        cell = replace(column.cell, missing=False)
        return drop_some_rows(
            "drop_missing()", space, Column(cell=cell), lambda values: values[~missing_in(values)]
        )

    return Step("drop_missing", build)


@called_as('hs.transformations.stack("age", "cost")')
def stack(*names: str) -> Step[Transformation]:
    """Take columns of a table as vectors of floats.

    Parameters
    ----------
    *names : str
        Columns of numbers without missing values.

    Returns
    -------
    Step
        From a table to vectors; distances stay as they are.
    """

    def build(space: Space) -> Transformation:
        table = take_domain(space, Table, "stack", "a table", "")
        for name in names:
            cell = table.cell(name)
            if cell.missing or cell.low is None:
                wanted = f"bounded numbers without missing values, which {name!r} is not,"
                raise refuse("stack", space, wanted, "another declaration of that column")
        return map_each_row(
            f"stack({', '.join(map(repr, names))})",
            space,
            Vectors(dims=len(names), size=table.size, least=table.least),
            lambda data: np.column_stack([data[name] for name in names]).astype(np.float64),
            *names,
        )

    return Step("stack", build)


@called_as("hs.transformations.clip_norm(1.0)")
def clip_norm(bound: float, norm: Literal["l1", "l2", "sup"] = "l2") -> Step[Transformation]:
    """Shrink vectors to a largest norm.

    Parameters
    ----------
    bound : float
        Largest norm; finite, above 0. Public.
    norm : {"l1", "l2", "sup"}, default "l2"
        The norm.

    Returns
    -------
    Step
        From vectors to vectors with a bound; distances stay as they are. A vector that is too
        long is shrunk to a little less than the bound, so that rounding stays below it.
    """
    Vectors(dims=1, norm=norm, bound=bound)

    def build(space: Space) -> Transformation:
        old = take_domain(space, Vectors, "clip_norm", "vectors", "stack(columns)")
        margin = 2 * float(norm_margin(old.dims))

        def shrink(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            if not len(rows):
                return rows
            with np.errstate(over="ignore"):
                lengths = size_in(rows, norm)
            long = lengths > bound
            found = rows.copy()
            scale = np.abs(rows[long]).max(axis=1, keepdims=True)
            units = rows[long] / scale
            ratio = bound * (1 - margin) / size_in(units, norm)
            found[long] = units * ratio[:, None]
            return found

        domain = replace(old, norm=norm, bound=bound)
        return map_each_row(f"clip_norm({bound:g}, {norm!r})", space, domain, shrink, bound, norm)

    return Step("clip_norm", build)


@called_as("hs.transformations.to_change_one()")
def to_change_one() -> Step[Transformation]:
    """Count replaced rows instead of rows added and removed.

    Returns
    -------
    Step
        The same rows; needs a public number of rows. A distance of 2 becomes 1.
    """

    def build(space: Space) -> Transformation:
        domain = space.domain
        if space.metric.name != "symmetric" or domain.size is None or space.metric.unit == "user":
            wanted = "a public number of rows under rows added or removed"
            raise refuse("to_change_one", space, wanted, "resize(size)")
        target = Space(domain=domain, metric=CHANGE_ONE)
        return keep_rows("to_change_one()", space, target, lambda rows: rows // 2)

    return Step("to_change_one", build)


@called_as("hs.transformations.to_symmetric()")
def to_symmetric() -> Step[Transformation]:
    """Count rows added and removed instead of rows replaced.

    Returns
    -------
    Step
        The same rows. A distance of 1 becomes 2.
    """

    def build(space: Space) -> Transformation:
        if space.metric != CHANGE_ONE:
            raise refuse("to_symmetric", space, "rows under rows replaced", "")
        target = Space(domain=space.domain, metric=SYMMETRIC)
        return keep_rows("to_symmetric()", space, target, lambda rows: 2 * rows)

    return Step("to_symmetric", build)
