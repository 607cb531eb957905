"""One sensitivity for several populations: the largest of those that were sampled."""

from __future__ import annotations

from collections.abc import Iterable

from hushed._ground.calls import called_as
from hushed._ground.checks import read_list
from hushed.errors import ParameterError
from hushed.sensitivity._record import Sampling, Sensitivity


@called_as("hs.largest_sensitivity([sensitivity, sensitivity])")
def largest_sensitivity(sensitivities: Iterable[Sensitivity]) -> Sensitivity:
    """Keep the largest of sensitivities that one function was sampled for on several populations.

    What is promised then holds for private rows of each of these populations, with gamma for each.
    It does not hold for mixtures of them; sample those, too.

    Parameters
    ----------
    sensitivities : iterable of Sensitivity
        From `hushed.sample_sensitivity`: of one function, alike in everything but the population.
        Private rows are moved into the range of the population, so that all of these must state
        the same one.

    Returns
    -------
    Sensitivity
        The one with the largest value. Its certificate names its own population only.

    Raises
    ------
    ParameterError
        If there is none, one is not sampled, or they differ in what they promise.

    Notes
    -----
    If P is one of the populations, and D its own sampled sensitivity, a pair of P moves further
    than the largest one only if it moves further than D, which has probability gamma at most.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> kinds = (hs.populations.Normal(std=1), hs.populations.Normal(std=2))
    >>> found = [hs.sample_sensitivity(np.mean, each, rows=100) for each in kinds]
    >>> largest_sensitivity(found) == max(found, key=lambda each: each.value)
    True
    """
    found = read_list("sensitivities", sensitivities, of="[hs.sample_sensitivity(...), ...]")
    if not found:
        raise ParameterError("there is no sensitivity to choose from", parameter="sensitivities")
    facts = [_describe(each) for each in found]
    for name, value in facts[0].items():
        if any(other[name] != value for other in facts[1:]):
            raise ParameterError(
                f"the sensitivities differ in {name}: sample all of them alike, and give all "
                "populations the same range",
                parameter="sensitivities",
            )
    largest: Sensitivity = max(found, key=lambda each: float(each.value))
    return largest


def _describe(sensitivity: object) -> dict[str, object]:
    """Say what a promise is about, the population aside."""
    sampling = getattr(sensitivity, "sampling", None)
    if not isinstance(sensitivity, Sensitivity) or not isinstance(sampling, Sampling):
        raise ParameterError(
            "only sampled sensitivities are chosen from; a proven one holds for every population",
            parameter="sensitivities",
        )
    return {
        "function": sampling.identity,
        "norm": sensitivity.norm,
        "neighbours": (sensitivity.neighbours, sensitivity.unit, sensitivity.person),
        "rows": (sampling.rows, sampling.blocks, sampling.sizes),
        "distance": sampling.distance,
        "position": sampling.position,
        "values": (sampling.values, sampling.monotone),
        "user": sampling.user,
        "gamma": (sampling.gamma, sampling.shift),
        "calibration": sampling.calibration,
        "protect": sampling.protect,
        "data_dependent": sampling.data_dependent,
        "symmetric, batch or update": (sampling.symmetric, sampling.batch, sampling.updated),
        "the public range": sampling.support,
        "the kind of rows": (sampling.layout, sampling.layout.types, sampling.shape),
    }
