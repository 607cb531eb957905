"""Stable functions of rows, how they chain, and how far an answer moves when rows change."""

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
from hushed.transformations.answers import (
    count,
    histogram,
    mean,
    quantile_scores,
    sum_of,
    variance,
    vector_sum,
)
from hushed.transformations.arithmetic import (
    enlarged,
    mean_error,
    norm_margin,
    rounded_sum_error,
    summation_error,
    variance_error,
)
from hushed.transformations.chain import Step, Transformation
from hushed.transformations.custom import declared, from_sensitivity
from hushed.transformations.grouping import each, group_by
from hushed.transformations.resizing import limit_rows, resize
from hushed.transformations.rowwise import (
    cast,
    clip,
    clip_norm,
    drop_missing,
    filter_rows,
    impute,
    map_rows,
    select,
    stack,
    to_change_one,
    to_symmetric,
)

__all__ = [
    "RowMetric",
    "Step",
    "Transformation",
    "cast",
    "clip",
    "clip_norm",
    "count",
    "count_sensitivity",
    "declared",
    "drop_missing",
    "each",
    "enlarged",
    "filter_rows",
    "from_sensitivity",
    "group_by",
    "histogram",
    "histogram_sensitivity",
    "impute",
    "limit_rows",
    "map_rows",
    "mean",
    "mean_error",
    "mean_sensitivity",
    "norm_margin",
    "quantile_scores",
    "quantile_scores_sensitivity",
    "resize",
    "rounded_sum_error",
    "select",
    "stack",
    "sum_of",
    "sum_sensitivity",
    "summation_error",
    "to_change_one",
    "to_symmetric",
    "variance",
    "variance_error",
    "variance_sensitivity",
    "vector_sum",
    "vector_sum_sensitivity",
]
