"""A mechanism by name: sensitivity and target in, calibrated mechanism out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from hushed._checks import require_one_of
from hushed.errors import ParameterError
from hushed.mechanisms import Bernstein, Exponential, Gaussian, Laplace
from hushed.mechanisms._bernstein import OnLattice
from hushed.spaces import Norm, SensitivityBound

Mechanism = Laplace | Gaussian | Exponential | Bernstein
MechanismName = Literal["laplace", "gaussian", "exponential", "bernstein"]

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
}
_PARAMETERS = {
    "laplace": ("epsilon",),
    "gaussian": ("epsilon", "delta", "variant"),
    "exponential": ("epsilon", "monotone"),
    "bernstein": ("epsilon", "lattice", "dims", "order"),
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
    unknown = sorted(set(options) - set(_PARAMETERS[name]))
    if unknown:
        raise ParameterError(
            f"{name} takes {', '.join(_PARAMETERS[name])}; got {', '.join(unknown)} as well"
        )
    required = {"epsilon", "delta"} & set(_PARAMETERS[name])
    missing = sorted(required - set(options))
    if missing:
        raise ParameterError(f"{name} needs {' and '.join(missing)}")
    built: Mechanism = _CLASSES[name](sensitivity, **options)
    return built


def check_shape(mechanism: Mechanism, shape: tuple[int, ...]) -> None:
    """Refuse a mechanism that cannot release answers of a shape."""
    if isinstance(mechanism, Exponential) and len(shape) != 1:
        raise ParameterError(
            f"Exponential chooses by one list of scores, the sampled answers have shape {shape}"
        )
    if isinstance(mechanism, Bernstein) and math.prod(shape) != mechanism.points:
        raise ParameterError(
            f"Bernstein with lattice={mechanism.lattice} and dims={mechanism.dims} releases "
            f"{mechanism.points} lattice values, the sampled answers have {math.prod(shape)}; "
            "use the lattice of hs.on_lattice"
        )


def check_lattice(mechanism: Mechanism, function: object) -> None:
    """Refuse values on one lattice as coefficients on another of as many points."""
    if not (isinstance(mechanism, Bernstein) and isinstance(function, OnLattice)):
        return
    ours, theirs = ((each.lattice, each.dims) for each in (mechanism, function))
    if ours != theirs:
        raise ParameterError(
            f"Bernstein has lattice={ours[0]} and dims={ours[1]}, and the function was put on "
            f"lattice={theirs[0]} and dims={theirs[1]}: give both the same"
        )


def parameters(mechanism: Mechanism) -> tuple[MechanismName, dict[str, Any]]:
    """Name and parameters that build a mechanism again."""
    for name in get_args(MechanismName):
        if type(mechanism) is _CLASSES[name]:
            return name, {key: getattr(mechanism, key) for key in _PARAMETERS[name]}
    raise ParameterError(
        f"expected hs.Laplace, hs.Gaussian, hs.Exponential or hs.Bernstein, "
        f"got {type(mechanism).__name__}"
    )
