"""Stable functions of rows: how far an answer can move when rows are added, removed or replaced."""

from hushed.transformations.aggregates import (
    RowMetric,
    count_sensitivity,
    histogram_sensitivity,
    mean_sensitivity,
    quantile_scores_sensitivity,
    sum_sensitivity,
    variance_sensitivity,
    vector_sum_sensitivity,
)
from hushed.transformations.arithmetic import (
    enlarged,
    mean_error,
    rounded_sum_error,
    summation_error,
    variance_error,
)

__all__ = [
    "RowMetric",
    "count_sensitivity",
    "enlarged",
    "histogram_sensitivity",
    "mean_error",
    "mean_sensitivity",
    "quantile_scores_sensitivity",
    "rounded_sum_error",
    "sum_sensitivity",
    "summation_error",
    "variance_error",
    "variance_sensitivity",
    "vector_sum_sensitivity",
]
