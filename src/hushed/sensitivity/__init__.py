"""How far an answer moves between neighbouring tables: proven, or sampled."""

from hushed.sensitivity._blockwise import Blockwise
from hushed.sensitivity._designs import Design, Route, choose_design
from hushed.sensitivity._keeping import read_movements
from hushed.sensitivity._neighbourhood import Position
from hushed.sensitivity._proven import global_sensitivity, proven_sensitivity
from hushed.sensitivity._ranks import Calibration, Rank, choose_rank
from hushed.sensitivity._record import Sampling, SamplingFacts, Sensitivity
from hushed.sensitivity._sampling import sample_sensitivity
from hushed.sensitivity._several import largest_sensitivity
from hushed.sensitivity._updates import Update

__all__ = [
    "Blockwise",
    "Calibration",
    "Design",
    "Position",
    "Rank",
    "Route",
    "Sampling",
    "SamplingFacts",
    "Sensitivity",
    "Update",
    "choose_design",
    "choose_rank",
    "global_sensitivity",
    "largest_sensitivity",
    "proven_sensitivity",
    "read_movements",
    "sample_sensitivity",
]
