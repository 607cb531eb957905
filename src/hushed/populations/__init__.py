"""Public sources of rows: ranges, distributions, public tables, simulators."""

from hushed.populations._laws import Exponential, Normal, Uniform
from hushed.populations._sources import (
    OWN,
    Population,
    Promise,
    PublicTable,
    Simulator,
    description,
    from_description,
    support,
)

__all__ = [
    "OWN",
    "Exponential",
    "Normal",
    "Population",
    "Promise",
    "PublicTable",
    "Simulator",
    "Uniform",
    "description",
    "from_description",
    "support",
]
