"""The Gaussian mechanism: (epsilon, delta) for answers whose l2 movement is bounded."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed import noise
from hushed._checks import (
    read_epsilon,
    require_count,
    require_one_of,
    require_positive,
    require_probability,
)
from hushed._decimals import lower_double, read
from hushed._numeric import first_true_near, round_up
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._arguments import finite_values, require_movement, smallest_epsilon
from hushed.privacy_loss import PrivacyProfile, gaussian
from hushed.privacy_loss._families import released_delta
from hushed.spaces import SensitivityBound

Variant = Literal["analytic", "classic"]

# Coordinates that the lemma on discrete noise is used for.
_MOST_DIMS = 2**20
_LEAST_RATIO, _LARGEST_RATIO = 1e-60, 1e15
_FAR_BELOW = 2.0**-40


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Add Gaussian noise to every coordinate.

    Parameters
    ----------
    sensitivity : SensitivityBound
        l2 sensitivity of the answer; above 0.
    epsilon : float
        Privacy loss, in nats; finite, above 0; at most 1 for ``variant="classic"``. Epsilon and
        delta stand for their shortest decimals.
    delta : float
        Slack; in (0, 1).
    variant : {"analytic", "classic"}, default "analytic"
        ``"analytic"``: the smallest sigma that gives (epsilon, delta). ``"classic"``: the
        textbook constant, proved for epsilon up to 1 only.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Analytic: Balle and Wang, ICML 2018, Theorem 8, solved in 60 digits and rounded up. Classic:
    Dwork and Roth 2014, Theorem A.1. The noise is discrete Gaussian on a power-of-two grid; what
    that may cost is part of the curve that sigma is computed with (docs/noise/grid.md).
    """

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    delta: float
    variant: Variant = "analytic"
    scale: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Gaussian", "l2")
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "delta", _read_delta(self.delta))
        require_one_of("variant", self.variant, get_args(Variant))
        if self.variant == "classic" and self.epsilon > 1:
            raise ParameterError(
                f"the classic Gaussian constant is proved for epsilon up to 1 only, "
                f"got {self.epsilon}; use variant='analytic'"
            )
        multiplier = _analytic_multiplier(self.epsilon, self.delta)
        if self.variant == "classic":
            # Never below the analytic one, which counts what discreteness may cost.
            small = math.sqrt(2 * math.log(1.25 / lower_double(self.delta)))
            multiplier = max(multiplier, round_up(small / lower_double(self.epsilon)))
        sigma = math.nextafter(self.sensitivity.value * multiplier, math.inf)
        object.__setattr__(self, "scale", sigma)

    @classmethod
    def for_accuracy(
        cls,
        sensitivity: SensitivityBound,
        *,
        error: float,
        delta: float,
        beta: float = 0.05,
        dims: int = 1,
    ) -> Gaussian:
        """Analytic mechanism with the smallest epsilon that keeps the error within a bound.

        Parameters
        ----------
        sensitivity : SensitivityBound
            l2 sensitivity of the answer.
        error : float
            Largest absolute error of any coordinate; above 0.
        delta : float
            Slack; in (0, 1).
        beta : float, default 0.05
            Probability with which the error may be larger; in (0, 1).
        dims : int, default 1
            Number of coordinates.

        Returns
        -------
        Gaussian
            With ``accuracy(beta, dims) <= error``.
        """
        require_movement(sensitivity, "Gaussian", "l2")
        require_positive("error", error)
        delta = _read_delta(delta)
        ratio = max(sensitivity.value * _tail(beta, dims) / error, _LEAST_RATIO)
        if ratio > _LARGEST_RATIO:
            raise ParameterError(f"an error of {error} leaves no privacy; ask for a larger error")
        # A level far below the ratio changes no digit of sigma.
        guess = first_true_near(
            lambda e: released_delta(ratio, e) <= delta,
            max(ratio, 0.5 * ratio * ratio),
            least=_FAR_BELOW * ratio,
        )
        epsilon = smallest_epsilon(
            guess, lambda e: cls(sensitivity, epsilon=e, delta=delta).accuracy(beta, dims), error
        )
        return cls(sensitivity, epsilon=epsilon, delta=delta)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level, that of the discrete law on its grid included."""
        return gaussian(math.nextafter(self.sensitivity.value / self.scale, math.inf))

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises."""
        return self.sensitivity.guarantee(self.epsilon, self.delta)

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
            The normal quantile for independent coordinates, always below the tail bound
            ``sigma sqrt(2 log(dims/beta))``, plus one grid step.
        """
        tail = _tail(beta, dims)
        _check_dims(dims)
        grid = noise.gaussian_grid(sensitivity=self.sensitivity.value, sigma=self.scale, dims=dims)
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
        _check_dims(values.size)
        noisy = noise.add_gaussian(values, sensitivity=self.sensitivity.value, sigma=self.scale)
        return noisy if values.ndim else float(noisy)


def _read_delta(value: float) -> float:
    """Read a slack that somebody asks for: a decimal strictly between 0 and 1."""
    return require_probability("delta", read("delta", value, up=False))


def _check_dims(dims: int) -> None:
    if dims > _MOST_DIMS:
        raise ParameterError(f"Gaussian releases at most {_MOST_DIMS} numbers at once, got {dims}")


@lru_cache(maxsize=256)
def _analytic_multiplier(epsilon: float, delta: float) -> float:
    """Smallest sigma / sensitivity for (epsilon, delta), rounded up."""
    allowed = lower_double(delta)
    return first_true_near(
        lambda sigma: released_delta(round_up(1 / sigma), epsilon) <= allowed, 1.0
    )


def _tail(beta: float, dims: int) -> float:
    """Quantile of the largest of ``dims`` absolute standard normal variables."""
    from scipy.special import ndtri  # noqa: PLC0415  (scipy costs 0.3 s)

    require_probability("beta", beta)
    require_count("dims", dims)
    return -float(ndtri(-math.expm1(math.log1p(-beta) / dims) / 2))
