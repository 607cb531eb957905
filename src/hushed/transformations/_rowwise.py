"""Transformations that work row by row: one row in, one row or none out.

A row added, removed or replaced in the input is one row added, removed or replaced in the output,
so distances stay as they are; where rows are left out, a replaced row may be one removed and one
added. A function of the caller must look at its own row only and always answer the same: that is
declared by handing it in. No step fails on a value: whether it did would be an answer without
noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._checks import require_one_of
from hushed._functions._gate import guard_step
from hushed._types import ColumnType
from hushed.errors import BadFunction, ParameterError
from hushed.spaces import (
    CHANGE_ONE,
    SYMMETRIC,
    Cell,
    Column,
    Domain,
    Space,
    Table,
    Vectors,
)
from hushed.spaces import size as size_in
from hushed.spaces._cells import CELL_TYPES, LARGEST_INT, missing_in
from hushed.transformations._arithmetic import norm_margin
from hushed.transformations._chain import Step, Transformation, linear
from hushed.transformations._matching import refuse, take_column, take_domain
from hushed.transformations._memory import check_row_memory

Values = NDArray[Any]
# What is true of a number or a string is for a function to say: map_rows(..., Cell(type="bool")).
_NUMBERS_AND_STRINGS = tuple(each for each in CELL_TYPES if each != "bool")


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
        return _rowwise(f"select({name!r})", space, column, lambda data: data[name], name)

    return Step("select", build)


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
        return _rowwise(
            f"clip({low:g}, {high:g})",
            space,
            replace(column, cell=cell),
            lambda values: np.clip(values, least, most),
            low,
            high,
        )

    return Step("clip", build)


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

        return _rowwise(f"impute({value!r})", space, replace(column, cell=cell), fill, value)

    return Step("impute", build)


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
        return _some_rows(
            "drop_missing()", space, Column(cell=cell), lambda values: values[~missing_in(values)]
        )

    return Step("drop_missing", build)


def cast(to: ColumnType) -> Step[Transformation]:
    """Read the cells of a column as another type.

    Parameters
    ----------
    to : {"int", "float", "string"}
        Strings that are no number become missing; floats are rounded to the nearest integer, ties
        to even, and moved to within ``2**53``; bounds are kept, rounded outwards. Truth values
        become 0 and 1 with these bounds, or "false" and "true".

    Returns
    -------
    Step
        From a column to a column; distances stay as they are.
    """
    require_one_of("to", to, _NUMBERS_AND_STRINGS)

    def build(space: Space) -> Transformation:
        column = take_column(space, "cast")
        old = column.cell
        if to == "int" and (old.missing or old.type == "string"):
            fix = "cast('float') >> impute(value)" if old.type == "string" else "impute(value)"
            raise refuse("cast('int')", space, "numbers without missing values", fix)
        cell, function = _cast(old, to)
        domain = replace(column, cell=cell)
        return _rowwise(f"cast({to!r})", space, domain, function, to)

    return Step("cast", build)


def _cast(old: Cell, to: ColumnType) -> tuple[Cell, Callable[[Any], Values]]:
    if old.type == to:
        return old, lambda values: values
    if to == "string":
        return Cell(type="string", missing=old.missing), _written
    if old.type == "bool":
        cell = Cell(type=to, low=0, high=1)
        return cell, lambda values: values.astype(np.int64 if to == "int" else np.float64)
    if to == "float":
        if old.type == "string":
            return Cell(missing=True), lambda strings: np.array(
                [_parsed(x) for x in strings], float
            )
        return replace(old, type="float"), lambda values: values.astype(np.float64)
    low, high = old.low, old.high
    if low is not None and high is not None:
        low, high = max(math.floor(low), -LARGEST_INT), min(math.ceil(high), LARGEST_INT)
    limit = float(LARGEST_INT)
    return Cell(type="int", low=low, high=high), lambda values: np.clip(
        np.rint(values), -limit, limit
    ).astype(np.int64)


def _parsed(text: str | None) -> float:
    try:
        return math.nan if text is None else float(text)
    except ValueError:
        return math.nan


def _written(values: Values) -> Values:
    found = np.empty(len(values), dtype=object)
    if values.dtype.kind == "b":
        found[:] = ["true" if flag else "false" for flag in values.tolist()]
        return found
    absent = missing_in(values)
    found[:] = [None if gone else repr(x) for x, gone in zip(values.tolist(), absent, strict=True)]
    return found


def filter_rows(keep: Callable[[Any], bool]) -> Step[Transformation]:
    """Keep the rows for which a function says so.

    Parameters
    ----------
    keep : callable
        Takes one row, a value or a dict of values by column, looks at nothing else and keeps
        nothing. Tried on a few made-up rows, in two orders.

    Returns
    -------
    Step
        From a column or table to one of unknown number of rows, under rows added or removed; a
        replaced row counts twice. A row on which the function fails is left out: an error would
        tell that there is such a row.
    """

    def kept(row: Any) -> bool:
        return bool(keep(row))

    def build(space: Space) -> Transformation:
        domain = _rows_of(space, "filter_rows")
        check_row_memory("filter_rows", keep, kept, domain)
        chosen = _on_each_row(kept, otherwise=False)

        def function(data: Any) -> Any:
            mask = np.array(chosen(data), dtype=np.bool_)
            if isinstance(data, dict):
                return {name: values[mask] for name, values in data.items()}
            return data[mask]

        return _some_rows(
            f"filter_rows({_called(keep)})",
            space,
            replace(domain, size=None, least=None),
            function,
        )

    return Step("filter_rows", build)


def map_rows(function: Callable[[Any], Any], cell: Cell) -> Step[Transformation]:
    """Apply a function to every row.

    Parameters
    ----------
    function : callable
        Takes one row, a value or a dict of values by column, looks at nothing else and keeps
        nothing. Tried on a few made-up rows, in two orders.
    cell : Cell
        What it gives.

    Returns
    -------
    Step
        From a column or table to a column; distances stay as they are. What lies outside of the
        cell is moved into it by `hushed.spaces.Cell.nearest`, and a row on which the function fails
        becomes missing, or the constant of the cell: an error would tell that there is such a row.
        So try the function on public rows first, where errors show.
    """

    def read(row: Any) -> Any:
        return cell.nearest(function(row))

    def build(space: Space) -> Transformation:
        domain = _rows_of(space, "map_rows")
        check_row_memory("map_rows", function, read, domain)
        made = _on_each_row(read, otherwise=cell.nearest(None))
        target = Column(cell=cell, size=domain.size, least=domain.least)
        name = f"map_rows({_called(function)})"
        return _rowwise(name, space, target, lambda data: target.check(made(data)))

    return Step("map_rows", build)


def _rows_of(space: Space, step: str) -> Column | Table:
    if isinstance(space.domain, Table):
        return take_domain(space, Table, step, "a table", "")
    return take_domain(space, Column, step, "a column or a table", "select(column)")


def _each_row(data: Values | Mapping[str, Values]) -> list[Any]:
    if not isinstance(data, Mapping):
        return list(data.tolist())
    columns = [values.tolist() for values in data.values()]
    return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]


def _on_each_row(
    function: Callable[[Any], Any], *, otherwise: Any
) -> Callable[[Values | Mapping[str, Values]], list[Any]]:
    """Call a user's function on every row; where it fails, a public constant takes its place."""
    swift = guard_step(lambda data: [function(row) for row in _each_row(data)])
    single = guard_step(function)

    def one(row: Any) -> Any:
        try:
            return single(row)
        except BadFunction:
            return otherwise

    def every(data: Values | Mapping[str, Values]) -> list[Any]:
        try:
            return list(swift(data))
        except BadFunction:  # on some row; guarding each by itself takes longer
            return [one(row) for row in _each_row(data)]

    return every


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


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
        return _rowwise(
            f"stack({', '.join(map(repr, names))})",
            space,
            Vectors(dims=len(names), size=table.size, least=table.least),
            lambda data: np.column_stack([data[name] for name in names]).astype(np.float64),
            *names,
        )

    return Step("stack", build)


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
        return _rowwise(f"clip_norm({bound:g}, {norm!r})", space, domain, shrink, bound, norm)

    return Step("clip_norm", build)


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
        return _same_rows("to_change_one()", space, target, lambda rows: rows // 2)

    return Step("to_change_one", build)


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
        return _same_rows("to_symmetric()", space, target, lambda rows: 2 * rows)

    return Step("to_symmetric", build)


def _same_rows(
    name: str, source: Space, target: Space, bound: Callable[[int], int]
) -> Transformation:
    return Transformation(
        name=name,
        source=source,
        target=target,
        function=lambda data: data,
        relation=linear(bound),
        keeps=True,
    )


def _rowwise(
    name: str, source: Space, domain: Domain, function: Callable[[Any], Any], *settings: Any
) -> Transformation:
    """One row out for one row in."""
    return Transformation(
        name=name,
        source=source,
        target=Space(domain=domain, metric=source.metric),
        function=function,
        relation=linear(lambda rows: rows),
        settings=settings,
    )


def _some_rows(
    name: str, source: Space, domain: Domain, function: Callable[[Any], Any]
) -> Transformation:
    """One row out for one row in, or none: of one replaced, one may vanish and one appear."""
    factor = 2 if source.metric.name == "change-one" else 1
    return Transformation(
        name=name,
        source=source,
        target=Space(domain=domain, metric=SYMMETRIC),
        function=function,
        relation=linear(lambda rows: factor * rows),
    )
