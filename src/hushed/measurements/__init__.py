"""Measurements: the random end of a chain, and what it loses."""

from hushed.measurements.combining import compose, parallel
from hushed.measurements.exporting import to_opendp
from hushed.measurements.importing import from_opendp
from hushed.measurements.losses import CurveLoss
from hushed.measurements.noisy import exponential, gaussian, laplace
from hushed.measurements.record import Measurement
from hushed.measurements.search import chain_sensitivity, largest_distance, smallest_scale

__all__ = [
    "CurveLoss",
    "Measurement",
    "chain_sensitivity",
    "compose",
    "exponential",
    "from_opendp",
    "gaussian",
    "laplace",
    "largest_distance",
    "parallel",
    "smallest_scale",
    "to_opendp",
]
