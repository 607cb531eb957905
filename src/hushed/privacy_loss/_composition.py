"""Composition of loss laws on one grid, with a proven bracket around the exact curve.

Method. Each law is moved onto a grid of spacing h so that every interval keeps its mass under P
and under Q (the "connect the dots" rounding of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi,
PoPETs 2022). That is a martingale split of ``exp(-L)``: the rounded curve lies above the true one
and stays there under composition. Laws are tilted by ``exp(theta x)`` before they are multiplied
in one Fourier domain (Esscher's transform), so that everything lost to truncation, wrap-around
and round-off is small against delta itself, however small delta is.

Lower end. Given the true losses, the rounding error of each law is a two-outcome split of width
h, hence dominated by a Gaussian pair of ratio ``h sqrt(pi/8)`` (Dong, Roth and Su, *Gaussian
Differential Privacy*, JRSS-B 2022: a trade-off function with one kink lies above the Gaussian one
that touches the kink). So the rounded sum is at most the true sum composed with one Gaussian of
ratio ``mu = h sqrt(pi n/8)``, and the excess over the true curve is an average of a bump of height
``0.4 mu`` and width ``mu`` around epsilon: second order in h. The bump's average is bounded with
the computed law, widened by the deviation that the rounding exceeds with probability 0.2.

Round-off. A transform of length N of a vector with entries that sum to s errs by at most
``8 log2(N) 2**-53 s`` per entry (Higham, *Accuracy and Stability of Numerical Algorithms*, section
24.1, with room to spare); the error of a product is bounded factor by factor, and the error of
delta by the largest error of a mass times the sum of its weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.privacy_loss._families import Family

Parts = tuple[tuple[Family, int], ...]

# Tilts, in units of one over the size of the total loss.
LADDER: Floats = np.geomspace(1e-2, 1e4, 62)
_UNIT = 2.0**-53
_LEAK = 42.0  # each truncated tail holds less than exp(-42) = 6e-19 of the tilted law
_BUMP = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0])  # steps of the bump, in units of mu
_MISSED = 0.2
_LEAST, _MOST = 1e-120, 1e120
_MOST_BINS = 2**26  # of one law
_WHOLE = 0.999  # mass of a tilted law, of which only a leak may be missing


class Faded(ParameterError):
    """Where the tilt puts a law, its masses leave the doubles: this window has no answer."""

    def __init__(self) -> None:
        super().__init__("so many or so different losses cannot be composed in doubles")


def log_mgf(parts: Parts, order: Floats) -> Floats:
    """Logarithm of ``E[exp(order S)]`` for the sum S of independent losses."""
    total = np.zeros(np.shape(order))
    for family, count in parts:
        total = total + count * family.log_mgf(order)
    return total


def spread(parts: Parts) -> float:
    """Order of magnitude of the total loss."""
    return math.hypot(*(math.sqrt(count) * family.scale for family, count in parts))


def farthest(family: Family) -> float:
    """Size that no loss exceeds, above 0 or below it."""
    return max(family.supremum, -family.least)


def summed(terms: Sequence[float]) -> float:
    """Sum of numbers that may exceed every double.

    Their sum, rounded once; infinite beyond all doubles.
    """
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf


@dataclass(frozen=True, slots=True)
class Window:
    """Curve of the rounded sum at grid points, tilted: value times ``exp(theta x - log_total)``."""

    first: int  # index of the first grid point; point i lies at ``(first + i) * step``
    step: float  # spacing h of the grid, in nats
    theta: float  # tilt
    log_total: float  # logarithm of ``E[exp(theta S)]``
    curve: Floats  # tilted delta of the rounded sum, computed
    above: Floats  # tilted mass above each point, computed
    excess: Floats  # bound, from each point to the next, on the tilted distance to the true curve
    # Bound on what truncation, wrap-around and round-off add to or take from ``curve``.
    budget: Floats
    unsure: float  # the same for ``above``
    slide: float  # bound on the rounding of the losses themselves, in nats

    def point(self, i: int) -> float:
        """Loss at grid point ``i``."""
        return (self.first + i) * self.step

    def log_untilt(self, loss: float) -> float:
        """Logarithm of the factor that turns tilted values at ``loss`` into plain ones."""
        return self.log_total - self.theta * loss

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Lower and upper bound of the finite part of delta.

        Lower and upper bound; the upper one is infinite beyond the window.
        """
        upper = self._rounded(epsilon - self.slide)
        lower = self._rounded(epsilon + self.slide)
        return max(0.0, lower[0]), min(1.0, upper[1])

    def _rounded(self, epsilon: float) -> tuple[float, float]:
        i = math.floor(epsilon / self.step) - self.first
        if i >= self.curve.size - 1:
            return 0.0, math.inf
        if i < 0:
            return self._before(epsilon)
        past = epsilon - self.point(i)
        share = math.exp(past - self.step) * math.expm1(-past) / math.expm1(-self.step)
        share = min(max(share, 0.0), 1.0)
        fade = math.exp(-self.theta * self.step)
        value = (1.0 - share) * self.curve[i] + share * self.curve[i + 1] * fade
        factor = math.exp(min(self.log_untilt(self.point(i)), 700.0))
        low = (value - self.excess[i] - self.budget[i]) * factor
        return low, (value + self.budget[i]) * factor

    def _before(self, epsilon: float) -> tuple[float, float]:
        """Below the window, where nearly all the mass lies above."""
        if self.theta > 0:
            return 0.0, math.inf
        below = self.above[0] - self.curve[0]
        value = self.above[0] - below * math.exp(epsilon - self.point(0))
        finite = math.exp(self.log_total)  # all the mass but that of infinite losses
        return finite * (value - self.excess[0] - self.unsure), finite * (value + self.unsure)

    def epsilon(self, log_delta: float) -> tuple[float, float]:
        """Lower and upper bound of the level at which the finite part of delta is reached.

        Lower and upper bound; minus or plus infinity where the window does not tell.
        """
        points = (self.first + np.arange(self.curve.size)) * self.step
        with np.errstate(over="ignore"):
            wanted = np.exp(log_delta - self.log_total + self.theta * points)
        return (
            self._cross(wanted, -self.excess - self.budget)[0] - self.slide,
            self._cross(wanted, self.budget)[1] + self.slide,
        )

    def _cross(self, wanted: Floats, shift: Floats) -> tuple[float, float]:
        """Last crossing of ``curve + shift`` with ``wanted``; bounds where there is none."""
        over = np.flatnonzero(self.curve + shift > wanted)
        if over.size == 0:
            return -math.inf, self._first_crossing(wanted[0], shift[0])
        i = int(over[-1])
        if i == self.curve.size - 1:
            return self.point(i), math.inf
        left = self.curve[i] + shift[i] - wanted[i]
        # Within the segment the plain curve is linear in exp(epsilon); the shift stays fixed.
        fall = self.curve[i] - self.curve[i + 1] * math.exp(-self.theta * self.step)
        share = min(left / fall, 1.0) if fall > 0 else 1.0
        rest = -share * math.expm1(-self.step)  # of exp(h), above 1
        found = self.point(i) + (
            self.step + math.log(rest + math.exp(-self.step))
            if self.step > 1
            else math.log1p(rest * math.exp(self.step))
        )
        return found, found

    def _first_crossing(self, wanted: float, shift: float) -> float:
        """Level below the window, for untilted windows only."""
        if self.theta > 0:
            return math.inf
        missing = self.above[0] + shift - wanted
        if missing <= 0:
            return -math.inf
        below = self.above[0] - self.curve[0]
        return min(self.point(0), self.point(0) + math.log(missing / below) if below > 0 else 0.0)


@lru_cache(maxsize=64)
def window(parts: Parts, theta: float, size: int) -> Window:
    """Compose laws on a grid of ``size`` points under a tilt.

    The tilted curve with its error bounds.
    """
    grid = _Grid.fit(parts, theta, size)
    product, blur, missing = _product(parts, grid)
    from scipy import fft  # noqa: PLC0415

    masses = np.maximum(fft.irfft(product, size), 0.0)
    masses = np.roll(masses, -(grid.first % size))
    one_error = (8 * math.log2(size) + 8) * _UNIT
    strength = np.abs(product)
    noise = 2.0 / size * float(blur.sum() + one_error * strength.sum())
    number = sum(count for _, count in parts)
    above, curve = _sums(masses, grid.step, theta)
    if not math.isfinite(noise + float(masses[0] + above[0])):  # not a number is above nothing
        raise Faded
    # A mass is off by `noise` and by what the laws lack absolutely, and relatively by `share`.
    in_mass, in_curve = _weights(theta, grid.step, size)
    share = _relative_error(parts, grid)
    unsure = grid.leak + missing + noise * in_mass + share
    budget = grid.leak + missing + noise * in_curve + share * curve
    slide = 8 * _UNIT * sum(count * grid.reach[i] for i, (_, count) in enumerate(parts))
    return Window(
        first=grid.first,
        step=grid.step,
        theta=theta,
        log_total=grid.log_total,
        curve=curve,
        above=above,
        excess=_excess(above, grid, number, unsure),
        budget=budget,
        unsure=unsure,
        slide=slide,
    )


def _relative_error(parts: Parts, grid: _Grid) -> float:
    """Bound on the relative error of a tilted mass, and of what it is multiplied by at the end.

    64 units per law, and as many as the exponents are large: of densities, of the tilt, and of the
    total that takes it back.
    """
    end = max(abs(grid.first), abs(grid.first + grid.size)) * grid.step
    size = 8 * (abs(grid.log_total) + grid.theta * end)
    for reach, (family, count) in zip(grid.reach, parts, strict=True):
        largest = farthest(family)
        largest = largest if math.isfinite(largest) else 0.0
        size += count * (64 + 8 * (1 + grid.theta) * max(reach, largest))
    return min(1.0, _UNIT * size)


def _weights(theta: float, step: float, size: int) -> tuple[float, float]:
    """Sum the weights that a mass above a point has in `above` and in `curve`."""
    if theta == 0.0:
        return float(size), -size * math.expm1(-size * step)
    in_mass = 1.0 / math.expm1(min(theta * step, 700.0))
    in_curve = in_mass * -math.expm1(-step) / -math.expm1(-(theta + 1.0) * step)
    return min(in_mass, float(size)), min(in_curve, in_mass, float(size))


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where the window lies, and which part of each law is kept."""

    size: int
    first: int
    step: float
    theta: float
    log_total: float
    leak: float
    log_parts: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]
    reach: tuple[float, ...]

    @classmethod
    def fit(cls, parts: Parts, theta: float, size: int) -> _Grid:
        """Choose the window by Chernoff's bound on both sides of the tilted sum."""
        if not _LEAST < spread(parts) < _MOST:
            raise ParameterError(
                f"losses of {spread(parts):g} nats cannot be composed: {_LEAST:g} to {_MOST:g} can"
            )
        move = LADDER / spread(parts)
        points = np.concatenate([[theta], theta + move, theta - move])
        logs = [family.log_mgf(points) for family, _ in parts]
        number = sum(count for _, count in parts)
        nats = _LEAK + math.log(number)
        ranges = tuple(
            _range(log, move, nats, farthest(family))
            for log, (family, _) in zip(logs, parts, strict=True)
        )
        total = np.sum([c * log for log, (_, c) in zip(logs, parts, strict=True)], axis=0)
        end = summed([count * farthest(family) for family, count in parts])
        low, high = _range(total, move, _LEAK, end)
        step = (high - low) / (size - 8)
        for _ in range(4):
            widened = total + _inflation(points, step, number)
            low, high = _range(widened, move, _LEAK, end + step * number)
            step = max(step, (high - low) / (size - 8), 1e-15 * max(abs(low), abs(high)), 1e-300)
        widened = total + _inflation(points, step, number)
        first = math.floor(low / step) - 3
        leak = 2 * math.exp(-_LEAK)
        window_ends = (first * step, (first + size - 1) * step)
        leak += _outside(widened, move, window_ends, end + step * number)
        return cls(
            size=size,
            first=first,
            step=step,
            theta=theta,
            log_total=float(total[0]),
            leak=leak,
            log_parts=tuple(float(log[0]) for log in logs),
            ranges=ranges,
            reach=tuple(max(abs(low), abs(high)) for low, high in ranges),
        )


def _inflation(order: Floats, step: float, number: int) -> Floats:
    """Bound on what rounding to the grid adds to the logarithm of ``E[exp(order S)]``."""
    return np.maximum(0.0, order * (order + 1.0)) * (math.pi / 16 * step * step * number)


def _range(log: Floats, move: Floats, nats: float, bound: float) -> tuple[float, float]:
    """Interval outside of which the tilted law has less than ``exp(-nats)`` on each side."""
    n = move.size
    high = float(np.min((log[1 : n + 1] - log[0] + nats) / move))
    low = float(np.max((log[0] - log[n + 1 :] - nats) / move))
    return max(low, -bound), min(high, bound)


def _outside(log: Floats, move: Floats, ends: tuple[float, float], bound: float) -> float:
    """Bound on the tilted mass outside of ``ends``, for a sum within plus or minus ``bound``."""
    n = move.size
    right = float(np.min(log[1 : n + 1] - log[0] - move * ends[1]))
    left = float(np.min(log[n + 1 :] - log[0] + move * ends[0]))
    return (math.exp(min(right, 0.0)) if ends[1] < bound else 0.0) + (
        math.exp(min(left, 0.0)) if ends[0] > -bound else 0.0
    )


def _product(parts: Parts, grid: _Grid) -> tuple[NDArray[np.complex128], Floats, float]:
    """Transform of the tilted rounded sum, a bound on the error of each frequency, missing mass."""
    from scipy import fft  # noqa: PLC0415

    one_error = (8 * math.log2(grid.size) + 8) * _UNIT
    product = np.ones(grid.size // 2 + 1, dtype=np.complex128)
    blur = np.zeros(grid.size // 2 + 1)
    log_high, missing = np.zeros(grid.size // 2 + 1), 0.0
    for (family, count), log_part, ends in zip(parts, grid.log_parts, grid.ranges, strict=True):
        masses = _rounded(family, grid, log_part, ends)
        whole = float(masses.sum())
        if whole < _WHOLE:
            raise Faded
        missing += count * max(0.0, 1.0 - whole)  # more than the leak for very large losses
        factor = fft.rfft(masses)
        size = np.abs(factor)
        error = one_error * whole
        log_high += count * np.log(size + error)
        blur += count * error / np.maximum(size, 1e-300)
        product *= factor**count if count > 1 else factor
    # The product of (size + error) less the product of the sizes; log(1 + x) is at most x.
    return product, np.exp(log_high) * -np.expm1(-blur), missing


def _rounded(family: Family, grid: _Grid, log_part: float, ends: tuple[float, float]) -> Floats:
    """Tilted masses of one law on the grid, folded onto the window's length."""
    first = math.floor(ends[0] / grid.step) - 1
    count = math.ceil(ends[1] / grid.step) + 1 - first
    if count > _MOST_BINS:  # its ends were lost to rounding, for the losses are so large
        raise Faded
    mass, rise = family.bins(first, count, grid.step)
    up = np.minimum(rise * ((1.0 + 16 * _UNIT) / -math.expm1(-grid.step)), mass)
    points = np.zeros(count + 1)
    points[:-1] = mass - up
    points[1:] += up
    exponent = grid.theta * ((first + np.arange(count + 1)) * grid.step) - log_part
    points *= np.exp(np.minimum(exponent, 700.0))
    folded = np.zeros(grid.size)
    start = first % grid.size
    for piece in range(-(-(start + count + 1) // grid.size)):
        left = max(0, piece * grid.size - start)
        right = min(count + 1, (piece + 1) * grid.size - start)
        place = start + left - piece * grid.size
        folded[place : place + right - left] += points[left:right]
    return folded


def _decayed(values: Floats, rate: float) -> Floats:
    """Fading sums, ``y[i]`` over ``j >= i`` of ``values[j] exp(-(j - i) rate)``.

    Each pass joins sums of twice as many terms: as many passes as the size has digits, or fewer
    where everything fades sooner.
    """
    found, reach = values.copy(), 1
    while reach < found.size and (fade := math.exp(-rate * reach)) > 0.0:
        found[:-reach] += fade * found[reach:]
        reach *= 2
    return found


def _sums(masses: Floats, step: float, theta: float) -> tuple[Floats, Floats]:
    """Tilted mass above each point, and tilted delta at each point; no cancellation."""
    shifted = np.append(masses[1:], 0.0) * math.exp(-theta * step)
    above = _decayed(shifted, theta * step)
    curve = -math.expm1(-step) * _decayed(above, (1.0 + theta) * step)
    return above, curve


def _excess(above: Floats, grid: _Grid, number: int, unsure: float) -> Floats:
    """Bound on how far the rounded curve lies above the true one, per segment, tilted."""
    h, theta = grid.step, grid.theta
    mu = h * math.sqrt(math.pi / 8 * number)
    bump = mu * _gaussian_loss(_BUMP - mu / 2)
    drift = number * h * h / 8 + h * math.sqrt(number * math.log(2 / _MISSED) / 2)
    far = theta * _BUMP[-1] * mu
    if far > 30:
        return np.full(above.size, math.inf)
    found = np.full(above.size, 2 * math.exp(far) * float(bump[-1]))
    for low, high, reach in zip(bump[:-1], bump[1:], _BUMP[1:], strict=True):
        found += (low - high) / (1 - _MISSED) * _near(above, grid, reach * mu + drift, unsure)
    return found


def _gaussian_loss(z: Floats) -> Floats:
    """``phi(z) - z (1 - Phi(z))``: the bump of a Gaussian pair of ratio mu is below mu times it."""
    from scipy.special import ndtr  # noqa: PLC0415

    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    far = z > 6  # there the difference cancels and the density alone bounds it
    return np.where(far, density, 1.0001 * (density - z * ndtr(-z)))


def _near(above: Floats, grid: _Grid, reach: float, unsure: float) -> Floats:
    """Tilted mass of the rounded sum within ``reach`` of each segment of the grid."""
    places = math.ceil(reach / grid.step) + 2
    h, theta, size = grid.step, grid.theta, above.size
    if theta * places * h > 600:
        return np.full(size, math.inf)
    left = np.full(size, math.inf) if theta > 0 else np.full(size, above[0] + 1.0)
    left[places:] = above[: max(0, size - places)]
    right = np.zeros(size)
    right[: max(0, size - places)] = above[places:]
    grow, fade = math.exp(theta * places * h), math.exp(-theta * places * h)
    return np.maximum(left * grow - right * fade, 0.0) + unsure * (grow + fade)


def merge(parts: Sequence[tuple[Family, int]]) -> Parts:
    """Equal laws counted together, in an order that does not depend on the order given."""
    counts: dict[Family, int] = {}
    for family, count in parts:
        counts[family] = counts.get(family, 0) + count
    order = sorted(counts, key=lambda family: (type(family).__name__, family.scale))
    return tuple((family, counts[family]) for family in order)
