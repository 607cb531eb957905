"""The Laplace mechanism: pure epsilon for answers whose l1 movement is bounded."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed import noise
from hushed._checks import read_epsilon, require_count, require_positive, require_probability
from hushed.guarantee import Guarantee
from hushed.mechanisms._arguments import (
    exponential_quantile,
    finite_values,
    require_movement,
    smallest_epsilon,
)
from hushed.privacy_loss import PrivacyProfile, laplace
from hushed.spaces import SensitivityBound


@dataclass(frozen=True, slots=True)
class Laplace:
    """Add Laplace noise of scale sensitivity / epsilon to every coordinate.

    Parameters
    ----------
    sensitivity : SensitivityBound
        l1 sensitivity of the answer; above 0.
    epsilon : float
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal: 0.1 is one
        tenth.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If the sensitivity or epsilon cannot be used.

    Notes
    -----
    Dwork, McSherry, Nissim, Smith, TCC 2006. The noise is discrete Laplace on a power-of-two
    grid; its scale is enlarged by what rounding to the grid can do, so epsilon holds exactly
    (see `hushed.noise`).
    """

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Laplace", "l1")
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @classmethod
    def for_accuracy(
        cls, sensitivity: SensitivityBound, *, error: float, beta: float = 0.05, dims: int = 1
    ) -> Laplace:
        """Mechanism with the smallest epsilon that keeps the error within a bound.

        Parameters
        ----------
        sensitivity : SensitivityBound
            l1 sensitivity of the answer.
        error : float
            Largest absolute error of any coordinate; above 0.
        beta : float, default 0.05
            Probability with which the error may be larger; in (0, 1).
        dims : int, default 1
            Number of coordinates.

        Returns
        -------
        Laplace
            With ``accuracy(beta, dims) <= error``.
        """
        require_movement(sensitivity, "Laplace", "l1")
        require_positive("error", error)
        guess = sensitivity.value * _tail(beta, dims) / error
        epsilon = smallest_epsilon(
            guess, lambda e: cls(sensitivity, epsilon=e).accuracy(beta, dims), error
        )
        return cls(sensitivity, epsilon=epsilon)

    @property
    def scale(self) -> float:
        """Scale b of the noise in the units of the answer (its standard deviation is 1.41 b)."""
        return self.sensitivity.value / self.epsilon

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level, whatever the number of coordinates.

        An l1 movement spread over several coordinates is a chain of smaller ones, so its trade-off
        function lies above the group composition of theirs (group privacy: Dong, Roth and Su,
        JRSS-B 2022), which for the scalar Laplace law is that of one movement of the whole size.
        The discrete law on its grid is covered (docs/noise/grid.md).
        """
        return laplace(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises."""
        return self.sensitivity.guarantee(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Error that no coordinate exceeds but with probability beta.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).
        dims : int, default 1
            Number of coordinates.

        Returns
        -------
        float
            ``-b log(1 - (1 - beta)^(1/dims))`` for independent coordinates (``b log(1/beta)``
            for one, and always below the union bound ``b log(dims/beta)``), plus one grid step.
        """
        tail = _tail(beta, dims)
        grid = noise.laplace_grid(
            sensitivity=self.sensitivity.value, epsilon=self.epsilon, dims=dims
        )
        return self.scale * grid.enlargement * tail + math.ldexp(1, grid.exponent)

    def draw(self, value: ArrayLike) -> float | NDArray[np.float64]:
        """Release an answer.

        Parameters
        ----------
        value : float or array of float
            The exact answer.

        Returns
        -------
        float or ndarray of float
            The noisy answer in the same shape; always on the noise grid.
        """
        values = finite_values(value)
        noisy = noise.add_laplace(values, sensitivity=self.sensitivity.value, epsilon=self.epsilon)
        return noisy if values.ndim else float(noisy)


def _tail(beta: float, dims: int) -> float:
    """Quantile of the largest of ``dims`` absolute Laplace variables of scale 1."""
    require_probability("beta", beta)
    require_count("dims", dims)
    return exponential_quantile(beta, dims)
