"""Top k: the best candidates by private scores, chosen together."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_count, require_probability
from hushed._ground.decimals import decimal_of
from hushed._ground.numeric import finite_above
from hushed._ground.types import Floats, Integers
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import (
    bound_spread,
    finite_values,
    require_monotone,
    require_movement,
)
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._sparse_vector import round_down
from hushed.noise._grid import floor_log2
from hushed.noise._joint import select_top
from hushed.privacy_loss import PrivacyProfile, bounded_range
from hushed.spaces import Norm, SensitivityBound

TOP_K_BITS = 30
_FAR = 2.0**60  # steps that are counted in 64 bits, differences included
MOST_PAIRS = 1 << 22  # places times candidates, which are listed
MOST_PLACES = 1 << 14
_LEAST_EPSILON = 2.0**-200


@called_as("hs.TopK(3, sup_sensitivity, epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class TopK(Calibrated):
    """Choose the k best candidates together, with the joint exponential mechanism.

    Parameters
    ----------
    k : int
        How many candidates are chosen; 1 or more.
    sensitivity : SensitivityBound
        Sensitivity of the vector of scores: in the sup norm (no score moves further), or its
        range (largest minus smallest movement).
    epsilon : float
        Privacy loss of all k choices together, in nats; finite, above 0. It stands for its shortest
        decimal.
    monotone : bool, default False
        Declare that adding a record moves all scores the same way; the noise is halved. Allowed
        for a sup-norm sensitivity under add-remove neighbours only.

    Raises
    ------
    WrongNorm, ZeroSensitivity, ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Gillenwater, Joseph, Munoz Medina and Ribero, *A Joint Exponential Mechanism For Differentially
    Private Top-k*, ICML 2022, here with exact draws. A choice is as good as its worst place: the
    largest distance between the i-th best score and the i-th chosen one. It pays for all orders of
    all candidates: where many lie close behind the best ones, k releases of ``TopK(1)`` at
    epsilon / k are better (`accuracy_one_by_one`). Proof and measurements: docs/noise/joint.md.

    Examples
    --------
    >>> from hushed import proven_sensitivity
    >>> s = proven_sensitivity(1.0, "sup", neighbours="add-remove", argument="counts of rows")
    >>> best = TopK(2, s, epsilon=1.0, monotone=True)
    >>> best.draw([10.0, 900.0, 2000.0, 30.0]).tolist()
    [2, 1]
    """

    name: ClassVar[str] = "top-k"
    norms: ClassVar[tuple[Norm, ...]] = ("sup", "range")
    law_name: ClassVar[str] = "joint exponential"
    outcome: ClassVar[str] = (
        "each chosen candidate's score is within {error} of the best one for its place, of "
        "{values} candidates"
    )

    k: int
    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_count("k", self.k))
        require_movement(self.sensitivity, "TopK", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        if self.k > MOST_PLACES or self.epsilon < _LEAST_EPSILON:
            raise ParameterError(
                f"k must be {MOST_PLACES} or less and epsilon 2**-200 or more, got k={self.k}, "
                f"epsilon={self.epsilon}"
            )
        require_monotone(self.monotone, self.sensitivity)

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:
        step = math.ldexp(1.0, self.grid)
        return (self.accuracy(beta, dims) - step) / max(error - step, 0.5 * error, 5e-324)

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        if shape is None:
            return self.k
        if len(shape) != 1:
            raise ParameterError(
                f"TopK chooses by one list of scores, the sampled answers have shape {shape}"
            )
        if shape[0] < self.k:
            raise ParameterError(
                f"TopK with k={self.k} chooses among {self.k} candidates or more, the sampled "
                f"answers have {shape[0]}"
            )
        return shape[0]

    def _drawn(self, values: int) -> tuple[float, int]:  # noqa: ARG002
        return self.scale, self.grid

    @property
    def grid(self) -> int:
        """Scores are rounded down to multiples of ``2**grid``."""
        return floor_log2(Fraction(self.sensitivity.value)) - TOP_K_BITS

    @property
    def rate(self) -> Fraction:
        """What a step of loss costs in the logarithm of the probability; exact."""
        return compute_rate(
            self.k, self.sensitivity.value, self.sensitivity.norm, self.epsilon, self.monotone
        )

    @property
    def scale(self) -> float:
        """Temperature: a choice this much worse is e times less likely; units of the score."""
        return finite_above(Fraction(2) ** self.grid / self.rate)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: the losses of all choices lie in a range of epsilon."""
        return bounded_range(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Shortfall of every place against the best one for it except with probability beta.

        ``scale log(n (n - 1) ... (n - k + 1) / beta)``, rounded up, plus one grid step.
        """
        require_probability("beta", beta)
        count = max(require_count("dims", dims), self.k)
        choices = math.lgamma(count + 1) - math.lgamma(count - self.k + 1)
        far = Fraction(max(choices, 0.0) * (1 + 1e-9) + 1e-9 - math.log(beta)) / self.rate
        return finite_above((far + 1) * Fraction(2) ** self.grid)

    def accuracy_one_by_one(self, beta: float = 0.05, dims: int = 1) -> float:
        """Shortfall of every place if k rounds of ``TopK(1)`` choose, each at epsilon / k.

        Each round leaves out what was chosen before. To compare with `accuracy`: on a flat tail,
        with many candidates close behind the best ones, this is better.

        Parameters
        ----------
        beta : float, default 0.05
            Probability with which a place may fall shorter, over all rounds; in (0, 1).
        dims : int, default 1
            Candidates; ``k`` at least.

        Returns
        -------
        float
            The shortfall, in the unit of the scores.
        """
        require_probability("beta", beta)
        count = max(require_count("dims", dims), self.k)
        moved, norm = self.sensitivity.value, self.sensitivity.norm
        rate = compute_rate(1, moved, norm, self.epsilon, self.monotone) / self.k
        far = Fraction((math.log(count) + math.log(self.k)) * (1 + 1e-9) + 1e-9 - math.log(beta))
        return finite_above((far / rate + 1) * Fraction(2) ** self.grid)

    def draw(self, scores: ArrayLike) -> Integers:
        """Choose candidates by one score for each; larger is better.

        Indices of k different candidates; the first is meant for the best score, and so on.
        """
        values = finite_values(scores)
        if values.ndim != 1:
            raise ParameterError(
                "scores must be one list of numbers", parameter="scores"
            )  # the shape is private
        if not self.k <= values.size <= MOST_PAIRS // self.k:
            raise ParameterError(
                f"the number of candidates must lie between k={self.k} and {MOST_PAIRS // self.k}"
            )
        return select_top(list_steps(values, self.grid), k=self.k, rate=self.rate)


def list_steps(values: Floats, grid: int) -> Integers | NDArray[np.object_]:
    """Count the steps of each score, rounded down, from the best one; exact, if need be as objects.

    Scores that all move within a range still do, but for one and the same number.
    """
    with np.errstate(over="ignore", under="ignore"):
        steps = np.floor(np.ldexp(values, -grid))
    if np.abs(steps).max() < _FAR:
        whole = steps.astype(np.int64)
        return np.asarray(whole - whole.max())
    exact = np.array([round_down(Fraction(value), grid) for value in values.tolist()], dtype=object)
    return np.asarray(exact - exact.max())


@lru_cache(maxsize=1024)
def compute_rate(k: int, moved: float, norm: Norm, epsilon: float, monotone: bool) -> Fraction:
    """Divide epsilon by the range of the loss of a choice, in steps of the grid.

    Scores move within a range r; so do ordered scores. The difference of two of them moves by r at
    most either way, and so does the largest of several differences: a range of 2 r. With one place
    all choices have the same ordered score in common, and r is enough.
    """
    step = Fraction(2) ** (floor_log2(Fraction(moved)) - TOP_K_BITS)
    distance = math.ceil(Fraction(moved) / step)
    spread = bound_spread(distance, norm, monotone=monotone)
    return decimal_of(epsilon) / (spread if k == 1 else 2 * spread)
