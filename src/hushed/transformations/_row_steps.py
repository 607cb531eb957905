"""Steps of which each row goes its own way, and how they change distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hushed.spaces import SYMMETRIC, Domain, Space
from hushed.transformations._chain import Transformation, linear

Values = NDArray[Any]


def keep_rows(
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


def map_each_row(
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


def drop_some_rows(
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
