"""Many releases on the same rows: what they promise together, and by which theorem."""

from hushed.accounting._advantage import epsilon_for_advantage
from hushed.accounting._joint import Composition, Method, compose
from hushed.accounting._parallel import parallel
from hushed.accounting._promises import Promises, Releasable, joined
from hushed.accounting._theorems import (
    advanced_epsilon,
    at_risk_epsilon,
    optimal_bound_epsilon,
    optimal_epsilon,
)

__all__ = [
    "Composition",
    "Method",
    "Promises",
    "Releasable",
    "advanced_epsilon",
    "at_risk_epsilon",
    "compose",
    "epsilon_for_advantage",
    "joined",
    "optimal_bound_epsilon",
    "optimal_epsilon",
    "parallel",
]
