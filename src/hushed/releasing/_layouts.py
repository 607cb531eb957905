"""What is public of the rows of a chain: number, names, dimensions and types of its columns.

A chain finds out what does not fit as it runs, which is after the charge.
"""

from __future__ import annotations

from typing import Any

from hushed._rows._containers import layout
from hushed.errors import BadRows
from hushed.spaces import Cell, Column, Domain, Table, Vectors
from hushed.spaces._domains import refuse_columns
from hushed.spaces._sizes import refuse_size
from hushed.statistics._values import check_numbers
from hushed.transformations import Transformation


def refuse_layout(f: object, rows: Any) -> None:
    """Refuse rows that f, if it is a chain, would refuse whatever lies in their cells."""
    if isinstance(f, Transformation):
        refuse_size(len(rows), f.source.domain.size)
        _refuse_columns(f.source.domain, rows)


def refuse_blocks(f: object, rows: Any, blocks: int, *, even: bool) -> None:
    """Refuse rows whose blocks a chain would refuse, each of them, so that none of them answers."""
    if not isinstance(f, Transformation):
        return
    domain = f.source.domain
    size, least = domain.size, getattr(domain, "least", None) or 0
    if size is not None and not (even and len(rows) == size * blocks):
        raise BadRows(
            f"the chain takes tables of {size} rows, and not all blocks have as many: declare it "
            "without size="
        )
    if even and len(rows) // blocks < least:
        raise BadRows(
            f"the chain takes tables of {least} rows or more, and blocks have "
            f"{len(rows) // blocks}: declare a smaller least=, or ask for fewer blocks"
        )
    _refuse_columns(domain, rows)


def _refuse_columns(domain: Domain, rows: Any) -> None:
    if isinstance(domain, Table):
        refuse_columns(domain, rows)
        for name, cell in domain.columns:
            _refuse_column(f"column {name!r}", cell, rows[name])
    elif isinstance(domain, Column):
        _refuse_column(f"the chain takes {domain}", domain.cell, rows)
    elif isinstance(domain, Vectors) and getattr(rows, "shape", (0, domain.dims))[1:] != (
        domain.dims,
    ):
        raise BadRows(f"the chain takes {domain}, got {layout(rows)}")


def _refuse_column(what: str, cell: Cell, column: Any) -> None:
    """Refuse more than one column, and one that can hold no numbers where the cells are such."""
    if isinstance(column, list):  # what it holds is private
        return
    if len(column.shape) != 1:
        raise BadRows(
            f"{what}: one is needed, got {layout(column)}; give it alone, as an array of one "
            "dimension"
        )
    if cell.type != "string":
        try:
            check_numbers(column)
        except BadRows as error:
            raise BadRows(f"{what}: {error}") from None
