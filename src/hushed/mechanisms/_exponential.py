"""The exponential mechanism: a private choice among finitely many candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from hushed import noise
from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_count, require_probability
from hushed._ground.decimals import decimal_of, stated_above
from hushed._ground.numeric import ARITHMETIC, round_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import (
    count_directions,
    finite_values,
    require_monotone,
    require_movement,
)
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._law import Known, Law
from hushed.privacy_loss import PrivacyProfile, bounded_range
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP, Norm, SensitivityBound


@dataclass(frozen=True, slots=True)
class ExponentialChoice(Law):
    """A choice that loses ``epsilon`` where the changes of all scores lie in a range of ``width``.

    Scores are rounded to a grid first, and the width is enlarged by what that may move.
    """

    name: ClassVar[str] = "exponential"
    norms: ClassVar[tuple[Norm, ...]] = ("sup", "range")
    # Largest minus smallest change of a score, for each unit of distance.
    reach: ClassVar[Mapping[str, int]] = {"sup": 2, "one-sided": 1, "l1": 1}
    selects: ClassVar[bool] = True
    opendp: ClassVar[str] = "make_noisy_max"

    width: float
    epsilon: float

    @classmethod
    def of_scale(cls, scale: float) -> ExponentialChoice:
        """Choice of a temperature in the units of the scores."""
        return cls(scale, 1.0)

    def drawn(self, dims: int = 1) -> tuple[float, int]:  # noqa: ARG002
        """Temperature as drawn, and the exponent of the grid."""
        return noise.selection_scale(width=self.width, epsilon=self.epsilon)

    def loss(self, moved: float, dims: int = 1) -> Known:  # noqa: ARG002
        """Epsilon, rho and curve where the changes of the scores lie in a range of ``moved``."""
        level = moved
        if 0 < moved < math.inf:
            level = stated_above(
                noise.selection_loss(width=self.width, epsilon=self.epsilon, moved=moved)
            )
        return bounded_losses(level)

    def error(self, beta: float, dims: int = 1) -> float:
        """Shortfall against the best of so many candidates, exceeded with probability beta."""
        scale, grid = self.drawn()
        return round_up(scale * _regret_tail(beta, dims), ARITHMETIC) + math.ldexp(1.0, grid)

    def draw(self, values: Floats) -> int:
        """Index of the chosen candidate."""
        return noise.select(values, width=self.width, epsilon=self.epsilon)


def bounded_losses(epsilon: float) -> Known:
    """Epsilon, rho and curve of a choice whose losses lie in a range of this width; rounded up.

    Notes
    -----
    For the logarithm ``f(t)`` of the mean of ``exp(t loss)`` under the second law
    ``f(0) = f(1) = 0`` and ``f''(t) <= epsilon**2 / 4``, a variance on an interval of that
    length. So ``f(t) - t (t - 1) epsilon**2 / 8`` is concave, and at most 0 beyond 1: rho is
    ``epsilon**2 / 8`` (Cesar and Rogers, ALT 2021).
    """
    known: Known = {PURE: epsilon, PRIVACY_PROFILE: bounded_range(epsilon)}
    if not 0 < epsilon < math.inf:
        return known
    return {**known, ZCDP: stated_above(decimal_of(epsilon) ** 2 / 8)}


@called_as("hs.Exponential(sup_sensitivity, epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class Exponential(Calibrated):
    """Choose a candidate with probability growing exponentially in its score.

    Parameters
    ----------
    sensitivity : SensitivityBound
        Sensitivity of the vector of scores: in the sup norm (no score moves further), or its
        range (largest minus smallest movement), which is at most twice as large and often less.
    epsilon : float
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal: 0.1 is one
        tenth.
    monotone : bool, default False
        Declare that adding a record moves all scores the same way; the factor 2 then drops.
        Allowed for a sup-norm sensitivity under add-remove neighbours only.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If a parameter cannot be used.

    Notes
    -----
    McSherry and Talwar, FOCS 2007. Under replacement the factor 2 is needed even for counts:
    (3, 3) to (2, 4) loses 1.434 at epsilon = 1 without it. Range: Durfee and Rogers,
    NeurIPS 2019.
    """

    law: ClassVar[type[ExponentialChoice]] = ExponentialChoice
    name: ClassVar[str] = ExponentialChoice.name
    norms: ClassVar[tuple[Norm, ...]] = ExponentialChoice.norms
    outcome: ClassVar[str] = (
        "the chosen candidate's score is within {error} of the best of {values}"
    )

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    monotone: bool = False

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Exponential", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        require_monotone(self.monotone, self.sensitivity)

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:
        step = math.ldexp(1.0, self.noise.drawn()[1])
        return self.width * _regret_tail(beta, dims) / max(error - step, 0.5 * error, 5e-324)

    @property
    def noise(self) -> ExponentialChoice:
        """Law of the choice."""
        return ExponentialChoice(self.width, self.epsilon)

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        if shape is not None and len(shape) != 1:
            raise ParameterError(
                f"Exponential chooses by one list of scores, the sampled answers have shape {shape}"
            )
        return shape[0] if shape else 1

    @property
    def scale(self) -> float:
        """Temperature: a candidate this much worse is e times less likely; units of the score."""
        return self.width / self.epsilon

    @property
    def width(self) -> float:
        """Bound on the largest minus the smallest movement of a score."""
        ways = count_directions(self.sensitivity.norm, monotone=self.monotone)
        return self.sensitivity.value * ways

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: the losses of all candidates lie in a range of epsilon."""
        return bounded_range(self.epsilon)

    def draw(self, scores: ArrayLike) -> int:
        """Choose a candidate by one score for each, larger is better; its index."""
        values = finite_values(scores)
        if values.ndim != 1:
            raise ParameterError(
                "scores must be one list of numbers", parameter="scores"
            )  # the shape is private
        return self.noise.draw(values)


def _regret_tail(beta: float, dims: int) -> float:
    """Regret of a race among ``dims`` candidates in units of the scale except with chance beta."""
    beta, dims = require_probability("beta", beta), require_count("dims", dims)
    return math.log(dims) - math.log(beta)
