"""Make any Python function private, and prove it."""

from hushed import cost, errors, populations, privacy_loss, risk, zoo
from hushed.accounting import Composition, compose, epsilon_for_advantage, parallel
from hushed.certificate import Certificate, verify
from hushed.divergences import DeltaEstimate, count_outcomes, estimate_delta
from hushed.functions import fixed_seed
from hushed.guarantee import Guarantee, union_gamma
from hushed.mechanisms import Bernstein, Exponential, Gaussian, Laplace, lattice_points, on_lattice
from hushed.release import Release, release
from hushed.sensitivity import Sensitivity, proven_sensitivity, sample_sensitivity

__all__ = [
    "Bernstein",
    "Certificate",
    "Composition",
    "DeltaEstimate",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Release",
    "Sensitivity",
    "compose",
    "cost",
    "count_outcomes",
    "epsilon_for_advantage",
    "errors",
    "estimate_delta",
    "fixed_seed",
    "lattice_points",
    "on_lattice",
    "parallel",
    "populations",
    "privacy_loss",
    "proven_sensitivity",
    "release",
    "risk",
    "sample_sensitivity",
    "union_gamma",
    "verify",
    "zoo",
]
