"""What a privacy level may cost, and which level fits a tolerated error and a budget.

The model (Dandekar, Basu and Bressan, *Differential Privacy at Risk*, PoPETs 2021, section 5): in
the worst case every person in the rows must be compensated, with ``E exp(-c/epsilon) + a`` each.
Nothing in the model is a legal estimate of damages; it turns a level into a number that can be
compared with a budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from hushed import risk
from hushed._ground.calls import called_as
from hushed._ground.checks import (
    read_count,
    require_least,
    require_one_of,
    require_positive,
    require_probability,
    require_within,
)
from hushed._ground.decimals import read
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.numeric import LIBRARY, last_true, round_down
from hushed._ground.printing import format_down, format_up, money_above, money_below
from hushed.errors import NotFeasible, ParameterError

Basis = Literal["exact", "loss", "published"]

CURRENCY = " in the currency of the model, all people together"
_SMALLEST = 5e-324  # the smallest double above 0
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_WHY_NOT = {
    "published": (
        "basis 'published': the confidence compares two draws of noise and is not a statement "
        "about the privacy loss"
    ),
    "exact": (
        "basis 'exact': 1 - delta is used as a confidence, but delta is not the probability of "
        "exceeding epsilon; the sum is nominal, and not what would be paid on average (basis "
        "'loss' is)"
    ),
    "loss": "",
}


@called_as("hs.cost.Range(low=0.1, high=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Range(Shown):
    """Levels that a budget allows.

    Parameters
    ----------
    low : float
        Smallest level, in nats.
    high : float
        Largest level, in nats.
    """

    low: float
    high: float

    def _card(self) -> Card:
        # As levels that are allowed, each end is rounded into the range.
        return card_of_facts(
            "Levels within the budget",
            (
                ("smallest epsilon", f"{format_up(self.low)} nats"),
                ("largest epsilon", f"{format_down(self.high)} nats"),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Optimum(Shown):
    """Cheapest stronger level of a mechanism calibrated to ``epsilon0``.

    Parameters
    ----------
    epsilon : float
        Cheapest stronger level, in nats.
    epsilon0 : float
        Level of the mechanism, in nats.
    confidence : float
        Confidence in the stronger level, on the chosen basis.
    budget : float
        Cost at it, all people together.
    baseline : float
        Cost at ``epsilon0`` without any stronger claim: the number that is safe to use.
    basis : str
        Which confidence was used.
    warnings : tuple of str
        Why the saving may be over-promised, with the numbers.
    """

    epsilon: float
    epsilon0: float
    confidence: float
    budget: float
    baseline: float
    basis: Basis
    warnings: tuple[str, ...]

    def _card(self) -> Card:
        return card_of_facts(
            f"Cheapest stronger level: {format_up(self.epsilon)} nats",
            (
                ("noise is calibrated to", f"epsilon {format_up(self.epsilon0)} nats"),
                ("confidence in it", f"{format_down(self.confidence, 4)}, basis {self.basis!r}"),
                ("cost at it", f"{money_above(self.budget)}{CURRENCY}"),
                ("cost without the claim", f"{money_above(self.baseline)}{CURRENCY}"),
                *(("warning", each) for each in self.warnings),
            ),
        )

    def _brief(self) -> str:
        return (
            f"Optimum: epsilon {format_up(self.epsilon)} nats costs {money_above(self.budget)} at "
            f"a confidence of {format_down(self.confidence, 4)}, without it "
            f"{money_above(self.baseline)}"
        )

    @property
    def saving(self) -> float:
        """Baseline less budget."""
        return self.baseline - self.budget


@called_as("hs.cost.CostModel(per_person=50.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CostModel(Shown):
    """Compensation in the worst case, as a function of the privacy level.

    Parameters
    ----------
    per_person : float
        Compensation per person without any privacy, E; above 0, in any currency.
    people : int, default 1
        People in the rows; 1 or more.
    rate : float, default 1
        How fast the cost rises with the level, c; above 0, in nats.
    floor : float, default 0
        Cost per person that no privacy avoids, a; 0 or more.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """

    per_person: float
    people: int = 1
    rate: float = 1.0
    floor: float = 0.0

    def _card(self) -> Card:
        floor = f" + {self.floor:,.10g}" if self.floor else ""
        return card_of_facts(
            "Cost model",
            (
                ("without privacy", f"{money_above(self.per_person)} per person, in any currency"),
                ("people", f"{self.people:,}"),
                (
                    "cost of epsilon, per person",
                    f"{self.per_person:,.10g} exp(-{self.rate:.10g}/epsilon){floor}",
                ),
            ),
        )

    def __post_init__(self) -> None:
        for name, up in (("per_person", True), ("rate", False), ("floor", True), ("people", True)):
            object.__setattr__(self, name, read(name, getattr(self, name), up=up))
        for name, value in (("per_person", self.per_person), ("rate", self.rate)):
            require_positive(name, value)
        if not self.floor >= 0 or math.isinf(self.floor):
            raise ParameterError(
                f"floor must be 0 or more and finite, got {self.floor}", parameter="floor"
            )
        if not 1 <= self.people < math.inf or self.people != int(self.people):
            raise ParameterError(
                f"people must be a whole number above 0, got {self.people}", parameter="people"
            )
        object.__setattr__(self, "people", int(self.people))
        if not self.people <= 1e300 / max(self.per_person, self.floor, 1.0):
            raise ParameterError(
                "the full compensation of all people together is more than doubles hold: use "
                "another unit"
            )

    def cost(self, epsilon: float, delta: float = 0.0) -> float:
        """Cost of an (epsilon, delta) promise, all people together.

        Parameters
        ----------
        epsilon : float
            Level, in nats; 0 or more, may be infinite.
        delta : float, default 0
            Slack; in [0, 1]. With this probability the full compensation is counted.

        Returns
        -------
        float
            ``people ((1 - delta) E exp(-c/epsilon) + delta E + a)``.

        Raises
        ------
        ParameterError
            If a number is out of range or NaN.
        """
        epsilon, delta = read("epsilon", epsilon, up=True), read("delta", delta, up=True)
        require_least("epsilon", epsilon)
        require_within("delta", delta, 0, 1)
        share = math.exp(-self.rate / epsilon) if epsilon > 0 else 0.0
        share = (1.0 - delta) * share + delta
        return self.people * (self.per_person * share + self.floor)

    def cost_at_risk(
        self, epsilon: float, epsilon0: float, *, basis: Basis = "exact", dims: int = 1
    ) -> float:
        """Cost of a mechanism at ``epsilon0`` with a stronger level claimed.

        Parameters
        ----------
        epsilon : float
            Stronger level, in nats; in [0, epsilon0].
        epsilon0 : float
            Level of the mechanism, in nats; above 0, finite.
        basis : {"exact", "loss", "published"}, default "exact"
            Confidence in the stronger level: one minus the exact delta, the exact probability
            that the loss keeps it, or the published formula.
        dims : int, default 1
            Coordinates of the answer, for the published basis.

        Returns
        -------
        float
            ``confidence cost(epsilon) + (1 - confidence) cost(epsilon0)``.

        Raises
        ------
        ParameterError
            If a number is out of range or the basis unknown.
        """
        epsilon0 = read("epsilon0", epsilon0, up=True)
        sure = _confidence(epsilon, epsilon0, basis, dims)
        return sure * self.cost(epsilon) + (1.0 - sure) * self.cost(epsilon0)

    def optimum(self, epsilon0: float, *, basis: Basis = "exact", dims: int = 1) -> Optimum:
        """Find the cheapest stronger level.

        Parameters
        ----------
        epsilon0 : float
            Level of the mechanism, in nats; above 0, finite.
        basis : {"exact", "loss", "published"}, default "exact"
            Confidence in the stronger level; see `cost_at_risk`.
        dims : int, default 1
            Coordinates of the answer, for the published basis.

        Returns
        -------
        Optimum
            Level to 8 digits, cost, and why it may be over-promised.

        Raises
        ------
        ParameterError
            If a number is out of range or the basis unknown.

        Notes
        -----
        The cost is not convex for ``epsilon0 >= 1.5``, so the minimum is bracketed on a grid and
        then narrowed by golden sections; no convexity is assumed. The grid has 200 even levels, and
        50 to a decade from a thousandth of the rate on, below which a level costs nothing.
        """
        epsilon0 = read("epsilon0", epsilon0, up=True)
        _confidence(epsilon0, epsilon0, basis, dims)

        def value(level: float) -> float:
            return self.cost_at_risk(level, epsilon0, basis=basis, dims=dims)

        best = _minimum(value, min(self.rate / 1000, epsilon0 / 10_000), epsilon0)
        return Optimum(
            epsilon=best,
            epsilon0=epsilon0,
            confidence=_confidence(best, epsilon0, basis, dims),
            budget=value(best),
            baseline=self.cost(epsilon0),
            basis=basis,
            warnings=_warnings(self, best, epsilon0, basis, dims),
        )

    def levels_within(
        self, budget: float, epsilon0: float, *, basis: Basis = "exact", dims: int = 1
    ) -> Range:
        """Stronger levels that keep the cost at risk within a budget.

        Parameters
        ----------
        budget : float
            Largest cost, all people together; 0 or more.
        epsilon0 : float
            Level of the mechanism, in nats; above 0, finite.
        basis : {"exact", "loss", "published"}, default "exact"
            Confidence in the stronger level; see `cost_at_risk`.
        dims : int, default 1
            Coordinates of the answer, for the published basis.

        Returns
        -------
        Range
            Interval around the optimum: the cost tends to the baseline on both sides. Both ends
            are rounded inwards.

        Raises
        ------
        NotFeasible
            If even the cheapest level costs more.
        ParameterError
            If a number is out of range or the basis unknown.
        """
        budget, epsilon0 = read("budget", budget, up=False), read("epsilon0", epsilon0, up=True)
        require_least("budget", budget)
        best = self.optimum(epsilon0, basis=basis, dims=dims)
        if best.budget > budget:
            raise NotFeasible(
                f"a budget of {money_below(budget)} is below the smallest cost, "
                f"{money_above(best.budget)} at epsilon={format_up(best.epsilon)}; raise the "
                f"budget to it, lower epsilon0={format_up(epsilon0)} "
                "(more error), or keep fewer people in the rows"
            )

        def fits(level: float) -> bool:
            return self.cost_at_risk(level, epsilon0, basis=basis, dims=dims) <= budget

        low, high = (
            end if fits(end) else last_true(fits, best.epsilon, end) for end in (0.0, epsilon0)
        )
        return Range(low=low, high=high)

    def epsilon_within(self, budget: float, delta: float = 0.0) -> float:
        """Find the largest level whose cost fits a budget.

        Parameters
        ----------
        budget : float
            Largest cost, all people together; 0 or more.
        delta : float, default 0
            Slack of the promise; in [0, 1].

        Returns
        -------
        float
            ``c / log(E/(B - a))`` with B the budget per person when delta is 0, in nats, rounded
            down; infinite when the budget covers everything.

        Raises
        ------
        NotFeasible
            If the budget does not even cover the floor and delta.
        ParameterError
            If a number is out of range or NaN.
        """
        budget, delta = read("budget", budget, up=False), read("delta", delta, up=True)
        require_least("budget", budget)
        if budget >= self.cost(math.inf, delta):
            return math.inf
        left = budget / self.people - self.floor - delta * self.per_person
        if left <= 0:
            raise NotFeasible(
                f"a budget of {money_below(budget)} does not cover the unavoidable cost, "
                f"{money_above(self.cost(0.0, delta))}; no epsilon is small enough"
            )
        gap = math.log((1.0 - delta) * self.per_person / left)
        return round_down(self.rate / gap, LIBRARY) if gap > 0 else math.inf


def _confidence(epsilon: float, epsilon0: float, basis: Basis, dims: int) -> float:
    require_one_of("basis", basis, get_args(Basis))
    if basis == "published":
        return risk.published_confidence(epsilon, epsilon0, dims)
    if basis == "exact":
        return 1.0 - risk.delta(epsilon, epsilon0)
    return 1.0 - risk.loss_exceeds(epsilon, epsilon0)


def _warnings(
    model: CostModel, best: float, epsilon0: float, basis: Basis, dims: int
) -> tuple[str, ...]:
    if basis == "loss":
        return ()
    found = risk.assess(best, epsilon0, dims=dims)
    honest = model.cost_at_risk(best, epsilon0, basis="loss")
    numbers = (
        f"at epsilon={format_up(best)} the published risk is "
        f"{format_up(found.published_risk, 4)}, the exact delta {format_up(found.delta, 4)}, "
        f"and the loss exceeds the level with probability "
        f"{format_up(found.loss_exceeds, 4)}; weighted by that probability the cost is "
        f"{money_above(honest)} of {money_above(model.cost(epsilon0))}"
    )
    return (_WHY_NOT[basis], numbers)


def _minimum(value: Callable[[float], float], start: float, end: float) -> float:
    """Lowest point on ``[start, end]``: best of a grid, narrowed by golden sections."""
    steps = math.ceil(50 * (math.log10(end) - math.log10(max(start, _SMALLEST))))
    grid = [end * math.pow(10.0, -i / 50.0) for i in range(1, steps + 1)]
    grid = sorted({*grid, *(end * i / 200.0 for i in range(1, 201))})
    costs = [value(level) for level in grid]
    i = min(range(len(grid)), key=costs.__getitem__)
    low, high = grid[max(0, i - 1)], grid[min(len(grid) - 1, i + 1)]
    for _ in range(60):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if value(left) <= value(right):
            high = right
        else:
            low = left
    middle = 0.5 * (low + high)
    return middle if value(middle) <= costs[i] else grid[i]


@called_as("hs.cost.epsilon_for_error(5.0, sensitivity=1.0)")
def epsilon_for_error(
    error: float, *, sensitivity: float = 1.0, beta: float | None = None, dims: int = 1
) -> float:
    """Smallest level at which Laplace noise keeps an error.

    Parameters
    ----------
    error : float
        Tolerated absolute error; above 0, in the unit of the answer.
    sensitivity : float, default 1
        L1 sensitivity of the answer; above 0.
    beta : float, optional
        Probability with which the error may be larger; in (0, 1). Left out, ``error`` is the mean
        absolute error of each coordinate.
    dims : int, default 1
        Coordinates of the answer that must all keep the error.

    Returns
    -------
    float
        ``sensitivity log(dims/beta) / error``, or ``sensitivity / error`` for the mean, in nats.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, Theorem 3.8.
    """
    error, sensitivity = read("error", error, up=False), read("sensitivity", sensitivity, up=True)
    if not error > 0:
        raise ParameterError(f"error must be above 0, got {error}", parameter="error")
    if not sensitivity > 0:
        raise ParameterError(
            f"sensitivity must be above 0, got {sensitivity}", parameter="sensitivity"
        )
    dims = read_count("dims", dims, 1)
    if beta is None:
        return sensitivity / error
    beta = read("beta", beta, up=False)
    require_probability("beta", beta)
    return sensitivity * math.log(dims / beta) / error


@called_as("hs.cost.error_of(1.0, sensitivity=1.0)")
def error_of(
    epsilon: float, *, sensitivity: float = 1.0, beta: float | None = None, dims: int = 1
) -> float:
    """Error of Laplace noise at a level; the inverse of `epsilon_for_error`.

    Parameters
    ----------
    epsilon : float
        Level, in nats; above 0.
    sensitivity : float, default 1
        L1 sensitivity of the answer; above 0.
    beta : float, optional
        Probability with which the error may be larger; the mean absolute error if left out.
    dims : int, default 1
        Coordinates of the answer.

    Returns
    -------
    float
        Error, in the unit of the answer.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.
    """
    epsilon = read("epsilon", epsilon, up=False)
    if not epsilon > 0:
        raise ParameterError(f"epsilon must be above 0, got {epsilon}", parameter="epsilon")
    return epsilon_for_error(1.0, sensitivity=sensitivity, beta=beta, dims=dims) / epsilon
