"""Release noise: exact integer draws, safe against floating-point attacks; it cannot be seeded.

Randomness comes from the operating system only. The laws are exact: no probability is rounded.
What is proved, and what is not defended, is written down in docs/noise.
"""

from hushed.noise._grid import (
    GRID_BITS,
    Grid,
    add_gaussian,
    add_laplace,
    gaussian_grid,
    laplace_grid,
)
from hushed.noise._heavy import add_lomax, add_student, range_grid
from hushed.noise._integers import (
    bernoulli,
    bernoulli_exp,
    discrete_exponential,
    discrete_gaussian,
    discrete_laplace,
    uniform_integers,
)
from hushed.noise._selection import select, selection_loss, selection_scale

__all__ = [
    "GRID_BITS",
    "Grid",
    "add_gaussian",
    "add_laplace",
    "add_lomax",
    "add_student",
    "bernoulli",
    "bernoulli_exp",
    "discrete_exponential",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_grid",
    "laplace_grid",
    "range_grid",
    "select",
    "selection_loss",
    "selection_scale",
    "uniform_integers",
]
