"""Dandekar, Basu, Bressan, *Differential Privacy at Risk*, PoPETs 2021."""

from papers.dbb20.budget import BUDGET, ILLUSTRATION
from papers.dbb20.composition import COMPOSITIONS
from papers.dbb20.risk import DIMENSIONS, LEVELS, SAMPLES
from papers.dbb20.sampled import ERRORS, SIZES

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (LEVELS, DIMENSIONS, SAMPLES, ERRORS, SIZES, BUDGET, *COMPOSITIONS, ILLUSTRATION)
