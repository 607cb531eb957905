"""From rows to counts: how many rows, histograms, scores of quantiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import list_in_order, require_one_of, require_within
from hushed._ground.exact import LARGEST_INT
from hushed.errors import ParameterError
from hushed.spaces import ABSOLUTE, SUP, Metric, Numbers, Space
from hushed.spaces._cells import keys_of
from hushed.transformations._aggregates import (
    CountNorm,
    count_sensitivity,
    histogram_sensitivity,
    quantile_scores_sensitivity,
)
from hushed.transformations._answers import HELD_ROWS, NORM_METRICS, make_answer, take_distance
from hushed.transformations._chain import Step, Transformation
from hushed.transformations._matching import take_column

_LEVELS = 1 << 20  # quantile levels are multiples of 2**-20, so that scores are exact


@called_as("hs.transformations.count()")
def count() -> Step[Transformation]:
    """Count the rows.

    Returns
    -------
    Step
        From a column, table or vectors to one integer, held within ``2**53``.
    """

    def build(space: Space) -> Transformation:
        metric, size = take_distance(space, "count")
        return make_answer(
            "count()",
            space,
            Space(domain=Numbers(type="int"), metric=ABSOLUTE),
            lambda data: np.array(min(_length(data), LARGEST_INT)),
            lambda rows: count_sensitivity(rows, metric=metric, size=size),
        )

    return Step("count", build)


@called_as("hs.transformations.histogram([0, 10, 20])")
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
        metric, size = take_distance(space, "histogram")
        floats = column.cell.type == "float"
        tally = _binned(_edges(wanted)) if floats else _valued(wanted)
        dims = len(wanted) - 1 if floats else len(wanted)
        return make_answer(
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


@called_as("hs.transformations.quantile_scores([0, 10, 20], 0.5)")
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
        metric, size = take_distance(space, "quantile_scores")

        def function(values: NDArray[Any]) -> NDArray[np.float64]:
            below = [min(int((values < point).sum()), HELD_ROWS) for point in points]
            above = [min(int((values > point).sum()), HELD_ROWS) for point in points]
            return -np.abs((1 - level) * np.array(below) - level * np.array(above))

        return make_answer(
            f"quantile_scores({len(points)} candidates, {level:g})",
            space,
            Space(domain=Numbers(dims=len(points)), metric=SUP),
            function,
            lambda rows: quantile_scores_sensitivity(rows, alpha=level, metric=metric, size=size),
            points,
            alpha,
        )

    return Step("quantile_scores", build)


def _norm_metric(norm: str) -> Metric:
    require_one_of("norm", norm, NORM_METRICS)
    return NORM_METRICS[norm]


def _length(data: Any) -> int:
    return len(next(iter(data.values()))) if isinstance(data, dict) else len(data)
