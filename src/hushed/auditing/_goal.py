"""The goal of an audit: the claim as an object, what would contradict it, and at which error.

`AuditedClaim` is all that an audit asks of a claim. `adapt_claim` makes one of what users write, so
that nothing else asks which kind of claim it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushed._ground.printing import format_down, format_up
from hushed.auditing._bounds import (
    Counts,
    Evidence,
    JointTest,
    Rectangle,
    clopper_pearson_guide,
)
from hushed.auditing._claims import Claim, Renyi, ZeroConcentrated
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]  # one array for each of the two tables
Objective = tuple[float, float, float]  # what events are ordered by: rank, bound or excess, margin

_ORDERS = tuple(float(x) for x in 1 + np.geomspace(1e-3, 1e4, 60))
_LARGEST_EPSILON = 100.0
_LARGEST_WEIGHT = 100.0
_LARGEST_EXPONENT = 700.0
_PLAUSIBLE = 2.0  # standard errors of an excess that may be no accident
_NEARLY_ALL = 0.95  # an event as likely as this is no event unless it shows something
_MEDIAN_OF_NONE = math.log(2)  # hits at which none is seen half of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """What evidence certifies: whether the claim is violated, and three lower bounds.

    `measured` bounds what the claim bounds: epsilon, rho or the divergence.
    """

    violated: bool
    epsilon_low: float
    delta_low: float
    measured: float


class AuditedClaim(Protocol):
    """A claim as an audit sees it."""

    @property
    def quantity(self) -> str:
        """What it bounds, in words."""

    @property
    def epsilon(self) -> float:
        """Where lower bounds on delta are read off."""

    @property
    def delta(self) -> float:
        """Where lower bounds on epsilon are read off."""

    @property
    def gamma(self) -> float:
        """Share of pairs on which it may fail."""

    @property
    def can_be_bet_against(self) -> bool:
        """Whether a sequential audit can judge it."""

    @property
    def curve_epsilon(self) -> float:
        """Epsilon that the estimated curve should show."""

    def require_testable(self) -> None:
        """Refuse a claim that no outcome could contradict."""

    def describe(self) -> str:
        """Words for its numbers, such as ``"(epsilon = 1, delta = 0)"``."""

    def describe_measured(self, measured: float, /) -> str:
        """Words for the lower bound on what it bounds, where epsilon and delta do not say it."""

    def weigh(self, predicted: float, /) -> float | None:
        """Weight of the joint test from the bound expected; None for a rectangle."""

    def test(self, counts: Counts, alpha: float, weight: float | None, /) -> Evidence:
        """Region of confidence from the counts of an event that was chosen without them."""

    def is_contradicted(self, region: Evidence, /) -> bool:
        """Tell whether evidence contradicts the claim, with the error of the region."""

    def certify(self, region: Evidence, /) -> Certified:
        """Verdict and bounds, all from one region."""

    def measure_coins(self, share: float, other_share: float, /) -> float:
        """Evaluate what the claim bounds for an event of these two probabilities."""

    def rank(
        self, shares: Sides, rarer: Floats, samples: float, alpha: float, /
    ) -> tuple[list[Objective], list[float]]:
        """Objectives of several events, of which the largest is the best, and bounds to expect.

        `shares` are those seen on the two tables, `rarer` what is believed of the second.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What an audit is to contradict, with how many final samples, at which error."""

    claim: AuditedClaim
    final: int
    alpha: float

    def discount_samples(self, selection: int, doubt: float) -> float:
        """Size of a final split that would be as sure as both splits together."""
        return 1 / (1 / self.final + doubt / selection)


@dataclass(frozen=True, slots=True)
class _EpsilonDelta:
    """Adapter of a `Guarantee`."""

    given: Guarantee

    @property
    def quantity(self) -> str:
        return "An epsilon"

    @property
    def epsilon(self) -> float:
        return self.given.epsilon

    @property
    def delta(self) -> float:
        return self.given.delta

    @property
    def gamma(self) -> float:
        return self.given.gamma

    @property
    def can_be_bet_against(self) -> bool:
        return self.gamma == 0

    @property
    def curve_epsilon(self) -> float:
        return self.epsilon

    def require_testable(self) -> None:
        if self.delta >= 1:
            raise ParameterError(
                "a claim with delta = 1 promises nothing, so no outcome can contradict it; "
                "claim a delta below 1"
            )
        if self.epsilon > _LARGEST_EPSILON:
            raise ParameterError(
                f"epsilon = {self.epsilon} promises nothing that samples could contradict; "
                f"claim at most {_LARGEST_EPSILON:.0f}"
            )
        if self.given.marginal and self.gamma > 0:
            raise ParameterError(
                f"gamma = {self.gamma:g} is calibrated as 'marginal': a probability over the "
                "sampler and the pair together, which the share of pairs under one sensitivity may "
                "exceed while the promise holds, so that auditing this sensitivity cannot "
                "contradict it. Judge the share under this sensitivity by itself, with "
                "claim=hs.Guarantee(epsilon=..., delta=..., gamma=...) in your own numbers, or "
                "sample with calibration='training-conditional'"
            )
        if self.gamma > 0 and (self.given.distance > 1 or self.given.unit == "user"):
            raise ParameterError(
                f"gamma is about pairs that differ {self._describe_distance()}, and pairs drawn "
                "for an audit differ in one row, so that their share says nothing of it",
                parameter="claim",
            )
        if self.gamma > 0 and self.given.protect == "table":
            raise ParameterError(
                "gamma is about given new rows (protect='table'), and the new row of a pair drawn "
                "for an audit is a fresh draw, so that their share says nothing of it",
                parameter="claim",
            )

    def describe(self) -> str:
        gamma = f", gamma = {format_up(self.gamma)}" if self.gamma else ""
        numbers = f"epsilon = {format_up(self.epsilon)}, delta = {format_up(self.delta)}{gamma}"
        far = self.given.distance > 1 or self.given.unit == "user"
        return f"({numbers}{f', between tables that differ {self._describe_distance()}' * far})"

    def _describe_distance(self) -> str:
        each = "all rows of one user" if self.given.unit == "user" else "one row"
        if self.given.distance == 1:
            return f"in {each}"
        return f"in {self.given.distance} {'users' if self.given.unit == 'user' else 'rows'}"

    def describe_measured(self, _measured: float, /) -> str:
        return ""  # it is epsilon, which is said anyway

    def weigh(self, predicted: float, /) -> float | None:
        return math.exp(min(predicted, _LARGEST_WEIGHT))

    def test(self, counts: Counts, alpha: float, weight: float | None, /) -> Evidence:
        if weight is None:
            return Rectangle.from_counts(counts, alpha)
        return JointTest(counts=counts, weight=weight, alpha=alpha)

    def is_contradicted(self, region: Evidence, /) -> bool:
        return region.rejects(self.epsilon, self.delta)

    def certify(self, region: Evidence, /) -> Certified:
        violated = self.is_contradicted(region)
        # The search for a bound stops a little early; the claim itself was tested.
        epsilon, delta = (self.epsilon, self.delta) if violated else (0.0, 0.0)
        epsilon_low = max(region.epsilon_low(self.delta), epsilon)
        return Certified(
            violated=violated,
            epsilon_low=epsilon_low,
            delta_low=max(region.delta_low(self.epsilon), delta),
            measured=epsilon_low,
        )

    def measure_coins(self, share: float, other_share: float, /) -> float:
        return math.log((share - self.delta) / other_share) if share > self.delta else math.inf

    def rank(
        self, shares: Sides, rarer: Floats, samples: float, alpha: float, /
    ) -> tuple[list[Objective], list[float]]:
        """Events that should contradict the claim, then those that might, then by bound.

        The middle rank is for claims with delta, where the event of the largest epsilon is not
        the one by which delta leaks. It is ordered by the excess over the claim in standard errors.
        """
        weight = math.exp(min(self.epsilon, _LARGEST_EXPONENT))
        bounds, low, high = self._predict_bounds(shares[0], rarer, samples, alpha)
        margins = low - self.delta - weight * high
        found = [(2.0, *each) for each in zip(bounds, margins.tolist(), strict=True)]
        if not self.delta:
            return found, bounds
        one, other = (np.clip(each, 1 / samples, 1.0) for each in shares)
        variance = one * (1 - one) + weight**2 * other * (1 - other)
        spread = np.sqrt(np.maximum(variance, 1 / samples) / samples)
        excesses = ((shares[0] - self.delta - weight * shares[1]) / spread).tolist()
        for at, (_, bound, margin) in enumerate(found):
            if bound <= self.epsilon:
                plausible = excesses[at] > _PLAUSIBLE
                found[at] = (1.0, excesses[at], margin) if plausible else (0.0, bound, margin)
        return found, bounds

    def _predict_bounds(
        self, share: Floats, rarer: Floats, samples: float, alpha: float
    ) -> tuple[list[float], Floats, Floats]:
        """Bounds on epsilon that the joint test should give; negative where there is nothing.

        With them the bounds on both probabilities from which they come.

        Notes
        -----
        The distances of both Clopper-Pearson bounds are added as independent errors are, in
        squares; the test of both probabilities together comes close to that, the rectangle of
        the bounds is up to 1.7 times as far.
        """
        # Where none was seen the rarer share is taken at the median of what that leaves open.
        rare = np.maximum(rarer, _MEDIAN_OF_NONE / samples)
        low = clopper_pearson_guide(share * samples, samples, alpha)
        high = np.maximum(rare, 1 - clopper_pearson_guide((1 - rarer) * samples, samples, alpha))
        with np.errstate(divide="ignore", invalid="ignore"):
            here = np.log(share - self.delta) - np.log(rare)
            nearer = np.log(share - self.delta) - np.log(low - self.delta)
            apart = np.sqrt(nearer**2 + (np.log(high) - np.log(rare)) ** 2)
            bounds = np.where(low > self.delta, here - apart, -math.inf)
        nothing = (bounds <= 0) & (share > _NEARLY_ALL)
        found: list[float] = np.where(nothing, -math.inf, bounds).tolist()
        return found, low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class _Divergence:
    """Adapter of claims about Renyi divergences, judged by rectangles.

    `stated` bounds the largest of the divergences of the orders, each divided by its divisor.
    Curves are read at epsilon = 0 and delta = 0, for the claim names neither.
    """

    stated: float
    quantity: str
    short: str  # the same where it is known which one
    words: str
    orders: tuple[tuple[float, float], ...]
    epsilon: float = 0.0
    delta: float = 0.0
    gamma: float = 0.0
    can_be_bet_against: bool = False
    curve_epsilon: float = 1.0

    def require_testable(self) -> None:
        return

    def describe(self) -> str:
        return self.words

    def describe_measured(self, measured: float, /) -> str:
        return f"{self.short} is at least {format_down(measured)}; "

    def weigh(self, _predicted: float, /) -> float | None:
        return None

    def test(self, counts: Counts, alpha: float, _weight: float | None, /) -> Evidence:
        return Rectangle.from_counts(counts, alpha)

    def is_contradicted(self, region: Evidence, /) -> bool:
        return self._measure(region) > self.stated

    def certify(self, region: Evidence, /) -> Certified:
        measured = self._measure(region)
        return Certified(
            violated=measured > self.stated,
            epsilon_low=region.epsilon_low(self.delta),
            delta_low=region.delta_low(self.epsilon),
            measured=measured,
        )

    def measure_coins(self, share: float, other_share: float, /) -> float:
        return self._measure(Rectangle(low=share, other_high=other_share))

    def _measure(self, region: Evidence) -> float:
        """Certified lower bound on what is claimed to be at most `stated`."""
        return max(region.divergence_low(order) / divisor for order, divisor in self.orders)

    def rank(
        self, shares: Sides, _rarer: Floats, samples: float, alpha: float, /
    ) -> tuple[list[Objective], list[float]]:
        lows = clopper_pearson_guide(shares[0] * samples, samples, alpha / 2).tolist()
        highs = (1 - clopper_pearson_guide((1 - shares[1]) * samples, samples, alpha / 2)).tolist()
        ends = list(zip(lows, highs, strict=True))
        bounds = [self._measure(Rectangle(low=low, other_high=high)) for low, high in ends]
        found = [(0.0, bound, low - high) for bound, (low, high) in zip(bounds, ends, strict=True)]
        return found, bounds


def adapt_claim(claim: Claim) -> AuditedClaim:
    """See a claim as an audit does; the one place that asks which kind it is."""
    if isinstance(claim, Guarantee):
        return _EpsilonDelta(claim)
    if isinstance(claim, ZeroConcentrated):
        return _Divergence(
            stated=claim.rho,
            quantity="A rho",
            short="rho",
            words=f"zCDP with rho = {format_up(claim.rho)}",
            orders=tuple((order, order) for order in _ORDERS),
        )
    if isinstance(claim, Renyi):
        return _Divergence(
            stated=claim.epsilon,
            quantity="A divergence",
            short=f"the Renyi divergence of order {claim.order:g}",
            words=f"Renyi divergence {format_up(claim.epsilon)} of order {claim.order:g}",
            orders=((claim.order, 1.0),),
        )
    raise ParameterError(
        "claim must be hs.Guarantee(epsilon=...), ZeroConcentrated(rho=...) or "
        f"Renyi(order=..., epsilon=...), got {type(claim).__name__}{_meant(claim)}",
        parameter="claim",
    )


def _meant(claim: object) -> str:
    """Write the claim of an epsilon that was given as a plain number."""
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return ""
    return f"; for that epsilon write claim=hs.Guarantee(epsilon={claim!r})"
