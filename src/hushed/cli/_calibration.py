"""What ``hushed release`` is to calibrate: checked before, built after the sampling."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import hushed as hs
from hushed.errors import ParameterError
from hushed.mechanisms._calibration import NORM_OF, Mechanism, MechanismName, calibrate
from hushed.spaces import Norm, SensitivityBound


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A mechanism as the command line asks for it.

    Parameters
    ----------
    name : {"laplace", "gaussian", "exponential", "bernstein"}
        Which one.
    epsilon : float or None
        Privacy loss, in nats; this or ``error``.
    error : float or None
        Error to keep to, in the units of the answer, by the smallest epsilon.
    beta : float or None
        Probability of a larger error; 0.05 if None.
    norm : {"sup", "range"} or None
        Norm of the movement, for the exponential mechanism; that of the mechanism if None.
    options : mapping
        Further parameters, as `hushed.mechanisms._calibration.calibrate` takes them.
    """

    name: MechanismName
    epsilon: float | None
    error: float | None
    beta: float | None
    norm: Norm | None
    options: Mapping[str, Any]

    @property
    def measured(self) -> Norm:
        """Norm to sample the sensitivity in."""
        return self.norm or NORM_OF[self.name]

    def check(self) -> None:
        """Find bad parameters of a mechanism before the long sampling starts."""
        if (self.epsilon is None) == (self.error is None):
            raise ParameterError("give --epsilon or --error, one of the two")
        if self.beta is not None and self.error is None:
            raise ParameterError("--beta goes with --error: the chance of a larger error")
        if self.norm is not None and self.name != "exponential":
            raise ParameterError(
                f"--norm is for the exponential mechanism; {self.name} needs {NORM_OF[self.name]}"
            )
        stand_in = hs.proven_sensitivity(1.0, self.measured, argument="stand-in")
        calibrate(self.name, stand_in, {**self.options, "epsilon": 1.0})
        self._built(stand_in, 2 if self.name == "exponential" else 1)

    def calibrate(self, sensitivity: hs.Sensitivity) -> Mechanism:
        """Build the mechanism."""
        sampling = sensitivity.sampling
        return self._built(sensitivity, math.prod(sampling.shape) if sampling else 1)

    def _built(self, sensitivity: SensitivityBound, values: int) -> Mechanism:
        if self.error is None:
            return calibrate(self.name, sensitivity, {**self.options, "epsilon": self.epsilon})
        beta = 0.05 if self.beta is None else self.beta
        if self.name == "gaussian":
            delta = self.options["delta"]
            return hs.Gaussian.for_accuracy(
                sensitivity, error=self.error, beta=beta, delta=delta, dims=values
            )
        if self.name == "bernstein":
            shape = dict(self.options)
            return hs.Bernstein.for_accuracy(sensitivity, error=self.error, beta=beta, **shape)
        if self.name == "laplace":
            return hs.Laplace.for_accuracy(sensitivity, error=self.error, beta=beta, dims=values)
        if self.name == "exponential":
            return hs.Exponential.for_accuracy(
                sensitivity, error=self.error, beta=beta, dims=values
            )
        raise ParameterError(f"--error does not go with {self.name}; give --epsilon")

    def numeric(self, function: Any) -> Any:
        """Make a learner of functions give numbers, for the Bernstein mechanism."""
        if self.name != "bernstein":
            return function
        lattice, dims = self.options.get("lattice", 10), self.options.get("dims", 1)
        return numbers_of(function, lattice=lattice, dims=dims)


def numbers_of(function: Any, *, lattice: int, dims: int) -> Any:
    """Evaluate what a function returns on the lattice, if that is a function itself."""
    if not callable(function):
        return function
    learn: Callable[[Any], Any] = function

    @functools.wraps(learn)
    def values(rows: Any) -> Any:
        learned = learn(rows)
        if not callable(learned):
            return learned
        return hs.on_lattice(lambda _: learned, lattice=lattice, dims=dims)(rows)

    return values
