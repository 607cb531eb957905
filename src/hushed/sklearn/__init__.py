"""Private estimators for scikit-learn: fitted, released with noise, and used as any other."""

from hushed.sklearn._estimator import PrivateEstimator

__all__ = ["PrivateEstimator"]
