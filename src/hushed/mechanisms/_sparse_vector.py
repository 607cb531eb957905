"""Sparse vector: which of many answers lie above a threshold; scales, promise and accuracy."""

from __future__ import annotations

import math
import sys
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from numbers import Rational

from hushed._checks import is_real, read_epsilon, require_count, require_probability
from hushed._decimals import decimal_of, read
from hushed._numeric import finite_above
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._arguments import require_movement
from hushed.noise._grid import floor_log2
from hushed.noise._scales import LARGEST_SCALE
from hushed.privacy_loss import PrivacyProfile, randomised_response
from hushed.spaces import SensitivityBound

_GRID_BITS = 20  # the grid is finer than the sensitivity and the noise by this many binary digits


@dataclass(frozen=True, slots=True)
class SparseVector:
    """How answers are compared with a threshold; `hushed.AboveThreshold` asks by it.

    Parameters
    ----------
    sensitivity : SensitivityBound
        Bound on the movement of every answer that will be asked; proven, above 0.
    epsilon : float
        Privacy loss of all answers together, in nats; finite, above 0. It stands for its shortest
        decimal.
    threshold : float
        What the answers are compared with; public, finite.
    positives : int, default 1
        How many answers may be found above.
    monotone : bool, default False
        Whether all answers move the same way, for every pair of neighbours.
    values : float, default 0
        Part of epsilon that pays for noisy values of the answers found above; 0 gives none.
    share : Fraction, optional
        Share of the other part that the threshold is noised for; by default the one that makes the
        variance of a comparison least.

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

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    threshold: float
    positives: int = 1
    monotone: bool = False
    values: float = 0.0
    share: Fraction | None = None

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "AboveThreshold", "l1", "l2", "sup")
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
                f"got {self.values!r}",
                parameter="values",
            )
        object.__setattr__(self, "values", values)
        if not is_real(self.threshold) or not math.isfinite(self.threshold):
            raise ParameterError(
                f"threshold must be a finite number, got {self.threshold!r}", parameter="threshold"
            )
        object.__setattr__(self, "threshold", float(self.threshold))
        object.__setattr__(self, "positives", require_count("positives", self.positives))
        if not isinstance(self.monotone, bool):
            raise ParameterError(f"monotone must be True or False, got {self.monotone!r}")
        if max(self.query_scale, self.value_scale) > LARGEST_SCALE:
            raise ParameterError(
                f"epsilon={self.epsilon} over {self.positives} positives asks for more noise than "
                "can be drawn; give more epsilon, or fewer positives"
            )

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """Parts of epsilon that the threshold and the answers are noised for; exact.

        By default as 1 to ``(2 positives)^(2/3)``, for monotone answers ``positives^(2/3)``, which
        makes the variance of a comparison least (Lyu, Su and Li 2017).
        """
        share = self.share
        if share is None:
            turns = self.positives if self.monotone else 2 * self.positives
            share = 1 / (1 + Fraction(float(turns) ** (2 / 3)).limit_denominator(1000))
        level = decimal_of(self.epsilon) - decimal_of(self.values)
        return level * share, level * (1 - share)

    @property
    def grid(self) -> int:
        """Answers are rounded down to multiples of ``2**grid``: 20 digits below the noise."""
        moved = Fraction(self.sensitivity.value)
        return floor_log2(moved / max(Fraction(1), self.shares[0])) - _GRID_BITS

    @property
    def distance(self) -> int:
        """Steps of the grid that an answer rounded down can move."""
        return math.ceil(Fraction(self.sensitivity.value) / Fraction(2) ** self.grid)

    @property
    def threshold_scale(self) -> Fraction:
        """Scale of the threshold's noise, in steps of the grid."""
        return self.distance / self.shares[0]

    @property
    def query_scale(self) -> Fraction:
        """Scale of each answer's noise, in steps of the grid."""
        turns = self.positives if self.monotone else 2 * self.positives
        return turns * self.distance / self.shares[1]

    @property
    def value_scale(self) -> Fraction:
        """Scale of the Laplace noise on a value, in steps of the grid; 0 if none is given."""
        if not self.values:
            return Fraction(0)
        return self.positives * self.distance / decimal_of(self.values)

    @property
    def scale(self) -> float:
        """Scale of the noise of a comparison of one answer, in the units of the answers."""
        return finite_above(self.query_scale * Fraction(2) ** self.grid)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: that of a coin, of which all answers are an outcome."""
        return randomised_response(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What all answers together promise."""
        return self.sensitivity.guarantee(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Distance from the threshold from which on all answers are right, but with chance beta.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).
        dims : int, default 1
            Number of questions.

        Returns
        -------
        float
            Rounded up, with one step of the grid. No answer that far below the threshold is found
            above, and none that far above is found below.
        """
        require_probability("beta", beta)
        require_count("dims", dims)
        below = self.query_scale * Fraction(math.log(2) + math.log(dims) - math.log(beta))
        above = self.threshold_scale * Fraction(math.log(2) - math.log(beta))
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
        return math.copysign(sys.float_info.max, steps)
