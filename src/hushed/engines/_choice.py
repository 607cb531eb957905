"""Which engine is meant by `workers`: the one place that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hushed._checks import require_count
from hushed.engines._protocol import Engine
from hushed.errors import ParameterError

Workers = Any
"""A number of processes, an address, a client of a cluster, an `Engine`, or None."""


def engine_of(workers: Workers) -> int | Engine | None:
    """Read what a caller gave as ``workers``.

    Parameters
    ----------
    workers : int, str, Engine, distributed.Client or None
        A number of processes of this machine; ``"dask://HOST:PORT"``, the scheduler of a Dask
        cluster; a client of one; an engine; or None.

    Returns
    -------
    int, Engine or None
        An engine, or a number of processes of this machine, or None for what joblib was told.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if workers is None or isinstance(workers, bool | int | float):
        return None if workers is None else require_count("workers", workers)
    if isinstance(workers, Engine):
        return workers
    if hasattr(workers, "__index__"):
        return require_count("workers", workers)
    raise ParameterError(
        "workers must be an integer of 1 or more, or an engine, got "
        + (repr(workers) if isinstance(workers, str) else type(workers).__name__),
        parameter="workers",
    )


@contextmanager
def open_engine(workers: Workers) -> Iterator[int | Engine | None]:
    """Open what is meant by ``workers``, and close what was opened here.

    Parameters
    ----------
    workers : int, str, Engine, distributed.Client or None
        As for `engine_of`.

    Yields
    ------
    int, Engine or None
        What `engine_of` makes of it.
    """
    engine = engine_of(workers)
    try:
        yield engine
    finally:
        close = getattr(engine, "close", None)
        if close is not None and engine is not workers:
            close()
