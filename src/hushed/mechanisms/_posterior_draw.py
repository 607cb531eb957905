"""One draw from a tempered posterior on public candidates: the exponential mechanism, by name."""

from __future__ import annotations

import math
import re
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hushed import noise
from hushed._ground.checks import read_epsilon, require_probability
from hushed._ground.numeric import ARITHMETIC, round_up
from hushed._ground.printing import as_given
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import finite_values, require_movement
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._exponential import ExponentialChoice
from hushed.mechanisms._law import Law
from hushed.privacy_loss import PrivacyProfile, bounded_range
from hushed.spaces import Norm, SensitivityBound

_FINGERPRINT = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PosteriorDraw(Calibrated):
    """Draw a candidate with odds ``prior * exp(epsilon * score / range)``.

    ``least`` is the smallest weight of a candidate, as a share of all; ``points`` and ``offsets``
    are the candidates and what the prior adds to their scores, which a certificate has no more of
    than a fingerprint.
    """

    name: ClassVar[str] = "posterior"
    law: ClassVar[type[Law]] = ExponentialChoice
    norms: ClassVar[tuple[Norm, ...]] = ("range",)
    law_name: ClassVar[str] = "tempered posterior"
    outcome: ClassVar[str] = (
        "the score of the drawn value (its log likelihood, as clipped where there is a clip, or "
        "the mean over rows if the range was sampled) is within {error} of the best of {values} "
        "candidates"
    )

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    fingerprint: str
    least: float
    prior: bool = False
    points: Floats | None = field(
        default=None, repr=False, compare=False, metadata={"stated": False}
    )
    offsets: Floats | None = field(
        default=None, repr=False, compare=False, metadata={"stated": False}
    )

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Posterior", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        if not 0 < self.least <= 1:
            raise ParameterError(f"least must be a share in (0, 1], got {as_given(self.least)}")
        if not isinstance(self.fingerprint, str) or not _FINGERPRINT.fullmatch(self.fingerprint):
            raise ParameterError("the fingerprint of the candidates is none")

    @property
    def noise(self) -> ExponentialChoice:
        """Law of the choice."""
        return ExponentialChoice(self.sensitivity.value, self.epsilon)

    @property
    def scale(self) -> float:
        """Temperature: a candidate this much worse is e times less likely; units of the score."""
        return self.sensitivity.value / self.epsilon

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: the losses of all candidates lie in a range of epsilon."""
        return bounded_range(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:  # noqa: ARG002
        """Shortfall of the drawn score against the best, exceeded with probability beta.

        Notes
        -----
        All candidates that are worse than the best by t have together at most
        ``exp(-t / scale) / least`` of the best one's weight.
        """
        require_probability("beta", beta)
        scale, grid = self.noise.drawn()
        tail = -math.log(self.least) - math.log(beta)
        return round_up(scale * tail, ARITHMETIC) + math.ldexp(1.0, grid)

    def draw(self, value: ArrayLike) -> Any:
        """Draw a candidate by the scores of all: a number, or an array of its coordinates."""
        scores, points = self._read_scores(value)
        drawn = points[noise.select(scores, width=self.sensitivity.value, epsilon=self.epsilon)]
        return drawn.copy() if drawn.ndim else float(drawn)

    def compute_chances(self, value: ArrayLike) -> Floats:
        """Probability of each candidate, as doubles compute it, by public scores."""
        scores, _ = self._read_scores(value)
        chances = np.exp((scores - scores.max()) / self.noise.drawn()[0])
        return np.asarray(chances / chances.sum())

    def _read_scores(self, value: ArrayLike) -> tuple[Floats, Floats]:
        """Scores with what the prior adds, and the candidates."""
        scores = finite_values(value)
        if self.points is None or self.offsets is None or scores.shape != self.offsets.shape:
            raise ParameterError("there must be a score for each candidate")  # the shape is private
        return scores + self.offsets, self.points

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        count = shape[0] if shape else len(self.points) if self.points is not None else 1
        if shape is not None and len(shape) != 1:
            raise ParameterError("a posterior chooses by one list of scores")
        if self.points is not None and count != len(self.points):
            raise ParameterError("there must be a score for each candidate")
        even = 1 / count
        if self.least > even * (1 + 1e-9) or (not self.prior and self.least != even):
            raise ParameterError("least is no share of so many candidates")
        return count
