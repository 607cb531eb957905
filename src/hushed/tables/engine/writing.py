"""Writing a query down in the language of an engine, before it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hushed.errors import ParameterError

__all__ = ["TOO_LONG", "require_written", "unfused"]

TOO_LONG = "it is too long: derive fewer columns in one query"
_ROOM = 10  # selects that may still come around the rows


@contextmanager
def unfused() -> Iterator[None]:
    """Leave subqueries as they are: trying to merge them takes Ibis seconds in a long query."""
    import ibis  # noqa: PLC0415

    before = ibis.options.sql.fuse_selects
    ibis.options.sql.fuse_selects = False
    try:
        yield
    finally:
        ibis.options.sql.fuse_selects = before


def require_written(rows: Any) -> None:
    """Refuse a query that Ibis cannot write down: it runs out of stack over nested selects.

    Parameters
    ----------
    rows : ibis.Table
        The query, before its rows are aggregated. Nothing is read.

    Raises
    ------
    ParameterError
        If it is too long.
    """
    for _ in range(_ROOM):
        rows = rows.limit(2**62)
    written = None
    try:
        with unfused():
            written = rows.get_backend().compile(rows)
    except RecursionError:
        written = None
    if written is None:
        raise ParameterError(f"the query cannot be written down, {TOO_LONG}")
