"""Defects of released libraries, re-created as small faulty mechanisms beside fixed ones."""

from __future__ import annotations

from hushed.errors import ParameterError
from hushed.zoo.defects._blocks import BLOCKS
from hushed.zoo.defects._defect import FaultyAndFixed, build
from hushed.zoo.defects._noise import NAIVE_LAPLACE, NOISE
from hushed.zoo.defects._output import OUTPUT
from hushed.zoo.defects._searches import SEARCHES
from hushed.zoo.defects._sensitivity import SENSITIVITY
from hushed.zoo.defects._worst_case import WORST_CASE

__all__ = ["naive_laplace", "twins"]


def twins(epsilon: float = 1.0) -> list[FaultyAndFixed]:
    """All faulty/fixed pairs.

    Parameters
    ----------
    epsilon : float, default 1
        Claimed epsilon; in (0, 1]. The pair with the scale upside down claims half of it.

    Returns
    -------
    list of tuple of (faulty, fixed)
        Specimens that share claim, pair and event. The faulty one violates the claim on the
        pair, the fixed one does not; ``source`` names the public report, or says that it is a
        class of defect that we do not ascribe to anybody.

    Raises
    ------
    ParameterError
        If epsilon leaves its range, in which the faulty ones are known to be faulty.
    """
    if not 0 < epsilon <= 1:
        raise ParameterError(f"epsilon must lie in (0, 1] for the defects to show, got {epsilon}")
    every = (*SENSITIVITY, *NOISE, *OUTPUT, *WORST_CASE, *BLOCKS, *SEARCHES)
    return [build(defect, epsilon) for defect in every]


def naive_laplace(epsilon: float = 0.1) -> FaultyAndFixed:
    """Laplace noise by the inverse distribution function on doubles, beside a grid.

    Outputs are doubles, shape ``(size,)``. Near 0 the noise has finer bits than any sum of 1 and
    noise: an output that is not a multiple of 2^-53 cannot come from 1. The fixed one rounds to a
    grid of 2^-20 and adds two-sided geometric noise.
    """
    return build(NAIVE_LAPLACE, epsilon)
