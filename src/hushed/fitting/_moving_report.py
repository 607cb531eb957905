"""What a check of movements found, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hushed._ground.calls import called_as, given_by
from hushed._ground.notebook import Shown
from hushed._ground.printing import format_down, format_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.fitting._charging import read_fields, write_fields
from hushed.fitting._report import Verdict
from hushed.guarantee import Guarantee
from hushed.populations._sources import Promise
from hushed.releasing import Certificate

_HALVINGS = 60
_BESIDE = {  # what the verdict is not about
    "population": "",
    "table": " The sampled promise is about tables whose rows, or some of them, are public ones "
    "that are drawn again and again: this says whether it may be carried over to private tables, "
    "and not whether it holds.",
    "given-the-rest": " The sampled promise is about tables whose other rows are public ones: this "
    "says whether it may be carried over to tables of private rows alone, and not whether it "
    "holds.",
}
_SAFE = 1 - 1e-9  # of a chance: what rounding may add to a probability is below that
_LEFT_OUT = 1e-30  # chance of all counts that are too far from the mean to be looked at


@given_by("hs.check_movement(f, rows, of_fewer_rows, epsilon=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MovementCheck(Shown):
    """How often pairs of tables made of private rows move further than a sampled sensitivity.

    Everything in it may be published.

    Parameters
    ----------
    moved : float
        Number of pairs that moved further, with noise; may be negative.
    pairs : int
        Number of pairs.
    rows : int
        Rows of each table: those that the sensitivity was sampled for.
    bound : float
        The sampled sensitivity.
    gamma : float
        Share of pairs that it allows to move further.
    p_value : float
        Bound on the probability of so many pairs or more if that share is ``gamma``.
    share_at_most, share_at_least : float
        Confidence bounds for the share of pairs that move further, each by itself.
    confidence : float
        Probability with which each of the two holds.
    certificate : Certificate
        What the check itself promises.
    promise : {"population", "given-the-rest", "table"}
        What the sampled sensitivity promises something about, as of
        `hushed.populations.PublicTable`; ``"table"`` also for a mixture, or a law of people, that
        draws from public rows again and again.
    entry : int, optional
        Number of the charge in a ledger.
    """

    schema: ClassVar[str] = "hushed movement check 1"

    moved: float
    pairs: int
    rows: int
    bound: float
    gamma: float
    p_value: float
    share_at_most: float
    share_at_least: float
    confidence: float
    certificate: Certificate = field(repr=False)
    promise: Promise = "population"
    entry: int | None = None

    @property
    def verdict(self) -> Verdict:
        """``"contradicted"`` if more pairs move than gamma allows, at this confidence."""
        return "contradicted" if self.share_at_least > self.gamma else "not contradicted"

    @property
    def guarantee(self) -> Guarantee:
        """What the check itself costs."""
        return self.certificate.guarantee

    def explain(self) -> str:
        """Say in words what was found, and what it does not say.

        Returns
        -------
        str
            A few lines of text.
        """
        level = format_down(self.confidence)
        return "\n".join(
            [
                f"{self.verdict} (p = {format_up(self.p_value, 3)}): of {self.pairs} pairs of "
                f"tables of private rows about {self.moved:.4g} moved by more than "
                f"{format_up(self.bound)}; gamma = {format_up(self.gamma)} is allowed.",
                f"The share of such pairs is {format_up(self.share_at_most, 3)} at most, and "
                f"{format_down(self.share_at_least, 3)} at least, each with confidence {level}.",
                f"This speaks of tables of {self.rows} rows, and of no other size."
                f"{_BESIDE[self.promise]}",
                f"This check costs epsilon = {format_up(self.guarantee.epsilon)}, for "
                f"{self.guarantee.neighbours} neighbours.",
            ]
        )

    def to_json(self) -> str:
        """Write the check as JSON.

        Returns
        -------
        str
            One object; `from_json` reads it.
        """
        return write_fields(self)

    @classmethod
    @called_as("hs.MovementCheck.from_json(check.to_json())")
    def from_json(cls, text: str) -> MovementCheck:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        MovementCheck
            Equal to the one that was written.

        Raises
        ------
        ParameterError
            If it is something else.
        """
        try:
            record = read_fields(text, cls)
            return cls(**record)
        except (KeyError, TypeError, ValueError):
            raise ParameterError("the text is not a movement check of this version") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCount:
    """A binomial count with Laplace noise on a grid.

    Parameters
    ----------
    pairs : int
        Trials of the binomial law.
    scale : float
        Scale of the noise.
    step : float
        Width of the grid.
    """

    pairs: int
    scale: float
    step: float

    def at_most(self, observed: float, share: float) -> float:
        """Bound from above the probability of so small a noisy count; falls with the share.

        Notes
        -----
        ``P(X <= k) <= 1 - exp(-(k + 1) / b) / 2`` for discrete Laplace noise X on whole numbers and
        k >= 0: continuous noise, one step further. For k < 0 it is below ``exp((k + 1) / b) / 2``.
        """
        counts, chances, beyond = self._likely(share)
        return float(chances @ self._below(observed - counts + self.step)) + beyond

    def at_least(self, observed: float, share: float) -> float:
        """Bound from above the probability of so large a noisy count; rises with the share."""
        counts, chances, beyond = self._likely(share)
        return float(chances @ self._below(counts - observed + self.step)) + beyond

    def _likely(self, share: float) -> tuple[Floats, Floats, float]:
        """Give the counts without noise, their probabilities, and that of all counts left out.

        Notes
        -----
        A binomial count is farther than t from its mean with probability ``2 exp(-2 t^2 / n)`` at
        most (Hoeffding), so that of many pairs only counts near the mean are looked at.
        """
        from scipy import stats  # noqa: PLC0415

        far, mean = math.sqrt(self.pairs * math.log(2 / _LEFT_OUT) / 2) + 1, self.pairs * share
        first, last = max(0, math.floor(mean - far)), min(self.pairs, math.ceil(mean + far))
        counts = np.arange(first, last + 1, dtype=np.float64)
        chances: Floats = stats.binom.pmf(counts, self.pairs, share)
        return counts, chances, 0.0 if counts.size > self.pairs else _LEFT_OUT

    def _below(self, places: Floats) -> Floats:
        tail = np.exp(-np.abs(places) / self.scale) / 2
        return np.where(places < 0, tail, 1 - tail)

    def share_at_most(self, observed: float, chance: float) -> float:
        """Upper confidence bound for the share, which fails with probability ``chance``.

        What noise brought below 0 counts as 0, so that the bound never is.
        """
        observed = max(observed, 0.0)
        return _search(lambda share: self.at_most(observed, share) >= chance * _SAFE)[1]

    def share_at_least(self, observed: float, chance: float) -> float:
        """Lower confidence bound for the share, which fails with probability ``chance``."""
        observed = min(observed, float(self.pairs))
        return _search(lambda share: self.at_least(observed, share) < chance * _SAFE)[0]


def _search(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Bracket the share up to which something holds; the ends where it never or always does."""
    low, high = 0.0, 1.0
    if not holds(low):
        return 0.0, 0.0
    if holds(high):
        return 1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, math.nextafter(high, 2.0)
