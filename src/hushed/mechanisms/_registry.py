"""The mechanisms of this package: a new one is entered here, and known everywhere."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from hushed._ground.checks import require_one_of
from hushed.errors import ParameterError
from hushed.mechanisms._bernstein import Bernstein
from hushed.mechanisms._bound_search import BoundSearch
from hushed.mechanisms._calibrated import Calibrated, parameter_names
from hushed.mechanisms._exponential import Exponential
from hushed.mechanisms._gaussian import Gaussian
from hushed.mechanisms._inverse import InverseSensitivity
from hushed.mechanisms._laplace import Laplace
from hushed.mechanisms._law import Law
from hushed.mechanisms._noisy_max import NoisyMax
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.mechanisms._propose_test import ProposeTest
from hushed.mechanisms._smooth import Smooth
from hushed.mechanisms._sparse_vector import SparseVector
from hushed.mechanisms._stable_mode import StableMode
from hushed.mechanisms._top_k import TopK
from hushed.spaces import SensitivityBound

MECHANISMS: dict[str, type[Calibrated]] = {
    kind.name: kind for kind in (Laplace, Gaussian, Exponential, Bernstein)
}
SEARCHES: dict[str, type[Calibrated]] = {  # they hold state, and are no argument of release
    kind.name: kind for kind in (SparseVector, BoundSearch)
}
# Choices that say more than an index; the command line does not know them.
CHOICES: dict[str, type[Calibrated]] = {
    kind.name: kind for kind in (TopK, NoisyMax, PosteriorDraw, ObjectiveDraw)
}
# Everything that a certificate may be about and that is built from a sensitivity.
# A view: the maps are looked at from the left, and listed from the right.
CERTIFIED: Mapping[str, type[Calibrated]] = ChainMap(SEARCHES, CHOICES, MECHANISMS)
StatisticMechanism = InverseSensitivity | Smooth | ProposeTest | StableMode
# Mechanisms of this package that are not calibrated to a sensitivity: the statistic knows its own.
STATISTIC_MECHANISMS: dict[str, type[StatisticMechanism]] = {
    kind.name: kind for kind in (InverseSensitivity, Smooth, ProposeTest, StableMode)
}
LAWS: Mapping[str, type[Law]] = {kind.law.name: kind.law for kind in MECHANISMS.values()}


def calibrate(name: str, sensitivity: SensitivityBound, options: Mapping[str, Any]) -> Calibrated:
    """Build the mechanism of a given name.

    Examples
    --------
    >>> from hushed import proven_sensitivity
    >>> s = proven_sensitivity(2.0, "l1", argument="two counts of one person")
    >>> calibrate("laplace", s, {"epsilon": 0.5}).scale
    4.0
    """
    require_one_of("mechanism", name, CERTIFIED)
    known = parameter_names(CERTIFIED[name])
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ParameterError(f"{name} takes {', '.join(known)}; got {', '.join(unknown)} as well")
    missing = sorted(each for each, needed in known.items() if needed and each not in options)
    if missing:
        raise ParameterError(f"{name} needs {' and '.join(missing)}")
    built: Any = CERTIFIED[name]
    found: Calibrated = built(sensitivity=sensitivity, **options)
    return found
