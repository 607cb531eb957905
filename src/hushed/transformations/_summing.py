"""From rows to sums: sums, means, variances, sums of vectors.

Sensitivities come from `hushed.transformations._aggregates`; what the arithmetic adds, from
`hushed.transformations._arithmetic`. Integers are added exactly. Floats are added exactly and
rounded once (`exact_sum`), which makes a sum independent of the order of its rows. Where the number
of rows is not public, nothing bounds that rounding, so sums are held within 2**32 times the largest
row: holding is 1-Lipschitz, and no table is refused for its size.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.exact import LARGEST_INT
from hushed._ground.numeric import finite_above
from hushed.spaces import ABSOLUTE, Column, Numbers, Space, Vectors
from hushed.spaces._sizes import check_least, check_size
from hushed.transformations._aggregates import (
    mean_sensitivity,
    sum_sensitivity,
    variance_sensitivity,
    vector_sum_sensitivity,
)
from hushed.transformations._answers import HELD_ROWS, NORM_METRICS, make_answer, take_distance
from hushed.transformations._arithmetic import (
    enlarged,
    exact_sum,
    mean_error,
    norm_margin,
    rounded_sum_error,
    variance_error,
)
from hushed.transformations._chain import Step, Transformation
from hushed.transformations._matching import refuse, take_column, take_domain


@called_as("hs.transformations.sum_of()")
def sum_of() -> Step[Transformation]:
    """Add up the numbers of a column.

    Returns
    -------
    Step
        From a column with bounds and without missing values to one number. Integers are held
        within ``2**53``; floats, where the number of rows is not public, within ``2**32`` times
        the largest row.
    """

    def build(space: Space) -> Transformation:
        column, low, high = _bounded(space, "sum_of")
        metric, size = take_distance(space, "sum_of")

        def bound(rows: int) -> float:
            return sum_sensitivity(rows, low=low, high=high, metric=metric, size=size)

        target = Space(domain=Numbers(type=_numeric(column)), metric=ABSOLUTE)
        if column.cell.type == "int":
            return make_answer("sum_of()", space, target, _integer_sum, bound)
        limit = _limit(max(abs(low), abs(high)), size)
        error = rounded_sum_error(limit)
        return make_answer(
            "sum_of()",
            space,
            target,
            lambda values: np.array(_held(exact_sum(values), limit)),
            lambda rows: enlarged(bound(rows), error) if bound(rows) else 0.0,
        )

    return Step("sum_of", build)


@called_as("hs.transformations.mean(least=10)")
def mean(*, least: int | None = None) -> Step[Transformation]:
    """Average the numbers of a column.

    Parameters
    ----------
    least : int, optional
        Public guess of how many rows there are at least, where their number is private. A table of
        fewer rows is filled up to it with the middle of the bounds: never refused, but biased.

    Returns
    -------
    Step
        From a column with bounds and without missing values to one float within the bounds; the
        mean of no rows is the middle of the bounds. With N rows at least, in the domain or by
        ``least``, d rows added or removed move it by ``d / (N + d)`` of the width of the bounds
        (for d up to N) in place of half of the width.

    Raises
    ------
    ParameterError
        If ``least`` is no number of rows, or the number of rows is public.

    Notes
    -----
    Proof: docs/transformations.md.
    """
    check_size(least, "least")

    def build(space: Space) -> Transformation:
        column, low, high = _bounded(space, "mean")
        metric, size = take_distance(space, "mean")
        check_least(least, size)
        error = mean_error(max(abs(low), abs(high)))
        known = max(least or 0, column.least or 0) or None

        def bound(rows: int) -> float:
            exact = mean_sensitivity(
                rows, low=low, high=high, metric=metric, size=size, least=known
            )
            return enlarged(exact, error) if exact else 0.0

        return make_answer(
            "mean()" if least is None else f"mean(least={least})",
            space,
            Space(domain=Numbers(), metric=ABSOLUTE),
            lambda values: np.array(_compute_mean(values, low, high, least or 1)),
            bound,
            *(() if least is None else (least,)),
        )

    return Step("mean", build)


def _compute_mean(values: NDArray[Any], low: float, high: float, least: int) -> float:
    """Average rows filled up with the middle of the bounds: two roundings, as of a plain mean."""
    rows, total = len(values), _exact_sum(values)
    if rows >= least:
        return min(max(total / rows, low), high)
    filled = (least - rows) * (Fraction(low) + Fraction(high)) / 2
    return min(max(float((Fraction(total) + filled) / least), low), high)


@called_as("hs.transformations.variance()")
def variance() -> Step[Transformation]:
    """Average the squared deviations from the mean (divisor n).

    Returns
    -------
    Step
        From a column with bounds and without missing values to one float; the variance of no
        rows is 0. At most ``w**2 / 4`` for bounds of width w, up to rounding.
    """

    def build(space: Space) -> Transformation:
        column, low, high = _bounded(space, "variance")
        metric, size = take_distance(space, "variance")
        error = variance_error(low=low, high=high)

        def function(values: NDArray[Any]) -> NDArray[np.float64]:
            if not len(values):
                return np.array(0.0)
            deviations = values - _exact_sum(values) / len(values)
            return np.array(exact_sum(deviations * deviations) / len(values))

        def bound(rows: int) -> float:
            exact = variance_sensitivity(
                rows, low=low, high=high, metric=metric, size=size, least=column.least
            )
            return enlarged(exact, error) if exact else 0.0

        target = Space(domain=Numbers(), metric=ABSOLUTE)
        return make_answer("variance()", space, target, function, bound)

    return Step("variance", build)


@called_as("hs.transformations.vector_sum()")
def vector_sum() -> Step[Transformation]:
    """Add up vectors of bounded norm.

    Returns
    -------
    Step
        From vectors with a bound to one vector, in the norm of the bound; each coordinate is
        held as in `sum_of`.
    """

    def build(space: Space) -> Transformation:
        vectors = take_domain(space, Vectors, "vector_sum", "vectors", "stack(columns)")
        norm, largest = vectors.norm, vectors.bound
        if norm is None or largest is None:
            raise refuse("vector_sum", space, "vectors of bounded norm", "clip_norm(bound, norm)")
        metric, size = take_distance(space, "vector_sum")
        # A row whose computed norm is at most the bound may be longer by the error of the norm.
        real = finite_above(Fraction(largest) * (1 + norm_margin(vectors.dims)))
        limit = _limit(real, size)
        spread = {"l1": vectors.dims, "l2": math.isqrt(vectors.dims - 1) + 1, "sup": 1}[norm]
        error = finite_above(spread * Fraction(rounded_sum_error(limit)))

        def bound(rows: int) -> float:
            exact = vector_sum_sensitivity(rows, bound=real, metric=metric, size=size)
            return enlarged(exact, error) if exact else 0.0

        return make_answer(
            "vector_sum()",
            space,
            Space(domain=Numbers(dims=vectors.dims), metric=NORM_METRICS[norm]),
            lambda rows: np.array([_held(exact_sum(column), limit) for column in rows.T]),
            bound,
        )

    return Step("vector_sum", build)


def _bounded(space: Space, step: str) -> tuple[Column, float, float]:
    column = take_column(space, step, bounded=True, complete=True)
    low, high = column.cell.low, column.cell.high
    if low is None or high is None:
        raise refuse(step, space, "a column with bounds", "clip(low, high)")
    return column, low, high


def _numeric(column: Column) -> Literal["float", "int"]:
    return "int" if column.cell.type == "int" else "float"


def _limit(largest: float, size: int | None) -> float:
    """Largest magnitude that a computed sum can have."""
    return finite_above(Fraction(largest) * (HELD_ROWS if size is None else size))


def _held(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)


def _exact_sum(values: NDArray[Any]) -> float | int:
    """Exact for integers, rounded once for floats."""
    return sum(values.tolist()) if values.dtype.kind == "i" else exact_sum(values)


def _integer_sum(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array(min(max(sum(values.tolist()), -LARGEST_INT), LARGEST_INT))
