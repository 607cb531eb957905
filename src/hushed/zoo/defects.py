"""Defects of released libraries, re-created as small faulty functions beside corrected ones."""

from __future__ import annotations

from hushed.errors import ParameterError
from hushed.zoo.faulty_noise import naive_laplace, noise_twins
from hushed.zoo.faulty_output import output_twins
from hushed.zoo.faulty_sensitivity import sensitivity_twins
from hushed.zoo.twins import Twins

__all__ = ["naive_laplace", "twins"]


def twins(epsilon: float = 1.0) -> list[Twins]:
    """All defect twins.

    Parameters
    ----------
    epsilon : float, default 1
        Claimed epsilon; in (0, 1]. The twin with the scale upside down claims half of it.

    Returns
    -------
    list of tuple of (faulty, corrected)
        Specimens that share claim, pair and event. The faulty one violates the claim on the
        pair, the corrected one does not; ``source`` names the public report, or says that it is a
        class of defect that we do not ascribe to anybody.

    Raises
    ------
    ParameterError
        If epsilon leaves its range, in which the faulty ones are known to be faulty.
    """
    if not 0 < epsilon <= 1:
        raise ParameterError(f"epsilon must lie in (0, 1] for the defects to show, got {epsilon}")
    return [*sensitivity_twins(epsilon), *noise_twins(epsilon), *output_twins(epsilon)]
