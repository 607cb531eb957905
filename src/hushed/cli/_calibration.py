"""What ``hushed release`` is to calibrate: checked before, built after the sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import hushed as hs
from hushed.errors import ParameterError
from hushed.mechanisms._calibrated import Calibrated, answers_of, parameter_names
from hushed.mechanisms._registry import MECHANISMS, calibrate
from hushed.spaces import Norm, SensitivityBound

if TYPE_CHECKING:
    MechanismName = str
else:
    MechanismName = Literal[*MECHANISMS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A mechanism as the command line asks for it."""

    name: MechanismName  # which one, out of `hushed.mechanisms._registry.MECHANISMS`
    epsilon: float | None  # privacy loss, in nats; this or ``error``
    error: float | None  # error to keep to, in the units of the answer, by the smallest epsilon
    beta: float | None  # probability of a larger error; 0.05 if None
    # Norm of the movement, where the mechanism takes several; its first one if None.
    norm: Norm | None
    # Further parameters, as `hushed.mechanisms._registry.calibrate` takes them.
    options: Mapping[str, Any]

    @property
    def kind(self) -> type[Calibrated]:
        """Class of the mechanism."""
        return MECHANISMS[self.name]

    @property
    def measured(self) -> Norm:
        """Norm to sample the sensitivity in."""
        return self.norm or self.kind.norms[0]

    def check(self) -> None:
        """Find bad parameters of a mechanism before the long sampling starts."""
        if (self.epsilon is None) == (self.error is None):
            raise ParameterError("give --epsilon or --error, one of the two")
        if self.beta is not None and self.error is None:
            raise ParameterError("--beta goes with --error: the chance of a larger error")
        if self.norm is not None and len(self.kind.norms) == 1:
            several = [name for name, kind in MECHANISMS.items() if len(kind.norms) > 1]
            raise ParameterError(
                f"--norm is for mechanisms that take several ({', '.join(several)}); {self.name} "
                f"needs {self.kind.norms[0]}"
            )
        stand_in = hs.proven_sensitivity(1.0, self.measured, argument="stand-in")
        calibrate(self.name, stand_in, {**self.options, "epsilon": 1.0})
        self._built(stand_in, 2)

    def calibrate(self, sensitivity: hs.Sensitivity) -> Calibrated:
        """Build the mechanism."""
        sampling = sensitivity.sampling
        return self._built(sensitivity, math.prod(sampling.shape) if sampling else 1)

    def _built(self, sensitivity: SensitivityBound, values: int) -> Calibrated:
        if self.error is None:
            return calibrate(self.name, sensitivity, {**self.options, "epsilon": self.epsilon})
        counted = {} if "dims" in parameter_names(self.kind) else {"dims": values}
        beta = 0.05 if self.beta is None else self.beta
        kind: Any = self.kind
        built: Calibrated = kind.for_accuracy(
            sensitivity, error=self.error, beta=beta, **self.options, **counted
        )
        return built

    def numeric(self, function: Any) -> Any:
        """Make a function give the numbers that the mechanism releases."""
        return answers_of(self.kind, function, self.options)
