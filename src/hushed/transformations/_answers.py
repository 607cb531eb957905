"""What steps from rows to an answer have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from numpy.typing import NDArray

from hushed.spaces import L1, L2, ONE_SIDED, SUP, Space
from hushed.transformations._chain import Transformation, linear
from hushed.transformations._matching import refuse

HELD_ROWS = 1 << 32  # as many rows count, where their number is not public
NORM_METRICS = {"l1": L1, "l2": L2, "sup": SUP, "one-sided": ONE_SIDED}


def take_distance(space: Space, step: str) -> tuple[Literal["symmetric", "change-one"], int | None]:
    """Name what distances of rows count, and the public number of rows."""
    name = space.metric.name
    if space.metric.of_rows and space.metric.unit == "row":
        return ("symmetric" if name == "symmetric" else "change-one"), space.domain.size
    raise refuse(step, space, "distances counted in rows", "limit_rows(most)")


def make_answer(
    name: str,
    source: Space,
    target: Space,
    function: Callable[[Any], NDArray[Any]],
    bound: Callable[[int], float],
    *settings: Any,
) -> Transformation:
    """Make a transformation whose answer moves in proportion to the rows that change."""
    return Transformation(
        name=name,
        source=source,
        target=target,
        function=function,
        relation=linear(bound),
        settings=settings,
    )
