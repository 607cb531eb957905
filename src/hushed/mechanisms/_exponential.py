"""The exponential mechanism: a private choice among finitely many candidates."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from numpy.typing import ArrayLike

from hushed import noise
from hushed._checks import read_epsilon, require_count, require_positive, require_probability
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._arguments import finite_values, require_movement, smallest_epsilon
from hushed.privacy_loss import PrivacyProfile, bounded_range
from hushed.spaces import SensitivityBound


@dataclass(frozen=True, slots=True)
class Exponential:
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

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    monotone: bool = False

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "Exponential", "sup", "range")
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        if self.monotone and (
            self.sensitivity.norm != "sup" or self.sensitivity.neighbours != "add-remove"
        ):
            raise ParameterError(
                "monotone=True holds for a sup-norm sensitivity under add-remove neighbours only, "
                f"got norm {self.sensitivity.norm!r} under {self.sensitivity.neighbours!r}; "
                "replacing a record can raise one score and lower another"
            )

    @classmethod
    def for_accuracy(
        cls, sensitivity: SensitivityBound, *, error: float, beta: float = 0.05, dims: int = 1
    ) -> Exponential:
        """Mechanism with the smallest epsilon that keeps the regret within a bound.

        Parameters
        ----------
        sensitivity : SensitivityBound
            Sensitivity of the scores, sup norm or range.
        error : float
            Largest shortfall of the chosen score against the best one; above 0.
        beta : float, default 0.05
            Probability with which it may be larger; in (0, 1).
        dims : int, default 1
            Number of candidates.

        Returns
        -------
        Exponential
            With ``accuracy(beta, dims) <= error``.
        """
        require_positive("error", error)
        one = cls(sensitivity, epsilon=1.0)
        step = math.ldexp(1.0, noise.selection_scale(width=one.width, epsilon=1.0)[1])
        guess = one.width * _tail(beta, dims) / max(error - step, 0.5 * error, 5e-324)
        epsilon = smallest_epsilon(
            guess, lambda e: cls(sensitivity, epsilon=e).accuracy(beta, dims), error
        )
        return cls(sensitivity, epsilon=epsilon)

    @property
    def scale(self) -> float:
        """Temperature: a candidate this much worse is e times less likely; units of the score."""
        return self.width / self.epsilon

    @property
    def width(self) -> float:
        """Bound on the largest minus the smallest movement of a score."""
        doubled = self.sensitivity.norm == "sup" and not self.monotone
        return self.sensitivity.value * (2 if doubled else 1)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: the losses of all candidates lie in a range of epsilon."""
        return bounded_range(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises."""
        return self.sensitivity.guarantee(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Shortfall against the best score, exceeded with probability at most beta.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).
        dims : int, default 1
            Number of candidates.

        Returns
        -------
        float
            ``scale log(dims / beta)``, in the units of the score, for the scale that is drawn
            with, plus one step of the grid that scores are rounded to.
        """
        drawn, grid = noise.selection_scale(width=self.width, epsilon=self.epsilon)
        return drawn * _tail(beta, dims) * (1 + 1e-15) + math.ldexp(1.0, grid)

    def draw(self, scores: ArrayLike) -> int:
        """Choose a candidate.

        Parameters
        ----------
        scores : array of float, shape (candidates,)
            Score of each candidate; larger is better.

        Returns
        -------
        int
            Index of the chosen candidate.
        """
        values = finite_values(scores)
        if values.ndim != 1:
            raise ParameterError("scores must be one list of numbers")  # the shape is private
        return noise.select(values, width=self.width, epsilon=self.epsilon)


def _tail(beta: float, dims: int) -> float:
    """Regret of a race among ``dims`` candidates in units of the scale, but with chance beta."""
    require_probability("beta", beta)
    require_count("dims", dims)
    return math.log(dims) - math.log(beta)
