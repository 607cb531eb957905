"""Mechanisms: one file each, calibrated from a sensitivity."""

from hushed.mechanisms._bernstein import Bernstein, BernsteinPolynomial, lattice_points, on_lattice
from hushed.mechanisms._exponential import Exponential
from hushed.mechanisms._gaussian import Gaussian
from hushed.mechanisms._inverse import InverseSensitivity
from hushed.mechanisms._laplace import Laplace
from hushed.mechanisms._noisy_max import NoisyMax, Winner
from hushed.mechanisms._propose_test import ProposeTest
from hushed.mechanisms._protocol import Mechanism
from hushed.mechanisms._smooth import Smooth
from hushed.mechanisms._stable_mode import StableMode
from hushed.mechanisms._top_k import TopK

__all__ = [
    "Bernstein",
    "BernsteinPolynomial",
    "Exponential",
    "Gaussian",
    "InverseSensitivity",
    "Laplace",
    "Mechanism",
    "NoisyMax",
    "ProposeTest",
    "Smooth",
    "StableMode",
    "TopK",
    "Winner",
    "lattice_points",
    "on_lattice",
]
