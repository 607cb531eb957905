"""Estimators of delta from samples: plug-in, minimax, and the default that follows the better."""

from hushed.divergences._approximation import BestPolynomial, best_absolute_value
from hushed.divergences._counts import count_outcomes
from hushed.divergences._estimate import DeltaEstimate, estimate_delta

__all__ = [
    "BestPolynomial",
    "DeltaEstimate",
    "best_absolute_value",
    "count_outcomes",
    "estimate_delta",
]
