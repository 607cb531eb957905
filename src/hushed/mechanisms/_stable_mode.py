"""The most frequent category as it is, where few changed rows cannot make it another one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon
from hushed._ground.decimals import decimal_of
from hushed.errors import ParameterError
from hushed.mechanisms._on_statistic import Tested
from hushed.mechanisms._stability import DistanceTest, read_delta
from hushed.statistics import Category, Mode


@called_as('hs.StableMode(hs.statistics.mode(["no", "yes"]), epsilon=1.0, delta=1e-6)')
@dataclass(frozen=True, slots=True)
class StableMode(Tested):
    """Tell the most frequent category without noise, or refuse where its lead may be small.

    Parameters
    ----------
    statistic : Mode
        What is released, from `hushed.statistics.mode`.
    epsilon : float
        Privacy loss of the test, in nats; finite, above 0. It stands for its shortest decimal.
    delta : float
        Probability with which a category may be told though one row could change it; in (0, 1).

    Raises
    ------
    ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Thakurta and Smith, *Differentially Private Feature Selection via Stability Arguments*, COLT
    2013. The answer is None if it was refused, which is an answer, too: it is paid for. What it
    costs in rows does not grow with the number of categories, as for `hushed.InverseSensitivity`
    it does. Proof: docs/worst-case.md.

    Examples
    --------
    >>> from hushed import statistics
    >>> s = statistics.mode(["a", "b", "c"])
    >>> mechanism = StableMode(s, epsilon=1.0, delta=1e-6)
    >>> mechanism.threshold
    13
    >>> mechanism.draw(["a"] * 500 + ["b"] * 100)
    'a'
    """

    name: ClassVar[Literal["stable-mode"]] = "stable-mode"
    accuracy_name: ClassVar[str] = "rows from which on it refuses in 5 % of draws"

    statistic: Mode
    _: KW_ONLY
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if type(self.statistic) is not Mode:  # a subclass may compute anything
            raise ParameterError(
                f"StableMode takes hs.statistics.mode(...), got {type(self.statistic).__name__}"
            )
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "delta", read_delta(self.delta))
        self.test  # noqa: B018  (refuses too small an epsilon)

    @property
    def test(self) -> DistanceTest:
        """How the distance is tested."""
        return DistanceTest(level=decimal_of(self.epsilon), delta=decimal_of(self.delta))

    @property
    def scale(self) -> float:
        """Scale of the noise on the number of rows, to nearest."""
        return float(1 / self.test.level)

    def accuracy(self, beta: float = 0.05) -> float:
        """Count the rows from which on a refusal is unlikely; what is told is exact.

        If so many rows, or more, can change and the category stays the same, it is refused with
        probability beta at most. A whole number.
        """
        return float(self.test.distance_for(beta))

    def _distance(self, rows: Any) -> int:
        return self.statistic.distance(rows)

    def draw(self, rows: Any) -> Category | None:
        """Release the most frequent category of a table, or refuse."""
        if not self.test.passes(self._distance(rows)):
            return None
        return self.statistic.value(rows)
