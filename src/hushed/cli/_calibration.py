"""What ``hushed release`` is to calibrate: checked before, built after the sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import hushed as hs
from hushed.cli._options import option
from hushed.cli._panels import NOISE
from hushed.errors import ParameterError
from hushed.mechanisms._calibrated import Calibrated, answers_of, parameter_names
from hushed.mechanisms._registry import MECHANISMS, calibrate
from hushed.spaces import Norm, SensitivityBound

if TYPE_CHECKING:
    MechanismName = str
else:
    MechanismName = Literal[*MECHANISMS]


@dataclass(frozen=True, kw_only=True)
class Target:
    """A mechanism as the command line asks for it."""

    epsilon: Annotated[float | None, option("Privacy loss, in nats. This or --error.", NOISE)] = (
        None
    )
    error: Annotated[
        float | None,
        option("Error you can live with, for the smallest epsilon that keeps to it.", NOISE),
    ] = None
    beta: Annotated[float | None, option("Chance of a larger error; 0.05 by default.", NOISE)] = (
        None
    )
    mechanism: Annotated[MechanismName, option("What adds the noise.", NOISE)] = "laplace"
    delta: Annotated[float | None, option("Slack, for the Gaussian.", NOISE)] = None
    norm: Annotated[
        Norm | None,
        option("Where the mechanism takes several: exponential, sup (default) or range.", NOISE),
    ] = None
    lattice: Annotated[
        int | None, option("Bernstein: intervals along each axis; 10 by default.", NOISE)
    ] = None
    dims: Annotated[
        int | None, option("Bernstein: dimension of the cube; 1 by default.", NOISE)
    ] = None
    order: Annotated[
        int | None, option("Bernstein: order of the operator; 1 by default.", NOISE)
    ] = None

    @property
    def options(self) -> Mapping[str, Any]:
        """Further parameters, as `hushed.mechanisms._registry.calibrate` takes them."""
        given = {
            "delta": self.delta,
            "lattice": self.lattice,
            "dims": self.dims,
            "order": self.order,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def kind(self) -> type[Calibrated]:
        """Class of the mechanism."""
        return MECHANISMS[self.mechanism]

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
                f"--norm is for mechanisms that take several ({', '.join(several)}); "
                f"{self.mechanism} needs {self.kind.norms[0]}"
            )
        stand_in = hs.proven_sensitivity(1.0, self.measured, argument="stand-in")
        calibrate(self.mechanism, stand_in, {**self.options, "epsilon": 1.0})
        self._built(stand_in, 2)

    def calibrate(self, sensitivity: hs.Sensitivity) -> Calibrated:
        """Build the mechanism."""
        sampling = sensitivity.sampling
        return self._built(sensitivity, math.prod(sampling.shape) if sampling else 1)

    def _built(self, sensitivity: SensitivityBound, values: int) -> Calibrated:
        if self.error is None:
            return calibrate(self.mechanism, sensitivity, {**self.options, "epsilon": self.epsilon})
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
