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
from hushed._decimals import decimal_of, stated_above
from hushed._numeric import LARGEST
from hushed.accounting._filters import Cost, gaussian_capacity
from hushed.guarantee import Guarantee
from hushed.ledger._doubles import from_units, to_units
from hushed.privacy_loss import PrivacyProfile
from hushed.privacy_loss._composed import ComposedPLD
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import BoundedRangePLD, Family, GaussianPLD, LaplacePLD
from hushed.privacy_loss._profile import combine

_SHARES = (0.95, 0.7, 0.4, 0.15, 0.03)
_MANY = 256  # different laws from which on new ones are rounded up, by at most 0.025 % to 0.05 %
_LEAST, _MOST = 1e-100, 1e100  # losses that can be composed in doubles, with room to spare
_EVERYTHING = privacy_loss.approximate(0.0, 1.0)
_COARSE = 0.05  # relative width of the bracket that headroom is found with


@dataclass(slots=True)
class LossSum:
    """Laws of all charges of one budget, and headroom for more; sums are in units (`to_units`).

    Parameters
    ----------
    epsilon, delta : float
        Limit of the budget.
    """

    epsilon: float
    delta: float
    counts: dict[Family, int] = field(default_factory=dict)
    levels: int | None = 0
    slacks: int = 0
    headroom: tuple[int, int] | None = None

    def add(self, promise: Guarantee, loss: PrivacyProfile | None, cost: Cost) -> None:
        """Take a charge into the sums."""
        law = _find_law(promise, loss)
        counts = self.counts
        for family, count in law.parts:
            kept = _coarsen(family) if len(counts) >= _MANY and family not in counts else family
            counts[kept] = counts.get(kept, 0) + count
        self.levels = _add(self.levels, promise.epsilon)
        self.slacks += to_units(promise.delta)
        self.headroom = _subtract(self.headroom, cost)

    def fits(self, promise: Guarantee, loss: PrivacyProfile | None, cost: Cost) -> bool:
        """Whether a charge keeps the limit.

        True only if a proven upper bound of the joint delta is within the limit.
        """
        levels = _add(self.levels, promise.epsilon)
        plain = levels is not None and levels <= to_units(self.epsilon)
        if plain and self.slacks + to_units(promise.delta) <= to_units(self.delta):
            return True
        if self.delta == 0.0:
            return False
        if _subtract(self.headroom, cost) is not None:
            return True
        if self.headroom is None:
            self.headroom = _in_units(*self._find_headroom())
            if _subtract(self.headroom, cost) is not None:
                return True
        law = _find_law(promise, loss)
        return self._delta([(law, 1)]) <= decimal_of(self.delta)

    def spent(self) -> float:
        """Epsilon of everything charged at the delta of the limit, in nats, rounded up."""
        plain = math.inf
        if self.levels is not None and self.slacks <= to_units(self.delta):
            plain = stated_above(from_units(self.levels))
        if not self.counts:
            return 0.0
        if self.delta == 0.0:
            return plain
        return min(plain, self._curve([]).epsilon(self.delta))

    def epsilon_left(self) -> Fraction:
        """Epsilon that is left by adding up levels, in nats, exact; 0 or less if none is."""
        return (
            Fraction(0)
            if self.levels is None
            else decimal_of(self.epsilon) - from_units(self.levels)
        )

    def delta_left(self) -> Fraction:
        """Delta that charges may still bring, exact; 0 or less if none."""
        return from_units(to_units(self.delta) - self.slacks)

    def _curve(self, more: list[tuple[PrivacyProfile, int]]) -> PrivacyProfile:
        return combine([*((PrivacyProfile(each), n) for each, n in self.counts.items()), *more])

    def _delta(self, more: list[tuple[PrivacyProfile, int]], relative: float = 1e-3) -> Fraction:
        """Upper bound of delta at the limit; the wider the bracket may be, the sooner."""
        family = self._curve(more).family
        if isinstance(family, ComposedPLD):
            return decimal_of(family.delta_bracket(self.epsilon, relative)[1])
        return decimal_of(family.delta(self.epsilon))

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


def _coarsen(family: Family) -> Family:
    """Next larger law of a family with a bound on a geometric grid; a larger bound is worse."""
    if not isinstance(family, LaplacePLD | BoundedRangePLD):
        return family
    share, exponent = math.frexp(family.bound)
    return replace(family, bound=math.ldexp(math.ceil(share * 4096) / 4096, exponent))


def _find_law(promise: Guarantee, loss: PrivacyProfile | None) -> PrivacyProfile:
    """Loss of a charge; that of the worst mechanism with its promise if nothing else is known.

    What doubles cannot compose is rounded up: tiny losses to `_LEAST`, huge ones to everything.
    """
    if loss is None:
        if promise.epsilon > _MOST:
            return _EVERYTHING
        return privacy_loss.approximate(max(promise.epsilon, _LEAST), promise.delta)
    if any(_find_size(family) > _MOST for family, _ in loss.parts):
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
