"""Stable functions of rows, how they chain, and how far an answer moves when rows change."""

from hushed.transformations._arithmetic import enlarged, summation_error
from hushed.transformations._casts import cast
from hushed.transformations._chain import Step, Transformation
from hushed.transformations._counting import count, histogram, quantile_scores
from hushed.transformations._custom import declared, from_sensitivity
from hushed.transformations._grouping import each, group_by
from hushed.transformations._people import count_users
from hushed.transformations._resizing import limit_rows, resize
from hushed.transformations._row_functions import filter_rows, map_rows
from hushed.transformations._rowwise import (
    clip,
    clip_norm,
    drop_missing,
    impute,
    select,
    stack,
    to_change_one,
    to_symmetric,
)
from hushed.transformations._summing import mean, sum_of, variance, vector_sum

__all__ = [
    "Step",
    "Transformation",
    "cast",
    "clip",
    "clip_norm",
    "count",
    "count_users",
    "declared",
    "drop_missing",
    "each",
    "enlarged",
    "filter_rows",
    "from_sensitivity",
    "group_by",
    "histogram",
    "impute",
    "limit_rows",
    "map_rows",
    "mean",
    "quantile_scores",
    "resize",
    "select",
    "stack",
    "sum_of",
    "summation_error",
    "to_change_one",
    "to_symmetric",
    "variance",
    "vector_sum",
]
