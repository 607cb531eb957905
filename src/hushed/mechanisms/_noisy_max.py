"""Noisy max with its gap: the best candidate, and how far ahead it is."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._ground.calls import called_as, given_by
from hushed._ground.checks import read_epsilon, require_count, require_probability
from hushed._ground.decimals import decimal_of
from hushed._ground.numeric import COARSE, finite_above, round_up
from hushed._ground.types import Floats, Integers
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import (
    bound_spread,
    finite_values,
    require_monotone,
    require_movement,
)
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._sparse_vector import to_double
from hushed.mechanisms._top_k import list_steps
from hushed.noise._entropy import operating_system_words
from hushed.noise._grid import floor_log2
from hushed.noise._scales import LARGEST_SCALE, scale_of
from hushed.noise._vectors import laplace_draws
from hushed.privacy_loss import PrivacyProfile, randomised_response
from hushed.spaces import Norm, SensitivityBound

NOISY_MAX_BITS = 20  # a scale of the noise is so many binary digits of steps


@given_by("hs.release(scores, rows, hs.NoisyMax(sup_sensitivity, epsilon=1.0)).value")
@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """The chosen candidate.

    Parameters
    ----------
    index : int
        Its index, from 0.
    gap : float
        How far its noisy score is ahead of the next one; 0 or more.
    """

    index: int
    gap: float


@called_as("hs.NoisyMax(sup_sensitivity, epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class NoisyMax(Calibrated):
    """Choose the candidate with the largest noisy score, and tell how far ahead it is.

    Parameters
    ----------
    sensitivity : SensitivityBound
        Sensitivity of the vector of scores: in the sup norm (no score moves further), or its
        range (largest minus smallest movement).
    epsilon : float
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal.
    monotone : bool, default False
        Declare that adding a record moves all scores the same way; the noise is halved. Allowed
        for a sup-norm sensitivity under add-remove neighbours only.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Ding, Wang, Zhang, Kifer, *Free Gap Information*, PVLDB 13(3), 2019, with Laplace noise; here on
    integers, where ties occur. The gap costs nothing more, the noisy maximum itself would. Who does
    not need the gap chooses with less error by `Exponential`. Proof: docs/noise/sparse-vector.md.

    Examples
    --------
    >>> from hushed import proven_sensitivity
    >>> s = proven_sensitivity(1.0, "sup", neighbours="add-remove", argument="counts of rows")
    >>> NoisyMax(s, epsilon=1.0, monotone=True).draw([10.0, 900.0, 30.0]).index
    1
    """

    name: ClassVar[str] = "noisy-max"
    norms: ClassVar[tuple[Norm, ...]] = ("sup", "range")
    law_name: ClassVar[str] = "Laplace"
    fewest: ClassVar[int] = 2
    outcome: ClassVar[str] = (
        "the chosen candidate's score is within {error} of the best of {values}"
    )

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    monotone: bool = False

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "NoisyMax", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        require_monotone(self.monotone, self.sensitivity)
        if self.noise_scale > LARGEST_SCALE:
            raise ParameterError(
                f"epsilon={self.epsilon} asks for more noise than can be drawn; give more",
                parameter="epsilon",
            )

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:
        step = math.ldexp(1.0, self.grid)
        coarse = 4 * step / error  # a step is finer in proportion to epsilons above 1
        least = float(self.noise_scale) / LARGEST_SCALE * (1 + 2.0**-40)
        usual = (self.accuracy(beta, dims) - step) / error
        return max(usual, coarse if coarse > 1 else 0.0, least)

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        if shape is not None and (len(shape) != 1 or shape[0] < 2):
            raise ParameterError(
                "NoisyMax chooses by one list of two scores or more, the sampled answers have "
                f"shape {shape}"
            )
        return shape[0] if shape else 2

    def _drawn(self, values: int) -> tuple[float, int]:  # noqa: ARG002
        return self.scale, self.grid

    @property
    def grid(self) -> int:
        """Scores are rounded down to multiples of ``2**grid``."""
        moved = self.sensitivity
        return _lay(moved.value, moved.norm, self.epsilon, self.monotone, NOISY_MAX_BITS)[0]

    @property
    def noise_scale(self) -> Fraction:
        """Scale of the Laplace noise on each score, in steps of the grid; exact."""
        moved = self.sensitivity
        return _lay(moved.value, moved.norm, self.epsilon, self.monotone, NOISY_MAX_BITS)[1]

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on each score, in its units."""
        return finite_above(self.noise_scale * Fraction(2) ** self.grid)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: that of randomised response, which no other exceeds."""
        return randomised_response(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Shortfall of the chosen score against the best, exceeded with probability at most beta.

        ``u scale``, rounded up, plus one grid step, where ``(dims - 1) exp(-u) (u + 2) / 4 =
        beta``: the chance that the noise of one candidate is that far ahead of the best one's, at
        most dims - 1 times. Between 1 and 2 candidates count as 2.
        """
        require_probability("beta", beta)
        far = self.noise_scale * Fraction(_find_lead(max(require_count("dims", dims), 2), beta))
        return finite_above((far + 1) * Fraction(2) ** self.grid)

    def draw(self, scores: ArrayLike) -> Winner:
        """Choose a candidate by one score for each, two at least; larger is better."""
        values = finite_values(scores)
        if values.ndim != 1 or values.size < 2:
            raise ParameterError(
                "scores must be one list of two numbers or more", parameter="scores"
            )
        return draw_winner(values, self.grid, self.noise_scale)


def draw_winner(scores: Floats, grid: int, scale: Fraction) -> Winner:
    """Choose by noise of a scale in steps of the grid, exact."""
    noisy = add_noise(list_steps(scores, grid), scale)
    index = int(np.argmax(noisy))  # of equal ones the first
    # Whoever comes first wins a tie: to be ahead of it takes one step more.
    ahead = [int(part.max()) for part in (noisy[:index] + 1, noisy[index + 1 :]) if part.size]
    return Winner(index=index, gap=to_double(int(noisy[index]) - max(ahead), grid))


def _find_lead(candidates: int, beta: float) -> float:
    """Find by how many scales noise may lead that of the best one; exceeded with chance beta.

    The difference of two draws is u scales or more with chance ``exp(-u) (u + 2) / 4`` for Laplace
    noise; on a grid of 2**20 steps a scale, where ``p = exp(-1 / m)`` and k steps are u scales,
    with ``p**k (1 - p) / (1 + p)**2 (k + p / (1 - p) + (1 + p**2) / (1 - p**2))``, which is larger
    by less than 2**-17 of it.
    """
    start = math.log(candidates - 1) - math.log(4 * beta) + 2.0**-16
    lead = 2 * max(start, 0.0) + 4
    for _ in range(64):  # from above, and stays above: the slope is below 1 / 2
        lead = max(start + math.log(lead + 2), 0.0)
    return round_up(lead, COARSE)


def add_noise(
    steps: Integers | NDArray[np.object_], scale: Fraction
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Add exact discrete Laplace noise to whole numbers; as Python integers where it is wide."""
    draws = laplace_draws(operating_system_words(), scale_of(scale), steps.size)
    if not draws.wide:
        return np.asarray(steps + draws.values)
    noisy = steps.astype(object) + draws.values.astype(object)
    for index, value in draws.wide.items():
        noisy[index] = int(steps[index]) + value
    return np.asarray(noisy)


@lru_cache(maxsize=1024)
def _lay(
    moved: float, norm: Norm, epsilon: float, monotone: bool, bits: int
) -> tuple[int, Fraction]:
    """Lay the grid, and divide the range of the movements by epsilon."""
    level = decimal_of(epsilon)
    grid = floor_log2(Fraction(moved) / max(Fraction(1), level)) - bits
    distance = math.ceil(Fraction(moved) / Fraction(2) ** grid)
    return grid, bound_spread(distance, norm, monotone=monotone) / level
