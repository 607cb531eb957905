"""Private estimators for scikit-learn: fitted, released with noise, and used as any other."""

from hushed.sklearn._estimator import PrivateEstimator
from hushed.sklearn._fit_errors import FitErrors

__all__ = ["FitErrors", "PrivateEstimator"]
