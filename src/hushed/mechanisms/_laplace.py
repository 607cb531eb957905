"""The Laplace mechanism: pure epsilon for answers whose l1 movement is bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

from hushed import noise
from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_count, require_probability
from hushed._ground.decimals import decimal_of, stated_above
from hushed._ground.numeric import COARSE, round_up
from hushed._ground.types import Floats
from hushed.mechanisms._arguments import require_movement
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._law import Known, Law, chance_of_each, plain
from hushed.privacy_loss import PrivacyProfile, laplace
from hushed.spaces import PRIVACY_PROFILE, PURE, Norm, SensitivityBound


@dataclass(frozen=True, slots=True)
class LaplaceNoise(Law):
    """Discrete Laplace noise, made so that an l1 movement of ``bound`` loses ``epsilon``.

    Doubles are rounded to a grid first, and the noise is enlarged by what that may move. To
    ``whole`` numbers it is added as they are: then ``bound`` and ``epsilon`` are exact.
    """

    name: ClassVar[str] = "laplace"
    norms: ClassVar[tuple[Norm, ...]] = ("l1",)
    reach: ClassVar[Mapping[str, int]] = {"absolute": 1, "l1": 1}
    opendp: ClassVar[str] = "make_laplace"

    bound: float | Fraction
    epsilon: float | Fraction
    whole: bool = False

    @classmethod
    def of_scale(cls, scale: float) -> LaplaceNoise:
        """Law of a scale in the units of the answer."""
        return cls(scale, 1.0)

    @classmethod
    def of_steps(cls, bound: Fraction, epsilon: Fraction) -> LaplaceNoise:
        """Law for whole numbers that move by so many steps."""
        return cls(bound, epsilon, whole=True)

    @property
    def scale(self) -> Fraction:
        """Bound over epsilon, exact; what rounding to a grid adds is not in it."""
        level = self.epsilon
        return Fraction(self.bound) / (level if isinstance(level, Fraction) else decimal_of(level))

    def grid(self, dims: int) -> noise.Grid:
        """Grid of the noise on so many doubles."""
        return noise.laplace_grid(
            sensitivity=float(self.bound), epsilon=float(self.epsilon), dims=dims
        )

    def loss(self, moved: float, dims: int = 1) -> Known:
        """Epsilon and curve at a distance; rounding adds a step for each number.

        Notes
        -----
        Dwork, McSherry, Nissim, Smith, TCC 2006.
        """
        level = moved
        if 0 < moved < math.inf and self.whole:
            level = stated_above(Fraction(moved) / self.scale)
        elif 0 < moved < math.inf:
            grid = self.grid(dims)
            steps = Fraction(moved) / Fraction(2) ** grid.exponent + dims
            level = stated_above(steps / Fraction(grid.scale))
        return {PURE: level, PRIVACY_PROFILE: laplace(level)}

    def error(self, beta: float, dims: int = 1) -> float:
        """Error that none of so many numbers exceeds except with probability beta.

        Notes
        -----
        On doubles ``-b log(1 - (1 - beta)^(1/dims))`` and one grid step. On whole numbers, of one
        number, the smallest m with ``P(|X| > m) = 2 q**(m+1) / (1 + q) <= beta``, where
        ``q = exp(-1/scale)``.
        """
        if self.whole:
            inverse = 1 / float(self.scale)
            odds = math.log(2) - math.log(beta) - math.log1p(math.exp(-inverse))
            return float(max(0, math.ceil(round_up(odds / inverse - 1, COARSE))))
        grid, scale = self.grid(dims), float(self.bound) / float(self.epsilon)
        tail = exponential_tail(beta, dims)
        return scale * grid.enlargement * tail + math.ldexp(1, grid.exponent)

    def draw(self, values: Floats) -> float | Floats:
        """Noisy numbers on the grid."""
        return plain(
            noise.add_laplace(values, sensitivity=float(self.bound), epsilon=float(self.epsilon))
        )

    def add_to(self, whole: Sequence[int]) -> list[int]:
        """Noisy whole numbers; nothing is rounded."""
        draws = noise.discrete_laplace(self.scale, len(whole)).tolist()
        return [number + more for number, more in zip(whole, draws, strict=True)]


@called_as("hs.Laplace(sensitivity, epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class Laplace(Calibrated):
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

    law: ClassVar[type[LaplaceNoise]] = LaplaceNoise
    name: ClassVar[str] = LaplaceNoise.name
    norms: ClassVar[tuple[Norm, ...]] = LaplaceNoise.norms

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Laplace", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:
        return self.sensitivity.value * exponential_tail(beta, dims) / error

    @property
    def noise(self) -> LaplaceNoise:
        """Law of the noise."""
        return LaplaceNoise(self.sensitivity.value, self.epsilon)

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


def exponential_tail(beta: float, dims: int) -> float:
    """Level that the largest of several unit exponential variables exceeds with probability beta.

    ``-log(1 - (1 - beta)^(1/count))``; the union bound where the share of each is no double.
    """
    beta, dims = require_probability("beta", beta), require_count("dims", dims)
    each = chance_of_each(beta, dims)
    return -math.log(each) if each > 1e-300 else math.log(dims) - math.log(beta)
