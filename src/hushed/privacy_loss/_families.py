"""Laws of the privacy loss with a density on an interval: Laplace and bounded range.

Every family answers the same few questions (`Family`); everything else is derived from the
answers. The loss is ``L = log(P(o) / Q(o))`` for an output ``o`` drawn from P, in nats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushed._ground.decimals import lower_double, upper_double
from hushed._ground.numeric import round_up
from hushed._ground.precise import Mpf, mp
from hushed._ground.types import Floats

DIGITS = 60  # of what is computed exactly
_LOG_2 = math.log(2.0)


class PrivacyLossDistribution(Protocol):
    """Law of a privacy loss under P, for the worst pair of neighbours."""

    @property
    def supremum(self) -> float:
        """Largest loss; infinite when there is none."""

    @property
    def infinite(self) -> float:
        """Probability, under P, of an infinite loss."""

    @property
    def scale(self) -> float:
        """Order of magnitude of a typical loss; above 0."""

    def delta(self, epsilon: float) -> float:
        """Smallest delta at ``epsilon``, rounded up; any real ``epsilon``."""

    def tail(self, loss: float) -> float:
        """Probability, under P, of a loss above ``loss``."""

    def log_mgf(self, order: Floats) -> Floats:
        """Logarithm of ``E_P[exp(order L)]`` over the finite losses, one value per order."""

    def moment(self, order: int) -> float:
        """``E_P[L**order]``."""


class Family(PrivacyLossDistribution, Protocol):
    """Law of one mechanism's loss, which can be put on a grid; equal laws are equal values."""

    def __hash__(self) -> int: ...

    @property
    def least(self) -> float:
        """Loss that none is below: of one-sided curves it may lie farther from 0 than the largest.

        Minus infinity where there is none.
        """

    @property
    def top(self) -> float:
        """Probability, under P, of exactly the largest finite loss; 0 if there is none."""

    @property
    def blur(self) -> float:
        """What noise on its grid may cost: a factor ``exp(blur)`` and ``2 blur`` nats at most."""

    def bins(self, first: int, count: int, step: float) -> tuple[Floats, Floats]:
        """Masses of ``count`` intervals ``(a, a + step]`` from ``a = first * step`` upwards.

        Returns, per interval, the mass under P and ``E_P[1 - exp(-(L - a))]`` over it.
        """


def _sinhc_less_one(x: Floats) -> Floats:
    """``sinh(x)/x - 1`` without cancellation, for ``|x|`` below 1."""
    y = x * x
    series = 1.0 + y / 342.0
    for divisor in (272.0, 210.0, 156.0, 110.0, 72.0, 42.0, 20.0):
        series = 1.0 + y / divisor * series
    return y / 6.0 * series


def _log_sinhc(x: Floats) -> Floats:
    """``log(sinh(x)/x)`` for any real x."""
    size = np.abs(x)
    large = np.maximum(size, 0.5)
    big = large + np.log1p(-np.exp(-2.0 * np.minimum(large, 400.0))) - np.log(large) - _LOG_2
    return np.where(size < 0.5, np.log1p(_sinhc_less_one(np.minimum(size, 0.5))), big)


def _above_tangent(x: Floats) -> Floats:
    """``exp(x) - 1 - x``, which is never negative, without cancellation."""
    small = np.clip(x, -0.5, 0.5)
    series = np.ones_like(small)
    for divisor in range(18, 2, -1):
        series = 1.0 + small / divisor * series
    return np.where(np.abs(x) < 0.5, small * small / 2.0 * series, np.expm1(x) - x)


def _less(t: Floats) -> Floats:
    """``t / (2 t + 1)`` for any t of 0 or more."""
    large = np.maximum(t, 1.0)
    return np.where(t < 1.0, t / (2.0 * np.minimum(t, 1.0) + 1.0), 1.0 / (2.0 + 1.0 / large))


def _coth_less_one(y: float) -> float:
    """``y coth(y) - 1`` for y above 0: Lambert's continued fraction, or as it stands."""
    if y >= 1.0:
        return y / math.tanh(y) - 1.0
    found = 17.0
    for odd in (15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        found = odd + y * y / found
    return y * y / found


def _segment_bins(
    log_density: float, bound: float, first: int, count: int, step: float
) -> tuple[Floats, Floats]:
    """Bins of the density ``exp(log_density + x/2)`` on ``[-bound, bound]``."""
    start = (first + np.arange(count)) * step
    low = np.clip(-bound - start, 0.0, step)
    high = np.clip(bound - start, 0.0, step)
    # Everything is counted from the upper end of the bin's part, so that nothing overflows;
    # bins outside [-bound, bound] have no width and their exponent is not evaluated.
    width = high - low
    top = 2.0 * np.exp(log_density + np.minimum(start + high, bound) / 2)
    mass = top * -np.expm1(-width / 2)
    rise = mass * -np.expm1(-(high + low) / 2)
    empty = width <= 0
    return np.where(empty, 0.0, mass), np.where(empty, 0.0, rise)


def _add_atom(
    bins: tuple[Floats, Floats], atom: tuple[float, float], first: int, step: float
) -> None:
    """Put a point mass ``(loss, mass)`` into the bin that holds it, if one does."""
    loss, mass = atom
    place = math.ceil(loss / step) - 1 - first
    if 0 <= place < bins[0].size:
        above = min(max(loss - (first + place) * step, 0.0), step)
        bins[0][place] += mass
        bins[1][place] -= mass * math.expm1(-above)


def _segment_moment(order: int, bound: float) -> Mpf:
    """Integral of ``x**order exp(x/2)`` over ``[-bound, bound]``, in the working precision."""
    b = mp.mpf(bound)
    up, down = mp.exp(b / 2), mp.exp(-b / 2)
    total = 2 * (up - down)
    for n in range(1, order + 1):
        total = 2 * (b**n * up - (-b) ** n * down) - 2 * n * total
    return total


@dataclass(frozen=True, slots=True)
class _IntervalPLD(ABC):
    """What laws on ``[-bound, bound]`` have in common; the bound is a decimal."""

    bound: float

    @property
    def supremum(self) -> float:
        """Largest loss."""
        return self.bound

    @property
    def least(self) -> float:
        """The bound, below 0."""
        return -self.bound

    @property
    def infinite(self) -> float:
        """No loss is infinite."""
        return 0.0

    @property
    def scale(self) -> float:
        """The bound."""
        return self.bound

    @property
    def wide(self) -> float:
        """The bound as a double that is not below it; a larger bound is worse."""
        return upper_double(self.bound)

    def delta(self, epsilon: float) -> float:
        """Delta at a level: 0 beyond the bound, and below it what any law of such losses has."""
        if epsilon >= self.bound:
            return 0.0
        if epsilon <= -self.bound:
            return round_up(-math.expm1(lower_double(epsilon)), ceiling=1.0)
        return self._delta_within(epsilon)

    @abstractmethod
    def _delta_within(self, epsilon: float) -> float:
        """Delta at a level within the bound."""

    def tail(self, loss: float) -> float:
        """Probability of a larger loss."""
        if loss >= self.bound:
            return 0.0
        if loss < -self.bound:
            return 1.0
        return self._tail_within(loss)

    @abstractmethod
    def _tail_within(self, loss: float) -> float:
        """Probability of a loss larger than one within the bound."""


@dataclass(frozen=True, slots=True)
class LaplacePLD(_IntervalPLD):
    """Laplace noise at its full sensitivity; ``bound`` is sensitivity over scale, a decimal.

    Under P the loss is ``bound`` with probability 1/2, ``-bound`` with probability
    ``exp(-bound)/2`` and has density ``exp((x - bound)/2)/4`` between.
    """

    @property
    def top(self) -> float:
        """Half of the outputs lose the bound."""
        return 0.5

    @property
    def blur(self) -> float:
        """See docs/noise/grid.md: nothing at the bound, second order in the grid below."""
        return min(2.0**-92, self.bound * self.bound / 4)

    def _delta_within(self, epsilon: float) -> float:
        """``1 - exp(-(bound - epsilon)/2)``."""
        gap = (self.wide - lower_double(epsilon)) + 2 * self.blur
        return round_up(-math.expm1(-gap / 2), ceiling=1.0)

    def _tail_within(self, loss: float) -> float:
        """``1 - exp(-(bound - loss)/2)/2``."""
        return 1.0 - 0.5 * math.exp(-(self.wide - lower_double(loss)) / 2)

    def log_mgf(self, order: Floats) -> Floats:
        """``((t + 1) exp(t b) + t exp(-(t + 1) b)) / (2 t + 1)`` at the order t, its logarithm.

        Mironov, *Renyi Differential Privacy*, CSF 2017, Proposition 6.
        """
        t = np.asarray(order, dtype=float)
        return np.where(
            t >= 0, self._positive(np.maximum(t, 0.0)), self._negative(np.minimum(t, 0.0))
        )

    def _positive(self, t: Floats) -> Floats:
        """By what ``exp`` exceeds its tangent, which adds up; close to 0, nothing cancels."""
        b, less = self.wide, _less(t)
        with np.errstate(over="ignore"):
            size, back = t * b, t * b + b
            far = size + np.log(1.0 - less + less * np.exp(-size - back))
        up = _above_tangent(np.minimum(size, 1.0))
        down = _above_tangent(-back)
        near = np.log1p((1.0 - less) * up + less * np.where(size < 1.0, down, 0.0))
        return np.where(size < 1.0, near, far)

    def _negative(self, t: Floats) -> Floats:
        """``exp(-b/2) (cosh(s b) + sinh(s b)/(2 s))``, even in ``s = t + 1/2``, its logarithm."""
        s = np.abs(t + 0.5)
        b = self.wide
        large = np.maximum(s, 1e-300)
        ratio = np.exp(-2.0 * large * b)
        spread = np.where(large * b < 1e-8, b / 2, -np.expm1(-2.0 * large * b) / (4.0 * large))
        far = large * b - b / 2 + np.log((1.0 + ratio) / 2 + spread)
        if b >= 1.0:
            return far
        x = np.minimum(s * b, 1.0)
        small_s = x / b
        near = 2.0 * np.sinh((small_s + 0.5) * b / 2) * np.sinh((small_s - 0.5) * b / 2)
        near += (b / 2) * (
            np.where(x < 1.0, _sinhc_less_one(x), 0.0) - _sinhc_less_one(np.asarray(b / 2))
        )
        return np.where(s * b < 1.0, np.log1p(math.exp(-b / 2) * near), far)

    def moment(self, order: int) -> float:
        """Two atoms and a segment."""
        with mp.workdps(DIGITS + 20):
            b = mp.mpf(self.wide)
            ends = b**order / 2 + mp.exp(-b) * (-b) ** order / 2
            return float(ends + mp.exp(-b / 2) / 4 * _segment_moment(order, self.wide))

    def bins(self, first: int, count: int, step: float) -> tuple[Floats, Floats]:
        """Segment plus the two atoms."""
        log_density = -math.log(4.0) - self.wide / 2
        found = _segment_bins(log_density, self.wide, first, count, step)
        _add_atom(found, (self.wide, 0.5), first, step)
        _add_atom(found, (-self.wide, 0.5 * math.exp(-self.wide)), first, step)
        return found


@dataclass(frozen=True, slots=True)
class BoundedRangePLD(_IntervalPLD):
    """Worst case over all mechanisms of bounded range ``bound``, the exponential among them.

    The least favourable two-outcome mechanism depends on epsilon; the curve of their supremum
    is ``(1 - exp((e - b)/2))**2 / (1 - exp(-b))``, convex in ``exp(e)``, hence the curve of one
    pair, whose loss has density ``exp(x/2) / (4 sinh(b/2))`` on ``[-b, b]``.

    Notes
    -----
    Dong, Durfee and Rogers, *Optimal Differential Privacy Composition for Exponential
    Mechanisms*, ICML 2020, for the two-outcome mechanisms; Zhu, Dong and Wang, *Optimal
    Accounting of Differential Privacy via Characteristic Function*, AISTATS 2022, Proposition 8
    for the pair behind a curve and Theorem 10 for its composition.
    """

    @property
    def top(self) -> float:
        """No loss has a probability of its own."""
        return 0.0

    @property
    def blur(self) -> float:
        """Choices are drawn exactly."""
        return 0.0

    def _delta_within(self, epsilon: float) -> float:
        """``(1 - exp((epsilon - b)/2))**2 / (1 - exp(-b))``."""
        top = math.expm1((lower_double(epsilon) - self.wide) / 2)
        # Divided first: the square of a tiny loss is no double.
        return round_up(top * (top / -math.expm1(-self.wide)), 8, ceiling=1.0)

    def _tail_within(self, loss: float) -> float:
        """``(exp(b/2) - exp(loss/2)) / (2 sinh(b/2))``."""
        return math.expm1((lower_double(loss) - self.wide) / 2) / math.expm1(-self.wide)

    def log_mgf(self, order: Floats) -> Floats:
        """Logarithm of ``sinh(s b) / (2 s sinh(b/2))`` at ``s = order + 1/2``."""
        t = np.asarray(order, dtype=float)
        least = np.minimum(t, 0.0)
        negative = _log_sinhc((least + 0.5) * self.wide) - _log_sinhc(np.asarray(self.wide / 2))
        return np.where(t >= 0, self._positive(np.maximum(t, 0.0)), negative)

    def _positive(self, t: Floats) -> Floats:
        """Without cancellation: close to 0 a sum of positive terms."""
        b, less = self.wide, _less(t)
        with np.errstate(over="ignore"):
            size = t * b
            if b < 1.0:
                far = _log_sinhc(size + b / 2) - _log_sinhc(np.asarray(b / 2))
            else:
                far = size + np.log1p(-np.exp(-2.0 * size - b)) - math.log1p(-math.exp(-b))
                far -= np.where(
                    t < 1.0, np.log1p(2.0 * np.minimum(t, 1.0)), _LOG_2 + np.log(t + 0.5)
                )
        x, bent = np.minimum(size, 1.0), _coth_less_one(b / 2)
        near = np.sinh(x / 2) ** 2 / (t + 0.5)
        near += 2.0 * less * ((1.0 + bent) * _sinhc_less_one(x) + bent)
        return np.where(size < 1.0, np.log1p(near), far)

    def moment(self, order: int) -> float:
        """Integral over the segment."""
        with mp.workdps(DIGITS + 20):
            height = 1 / (4 * mp.sinh(mp.mpf(self.wide) / 2))
            return float(height * _segment_moment(order, self.wide))

    def bins(self, first: int, count: int, step: float) -> tuple[Floats, Floats]:
        """Segment only."""
        b = self.wide
        log_density = -math.log(2.0) - b / 2 - math.log(-math.expm1(-b))
        return _segment_bins(log_density, b, first, count, step)
