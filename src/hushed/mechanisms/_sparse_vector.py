"""Sparse vector: which of many answers lie above a threshold; scales, promise and accuracy."""

from __future__ import annotations

import math
import sys
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import ClassVar

from hushed._ground.checks import read_epsilon, read_finite, require_count, require_probability
from hushed._ground.decimals import decimal_of, read
from hushed._ground.numeric import finite_above
from hushed._ground.printing import as_given
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import require_movement
from hushed.mechanisms._calibrated import Calibrated
from hushed.noise._grid import floor_log2
from hushed.noise._scales import LARGEST_SCALE
from hushed.privacy_loss import PrivacyProfile, randomised_response
from hushed.spaces import Norm, SensitivityBound

_GRID_BITS = 20  # the grid is finer than the sensitivity and the noise by this many binary digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """Noise of a sparse vector, in steps of a grid; exact."""

    # Parts of epsilon that the threshold and the answers are noised for.
    shares: tuple[Fraction, Fraction]
    grid: int  # a step is ``2**grid``: 20 digits below the sensitivity and the noise
    distance: int  # steps that an answer rounded down can move
    # Scales of the noise on the threshold, on each answer, and on each value; the last is 0 if no
    # values are given.
    threshold: Fraction
    query: Fraction
    value: Fraction


@lru_cache(maxsize=1024)
def lay_scales(
    moved: float,
    epsilons: tuple[float, float],
    positives: int,
    turns: int,
    share: Fraction | None,
    bits: int,
) -> Scales:
    """Lay the grid and split epsilon.

    By default the parts for threshold and answers are as 1 to ``turns^(2/3)``, which makes the
    variance of a comparison least (Lyu, Su and Li 2017). Keys are plain floats, so that equal keys
    mean equal decimals.
    """
    if share is None:
        share = 1 / (1 + Fraction(float(turns) ** (2 / 3)).limit_denominator(1000))
    values = decimal_of(epsilons[1])
    level = decimal_of(epsilons[0]) - values
    shares = (level * share, level * (1 - share))
    grid = floor_log2(Fraction(moved) / max(Fraction(1), shares[0])) - bits
    distance = math.ceil(Fraction(moved) / Fraction(2) ** grid)
    return Scales(
        shares=shares,
        grid=grid,
        distance=distance,
        threshold=distance / shares[0],
        query=turns * distance / shares[1],
        value=positives * distance / values if values else Fraction(0),
    )


@dataclass(frozen=True, slots=True)
class SparseVector(Calibrated):
    """How answers are compared with a threshold; `hushed.AboveThreshold` asks by it.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Dwork and Roth 2014, section 3.6, with the budgets of Lyu, Su and Li, PVLDB 10(6), 2017, and
    one-sided noise, which has half the variance. The answers are rounded down to a grid, and the
    noise is geometric, so that epsilon holds exactly. Proof: docs/noise/sparse-vector.md.
    """

    name: ClassVar[str] = "above-threshold"
    norms: ClassVar[tuple[Norm, ...]] = ("l1", "l2", "sup")
    outcome: ClassVar[str] = (
        "the answer to one question is right, unless it lies within {error} of the threshold; with "
        "more questions it takes more"
    )
    law_name: ClassVar[str] = "one-sided exponential"

    # Bound on the movement of every answer that will be asked; proven, above 0.
    sensitivity: SensitivityBound
    _: KW_ONLY
    # Privacy loss of all answers together, in nats; finite, above 0. It stands for its shortest
    # decimal.
    epsilon: float
    threshold: float  # what the answers are compared with; public, finite
    positives: int = 1  # how many answers may be found above
    monotone: bool = False  # whether all answers move the same way, for every pair of neighbours
    # Part of epsilon that pays for noisy values of the answers found above; 0 gives none.
    values: float = 0.0
    # Share of the other part that the threshold is noised for; by default the one that makes the
    # variance of a comparison least.
    share: Fraction | None = field(default=None, metadata={"stated": False})

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "AboveThreshold", *self.norms)
        if getattr(self.sensitivity, "sampling", None) is not None:
            raise ParameterError(
                "a sampled sensitivity speaks of the one function that was sampled, and every "
                "question may be another one; give a number that bounds all of them, or "
                "hs.proven_sensitivity"
            )
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        values = read("values", self.values, up=False)
        if not 0 <= values < self.epsilon:
            raise ParameterError(
                f"values must be a part of epsilon={self.epsilon}, 0 or more and less than all, "
                f"got {as_given(self.values)}",
                parameter="values",
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "threshold", read_finite("threshold", self.threshold))
        object.__setattr__(self, "positives", require_count("positives", self.positives))
        if not isinstance(self.monotone, bool):
            raise ParameterError(
                f"monotone must be True or False, got {as_given(self.monotone)}",
                parameter="monotone",
            )
        if self.positives > LARGEST_SCALE:
            raise ParameterError("positives must be 2**55 or less", parameter="positives")
        if max(self.scales.query, self.scales.value) > LARGEST_SCALE:
            raise ParameterError(
                f"epsilon={self.epsilon} over {self.positives} positives asks for more noise than "
                "can be drawn; give more epsilon, or fewer positives"
            )

    @property
    def scales(self) -> Scales:
        """Grid and noise, exact."""
        return lay_scales(
            self.sensitivity.value,
            (self.epsilon, self.values),
            self.positives,
            self.positives if self.monotone else 2 * self.positives,
            self.share,
            _GRID_BITS,
        )

    def _values_of(self, shape: tuple[int, ...] | None) -> int:  # noqa: ARG002
        return 1

    def _drawn(self, values: int) -> tuple[float, int]:  # noqa: ARG002
        return self.scale, self.grid

    @property
    def grid(self) -> int:
        """Answers are rounded down to multiples of ``2**grid``."""
        return self.scales.grid

    @property
    def scale(self) -> float:
        """Scale of the noise of a comparison of one answer, in the units of the answers."""
        return finite_above(self.scales.query * Fraction(2) ** self.grid)

    @property
    def value_scale(self) -> float | None:
        """Scale of the Laplace noise on each value, in the units of the answers; None without."""
        steps = self.scales.value
        return finite_above(steps * Fraction(2) ** self.grid) if steps else None

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: that of a coin, of which all answers are an outcome."""
        return randomised_response(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Distance from the threshold from which on all answers are right except with chance beta.

        Rounded up, with one step of the grid. No answer that far below the threshold is found
        above, and none that far above is found below.
        """
        require_probability("beta", beta)
        require_count("dims", dims)
        below = self.scales.query * Fraction(math.log(2) + math.log(dims) - math.log(beta))
        above = self.scales.threshold * Fraction(math.log(2) - math.log(beta))
        far = (max(above, below) * (1 + Fraction(1, 1 << 40)) + 1) * Fraction(2) ** self.grid
        return finite_above(far)


def round_down(answer: Rational, grid: int) -> int:
    """Round an exact number down to the multiples of ``2**grid``, in steps."""
    above, below = int(answer.numerator), int(answer.denominator)
    return (above << -grid) // below if grid < 0 else above // (below << grid)


def to_double(steps: int, grid: int) -> float:
    """Nearest double of so many steps; beyond the doubles the largest one."""
    try:
        return float(steps * Fraction(2) ** grid)
    except OverflowError:
        return math.copysign(sys.float_info.max, 1 if steps > 0 else -1)
