"""Maps read backwards: the largest distance or the smallest scale for a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hushed._ground.calls import called_as
from hushed._ground.numeric import first_true_near, last_whole
from hushed.errors import NotFeasible, ParameterError
from hushed.guarantee import Guarantee
from hushed.measurements._losses import epsilon_at
from hushed.measurements._record import Measurement
from hushed.sensitivity import Sensitivity, proven_sensitivity
from hushed.spaces import Distance, Norm, Space
from hushed.transformations._chain import (
    Transformation,
    describe_chain,
    distance_in,
    least_distance,
    neighbours_at,
)

_MOST_ROWS = 1 << 40
_IMPLIED: dict[str, tuple[Norm, ...]] = {
    "absolute": ("l1", "l2", "sup"),
    "l1": ("l1", "l2", "sup", "range"),
    "one-sided": ("range", "sup"),
    "l2": ("l2", "sup"),
    "sup": ("sup",),
}


@called_as("hs.measurements.largest_distance(measurement, hs.Guarantee(epsilon=1.0))")
def largest_distance(chain: Transformation | Measurement, target: float | Guarantee) -> int:
    """Most rows by which two tables may differ so that a target is kept.

    Parameters
    ----------
    chain : Transformation or Measurement
        From rows.
    target : float or Guarantee
        Largest distance of the outputs, or largest loss in the measure of the chain (epsilon or
        rho); or an (epsilon, delta) promise, whose gamma limits the gamma of the chain.

    Returns
    -------
    int
        The largest such distance up to ``2**40``, rounded down; 0 if one row is too many. Even
        between tables of a public size under rows added or removed, which differ by no odd number.

    Raises
    ------
    ParameterError
        If the chain does not start at rows, or the target is none for it.
    """
    if not chain.source.metric.of_rows:
        raise ParameterError(f"{chain.name} does not start at rows")

    found = last_whole(lambda rows: _within(chain, rows, target), most=_MOST_ROWS)
    return found - found % least_distance(chain.source)


@called_as("hs.measurements.smallest_scale(lambda scale: chain >> laplace(scale), 1, target)")
def smallest_scale(
    build: Callable[[float], Measurement], d_in: int, target: float | Guarantee
) -> float:
    """Smallest noise that keeps a loss within a target.

    Parameters
    ----------
    build : callable
        Makes the measurement of a given scale, such as ``lambda b: chain >> laplace(b)``.
    d_in : int
        How far neighbours are apart.
    target : float or Guarantee
        Largest loss in the measure of the chain, or an (epsilon, delta) promise.

    Returns
    -------
    float
        A scale that keeps the target; one smaller by a relative ``2**-50`` does not.

    Raises
    ------
    NotFeasible
        If no scale up to ``2**970`` does.
    ParameterError
        If no two tables are that far apart: no noise at all would keep what is said of none.
    """
    if (space := build(1.0).source).metric.of_rows:
        neighbours_at(space, d_in)
    found = first_true_near(
        lambda scale: _within(build(scale), d_in, target),
        1.0,
        least=2.0**-900,
        most=2.0**970,
        tolerance=2.0**-50,
    )
    if math.isinf(found):
        raise NotFeasible("no amount of noise keeps the target at this distance")
    return found


def _within(chain: Transformation | Measurement, rows: int, target: float | Guarantee) -> bool:
    if isinstance(chain, Measurement) and isinstance(target, Guarantee):
        distance = distance_in(chain.source, rows)
        if chain.relation(distance).gamma > target.gamma:
            return False
        return epsilon_at(chain.known(distance), target.delta) <= target.epsilon
    loss = chain.map(rows)
    reached = loss.value if isinstance(loss, Distance) else loss
    if isinstance(target, Guarantee) or not isinstance(reached, int | float):
        raise ParameterError(
            "the target of a transformation is a distance, that of a measurement under pure or "
            f"zcdp a number, and otherwise a Guarantee; got {type(target).__name__}"
        )
    return reached <= target


@called_as("hs.measurements.chain_sensitivity(chain)")
def chain_sensitivity(
    chain: Transformation, d_in: int = 1, *, norm: Norm | None = None
) -> Sensitivity:
    """State the sensitivity of a chain, for the mechanisms and for `hushed.release`.

    Parameters
    ----------
    chain : Transformation
        From rows to an answer.
    d_in : int, default 1
        How far neighbours are apart under the source metric: rows of one person.
    norm : {"l1", "l2", "sup", "range"}, optional
        Norm of the movement; by default the one of the chain (l1 for one number, range where the
        chain bounds the one-sided distance). The l1 norm bounds the others, l2 bounds sup, and the
        one-sided distance bounds range and sup.

    Returns
    -------
    Sensitivity
        Proven, with the steps of the chain as its argument. Nothing else is released with it.

    Raises
    ------
    ParameterError
        If the chain does not lead from rows to an answer, carries a sampled sensitivity (use a
        measurement, or that sensitivity itself), or does not bound this norm.
    """
    space = chain.source
    implied = _IMPLIED.get(chain.target.metric.name)
    if not space.metric.of_rows or implied is None:
        raise ParameterError(f"{chain.name} does not lead from rows to an answer")
    neighbours = neighbours_at(space, d_in)
    wanted = implied[0] if norm is None else norm
    if wanted not in implied:
        raise ParameterError(f"the chain bounds {' and '.join(implied)}, not {wanted!r}")
    moved = chain.map(d_in)
    if moved.terms:
        raise ParameterError(
            "the chain carries a sampled sensitivity: give that to the mechanism, or end the "
            "chain with a measurement"
        )
    if not math.isfinite(moved.value):
        raise ParameterError(f"{chain.name} can move without bound")
    known = proven_sensitivity(
        moved.value,
        wanted,
        neighbours=neighbours,
        unit=space.metric.unit,
        argument=(
            f"{describe_chain(chain)}, at a distance of {d_in}; computed from what each step says "
            f"of itself, arithmetic included{_describe_pairs(space)}"
        ),
    )
    return replace(known, chain=describe_chain(chain))


def _describe_pairs(space: Space) -> str:
    """Say which pairs of tables a least number of rows leaves out of the promise."""
    least = getattr(space.domain, "least", None)
    if least is None:
        return ""
    return (
        f"; of pairs of tables that both have at least {least} rows alone: in a table of just "
        f"{least} nobody can be missing"
    )
