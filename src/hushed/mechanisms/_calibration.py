"""A mechanism by name: sensitivity and target in, calibrated mechanism out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from hushed._checks import require_one_of
from hushed.errors import ParameterError
from hushed.mechanisms import Bernstein, Exponential, Gaussian, Laplace, NoisyMax, TopK
from hushed.mechanisms._bound_search import BoundSearch
from hushed.mechanisms._sparse_vector import SparseVector
from hushed.spaces import Norm, SensitivityBound

Mechanism = Laplace | Gaussian | Exponential | Bernstein | TopK | NoisyMax
MechanismName = Literal["laplace", "gaussian", "exponential", "bernstein"]
Certified = Mechanism | SparseVector | BoundSearch
SearchName = Literal["above-threshold", "bound-search"]  # no argument of hs.release
# The command line knows the first of them only.
CertifiedName = Literal[MechanismName, "top-k", "noisy-max", SearchName]

NORM_OF: dict[MechanismName, Norm] = {
    "laplace": "l1",
    "gaussian": "l2",
    "exponential": "sup",
    "bernstein": "sup",
}

_CLASSES: dict[str, type[Any]] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "exponential": Exponential,
    "bernstein": Bernstein,
    "top-k": TopK,
    "noisy-max": NoisyMax,
    "above-threshold": SparseVector,
    "bound-search": BoundSearch,
}
_PARAMETERS = {
    "laplace": ("epsilon",),
    "gaussian": ("epsilon", "delta", "variant"),
    "exponential": ("epsilon", "monotone"),
    "bernstein": ("epsilon", "lattice", "dims", "order"),
    "top-k": ("epsilon", "k", "monotone"),
    "noisy-max": ("epsilon", "monotone"),
    "above-threshold": ("epsilon", "threshold", "positives", "monotone", "values"),
    "bound-search": ("epsilon", "growth", "smallest", "above"),
}


def calibrate(name: str, sensitivity: SensitivityBound, options: Mapping[str, Any]) -> Mechanism:
    """Build the mechanism of a given name.

    Examples
    --------
    >>> from hushed import proven_sensitivity
    >>> s = proven_sensitivity(2.0, "l1", argument="two counts of one person")
    >>> calibrate("laplace", s, {"epsilon": 0.5}).scale
    4.0
    """
    require_one_of("mechanism", name, get_args(MechanismName))
    return cast("Mechanism", build(name, sensitivity, options))


def build(name: str, sensitivity: SensitivityBound, options: Mapping[str, Any]) -> Certified:
    """Build what a certificate speaks of: a mechanism, or a search that is no verb's argument."""
    require_one_of("mechanism", name, get_args(CertifiedName))
    unknown = sorted(set(options) - set(_PARAMETERS[name]))
    if unknown:
        raise ParameterError(
            f"{name} takes {', '.join(_PARAMETERS[name])}; got {', '.join(unknown)} as well"
        )
    required = {"epsilon", "delta", "threshold", "k"} & set(_PARAMETERS[name])
    missing = sorted(required - set(options))
    if missing:
        raise ParameterError(f"{name} needs {' and '.join(missing)}")
    built: Certified = _CLASSES[name](sensitivity=sensitivity, **options)
    return built


def check_shape(mechanism: Mechanism, shape: tuple[int, ...]) -> None:
    """Refuse a mechanism that cannot release answers of a shape."""
    if isinstance(mechanism, Exponential | TopK | NoisyMax) and len(shape) != 1:
        raise ParameterError(
            f"{type(mechanism).__name__} chooses by one list of scores, the sampled answers have "
            f"shape {shape}"
        )
    if isinstance(mechanism, TopK) and shape[0] < mechanism.k:
        raise ParameterError(
            f"TopK with k={mechanism.k} chooses among {mechanism.k} candidates or more, the "
            f"sampled answers have {shape[0]}"
        )
    if isinstance(mechanism, Bernstein) and math.prod(shape) != mechanism.points:
        raise ParameterError(
            f"Bernstein with lattice={mechanism.lattice} and dims={mechanism.dims} releases "
            f"{mechanism.points} lattice values, the sampled answers have {math.prod(shape)}; "
            "use the lattice of hs.on_lattice"
        )


def parameters(mechanism: Certified) -> tuple[CertifiedName, dict[str, Any]]:
    """Name and parameters that build a mechanism again."""
    for name in get_args(CertifiedName):
        if type(mechanism) is _CLASSES[name]:
            return name, {key: getattr(mechanism, key) for key in _PARAMETERS[name]}
    raise ParameterError(
        "expected hs.Laplace, hs.Gaussian, hs.Exponential, hs.TopK, hs.NoisyMax or hs.Bernstein, "
        f"got {type(mechanism).__name__}"
    )
