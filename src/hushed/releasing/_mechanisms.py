"""The mechanism of a release, as it was read before any private row was seen.

One of this package is known to keep its promise. Of one of the caller's own nothing is known but
what its author states. What it must not do is make a certificate say more than that, by mistake or
on purpose. So it states epsilon and delta, never gamma or whom they protect; it is built anew from
the parameters that stand on the certificate; and it is certified before it sees an answer.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._functions._calls import public_name
from hushed._functions._silence import silence
from hushed._ground.stops import watch_stops
from hushed._ground.types import Floats
from hushed.blocks import Blocks
from hushed.errors import BadFunction, ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._arguments import require_movement
from hushed.mechanisms._calibrated import Parameter, check_function, drawn_by, error_of, values_of
from hushed.mechanisms._registry import CERTIFIED, LAWS, STATISTIC_MECHANISMS
from hushed.mechanisms._sparse_vector import SparseVector
from hushed.privacy_loss import PrivacyProfile
from hushed.sensitivity import Sensitivity
from hushed.spaces import NORMS

_MEMBERS = (
    "name", "norms", "sensitivity", "parameters", "guarantee", "loss", "scale", "accuracy", "draw"
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_MOST_PARAMETERS, _LONGEST_TEXT = 32, 200
_BETTER = 0.99  # a loss that keeps less than this share of epsilon belongs to another guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A mechanism and what it said of itself; ``stated`` if that rests on its author's word.

    Of one of the caller's own, ``mechanism`` is an instance that was built for this.
    """

    mechanism: Any
    sensitivity: Sensitivity
    name: str
    parameters: dict[str, Parameter]
    guarantee: Guarantee
    loss: PrivacyProfile | None
    scale: float | None = None
    stated: bool = False

    @property
    def label(self) -> str:
        """What remarks in a ledger call it."""
        return (
            f"{self.name}, stated by its author" if self.stated else type(self.mechanism).__name__
        )

    def values_of(self, shape: tuple[int, ...] | None) -> int:
        """Count the numbers released together; refuses a shape that it is known not to release."""
        if self.stated:
            return 1 if shape is None else math.prod(shape)
        return values_of(self.mechanism, shape)

    def check_function(self, function: Any) -> None:
        """Refuse a function whose answers mean something else to the mechanism."""
        if not self.stated:
            check_function(self.mechanism, function)

    def drawn(self, values: int) -> tuple[float | None, int | None]:
        """Scale as drawn, and the exponent of the grid, where they are known."""
        return (self.scale, None) if self.stated else drawn_by(self.mechanism, values)

    @property
    def value_scale(self) -> float | None:
        """Scale of the noise on the values that a sparse vector tells; None of any other."""
        return self.mechanism.value_scale if type(self.mechanism) is SparseVector else None

    def error(self, values: int) -> float | None:
        """Error that no released number exceeds but with probability 5 %."""
        if not self.stated:
            return error_of(self.mechanism.accuracy, self.parameters, values)
        with silence():  # it may have heard of the answer
            return _read_size(
                "accuracy", error_of(self.mechanism.accuracy, self.parameters, values)
            )

    def draw(self, exact: Floats) -> Any:
        """Release an answer."""
        if self.stated:
            return _draw_privately(self.mechanism, exact, self.name)
        return self.mechanism.draw(exact)


def admit_mechanism(mechanism: Any) -> Admitted:
    """Read what a mechanism says of itself, and refuse what is none."""
    if isinstance(mechanism, Admitted):
        return mechanism
    carried = getattr(mechanism, "sensitivity", None)
    if not isinstance(carried, Sensitivity):
        raise ParameterError(
            "only a mechanism such as hs.Laplace(s, epsilon=1.0), on a sensitivity from "
            "hs.sample_sensitivity or hs.proven_sensitivity, can be released and certified; got "
            f"{type(mechanism).__name__}"
        )
    if not any(type(mechanism) is kind for kind in CERTIFIED.values()):
        return _admit_stated(mechanism, carried)
    return Admitted(
        mechanism=mechanism,
        sensitivity=carried,
        name=mechanism.name,
        parameters=mechanism.parameters,
        guarantee=mechanism.guarantee,
        loss=mechanism.loss,
    )


def is_free_name(name: object) -> bool:
    """Whether a mechanism of a caller may be called so: plain letters, and none of our names."""
    if type(name) is not str or _NAME.fullmatch(name) is None:
        return False
    plain = name.lower()
    return plain not in {
        *CERTIFIED,
        *LAWS,
        *STATISTIC_MECHANISMS,
        Blocks.name,
    } and not plain.startswith("hushed")


def _admit_stated(mechanism: Any, carried: Sensitivity) -> Admitted:
    """Read one of the caller's own, and build it again from its parameters."""
    kind = type(mechanism)
    missing = [name for name in _MEMBERS if not hasattr(mechanism, name)]
    if missing:
        raise ParameterError(
            f"{kind.__name__} is no mechanism: it lacks {', '.join(missing)}; see hs.Mechanism"
        )
    first = _read_stated(mechanism, carried)
    try:
        again = kind(carried, **first.parameters)
    except Exception as cause:
        raise ParameterError(
            f"{kind.__name__} cannot be built again from its sensitivity and parameters, as verify "
            f"has to: {type(cause).__name__}: {cause}"
        ) from None
    second = _read_stated(again, carried)
    said, found = _facts_of(first), _facts_of(second)
    other = [name for name in said if said[name] != found[name]]
    if other:
        raise ParameterError(
            f"{kind.__name__} built again from its sensitivity and parameters has another "
            f"{' and '.join(other)}: put all that it depends on into its parameters"
        )
    return second


def _read_stated(mechanism: Any, carried: Sensitivity) -> Admitted:
    """Read what the author of a mechanism states; each member is asked once."""
    kind, name, norms = type(mechanism).__name__, mechanism.name, tuple(mechanism.norms)
    if not is_free_name(name):
        raise ParameterError(
            f"the name of {kind} must be letters, digits, _ or -, at most 40 of them, and none of "
            f"{', '.join((*CERTIFIED, *STATISTIC_MECHANISMS))}; got {name!r}"
        )
    if not norms or not set(norms) <= set(NORMS):
        raise ParameterError(f"the norms of {kind} must be some of {NORMS}, got {norms}")
    if mechanism.sensitivity is not carried:
        raise ParameterError(f"{kind} must keep the sensitivity that it is given, as it is")
    require_movement(carried, kind, *norms)
    guarantee = _read_guarantee(mechanism.guarantee, kind, carried)
    return Admitted(
        mechanism=mechanism,
        sensitivity=carried,
        name=name,
        parameters=_read_parameters(mechanism.parameters, kind),
        guarantee=guarantee,
        loss=_read_loss(mechanism.loss, kind, guarantee),
        scale=_read_size("scale", mechanism.scale),
        stated=True,
    )


def _read_guarantee(stated: Any, kind: str, carried: Sensitivity) -> Guarantee:
    """Take epsilon and delta from the author, and all else from the sensitivity."""
    if type(stated) is not Guarantee:
        raise ParameterError(f"the guarantee of {kind} must be an hs.Guarantee")
    epsilon, delta = stated.epsilon, stated.delta
    if not (math.isfinite(epsilon) and epsilon + delta > 0 and delta < 1):
        raise ParameterError(
            f"the guarantee of {kind} must have a finite epsilon and a delta below 1, not both 0; "
            f"got {epsilon} and {delta}"
        )
    follows = carried.guarantee(epsilon, delta)
    if stated != follows:
        raise ParameterError(
            f"the guarantee of {kind} is not that of its sensitivity, which alone says for whom "
            "and with which gamma it holds: let it be self.sensitivity.guarantee(epsilon, delta)"
        )
    return follows


def _read_loss(loss: Any, kind: str, guarantee: Guarantee) -> PrivacyProfile | None:
    """Refuse a loss that is not of the same release as the guarantee."""
    if loss is None:
        return None
    if type(loss) is not PrivacyProfile or loss.one_sided:
        raise ParameterError(
            f"the loss of {kind} must be a privacy profile for both neighbours, such as "
            "hs.privacy_loss.laplace(epsilon), or None"
        )
    if not loss.delta(guarantee.epsilon) <= guarantee.delta:
        raise ParameterError(
            f"the loss of {kind} does not keep its guarantee: at epsilon {guarantee.epsilon} it "
            f"needs delta {loss.delta(guarantee.epsilon)}"
        )
    if loss.epsilon(guarantee.delta) < _BETTER * guarantee.epsilon:
        raise ParameterError(
            f"the loss of {kind} promises more than its guarantee: epsilon "
            f"{loss.epsilon(guarantee.delta)} instead of {guarantee.epsilon}; state the same "
            "release in both"
        )
    return loss


def _read_parameters(stated: Any, kind: str) -> dict[str, Parameter]:
    """Read parameters as plain values that JSON holds."""
    if not isinstance(stated, Mapping) or len(stated) > _MOST_PARAMETERS:
        raise ParameterError(
            f"the parameters of {kind} must be a mapping of at most {_MOST_PARAMETERS} names"
        )
    found: dict[str, Parameter] = {}
    for name, value in stated.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ParameterError(f"a parameter of {kind} has the name {name!r}")
        plain = value.item() if isinstance(value, np.generic) else value
        short = type(plain) is str and len(plain) <= _LONGEST_TEXT and plain.isprintable()
        number = type(plain) in (bool, int, float) and abs(plain) <= sys.float_info.max
        if not (short or number):
            raise ParameterError(
                f"parameter {name} of {kind} must be a finite number, a truth value or a short "
                f"text, got {type(value).__name__}"
            )
        found[name] = plain
    return found


def _read_size(name: str, stated: Any) -> float | None:
    """Read a scale or an error: a finite number of 0 or more, or nothing."""
    if stated is None:
        return None
    if isinstance(stated, bool) or not isinstance(stated, int | float | np.number):
        raise ParameterError(
            f"{name} must be a number or None, got {type(stated).__name__}", parameter=name
        )
    if not 0 <= float(stated) < math.inf:
        raise ParameterError(f"{name} must be finite and 0 or more, got {stated}", parameter=name)
    return float(stated)


def _facts_of(one: Admitted) -> dict[str, Any]:
    """Give what has to be the same when it is built again; curves are compared at a few levels."""
    epsilon, loss = one.guarantee.epsilon, one.loss
    levels = None if loss is None else [loss.delta(epsilon * share) for share in (0, 0.5, 1)]
    names = ("name", "parameters", "guarantee", "scale")
    return {name: getattr(one, name) for name in names} | {"accuracy": one.error(1), "loss": levels}


def _draw_privately(mechanism: Any, exact: Floats, name: str) -> Any:
    """Draw with a mechanism of the caller's; what it prints or raises may hold a private value."""
    problem = ""
    with silence(), watch_stops() as is_stop:
        try:
            drawn = mechanism.draw(exact.copy() if exact.ndim else float(exact))
            found = _read_drawn(drawn, exact.shape)
            if found is not None:
                return found
            problem = "gave neither a number nor numbers in the shape of the answer"
        except BaseException as cause:
            kind = public_name(type(cause), "an exception")
            problem = "" if is_stop(cause) else f"raised {kind}; its message is withheld"
    if not problem:
        raise KeyboardInterrupt
    raise BadFunction(f"{name} did not draw: it {problem}")


def _read_drawn(value: Any, shape: tuple[int, ...]) -> float | int | Floats | None:
    """Read a number, or numbers in the shape of the answer, as plain ones; None if neither."""
    found = value.item() if isinstance(value, np.generic) else value
    if type(found) is int and abs(found) > sys.float_info.max:
        return None
    if type(found) in (int, float):
        return found  # type: ignore[no-any-return]
    if type(found) is not np.ndarray or found.dtype.kind not in "iuf" or found.shape != shape:
        return None
    return found.astype(np.float64) if found.ndim else float(found)
