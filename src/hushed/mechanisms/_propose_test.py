"""Propose, test, release: noise for a proposed bound where the rows are far from exceeding it."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from hushed import noise
from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_positive, require_probability
from hushed._ground.decimals import decimal_of, read
from hushed._ground.numeric import finite_above
from hushed.errors import ParameterError
from hushed.mechanisms._on_statistic import Tested
from hushed.mechanisms._stability import DistanceTest, read_delta
from hushed.noise._grid import floor_log2
from hushed.noise._scales import LARGEST_SCALE
from hushed.statistics import Numeric
from hushed.statistics._constructors import KINDS

_LEAST_SHARE = Fraction(1, 1 << 45)  # of the global sensitivity
_ROUNDED = 1 + Fraction(1, 1 << 50)  # covers the rounding of a difference and a quotient


@called_as(
    "hs.ProposeTest(hs.statistics.median(low=0, high=100), bound=1.0, epsilon=1.0, delta=1e-6)"
)
@dataclass(frozen=True, slots=True)
class ProposeTest(Tested):
    """Add noise for a bound that you propose, or refuse where few changed rows would exceed it.

    Parameters
    ----------
    statistic : Quantile, TrimmedMean or InterquartileRange
        What is released, from `hushed.statistics`.
    bound : float
        How far one row moves the statistic at most, as you guess: above 0, and below what it moves
        on the worst table. Choose it without the private rows.
    epsilon : float
        Privacy loss of test and answer together, in nats; finite, above 0. It stands for its
        shortest decimal.
    delta : float
        Probability with which a table may pass where the bound does not hold; in (0, 1).
    split : float, default 0.5
        Share of epsilon that pays for the test; in (0, 1).

    Raises
    ------
    ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Dwork and Lei, *Differential Privacy and Robust Statistics*, STOC 2009. The answer is None if it
    was refused, which is an answer, too: it is paid for. Where `hushed.InverseSensitivity` or
    `hushed.Smooth` releases the same statistic they are better, as a rule. Proof:
    docs/worst-case.md.

    Examples
    --------
    >>> from hushed import statistics
    >>> s = statistics.median(rows=3000, low=0, high=100)
    >>> mechanism = ProposeTest(s, bound=0.5, epsilon=2.0, delta=1e-6)
    >>> mechanism.threshold
    13
    >>> mechanism.draw([1.0] * 1500 + [99.0] * 1500) is None  # it may jump
    True
    """

    name: ClassVar[Literal["propose-test"]] = "propose-test"
    accuracy_name: ClassVar[str] = "error in 95 % of the answers that are not refused"

    statistic: Numeric
    _: KW_ONLY
    bound: float
    epsilon: float
    delta: float
    split: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Numeric) or type(self.statistic) not in KINDS.values():
            raise ParameterError(
                "ProposeTest takes a statistic of numbers such as hs.statistics.median(...), got "
                f"{type(self.statistic).__name__}"
            )
        object.__setattr__(self, "bound", require_positive("bound", self.bound))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "delta", read_delta(self.delta))
        split = require_probability("split", read("split", self.split, up=False))
        object.__setattr__(self, "split", split)
        whole = Fraction(self.statistic.global_sensitivity)
        if not whole * _LEAST_SHARE <= self._moved < whole:
            raise ParameterError(
                "bound must be below what one row can move the statistic on the worst table, "
                f"{self.statistic.global_sensitivity:.6g}, and 2**-45 of it or more, got "
                f"{self.bound:.6g}",
                parameter="bound",
                hint="for a bound that always holds no test is needed",
            )
        self.test  # noqa: B018  (refuses too small an epsilon)
        if self.noise_scale > LARGEST_SCALE:
            raise ParameterError(
                f"epsilon={self.epsilon} asks for more noise than can be drawn; give more",
                parameter="epsilon",
            )

    @property
    def test(self) -> DistanceTest:
        """How the distance is tested, and with which part of epsilon."""
        level = decimal_of(self.epsilon) * decimal_of(self.split)
        return DistanceTest(level=level, delta=decimal_of(self.delta))

    @property
    def _left(self) -> Fraction:
        """Part of epsilon for the answer, exact."""
        return decimal_of(self.epsilon) - self.test.level

    @property
    def _moved(self) -> Fraction:
        """How far one row moves a statistic whose local sensitivity in doubles is the bound."""
        return Fraction(self.bound) * _ROUNDED

    @property
    def grid(self) -> int:
        """Answers are rounded to multiples of ``2**grid``, which is public."""
        return floor_log2(self._moved / self._left) - noise.GRID_BITS

    @property
    def noise_scale(self) -> Fraction:
        """Scale of the Laplace noise in steps of the grid, of which rounding takes one; exact."""
        return (math.floor(self._moved / self._step) + 1) / self._left

    @property
    def _step(self) -> Fraction:
        return Fraction(2) ** self.grid

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise in the units of the answer, rounded up."""
        return finite_above(self.noise_scale * self._step)

    def accuracy(self, beta: float = 0.05) -> float:
        """Error of an answer that is not refused, exceeded with probability at most beta."""
        require_probability("beta", beta)
        far = self.noise_scale * Fraction(-math.log(beta) * (1 + 1e-12)) + 2
        return finite_above(far * self._step)

    def distance_needed(self, beta: float = 0.05) -> int:
        """Count the rows from which on a refusal is unlikely.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).

        Returns
        -------
        int
            If so many rows, or more, must change before one more can exceed the bound, the answer
            is refused with probability beta at most.
        """
        return self.test.distance_for(beta)

    def _distance(self, rows: Any) -> int:
        return self.statistic.distance(rows, self.bound)

    def draw(self, rows: Any) -> float | None:
        """Release the statistic of a table, or refuse."""
        if not self.test.passes(self._distance(rows)):
            return None
        low, high = map(Fraction, self.statistic.span)
        steps = round(self.statistic.value(rows) / self._step)
        noisy = (steps + int(noise.discrete_laplace(self.noise_scale))) * self._step
        return float(min(max(noisy, low), high))
