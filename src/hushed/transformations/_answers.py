"""Transformations from rows to answers: counts, sums, means, variances, histograms, scores.

Sensitivities come from `hushed.transformations._aggregates`; what the arithmetic adds, from
`hushed.transformations._arithmetic`. Integers are added exactly. Floats are added exactly and
rounded once (`exact_sum`), which makes a sum independent of the order of its rows. Where the number
of rows is not public, nothing bounds that rounding, so sums are held within 2**32 times the largest
row: holding is 1-Lipschitz, and no table is refused for its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._checks import list_in_order, require_one_of, require_within
from hushed._numeric import finite_above
from hushed.errors import ParameterError
from hushed.spaces import (
    ABSOLUTE,
    L1,
    L2,
    ONE_SIDED,
    SUP,
    Column,
    Metric,
    Numbers,
    Space,
    Vectors,
)
from hushed.spaces._cells import LARGEST_INT, keys_of
from hushed.spaces._sizes import check_least, check_size
from hushed.transformations._aggregates import (
    count_sensitivity,
    histogram_sensitivity,
    mean_sensitivity,
    quantile_scores_sensitivity,
    sum_sensitivity,
    variance_sensitivity,
    vector_sum_sensitivity,
)
from hushed.transformations._arithmetic import (
    enlarged,
    exact_sum,
    mean_error,
    norm_margin,
    rounded_sum_error,
    variance_error,
)
from hushed.transformations._chain import Step, Transformation, linear
from hushed.transformations._matching import refuse, take_column, take_domain

_HELD_ROWS = 1 << 32
_LEVELS = 1 << 20  # quantile levels are multiples of 2**-20, so that scores are exact
_NORMS = {"l1": L1, "l2": L2, "sup": SUP}
_COUNT_NORMS = _NORMS | {"one-sided": ONE_SIDED}

CountNorm = Literal["l1", "l2", "sup", "one-sided"]


def count() -> Step[Transformation]:
    """Count the rows.

    Returns
    -------
    Step
        From a column, table or vectors to one integer, held within ``2**53``.
    """

    def build(space: Space) -> Transformation:
        metric, size = _counted(space, "count")
        return _answer(
            "count()",
            space,
            Space(domain=Numbers(type="int"), metric=ABSOLUTE),
            lambda data: np.array(min(_length(data), LARGEST_INT)),
            lambda rows: count_sensitivity(rows, metric=metric, size=size),
        )

    return Step("count", build)


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
        metric, size = _counted(space, "sum_of")

        def bound(rows: int) -> float:
            return sum_sensitivity(rows, low=low, high=high, metric=metric, size=size)

        target = Space(domain=Numbers(type=_numeric(column)), metric=ABSOLUTE)
        if column.cell.type == "int":
            return _answer("sum_of()", space, target, _integer_sum, bound)
        limit = _limit(max(abs(low), abs(high)), size)
        error = rounded_sum_error(limit)
        return _answer(
            "sum_of()",
            space,
            target,
            lambda values: np.array(_held(exact_sum(values), limit)),
            lambda rows: enlarged(bound(rows), error) if bound(rows) else 0.0,
        )

    return Step("sum_of", build)


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
        metric, size = _counted(space, "mean")
        check_least(least, size)
        error = mean_error(max(abs(low), abs(high)))
        known = max(least or 0, column.least or 0) or None

        def bound(rows: int) -> float:
            exact = mean_sensitivity(
                rows, low=low, high=high, metric=metric, size=size, least=known
            )
            return enlarged(exact, error) if exact else 0.0

        return _answer(
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
        metric, size = _counted(space, "variance")
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
        return _answer("variance()", space, target, function, bound)

    return Step("variance", build)


def histogram(bins: Iterable[Any], *, norm: CountNorm = "l1") -> Step[Transformation]:
    """Count the rows in public bins.

    Parameters
    ----------
    bins : iterable
        For a column of floats the edges, ascending: bin i holds ``edge[i] <= x < edge[i + 1]``.
        For strings and integers the values themselves. Rows in no bin are not counted.
    norm : {"l1", "l2", "sup", "one-sided"}, default "l1"
        Norm in which the movement of the counts is bounded. ``"one-sided"`` (largest rise plus
        largest fall) is what `hushed.measurements.exponential` pays once, and ``"sup"`` twice.

    Returns
    -------
    Step
        From a column to a vector of integers.

    Raises
    ------
    ParameterError
        If the bins are not distinct, edges not ascending or fewer than two, or a norm unknown.
    """
    wanted = keys_of(bins)
    metric_out = _norm_metric(norm)

    def build(space: Space) -> Transformation:
        column = take_column(space, "histogram")
        metric, size = _counted(space, "histogram")
        floats = column.cell.type == "float"
        tally = _binned(_edges(wanted)) if floats else _valued(wanted)
        dims = len(wanted) - 1 if floats else len(wanted)
        return _answer(
            f"histogram({dims} bins)",
            space,
            Space(domain=Numbers(type="int", dims=dims), metric=metric_out),
            tally,
            lambda rows: histogram_sensitivity(rows, norm=norm, metric=metric, size=size),
            wanted,
            norm,
        )

    return Step("histogram", build)


def _edges(wanted: Sequence[Any]) -> NDArray[np.float64]:
    edges = np.array(wanted, dtype=np.float64)
    if len(edges) < 2 or np.isnan(edges).any() or (np.diff(edges) <= 0).any():
        raise ParameterError(f"edges must be two or more ascending numbers, got {wanted}")
    return edges


def _binned(edges: NDArray[np.float64]) -> Callable[[Any], NDArray[np.int64]]:
    """Count by comparing with the edges; missing values come after all of them."""

    def tally(values: NDArray[np.float64]) -> NDArray[np.int64]:
        places = np.searchsorted(edges, values, side="right")
        return np.bincount(places, minlength=len(edges) + 1)[1:-1].astype(np.int64)

    return tally


def _valued(wanted: Sequence[Any]) -> Callable[[Any], NDArray[np.int64]]:
    return lambda values: np.array(
        [np.count_nonzero(values == each) for each in wanted], dtype=np.int64
    )


def quantile_scores(candidates: Iterable[float], alpha: float) -> Step[Transformation]:
    """Score public candidates for a quantile.

    Parameters
    ----------
    candidates : iterable of float
        The candidates; distinct.
    alpha : float
        Level of the quantile, in [0, 1]; rounded to a multiple of ``2**-20``.

    Returns
    -------
    Step
        From a column of numbers to a vector of scores in the sup norm:
        ``-|(1 - alpha) #(x < c) - alpha #(x > c)|``, exact, with counts held within ``2**32``.
        Missing values count on neither side.

    Raises
    ------
    ParameterError
        If a candidate is NaN, there are none, or alpha leaves its range.
    """
    require_within("alpha", alpha, 0, 1)
    points = keys_of(float(point) for point in list_in_order(candidates))
    level = round(alpha * _LEVELS) / _LEVELS

    def build(space: Space) -> Transformation:
        take_column(space, "quantile_scores", numeric=True)
        metric, size = _counted(space, "quantile_scores")

        def function(values: NDArray[Any]) -> NDArray[np.float64]:
            below = [min(int((values < point).sum()), _HELD_ROWS) for point in points]
            above = [min(int((values > point).sum()), _HELD_ROWS) for point in points]
            return -np.abs((1 - level) * np.array(below) - level * np.array(above))

        return _answer(
            f"quantile_scores({len(points)} candidates, {level:g})",
            space,
            Space(domain=Numbers(dims=len(points)), metric=SUP),
            function,
            lambda rows: quantile_scores_sensitivity(rows, alpha=level, metric=metric, size=size),
            points,
            alpha,
        )

    return Step("quantile_scores", build)


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
        metric, size = _counted(space, "vector_sum")
        # A row whose computed norm is at most the bound may be longer by the error of the norm.
        real = finite_above(Fraction(largest) * (1 + norm_margin(vectors.dims)))
        limit = _limit(real, size)
        spread = {"l1": vectors.dims, "l2": math.isqrt(vectors.dims - 1) + 1, "sup": 1}[norm]
        error = finite_above(spread * Fraction(rounded_sum_error(limit)))

        def bound(rows: int) -> float:
            exact = vector_sum_sensitivity(rows, bound=real, metric=metric, size=size)
            return enlarged(exact, error) if exact else 0.0

        return _answer(
            "vector_sum()",
            space,
            Space(domain=Numbers(dims=vectors.dims), metric=_NORMS[norm]),
            lambda rows: np.array([_held(exact_sum(column), limit) for column in rows.T]),
            bound,
        )

    return Step("vector_sum", build)


def _norm_metric(norm: str) -> Metric:
    require_one_of("norm", norm, _COUNT_NORMS)
    return _COUNT_NORMS[norm]


def _counted(space: Space, step: str) -> tuple[Literal["symmetric", "change-one"], int | None]:
    """Name what distances of rows count, and the public number of rows."""
    name = space.metric.name
    if space.metric.of_rows and space.metric.unit == "row":
        return ("symmetric" if name == "symmetric" else "change-one"), space.domain.size
    raise refuse(step, space, "distances counted in rows", "limit_rows(most)")


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
    return finite_above(Fraction(largest) * (_HELD_ROWS if size is None else size))


def _held(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)


def _exact_sum(values: NDArray[Any]) -> float | int:
    """Exact for integers, rounded once for floats."""
    return sum(values.tolist()) if values.dtype.kind == "i" else exact_sum(values)


def _integer_sum(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array(min(max(sum(values.tolist()), -LARGEST_INT), LARGEST_INT))


def _length(data: Any) -> int:
    return len(next(iter(data.values()))) if isinstance(data, dict) else len(data)


def _answer(
    name: str,
    source: Space,
    target: Space,
    function: Callable[[Any], NDArray[Any]],
    bound: Callable[[int], float],
    *settings: Any,
) -> Transformation:
    return Transformation(
        name=name,
        source=source,
        target=target,
        function=function,
        relation=linear(bound),
        settings=settings,
    )
