"""Does the population fit? Private tests of a population, and of a sampled sensitivity."""

from hushed.fitting._check import check_population
from hushed.fitting._movement import check_movement
from hushed.fitting._moving_report import MovementCheck
from hushed.fitting._report import PopulationCheck

__all__ = ["MovementCheck", "PopulationCheck", "check_movement", "check_population"]
