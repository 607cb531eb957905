"""Measurements: the random end of a chain, and what it loses."""

from hushed.measurements._combining import compose, parallel
from hushed.measurements._exporting import to_opendp
from hushed.measurements._importing import from_opendp
from hushed.measurements._noisy import exponential, gaussian, laplace, noisy
from hushed.measurements._record import Measurement
from hushed.measurements._search import chain_sensitivity, largest_distance, smallest_scale
from hushed.measurements._statistics import inverse_sensitivity, smooth

__all__ = [
    "Measurement",
    "chain_sensitivity",
    "compose",
    "exponential",
    "from_opendp",
    "gaussian",
    "inverse_sensitivity",
    "laplace",
    "largest_distance",
    "noisy",
    "parallel",
    "smallest_scale",
    "smooth",
    "to_opendp",
]
