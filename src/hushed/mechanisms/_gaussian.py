"""The Gaussian mechanism: (epsilon, delta) for answers whose l2 movement is bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np

from hushed import noise
from hushed._ground.calls import called_as
from hushed._ground.checks import (
    read_epsilon,
    require_count,
    require_one_of,
    require_probability,
)
from hushed._ground.decimals import lower_double, read, stated_above
from hushed._ground.numeric import COARSE, finite_above, first_true_near, root_above, round_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import require_movement
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._law import Known, Law, chance_of_each, plain
from hushed.privacy_loss import PrivacyProfile, gaussian
from hushed.privacy_loss._gaussian import released_delta
from hushed.spaces import PRIVACY_PROFILE, ZCDP, Measure, Norm, SensitivityBound

Variant = Literal["analytic", "classic"]

MOST_NUMBERS = 2**20  # that the lemma on discrete noise is used for
_LEAST_RATIO, _LARGEST_RATIO = 1e-60, 1e15
_FAR_BELOW = 2.0**-40


@dataclass(frozen=True, slots=True)
class GaussianNoise(Law):
    """Discrete Gaussian noise on a grid, of a sigma that was made for an l2 movement of ``bound``.

    Sigma is enlarged by what rounding to the grid may move. To ``whole`` numbers the noise is added
    exactly, and only the sum is rounded.
    """

    name: ClassVar[str] = "gaussian"
    norms: ClassVar[tuple[Norm, ...]] = ("l2",)
    reach: ClassVar[Mapping[str, int]] = {"absolute": 1, "l2": 1}
    measure: ClassVar[Measure] = ZCDP
    opendp: ClassVar[str] = "make_gaussian"

    bound: float
    sigma: float
    whole: bool = False

    @classmethod
    def of_scale(cls, scale: float) -> GaussianNoise:
        """Law of a scale in the units of the answer."""
        return cls(scale, scale)

    def grid(self, dims: int) -> noise.Grid:
        """Grid of the noise for a vector of this many numbers."""
        if dims > MOST_NUMBERS:
            raise ParameterError(
                f"gaussian noise is for at most {MOST_NUMBERS} numbers at once, got {dims}"
            )
        return noise.gaussian_grid(sensitivity=self.bound, sigma=self.sigma, dims=dims)

    def loss(self, moved: float, dims: int = 1) -> Known:
        """Rho and curve at a distance; rounding adds ``sqrt(dims)`` steps.

        Notes
        -----
        Bun and Steinke, TCC 2016; for the discrete law that is drawn, Canonne, Kamath, Steinke,
        NeurIPS 2020, Theorem 14. Curve: Balle and Wang, ICML 2018.
        """
        if not 0 < moved < math.inf:
            return {ZCDP: moved, PRIVACY_PROFILE: gaussian(moved)}
        grid = self.grid(dims)
        steps = Fraction(moved) / Fraction(2) ** grid.exponent + root_above(dims)
        ratio = steps / Fraction(grid.scale)
        return {
            ZCDP: stated_above(ratio * ratio / 2),
            PRIVACY_PROFILE: gaussian(finite_above(ratio)),
        }

    def error(self, beta: float, dims: int = 1) -> float:
        """Error that none of so many numbers exceeds except with probability beta.

        Notes
        -----
        The normal quantile and one grid step. On whole numbers, of one out of as many as may be
        released; rounded up.
        """
        if self.whole:
            grid = self.grid(MOST_NUMBERS)
            tail = round_up(_normal_tail(beta) * self.sigma * grid.enlargement, COARSE)
        else:
            grid = self.grid(dims)
            tail = self.sigma * grid.enlargement * _normal_tail(_each(beta, dims))
        return tail + math.ldexp(1.0, grid.exponent)

    def draw(self, values: Floats) -> float | Floats:
        """Noisy numbers on the grid."""
        self.grid(max(np.size(values), 1))
        return plain(noise.add_gaussian(values, sensitivity=self.bound, sigma=self.sigma))

    def add_to(self, whole: Sequence[int]) -> list[float]:
        """Noisy whole numbers; nothing is rounded but the sum."""
        if not whole:
            return []
        grid = self.grid(len(whole))
        draws = noise.discrete_gaussian(grid.scale, len(whole)).tolist()
        return [
            _add_on_grid(number, more, grid.exponent)
            for number, more in zip(whole, draws, strict=True)
        ]


def _add_on_grid(number: int, more: int, exponent: int) -> float:
    """Add noise in steps of ``2**exponent`` to a whole number; the nearest double."""
    if exponent <= 0:
        return ((number << -exponent) + more) / (1 << -exponent)
    rounded = (number + (1 << (exponent - 1))) >> exponent  # ties upwards
    return math.ldexp(float(rounded + more), exponent)


@called_as("hs.Gaussian(l2_sensitivity, epsilon=1.0, delta=1e-6)")
@dataclass(frozen=True, slots=True)
class Gaussian(Calibrated):
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

    law: ClassVar[type[GaussianNoise]] = GaussianNoise
    name: ClassVar[str] = GaussianNoise.name
    norms: ClassVar[tuple[Norm, ...]] = GaussianNoise.norms

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    delta: float
    variant: Variant = "analytic"
    scale: float = field(init=False, compare=False)

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Gaussian", *self.norms)
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

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:
        tail = _normal_tail(_each(beta, dims))
        ratio = max(self.sensitivity.value * tail / error, _LEAST_RATIO)
        if ratio > _LARGEST_RATIO:
            raise ParameterError(f"an error of {error} leaves no privacy; ask for a larger error")
        # A level far below the ratio changes no digit of sigma.
        return first_true_near(
            lambda e: released_delta(ratio, e) <= self.delta,
            max(ratio, 0.5 * ratio * ratio),
            least=_FAR_BELOW * ratio,
        )

    @property
    def noise(self) -> GaussianNoise:
        """Law of the noise."""
        return GaussianNoise(self.sensitivity.value, self.scale)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level, that of the discrete law on its grid included."""
        return profile_of(self.sensitivity.value, self.scale)


def profile_of(sensitivity: float, sigma: float) -> PrivacyProfile:
    """Privacy loss of Gaussian noise; the quotient is one operation, and rounded up."""
    return gaussian(math.nextafter(sensitivity / sigma, math.inf))


def _read_delta(value: float) -> float:
    """Read a slack that somebody asks for: a decimal strictly between 0 and 1."""
    return require_probability("delta", read("delta", value, up=False))


@lru_cache(maxsize=256)
def _analytic_multiplier(epsilon: float, delta: float) -> float:
    """Smallest sigma / sensitivity for (epsilon, delta), rounded up."""
    allowed = lower_double(delta)
    return first_true_near(
        lambda sigma: released_delta(round_up(1 / sigma), epsilon) <= allowed, 1.0
    )


def _each(beta: float, dims: int) -> float:
    beta, dims = require_probability("beta", beta), require_count("dims", dims)
    return chance_of_each(beta, dims)


def _normal_tail(chance: float) -> float:
    """Size that a standard normal variable exceeds with this probability, in either direction."""
    from scipy.special import ndtri  # noqa: PLC0415  (scipy costs 0.3 s)

    return -float(ndtri(chance / 2))
