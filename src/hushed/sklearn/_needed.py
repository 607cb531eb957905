"""What this package takes from scikit-learn, or a word on how to install it."""

from __future__ import annotations

from hushed.errors import MissingExtra

try:
    from sklearn import (
        base,
        cluster,
        decomposition,
        linear_model,
        naive_bayes,
        preprocessing,
        svm,
    )
    from sklearn.exceptions import DataConversionWarning
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:  # pragma: no cover  (an environment without it is tested by `make package`)
    raise MissingExtra("a private estimator", "sklearn") from None

__all__ = [
    "DataConversionWarning",
    "FrozenEstimator",
    "available_if",
    "base",
    "check_is_fitted",
    "cluster",
    "decomposition",
    "get_tags",
    "linear_model",
    "naive_bayes",
    "preprocessing",
    "svm",
    "validate_data",
]
