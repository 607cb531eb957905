"""How far an answer moves between neighbouring tables: proven, or sampled."""

from hushed.sensitivity.ranks import Calibration, Rank, choose_rank
from hushed.sensitivity.record import Sampling, Sensitivity, proven_sensitivity
from hushed.sensitivity.sampling import sample_sensitivity

__all__ = [
    "Calibration",
    "Rank",
    "Sampling",
    "Sensitivity",
    "choose_rank",
    "proven_sensitivity",
    "sample_sensitivity",
]
