"""What the mechanisms on a statistic have in common: their promise holds for every table."""

from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, cast

from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of, stated_above
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import format_up
from hushed._ground.weak_promises import epsilon_warnings
from hushed.guarantee import Guarantee
from hushed.mechanisms._law import Known
from hushed.mechanisms._stability import DistanceTest
from hushed.privacy_loss import PrivacyProfile, approximate
from hushed.spaces import PRIVACY_PROFILE


class OnStatistic(Shown):
    """A mechanism on a statistic that knows its sensitivities: a frozen record of both.

    ``accuracy_name`` says in words what its `accuracy` counts.
    """

    __slots__ = ()

    name: ClassVar[str]
    accuracy_name: ClassVar[str]

    statistic: Any
    epsilon: float

    def _card(self) -> Card:
        promise = self.guarantee
        slack = f", delta {format_up(promise.delta)}" if promise.delta else ""
        return card_of_facts(
            f"{type(self).__name__} mechanism",
            (
                ("promise", f"epsilon {format_up(promise.epsilon)}{slack}"),
                ("neighbours", f"{promise.neighbours}, one {promise.unit}"),
                (self.accuracy_name, f"at most {format_up(self.accuracy())}"),
                *(("remark", each) for each in epsilon_warnings(promise.epsilon, promise.unit)),
            ),
        )

    @property
    def parameters(self) -> dict[str, float | int | bool | str]:
        """What a certificate says of it, beside the statistic."""
        known = [each.name for each in fields(cast(Any, self)) if each.init]
        given = {name: getattr(self, name) for name in known}
        del given["statistic"]
        return {name: value for name, value in given.items() if value is not None}

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level."""
        raise NotImplementedError

    @called_as("mechanism.losses(3)")
    def losses(self, rows: float) -> Known:
        """State what is known of the loss where so many rows differ.

        Parameters
        ----------
        rows : int or float
            Rows added and removed, or replaced, as the statistic takes them; 0 or more, may be
            infinite.

        Returns
        -------
        dict
            By measure: epsilon and rho as numbers, a curve; rounded up.
        """
        raise NotImplementedError

    def _level(self, rows: float) -> float:
        """Bound epsilon where so many rows differ: that of one row times their number."""
        if rows == math.inf:
            return math.inf
        return stated_above(decimal_of(self.epsilon) * Fraction(rows))

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises, for every pair of neighbours."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=getattr(self, "delta", 0.0),
            neighbours=self.statistic.neighbours,
        )

    def accuracy(self, beta: float = 0.05) -> float:
        """Error that a draw exceeds with probability at most beta.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).

        Returns
        -------
        float
            A public number, rounded up.
        """
        raise NotImplementedError

    def draw(self, rows: Any) -> Any:
        """Release the statistic of a table.

        Parameters
        ----------
        rows : array, list or frame
            One column.

        Returns
        -------
        float, str, int, bool or None
            A number in the public range of the statistic, or a category; None if it was refused.
        """
        raise NotImplementedError


class Tested(OnStatistic):
    """One that refuses where a private test finds too few rows between the table and a jump."""

    __slots__ = ()

    delta: float

    @property
    def test(self) -> DistanceTest:
        """How the distance is tested, and with which part of epsilon."""
        raise NotImplementedError

    @property
    def threshold(self) -> int:
        """Rows that, with the noise, must be exceeded."""
        return self.test.threshold

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level, as far as epsilon and delta tell it."""
        return approximate(self.epsilon, self.delta)

    @called_as("mechanism.losses(3)")
    def losses(self, rows: float) -> Known:
        """Curve where so many rows differ; proof: docs/worst-case.md."""
        return {PRIVACY_PROFILE: approximate(self._level(rows), self.test.delta_at(rows))}

    def _distance(self, rows: Any) -> int:
        """Rows that must change before the answer would not be safe."""
        raise NotImplementedError

    def chance_on(self, public_rows: Any) -> float:
        """Probability that a public table is answered.

        Parameters
        ----------
        public_rows : array, list or frame
            A public table like the private one: what comes out is about these rows.

        Returns
        -------
        float
            In [0, 1].
        """
        return self.test.chance(self._distance(public_rows))
