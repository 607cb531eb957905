"""Which engine is meant by `workers`: the one place that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count
from hushed._ground.printing import as_given
from hushed.engines._dask import Dask
from hushed.engines._protocol import Engine
from hushed.engines._ray import Ray
from hushed.engines._spark import Spark
from hushed.errors import ParameterError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

Workers = int | str | Engine | Any | None
"""A number of processes, an address, a client of a cluster, an `Engine`, or None."""


@called_as("hs.engines.engine_of(2)")
def engine_of(workers: Workers) -> int | Engine | None:
    """Read what a caller gave as ``workers``.

    Parameters
    ----------
    workers : int, str, Engine, distributed.Client, SparkSession or None
        A number of processes of this machine; ``"dask://HOST:PORT"``, the scheduler of a Dask
        cluster; a client of one; ``"ray"`` or ``"ray://HOST:PORT"``; ``"spark"`` or a session of
        Spark; an engine; or None.

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
    cluster = _cluster_at(workers) if isinstance(workers, str) else _cluster_of(workers)
    if cluster is not None:
        return cluster
    raise ParameterError(
        "workers must be an integer of 1 or more, 'dask://HOST:PORT', 'ray', 'ray://HOST:PORT', "
        "'spark', a distributed.Client, a SparkSession or an engine of hushed.engines, got "
        + (as_given(workers) if isinstance(workers, str) else type(workers).__name__),
        parameter="workers",
    )


def _cluster_at(address: str) -> Engine | None:
    """Engine that an address means, if any."""
    if address.startswith("dask://"):
        return Dask(address)
    if address == "ray" or address.startswith("ray://"):
        return Ray(address)
    return Spark() if address == "spark" else None


def _cluster_of(client: Any) -> Engine | None:
    """Engine that a client or a session of a cluster means, if any."""
    if _is_a(client, "distributed", "Client"):
        return Dask(client)
    return Spark(client) if _is_a(client, "pyspark", "SparkSession") else None


def _is_a(thing: Any, package: str, name: str) -> bool:
    """Recognise a class by its name: its package is not imported before it is asked for."""
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == package
        for kind in type(thing).__mro__
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


def opens_engine(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Open what is meant by ``workers`` before a function runs, once for all that it does.

    Parameters
    ----------
    function : callable
        A function with an argument ``workers``, by name.

    Returns
    -------
    callable
        The same function, which is given an engine, a number or None.
    """

    @wraps(function)
    def opened(*args: _Given.args, **named: _Given.kwargs) -> _Result:
        if named.get("workers") is None:
            return function(*args, **named)
        with open_engine(named["workers"]) as engine:
            named["workers"] = engine
            return function(*args, **named)

    return opened
