"""Cells read as another type."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.exact import LARGEST_INT
from hushed._ground.types import ColumnType
from hushed.spaces import Cell, Space
from hushed.spaces._cells import CELL_TYPES, missing_in
from hushed.transformations._chain import Step, Transformation
from hushed.transformations._matching import refuse, take_column
from hushed.transformations._row_steps import Values, map_each_row

# What is true of a number or a string is for a function to say: map_rows(..., Cell(type="bool")).
_NUMBERS_AND_STRINGS = tuple(each for each in CELL_TYPES if each != "bool")


@called_as('hs.transformations.cast("float")')
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
        return map_each_row(f"cast({to!r})", space, domain, function, to)

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
