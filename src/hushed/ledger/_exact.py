"""The exact composition of everything charged, kept up to date without composing it each time.

Composing the laws of a long history takes longer than a charge may. So the history is composed
now and then only; from that point on some *headroom* is kept: the squared ratio of the largest
Gaussian release that could still follow. A release that is better than a Gaussian pair (every one
is, see `hushed.accounting._pure.pure_gaussian`) takes its squared ratio from the headroom. When
the headroom is used up the history is composed again. As the Gaussian pair overstates a law by a
bounded factor, each round leaves a fixed share of what was left, so that the number of rounds grows
with the logarithm of the number of charges. Of many different laws, later ones are rounded up to a
grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hushed import privacy_loss
from hushed._ground.decimals import decimal_of, stated_above
from hushed._ground.numeric import LARGEST, round_up
from hushed.accounting._filters import Cost, PrivacyFilter, filter_cost, gaussian_capacity
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger._doubles import from_units, to_units
from hushed.privacy_loss import PrivacyProfile
from hushed.privacy_loss._composed import ComposedPLD
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import BoundedRangePLD, Family, LaplacePLD
from hushed.privacy_loss._gaussian import GaussianPLD
from hushed.privacy_loss._profile import combine

_SHARES = (0.95, 0.7, 0.4, 0.15, 0.03)
_MANY = 256  # different laws from which on new ones are rounded up, by at most 0.3 %
_MORE = 128  # further ones with each of which the rounding gets four times as coarse
_LEAST, _MOST = 1e-100, 1e100  # losses that can be composed in doubles, with room to spare
_JUDGED = 100  # charges that are remembered to fit, or not, as it stands
_Asked = tuple[tuple[Family, int], ...]  # laws of a charge, each so many times
_EVERYTHING = privacy_loss.approximate(0.0, 1.0)
_WIDTH = 1e-3  # relative width of the bracket that charges are judged by
_COARSE = 0.05  # relative width of the bracket that headroom is found with


@dataclass(slots=True)
class LossSum:
    """Laws of all charges of one budget, and headroom for more; sums are in units (`to_units`)."""

    # Limit of the budget.
    epsilon: float
    delta: float
    found: PrivacyFilter  # by which laws are priced
    counts: dict[Family, int] = field(default_factory=dict)
    kinds: int = 0  # of them, those that are not Gaussian: Gaussian ones add up to one
    levels: int | None = 0
    slacks: int = 0
    headroom: tuple[int, int] | None = None
    judged: dict[_Asked, bool] = field(default_factory=dict)  # what fits behind what was charged

    def copy(self) -> LossSum:
        """Copy what is added up."""
        return replace(self, counts=dict(self.counts), judged=dict(self.judged))

    def add(self, promise: Guarantee, loss: PrivacyProfile | None, cost: Cost) -> None:
        """Take a charge into the sums."""
        laws, cost = self._as_counted(promise, loss, cost)
        for family, count in laws:
            self.kinds += self._is_new(family)
            self.counts[family] = self.counts.get(family, 0) + count
        self.levels = _add(self.levels, promise.epsilon)
        self.slacks += to_units(promise.delta)
        self.headroom = _subtract(self.headroom, cost)
        self.judged.clear()

    def _as_counted(
        self, promise: Guarantee, loss: PrivacyProfile | None, cost: Cost
    ) -> tuple[list[tuple[Family, int]], Cost]:
        """Laws of a charge as they are added up, and what they cost.

        They are rounded up if there are many others, so that there are never too many: whether a
        charge fits is judged by what is added up after it.
        """
        laws: list[tuple[Family, int]] = []
        rounded: list[tuple[Cost, int]] = []
        kinds = self.kinds
        for family, count in _find_law(promise, loss).parts:
            counted = family
            if self._is_new(family) and kinds >= _MANY:
                counted = _coarsen(family, 2.0 ** (2 * ((kinds - _MANY) // _MORE) - 8))
                rounded.append((self._price(counted), count))
            kinds += self._is_new(counted)
            laws.append((counted, count))
        if not rounded:
            return laws, cost
        if len(rounded) < len(laws):
            rounded.append((cost, 1))
        return laws, _add_costs(rounded)

    def _is_new(self, family: Family) -> bool:
        return family not in self.counts and not isinstance(family, GaussianPLD)

    def _price(self, family: Family) -> Cost:
        """Price a law that was rounded up."""
        worst = Guarantee(epsilon=_find_size(family), delta=family.infinite)
        return filter_cost(self.found, worst, PrivacyProfile(family))

    def fits(self, promise: Guarantee, loss: PrivacyProfile | None, cost: Cost) -> bool:
        """Whether a charge keeps the limit; composed once, until another one is added.

        True only if a proven upper bound of the joint delta is within the limit.
        """
        levels = _add(self.levels, promise.epsilon)
        plain = levels is not None and levels <= to_units(self.epsilon)
        if plain and self.slacks + to_units(promise.delta) <= to_units(self.delta):
            return True
        if self.delta == 0.0:
            return False
        laws, cost = self._as_counted(promise, loss, cost)
        if _subtract(self.headroom, cost) is not None:
            return True
        if self.headroom is None:
            self.headroom = _in_units(*self._find_headroom())
            if _subtract(self.headroom, cost) is not None:
                return True
        asked = tuple(laws)
        if asked not in self.judged:
            if len(self.judged) >= _JUDGED:
                self.judged.clear()
            more = [(PrivacyProfile(family), count) for family, count in laws]
            self.judged[asked] = self._delta(more) <= decimal_of(self.delta)
        return self.judged[asked]

    def keeps_limit(self) -> bool:
        """Whether all that was charged keeps the limit, but for the width of the bracket."""
        plain = self.levels is not None and self.levels <= to_units(self.epsilon)
        if not self.counts or (plain and self.slacks <= to_units(self.delta)):
            return True
        limit = decimal_of(self.delta)
        return self.delta > 0 and self._delta([], _WIDTH) * (1 - Fraction(2 * _WIDTH)) <= limit

    def spent(self) -> float:
        """Epsilon of everything charged at the delta of the limit, in nats, rounded up."""
        plain = math.inf
        if self.levels is not None and self.slacks <= to_units(self.delta):
            plain = stated_above(from_units(self.levels))
        if not self.counts:
            return 0.0
        if self.delta == 0.0:
            return plain
        try:
            return min(plain, self._curve([]).epsilon(self.delta))
        except ParameterError:  # no doubles for it: only adding up is known
            return plain

    def epsilon_left(self) -> Fraction:
        """Epsilon that is left by adding up levels, in nats, exact; 0 or less if none is."""
        return (
            Fraction(0)
            if self.levels is None
            else decimal_of(self.epsilon) - from_units(self.levels)
        )

    def delta_left(self) -> Fraction:
        """Delta that is left by adding up deltas, exact; 0 or less if none."""
        return from_units(to_units(self.delta) - self.slacks)

    def room(self) -> Fraction:
        """Delta between that of everything charged and the limit; 0 or less if there is none."""
        if not self.counts or self.delta == 0.0:
            return Fraction(0)
        return decimal_of(self.delta) - self._delta([])

    def _curve(self, more: list[tuple[PrivacyProfile, int]]) -> PrivacyProfile:
        return combine([*((PrivacyProfile(each), n) for each, n in self.counts.items()), *more])

    def _delta(self, more: list[tuple[PrivacyProfile, int]], relative: float = _WIDTH) -> Fraction:
        """Upper bound of delta at the limit; the wider the bracket may be, the sooner.

        What doubles cannot compose is taken for everything: one entry stops nobody's reading.
        """
        family = self._curve(more).family
        if not isinstance(family, ComposedPLD):
            return decimal_of(family.delta(self.epsilon))
        try:
            return decimal_of(family.delta_bracket(self.epsilon, relative)[1])
        except ParameterError:
            return Fraction(1)

    def _find_headroom(self) -> tuple[Fraction, Fraction]:
        """Squared ratio and own delta that may still follow; the largest of a few tried."""
        limit = decimal_of(self.delta)
        now = self._delta([])
        if now >= limit:
            return Fraction(0), Fraction(0)
        reserve = (limit - now) / 8
        whole = gaussian_capacity(self.epsilon, self.delta)
        used = gaussian_capacity(self.epsilon, float(now)) if float(now) > 1e-290 else 0.0
        for share in _SHARES:
            squares = share * max(whole - used, 0.0)
            follower = privacy_loss.gaussian(math.sqrt(squares) * (1 + 2.0**-50))
            if squares > 0 and self._delta([(follower, 1)], _COARSE) + reserve <= limit:
                return Fraction(squares), reserve
        return Fraction(0), Fraction(0)


def _add_costs(costs: list[tuple[Cost, int]]) -> Cost:
    """Sum of costs, each so many times, rounded up."""
    amount = math.fsum(count * cost.amount for cost, count in costs)
    delta = math.fsum(count * cost.delta for cost, count in costs)
    return Cost(amount=round_up(amount), delta=round_up(delta, ceiling=1.0))


def _coarsen(family: Family, width: float) -> Family:
    """Larger law whose bound is a power of ``2**width``; of a finite one, only the ends are kept.

    A larger bound is worse, and of all laws with the same largest loss and the same mass at
    infinity that of `privacy_loss.approximate` is the worst.
    """
    if isinstance(family, LaplacePLD | BoundedRangePLD):
        bound = _power_above(family.bound, width)
        return replace(family, bound=bound) if bound <= _MOST else _EVERYTHING.parts[0][0]
    if not isinstance(family, DiscretePLD):
        return family
    bound = _power_above(max(_find_size(family), family.end or 0.0, _LEAST), width)
    infinite = _power_above(family.infinite, width) if family.infinite > 0 else 0.0
    if bound > _MOST or infinite >= 1.0:
        return _EVERYTHING.parts[0][0]
    return privacy_loss.approximate(bound, infinite).parts[0][0]


def _power_above(value: float, width: float) -> float:
    """Power of ``2**width`` that is not below a value above 0; infinite beyond all doubles."""
    exponent = math.ceil(math.log2(value) / width) * width
    return 2.0**exponent * (1 + 2.0**-50) if exponent < 1024 else math.inf


def _find_law(promise: Guarantee, loss: PrivacyProfile | None) -> PrivacyProfile:
    """Loss of a charge; that of the worst mechanism with its promise if nothing else is known.

    What doubles cannot compose is rounded up: tiny losses to `_LEAST`, huge ones to everything.
    """
    if loss is None:
        if promise.epsilon > _MOST:
            return _EVERYTHING
        return privacy_loss.approximate(max(promise.epsilon, _LEAST), promise.delta)
    if any(_find_size(family) * count > _MOST for family, count in loss.parts):
        return _EVERYTHING
    if all(_find_size(family) >= _LEAST for family, _ in loss.parts):
        return loss
    return combine([(_raise_tiny(family), count) for family, count in loss.parts])


def _find_size(family: Family) -> float:
    """Largest finite loss of a law in either direction, or the ratio of a Gaussian one."""
    if isinstance(family, GaussianPLD):
        return family.ratio
    if isinstance(family, DiscretePLD):
        return float(abs(family.losses).max())
    return family.supremum


def _raise_tiny(family: Family) -> PrivacyProfile:
    """PrivacyLossDistribution that is not tiny, and not better."""
    if _find_size(family) >= _LEAST or family.scale == 0.0:
        return PrivacyProfile(family)
    if isinstance(family, GaussianPLD | LaplacePLD | BoundedRangePLD):
        return PrivacyProfile(type(family)(_LEAST))
    return privacy_loss.approximate(_LEAST, min(family.infinite, 1.0 - 2.0**-53))


def _in_units(squares: Fraction, own: Fraction) -> tuple[int, int]:
    """Headroom in units, rounded down."""
    return math.floor(squares / from_units(1)), math.floor(own / from_units(1))


def _add(total: int | None, value: float) -> int | None:
    """Exact sum; None stands for infinity, and for more than any double."""
    if total is None or math.isinf(value):
        return None
    found = total + to_units(value)
    return found if found <= to_units(LARGEST) else None


def _subtract(headroom: tuple[int, int] | None, cost: Cost) -> tuple[int, int] | None:
    """Headroom after a charge; None if it does not fit, or if there was none."""
    if headroom is None or math.isinf(cost.amount):
        return None
    squares, own = headroom[0] - to_units(cost.amount), headroom[1] - to_units(cost.delta)
    return (squares, own) if squares >= 0 and own >= 0 else None
