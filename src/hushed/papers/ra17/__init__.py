"""Rubinstein, Aldà, *Pain-Free Random Differential Privacy*, ICML 2017."""

from hushed.papers.ra17 import classifiers, densities
from hushed.papers.ra17.means import BOUNDED, EXPONENTIAL
from hushed.papers.ra17.ranks import EFFORT, RANKS, TABLE

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    TABLE,
    EFFORT,
    RANKS,
    EXPONENTIAL,
    classifiers.SENSITIVITY,
    classifiers.ACCURACY,
    densities.ACCURACY,
    BOUNDED,
    classifiers.PROTECTION,
    densities.PROTECTION,
)
