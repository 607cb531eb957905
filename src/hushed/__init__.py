"""Make any Python function private, and prove it."""

from hushed import errors, populations
from hushed.certificate import Certificate, verify
from hushed.functions import fixed_seed
from hushed.guarantee import Guarantee, union_gamma
from hushed.mechanisms import Bernstein, Exponential, Gaussian, Laplace, lattice_points, on_lattice
from hushed.release import Release, release
from hushed.sensitivity import Sensitivity, proven_sensitivity, sample_sensitivity

__all__ = [
    "Bernstein",
    "Certificate",
    "Exponential",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Release",
    "Sensitivity",
    "errors",
    "fixed_seed",
    "lattice_points",
    "on_lattice",
    "populations",
    "proven_sensitivity",
    "release",
    "sample_sensitivity",
    "union_gamma",
    "verify",
]
