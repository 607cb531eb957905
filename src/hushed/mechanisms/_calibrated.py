"""What the mechanisms on a sensitivity have in common: everything that follows from their law."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

from hushed._ground.calls import called_as
from hushed._ground.checks import require_positive
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import format_up, name_changed
from hushed._ground.weak_promises import NOMINAL, epsilon_warnings
from hushed.guarantee import Guarantee
from hushed.mechanisms._arguments import finite_values, smallest_epsilon
from hushed.mechanisms._law import Law
from hushed.privacy_loss import PrivacyProfile
from hushed.spaces import Norm, SensitivityBound

Parameter = float | int | bool | str


def count_values(sensitivity: Any, fewest: int) -> int:
    """Count the numbers of the sampled answers; without a sampling the fewest that there can be."""
    sampling = getattr(sensitivity, "sampling", None)
    return max(fewest, math.prod(sampling.shape)) if sampling is not None else fewest


class Calibrated(Shown):
    """A mechanism of this package: a frozen record of a sensitivity and its privacy parameters.

    ``name`` is what certificates and the command line call it, ``norms`` are those it takes, the
    first one by default. ``outcome`` says what its error means, ``law_name`` what its noise is
    called, if not by the same name. ``fewest`` numbers, or candidates, are taken together.
    """

    __slots__ = ()

    law: ClassVar[type[Law]]
    name: ClassVar[str]
    norms: ClassVar[tuple[Norm, ...]]
    outcome: ClassVar[str] = ""
    law_name: ClassVar[str] = ""
    fewest: ClassVar[int] = 1

    sensitivity: SensitivityBound
    epsilon: float

    def _card(self) -> Card:
        promise = self.guarantee
        slack = f", delta {format_up(promise.delta)}" if promise.delta else ""
        changed = name_changed(promise.unit, promise.distance)
        return card_of_facts(
            f"{type(self).__name__} mechanism",
            (
                ("promise", f"epsilon {format_up(promise.epsilon)}{slack}"),
                ("neighbours", f"{promise.neighbours}, {changed}"),
                ("gamma", format_up(promise.gamma)),
                ("scale of the noise", f"{self.scale:.6g}"),
                self._error_fact(),
                *((("remark", NOMINAL),) if promise.data_dependent else ()),
                *(("remark", each) for each in epsilon_warnings(promise.epsilon, promise.unit)),
            ),
        )

    def _error_fact(self) -> tuple[str, str]:
        """Say the error of all numbers, or candidates, of one answer."""
        if "dims" in parameter_names(type(self)):  # then it knows what is released together
            return "error in 95 % of draws", f"at most {format_up(self.accuracy(0.05))}"
        count = count_values(self.sensitivity, self.fewest)
        several = "" if count == 1 else f", all {count} together"
        return (
            f"error in 95 % of draws{several}",
            f"at most {format_up(self.accuracy(0.05, count))}",
        )

    @classmethod
    def for_accuracy(
        cls,
        *arguments: Any,
        error: float,
        beta: float = 0.05,
        dims: int | None = None,
        **parameters: Any,
    ) -> Self:
        """Mechanism with the smallest epsilon that keeps the error within a bound.

        Parameters
        ----------
        *arguments : SensitivityBound
            What the mechanism takes before its keywords: the sensitivity; of `TopK` k, too.
        error : float
            Largest absolute error of all coordinates, or shortfall of a choice; above 0.
        beta : float, default 0.05
            Probability with which it may be larger; in (0, 1).
        dims : int, optional
            Number of coordinates, or of candidates, that keep the error together. By default as
            many as the sampled answers had; without a sampling the fewest that it takes. Of
            `Bernstein` the dimension of the cube.
        **parameters : float, int, bool or str
            What else the mechanism takes, such as ``delta``.

        Returns
        -------
        Calibrated
            A mechanism of this class with ``accuracy(beta, dims) <= error``.
        """
        require_positive("error", error)
        moves = [each for each in arguments if hasattr(each, "guarantee")]
        count = count_values(moves[0] if moves else None, cls.fewest)
        values: tuple[int, ...] = (count if dims is None else dims,)
        if "dims" in parameter_names(cls):
            parameters |= {} if dims is None else {"dims": dims}
            values = ()

        build: Callable[..., Self] = partial(cls, *arguments, **parameters)
        guess = build(epsilon=1.0)._guess(error, beta, *values)
        return build(
            epsilon=smallest_epsilon(
                guess, lambda level: build(epsilon=level).accuracy(beta, *values), error
            )
        )

    def _guess(self, error: float, beta: float, dims: int = 1) -> float:
        """Epsilon, at most the smallest, for an error of a mechanism like this one at epsilon 1."""
        raise NotImplementedError

    @property
    def noise(self) -> Law:
        """Law of the noise."""
        raise NotImplementedError

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level."""
        raise NotImplementedError

    @property
    def scale(self) -> float:
        """Scale of the noise in the units of the answer."""
        raise NotImplementedError

    @property
    def parameters(self) -> dict[str, Parameter]:
        """What it was built with, beside the sensitivity; a certificate states it."""
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    @property
    def guarantee(self) -> Guarantee:
        """What a draw promises."""
        return self.sensitivity.guarantee(self.epsilon, getattr(self, "delta", 0.0))

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        """As `values_of`; refuses a shape that it cannot release."""
        return 1 if shape is None else math.prod(shape)

    def _check_function(self, function: Any) -> None:
        """As `check_function`."""

    def _drawn(self, values: int) -> tuple[float | None, int | None]:
        """As `drawn_by`."""
        return self.noise.drawn(values)

    @classmethod
    def _answers_of(cls, function: Any, _: Mapping[str, Any]) -> Any:
        """As `answers_of`."""
        return function

    @called_as("mechanism.accuracy(0.05, dims=3)")
    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:
        """Error that no coordinate exceeds except with probability beta; of a choice its shortfall.

        Parameters
        ----------
        beta : float, default 0.05
            Probability; in (0, 1).
        dims : int, default 1
            Number of coordinates, or of candidates.

        Returns
        -------
        float
            What the noise adds at most, plus one step of the grid that answers are rounded to. For
            Laplace ``-b log(1 - (1 - beta)^(1/dims))`` with the scale b that is drawn with, for
            Gaussian noise the normal quantile, both for independent coordinates, and so below the
            union bound; for the exponential mechanism ``scale log(dims / beta)``.
        """
        return self.noise.error(beta, dims)

    def draw(self, value: Any) -> Any:
        """Release an answer.

        Parameters
        ----------
        value : float or array of float
            The exact answer.

        Returns
        -------
        float or ndarray of float
            The noisy answer in the same shape; always on the noise grid.
        """
        return self.noise.draw(finite_values(value))


def parameter_names(kind: type[Any]) -> dict[str, bool]:
    """Parameters of a mechanism beside the sensitivity, and which of them must be given."""
    return {
        each.name: each.default is dataclasses.MISSING
        for each in dataclasses.fields(kind)
        if each.init and each.name != "sensitivity" and each.metadata.get("stated", True)
    }


def values_of(mechanism: Calibrated, shape: tuple[int, ...] | None) -> int:
    """Count the numbers released together for an answer of a shape; at least, if it is unknown."""
    return mechanism._values_of(shape)


def check_function(mechanism: Calibrated, function: Any) -> None:
    """Refuse a function whose answers mean something else to the mechanism."""
    mechanism._check_function(function)


def drawn_by(mechanism: Calibrated, values: int) -> tuple[float | None, int | None]:
    """Scale of the noise as drawn, and its grid; None for what depends on the rows."""
    return mechanism._drawn(values)


def answers_of(kind: type[Calibrated], function: Any, parameters: Mapping[str, Any]) -> Any:
    """Make a function of rows give the numbers that a kind of mechanism releases."""
    return kind._answers_of(function, parameters)


def error_of(accuracy: Callable[..., float], own: Mapping[str, Any], values: int) -> float:
    """Error at 5 % for so many numbers; a parameter ``dims`` of its own says another thing."""
    return accuracy(0.05) if "dims" in own else accuracy(0.05, values)
