"""Rubinstein, Aldà, *Pain-Free Random Differential Privacy*, ICML 2017."""

from papers.ra17 import classifiers, densities
from papers.ra17.inside import BRANCHES, SAMPLER
from papers.ra17.means import BOUNDED, EXPONENTIAL
from papers.ra17.ranks import EFFORT, RANKS, TABLE
from papers.ra17.svm import SENSITIVITY

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    TABLE,
    SAMPLER,
    EFFORT,
    RANKS,
    EXPONENTIAL,
    SENSITIVITY,
    classifiers.ACCURACY,
    densities.ACCURACY,
    BRANCHES,
    BOUNDED,
    classifiers.PROTECTION,
    densities.PROTECTION,
)
