"""Public sources of rows: ranges, distributions, public tables, simulators."""

from hushed.populations.sources import (
    Exponential,
    Normal,
    Population,
    Promise,
    PublicTable,
    Simulator,
    Uniform,
    description,
    from_description,
    overlaps,
    support,
)

__all__ = [
    "Exponential",
    "Normal",
    "Population",
    "Promise",
    "PublicTable",
    "Simulator",
    "Uniform",
    "description",
    "from_description",
    "overlaps",
    "support",
]
