"""Money on top of risk: what a level costs, and which level fits an error and a budget."""

from hushed.cost._model import Basis, CostModel, Optimum, Range, epsilon_for_error, error_of
from hushed.cost._need import Need
from hushed.cost._plan import Choice, Plan, plan

__all__ = [
    "Basis",
    "Choice",
    "CostModel",
    "Need",
    "Optimum",
    "Plan",
    "Range",
    "epsilon_for_error",
    "error_of",
    "plan",
]
