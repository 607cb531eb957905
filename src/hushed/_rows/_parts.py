"""Parts of a table: copies of some rows that hold nothing of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushed._ground.types import Integers
from hushed._rows import _containers as containers
from hushed._rows._apart import keep_own_categories, make_frame_anew, narrow_texts
from hushed._rows._owners import check_owner_column
from hushed.errors import BadRows


def check_rows(rows: Any, user: str | int | None) -> None:
    """Refuse a table by its types and columns; no value is looked at."""
    containers.container(rows)
    containers.check_texts(rows)
    if user is not None:
        check_owner_column(rows, user)
    _rehearse(rows)


def _rehearse(rows: Any) -> None:
    """Take a part of no rows: what fails there fails by the types of the columns alone."""
    try:
        take_part(rows, np.empty(0, dtype=np.int64))
    except Exception:  # its text may hold categories, or names of fields
        failed = True
    else:
        failed = False
    if failed:
        raise BadRows(
            "the table holds a column of a type of which no part can be taken: make it another one"
        )


def take_part(rows: Any, places: Integers) -> Any:
    """Copy some rows into a table that holds nothing of the others.

    What cells hold is set apart where the part is pickled.
    """
    part = containers.take(rows, places)
    return _MAKE[containers.container(part)](part)


def _with_own_categories(part: Any) -> Any:
    """Leave in a frame the categories that it holds."""
    for place, dtype in enumerate(part.dtypes):
        if getattr(dtype, "name", "") == "category":
            part.isetitem(place, keep_own_categories(part.iloc[:, place].array))
    return part


_MAKE: dict[containers.Container, Callable[[Any], Any]] = {
    "array": narrow_texts,
    "list": list,
    "pandas": _with_own_categories,
    "polars": make_frame_anew,
}
