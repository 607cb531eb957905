"""Steps that ask a function of the caller's about each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hushed._functions._gate import guard_step
from hushed._functions._row_functions import RowFunction, list_rows
from hushed._functions._silence import silence
from hushed._ground.calls import called_as
from hushed.errors import BadFunction
from hushed.spaces import Cell, Column, Space, Table
from hushed.transformations._chain import Step, Transformation
from hushed.transformations._matching import take_domain
from hushed.transformations._memory import check_row_memory
from hushed.transformations._row_steps import Values, drop_some_rows, map_each_row


@called_as("hs.transformations.filter_rows(lambda cost: cost > 10)")
def filter_rows(keep: Callable[[Any], bool]) -> Step[Transformation]:
    """Keep the rows for which a function says so.

    Parameters
    ----------
    keep : callable
        Takes one row, a value or a dict of values by column, looks at nothing else and keeps
        nothing. Tried on a few made-up rows, in two orders; one that holds the private rows is
        refused when the chain is used.

    Returns
    -------
    Step
        From a column or table to one of unknown number of rows, under rows added or removed; a
        replaced row counts twice. A row on which the function fails is left out: an error would
        tell that there is such a row.
    """
    asked = RowFunction(keep, bool)

    def build(space: Space) -> Transformation:
        domain = _rows_of(space, "filter_rows")
        check_row_memory("filter_rows", asked, domain)
        chosen = _on_each_row(asked, otherwise=False)

        def function(data: Any) -> Any:
            mask = np.array(chosen(data), dtype=np.bool_)
            if isinstance(data, dict):
                return {name: values[mask] for name, values in data.items()}
            return data[mask]

        return drop_some_rows(
            f"filter_rows({_called(keep)})",
            space,
            replace(domain, size=None, least=None),
            function,
        )

    return Step("filter_rows", build)


@called_as("hs.transformations.map_rows(abs, hs.spaces.Cell(low=0, high=100))")
def map_rows(function: Callable[[Any], Any], cell: Cell) -> Step[Transformation]:
    """Apply a function to every row.

    Parameters
    ----------
    function : callable
        Takes one row, a value or a dict of values by column, looks at nothing else and keeps
        nothing. Tried on a few made-up rows, in two orders; one that holds the private rows is
        refused when the chain is used.
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
    asked = RowFunction(function, cell.nearest)

    def build(space: Space) -> Transformation:
        domain = _rows_of(space, "map_rows")
        check_row_memory("map_rows", asked, domain)
        made = _on_each_row(asked, otherwise=cell.nearest(None))
        target = Column(cell=cell, size=domain.size, least=domain.least)
        name = f"map_rows({_called(function)})"
        return map_each_row(name, space, target, lambda data: target.check(made(data)))

    return Step("map_rows", build)


def _rows_of(space: Space, step: str) -> Column | Table:
    if isinstance(space.domain, Table):
        return take_domain(space, Table, step, "a table", "")
    return take_domain(space, Column, step, "a column or a table", "select(column)")


def _on_each_row(
    asked: RowFunction, *, otherwise: Any
) -> Callable[[Values | Mapping[str, Values]], list[Any]]:
    """Call a user's function on every row; where it fails, a public constant takes its place."""
    swift, single = guard_step(asked.ask_each), guard_step(asked)

    def one(row: Any) -> Any:
        try:
            return single(row)
        except BadFunction:
            return otherwise

    def every(data: Values | Mapping[str, Values]) -> list[Any]:
        try:
            return list(swift(data))
        except BadFunction:  # on some row; guarding each by itself takes longer
            with silence():  # one for all: what they leave is collected once
                return [one(row) for row in list_rows(data)]

    return every


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
