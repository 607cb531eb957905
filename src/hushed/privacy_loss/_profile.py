"""The privacy loss of a mechanism as an object one can look at."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushed._ground.checks import read_count, require_least, require_within
from hushed._ground.decimals import read
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.numeric import round_down, round_up
from hushed._ground.printing import flat, format_up
from hushed.privacy_loss._composed import ComposedPLD, is_cut
from hushed.privacy_loss._composition import merge, summed
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import Family
from hushed.privacy_loss._gaussian import GaussianPLD
from hushed.privacy_loss._levels import (
    best_line,
    distance_moved,
    list_orders,
    renyi_divergence,
    smallest_level,
)

PERFECT = DiscretePLD(np.zeros(1), np.ones(1))


NON_PRIVATE = DiscretePLD(np.zeros(1), np.array([5e-324]), 1.0)


_SHOWN_DELTAS = (1e-5, 1e-9)
_LONGEST = 60  # of the name of a law that is shown
_MOST = 10**7


_SMALLEST = 5e-324


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """Interval that holds an exact number.

    Parameters
    ----------
    low : float
        Proven lower bound.
    high : float
        Proven upper bound.
    """

    low: float
    high: float

    @property
    def relative_gap(self) -> float:
        """Width as a share of the upper bound; 0 for an exact number."""
        if self.high == self.low:
            return 0.0
        return (self.high - self.low) / self.high


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivacyProfile(Shown):
    """Privacy of a mechanism at every level at once.

    Build one with `laplace`, `gaussian`, `bounded_range`, `randomised_response`,
    `discrete_laplace`, `discrete_gaussian`, `pair`, `approximate`, `profile` or `compose`.

    Parameters
    ----------
    family : Family or ComposedPLD
        Law of the loss for the worst pair of neighbours.
    one_sided : bool, default False
        True if it is the loss of one of two neighbours against the other only, and so no promise.

    Notes
    -----
    Single numbers are rounded towards more loss. Methods whose name ends in ``bracket`` give
    both ends. Single mechanisms have closed forms; compositions are computed on a grid, with
    every error bounded (see ``hushed.privacy_loss._composition``). Levels and slacks, given and
    returned, are the decimals of their floats. Laplace and Gaussian curves hold for release noise
    on its grid, too (docs/noise/grid.md).
    """

    family: Family | ComposedPLD
    one_sided: bool = False

    def _card(self) -> Card:
        facts = [("of", self._name_laws()), ("largest loss", self._name_largest())]
        levels = [each for each in _SHOWN_DELTAS if each > self.infinite]
        facts += [(f"epsilon at delta {d:g}", format_up(self.epsilon(d))) for d in levels]
        if self.one_sided:
            facts.append(("promise", "none: it is the loss in one direction alone"))
        return card_of_facts("Privacy loss", facts)

    def _brief(self) -> str:
        return f"Privacy loss of {self._name_laws()}: {self._name_largest()}"

    def _name_largest(self) -> str:
        if math.isinf(self.supremum):
            return "without a largest one"
        return f"at most {format_up(self.supremum)} nats"

    def _name_laws(self) -> str:
        """Name the laws that the loss is the sum of, the first few of them."""
        told = []
        for law, count in self.parts[:3]:
            name = flat(repr(law)).replace("PLD(", "(")
            name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
            told.append(f"{count} x {name}" if count > 1 else name)
        more = len(self.parts) - len(told)
        return ", ".join(told) + (f" and {more} more" if more else "")

    @property
    def parts(self) -> tuple[tuple[Family, int], ...]:
        """Laws that the loss is the sum of, and how often each occurs."""
        if isinstance(self.family, ComposedPLD):
            return self.family.parts
        return ((self.family, 1),)

    @property
    def supremum(self) -> float:
        """Largest loss, in nats: the epsilon of pure differential privacy."""
        return self.family.supremum

    @property
    def infinite(self) -> float:
        """Probability of an infinite loss: the delta that no epsilon removes."""
        return self.family.infinite

    def delta(self, epsilon: float) -> float:
        """Smallest delta for which (epsilon, delta)-differential privacy holds, rounded up.

        Parameters
        ----------
        epsilon : float
            Level, in nats; any real number or infinity.

        Returns
        -------
        float
            Value in [0, 1].

        Raises
        ------
        ParameterError
            If ``epsilon`` is NaN.
        """
        return self.family.delta(read("epsilon", epsilon, up=False))

    def delta_bracket(self, epsilon: float) -> Bracket:
        """Both ends of the exact delta.

        Parameters
        ----------
        epsilon : float
            Level, in nats; any real number or infinity.

        Returns
        -------
        Bracket
            Within [0, 1]; a few units in the last place wide for closed forms.
        """
        level = read("epsilon", epsilon, up=False)
        if isinstance(self.family, ComposedPLD):
            low, high = self.family.delta_bracket(level)
            return Bracket(low=low, high=high)
        high = self.family.delta(level)
        if self.infinite >= 1.0 or high == 0.0 or math.isinf(level):
            return Bracket(low=high, high=high)
        past = level + distance_moved(self.family, level)
        return Bracket(low=round_down(self.family.delta(past), 64), high=high)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon for which (epsilon, delta)-differential privacy holds, rounded up.

        Parameters
        ----------
        delta : float
            Slack; in [0, 1].

        Returns
        -------
        float
            Level in nats, 0 or more; infinite where no level suffices.

        Raises
        ------
        ParameterError
            If ``delta`` lies outside [0, 1] or is NaN.
        """
        return self.epsilon_bracket(delta).high

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Both ends of the smallest epsilon.

        Parameters
        ----------
        delta : float
            Slack; in [0, 1].

        Returns
        -------
        Bracket
            Levels in nats; for compositions at most 2e-4 wide, relatively, in ordinary cases.

        Raises
        ------
        ParameterError
            If ``delta`` lies outside [0, 1] or is NaN.
        """
        delta = read("delta", delta, up=False)
        require_within("delta", delta, 0, 1)
        found = self._epsilon_bracket(delta)
        cut = round_up(sum(n * f.infinite for f, n in self.parts if is_cut(f)))
        if not 0 < delta < cut * 2.0**60:
            return found
        # The law itself may lose none of what was cut off: then delta reaches as far as delta and
        # the cut together do here, or as any larger one does.
        wider = (math.nextafter(delta + cut, 1.0), max(delta, cut) + 2 * cut)
        low = max(self._epsilon_bracket(each).low for each in wider)
        return Bracket(low=min(low, found.high), high=found.high)

    def _epsilon_bracket(self, delta: float) -> Bracket:
        """Both ends, where what was cut off is lost."""
        if isinstance(self.family, ComposedPLD):
            low, high = self.family.epsilon_bracket(delta)
            return Bracket(low=low, high=high)
        if delta == 0.0:
            computed = isinstance(self.family, DiscretePLD) and self.family.end is None
            end = self.supremum
            sharp = not computed or end <= 0 or math.isinf(end)
            return Bracket(low=end if sharp else round_down(end, 64), high=end)
        if self.infinite > delta:
            sure = round_down(self.infinite, 64) > delta or self.infinite == 1.0
            return Bracket(low=math.inf if sure else 0.0, high=math.inf)
        if self.family.delta(0.0) <= delta:
            return Bracket(low=0.0, high=0.0)
        high = smallest_level(self.family, delta)
        if isinstance(self.family, DiscretePLD) and self.family.end is not None:
            high = min(high, self.family.end)  # beyond it only what is infinite is left
        # At any lower level even the computed delta less all its rounding exceeds the slack.
        beyond = round_up(delta, 128)
        low = smallest_level(self.family, beyond, high) if beyond < 1.0 else 0.0
        low = round_down(low, 64) - distance_moved(self.family, low)
        return Bracket(low=min(high, max(0.0, low)), high=high)

    def tail(self, loss: float) -> float:
        """Probability, under P, that the loss exceeds ``loss``.

        Parameters
        ----------
        loss : float
            Level, in nats.

        Returns
        -------
        float
            Probability; rounded up for compositions.
        """
        return self.family.tail(read("loss", loss, up=False))

    def moment(self, order: int) -> float:
        """Raw moment ``E_P[L**order]``.

        Parameters
        ----------
        order : int
            Order; 0 to 40.

        Returns
        -------
        float
            Moment, in nats to that power; infinite where an infinite loss has a probability.

        Raises
        ------
        ParameterError
            If ``order`` lies outside 0 to 40.
        """
        return self.family.moment(read_count("order", order, 0, 40))

    def log_mgf(self, order: float) -> float:
        """Logarithm of the moment generating function ``E_P[exp(order L)]``.

        Parameters
        ----------
        order : float
            Order; any real number.

        Returns
        -------
        float
            Logarithm; infinite for orders above 0 where an infinite loss has a probability.
        """
        order = read("order", order, up=True)
        if self.infinite > 0 and order > 0:
            return math.inf
        return float(self.family.log_mgf(np.array([order]))[0])

    def renyi(self, order: float) -> float:
        """Renyi divergence of P from Q, rounded up.

        Parameters
        ----------
        order : float
            Order alpha; 1 or more. 1 gives the Kullback-Leibler divergence, infinity the
            largest loss.

        Returns
        -------
        float
            ``log E_P[exp((alpha - 1) L)] / (alpha - 1)``, in nats.

        Raises
        ------
        ParameterError
            If ``order`` is below 1 or NaN.

        Notes
        -----
        Mironov, *Renyi Differential Privacy*, CSF 2017.
        """
        order = read("order", order, up=True)
        require_least("order", order, 1)
        if math.isinf(order):
            return self.supremum
        terms = [count * renyi_divergence(family, order) for family, count in self.parts]
        found = round_up(min(summed(terms), self.supremum), 64)
        return max(found, _SMALLEST) if self.supremum > 0 else found

    def zcdp(self) -> float:
        """Smallest rho of zero-concentrated differential privacy, rounded up by at most 0.2 %.

        Returns
        -------
        float
            Bound on ``renyi(alpha) / alpha`` over all alpha above 1; infinite when there is
            none.

        Notes
        -----
        Bun and Steinke, *Concentrated Differential Privacy*, TCC 2016. The Renyi divergence
        grows with its order, so between two orders it is bounded by its value at the larger.
        """
        orders = list_orders(summed([count * family.supremum for family, count in self.parts]))
        straight, bound, curve = 0.0, 0.0, np.zeros(orders.size)
        for family, count in self.parts:
            if isinstance(family, GaussianPLD):
                straight += count * family.ratio * family.ratio / 2
            elif family.infinite > 0 and isinstance(family, DiscretePLD):
                straight += count * family.concentrated
            else:
                bound += count * family.supremum
                curve += count * family.log_mgf(orders - 1.0) / (orders - 1.0)
        between = float((np.minimum(curve[1:], bound) / orders[:-1]).max())
        rest = max(float(curve[0]), between, bound / float(orders[-1]))
        found = round_up(straight + rest, 64)
        return max(found, _SMALLEST) if self.supremum > 0 else found

    def advantage(self) -> float:
        """Largest advantage of an attacker who guesses between two neighbours, rounded up.

        Returns
        -------
        float
            Total variation distance ``delta(0)``: true positive rate minus false positive rate.
        """
        return self.delta(0.0)

    def tradeoff(self, false_positive: float) -> float:
        """Smallest false-negative rate of any test at a false-positive rate, rounded down.

        Parameters
        ----------
        false_positive : float
            Probability that the attacker cries "in" when the record is out; in [0, 1].

        Returns
        -------
        float
            Lower bound of the probability that the attacker says "out" when it is in.

        Raises
        ------
        ParameterError
            If the rate lies outside [0, 1] or is NaN.

        Notes
        -----
        ``max(1 - delta(e) - exp(e) false_positive)`` over all e: Dong, Roth and Su, *Gaussian
        Differential Privacy*, JRSS-B 2022, Proposition 2.12. Every e gives a valid bound.
        """
        false_positive = read("false_positive", false_positive, up=True)
        require_within("false_positive", false_positive, 0, 1)
        if false_positive == 0.0:
            return max(0.0, 1.0 - self.delta(self.supremum))
        if isinstance(self.family, ComposedPLD):
            levels, deltas = self.family.profile()
            with np.errstate(over="ignore"):
                values = 1.0 - deltas - np.exp(levels) * false_positive
            return max(0.0, float(values.max()) - 1e-15)
        return max(0.0, best_line(self.family, false_positive) - 1e-15)

    def compose(self, count: int) -> PrivacyProfile:
        """Curve of ``count`` independent releases of the same mechanism.

        Parameters
        ----------
        count : int
            Number of releases; 0 to 10 million.

        Returns
        -------
        PrivacyProfile
            The composition; it also covers an adversary who chooses each release after seeing
            the ones before.

        Raises
        ------
        ParameterError
            If ``count`` is not a whole number in range.

        Notes
        -----
        Zhu, Dong and Wang, AISTATS 2022, Theorem 10, for the adaptive case.
        """
        return combine([(self, read_count("count", count, 0, _MOST))])


def combine(items: list[tuple[PrivacyProfile, int]]) -> PrivacyProfile:
    """Curve of several releases, each a number of times."""
    parts: list[tuple[Family, int]] = []
    squares, releases = 0.0, 0
    half = any(curve.one_sided for curve, count in items if count > 0)
    for curve, count in items:
        for family, times in curve.parts:
            if isinstance(family, GaussianPLD):
                squares += count * times * family.ratio * family.ratio
                releases += count * times * family.releases
            elif count * times > 0 and (family.scale > 0 or family.infinite > 0):
                parts.append((family, count * times))
    if squares > 0:
        parts.append((GaussianPLD(round_up(math.sqrt(squares), 8), releases), 1))
    merged = merge(parts)
    if any(family.infinite >= 1.0 for family, _ in merged):
        return PrivacyProfile(NON_PRIVATE, one_sided=half)
    if not merged:
        return PrivacyProfile(PERFECT, one_sided=half)
    if len(merged) == 1 and merged[0][1] == 1:
        return PrivacyProfile(merged[0][0], one_sided=half)
    return PrivacyProfile(ComposedPLD(merged), one_sided=half)
