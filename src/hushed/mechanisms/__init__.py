"""Mechanisms: one file each, calibrated from a sensitivity."""

from hushed.mechanisms.bernstein import Bernstein, BernsteinPolynomial, lattice_points, on_lattice
from hushed.mechanisms.exponential import Exponential
from hushed.mechanisms.gaussian import Gaussian
from hushed.mechanisms.laplace import Laplace

__all__ = [
    "Bernstein",
    "BernsteinPolynomial",
    "Exponential",
    "Gaussian",
    "Laplace",
    "lattice_points",
    "on_lattice",
]
