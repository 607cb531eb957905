"""Public sources of rows: ranges, distributions, public tables, simulators."""

from hushed.populations._fitted import Fitted, fitted
from hushed.populations._laws import Exponential, Normal, Uniform
from hushed.populations._mixtures import Contaminated
from hushed.populations._sources import (
    OWN,
    Population,
    Promise,
    PublicTable,
    Simulator,
    by_user,
    description,
    from_description,
    keeps_its_range,
    support,
)
from hushed.populations._users import Users

__all__ = [
    "OWN",
    "Contaminated",
    "Exponential",
    "Fitted",
    "Normal",
    "Population",
    "Promise",
    "PublicTable",
    "Simulator",
    "Uniform",
    "Users",
    "by_user",
    "description",
    "fitted",
    "from_description",
    "keeps_its_range",
    "support",
]
