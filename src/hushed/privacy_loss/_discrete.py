"""Losses with finitely many values: randomised response, discrete noise, any finite pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.checks import read_array, require_least
from hushed._ground.decimals import lower_double, read, stated_above, upper_double
from hushed._ground.numeric import round_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError

_SPREAD_LIMIT = 1e5
_ROUNDING = 2.0**-50  # relative to the terms of a sum: masses are good to a few units of 2**-53
_NODES = 4096
_NEVER = 1e-40  # a profile is followed up to where it falls below this
_LONGEST = 256.0
_SUM_ROUNDING = 2.0**-50  # of probabilities that are each good to a few units of 2**-53
_BLOCK = 2**18  # powers that are computed at once
_RAISED = 1 + 2.0**-40  # of masses made from differences of heights


@dataclass(frozen=True, eq=False)
class DiscretePLD:
    """Point masses of the loss under P; what is missing to 1 is an infinite loss."""

    losses: Floats  # finite values of the loss, ascending, in nats; at least one
    masses: Floats  # their probabilities under P; above 0
    infinite: float = 0.0  # probability, under P, of an infinite loss; a decimal
    # A proven rho of zero-concentrated privacy, for laws whose far tail was cut off here.
    concentrated: float = math.inf
    end: float | None = None  # largest loss, where it is known exactly, as a decimal

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiscretePLD) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[bytes, bytes, float, float | None]:
        return self.losses.tobytes(), self.masses.tobytes(), self.infinite, self.end

    @cached_property
    def supremum(self) -> float:
        """Largest loss."""
        if self.infinite > 0:
            return math.inf
        return float(self.losses[-1]) if self.end is None else self.end

    @property
    def least(self) -> float:
        """Smallest loss."""
        return float(self.losses[0])

    @property
    def cut(self) -> bool:
        """Whether the infinite loss stands for a far tail: the law itself has none."""
        return self.infinite > 0 and math.isfinite(self.concentrated)

    @property
    def blur(self) -> float:
        """What has finitely many outcomes is as it stands."""
        return 0.0

    @cached_property
    def top(self) -> float:
        """Probability of the largest finite loss."""
        return float(self.masses[-1])

    @cached_property
    def scale(self) -> float:
        """Root mean square of the finite losses."""
        size = float(np.abs(self.losses).max())
        if size == 0.0:
            return 0.0
        return size * math.sqrt(float(np.dot(self.masses, (self.losses / size) ** 2)))

    def delta(self, epsilon: float) -> float:
        """Sum of ``mass (1 - exp(epsilon - loss))`` over the losses above ``epsilon``."""
        if epsilon >= (self.losses[-1] if self.end is None else self.end):
            return self.infinite
        epsilon = lower_double(epsilon)
        above = self.losses > epsilon
        masses, losses = self.masses[above], self.losses[above]
        with np.errstate(over="ignore"):
            odds = epsilon - losses
        total = self.infinite + math.fsum(masses * -np.expm1(odds))
        moved = float(np.dot(masses * np.exp(odds), np.abs(losses)))
        return round_up(total + 2.0**-51 * moved, 8, ceiling=1.0)  # losses are rounded, too

    def tail(self, loss: float) -> float:
        """Sum of the masses above ``loss``."""
        if self.end is not None and loss >= self.end:
            return self.infinite
        return min(1.0, self.infinite + math.fsum(self.masses[self.losses > loss]))

    def log_mgf(self, order: Floats) -> Floats:
        """Log-sum-exp, rounded up; near 0 by the expansion that keeps small cumulants."""
        t = np.asarray(order, dtype=float)
        block = max(1, _BLOCK // self.losses.size)
        pieces = [t.ravel()[i : i + block] for i in range(0, t.size, block)]
        return np.array([one for each in pieces for one in self._log_mgf(each)]).reshape(t.shape)

    def _log_mgf(self, order: Floats) -> list[float]:
        """`log_mgf` of a few orders at once: all powers first, then sum by sum."""
        with np.errstate(over="ignore", invalid="ignore"):  # infinite ones are left out below
            exponents = order[:, None] * self.losses
            tops = exponents.max(axis=1)
            near = (tops < 1.0) & (exponents.min(axis=1) > -1.0)
            shifts = np.where(near, 0.0, tops)[:, None]
            powers = np.where(near[:, None], np.expm1(np.clip(exponents, -1.0, 1.0)), 0.0)
            powers[~near] = np.exp((exponents - shifts)[~near])
        terms = self.masses * powers
        return [self._summed(*each) for each in zip(terms, tops.tolist(), near, strict=True)]

    def _summed(self, terms: Floats, top: float, near: bool) -> float:
        """Logarithm of one sum of terms, which are those of ``expm1`` if it is `near` 1."""
        if math.isinf(top):  # beyond all doubles, and so is the logarithm
            return math.inf
        total = math.fsum(terms)
        if near:
            rest = -self.infinite if self.infinite else 0.0
            return math.log1p(rest + total + _ROUNDING * float(np.abs(terms).sum()))
        if not total:
            raise ParameterError(
                f"losses of {abs(self.losses).max():g} nats have probabilities below all "
                "doubles, and cannot be composed"
            )
        return top + math.log(total) + _ROUNDING * (1.0 + abs(top))

    def moment(self, order: int) -> float:
        """Weighted sum of powers; infinite when an infinite loss has a probability."""
        if self.infinite > 0 and order > 0:
            return math.inf
        return math.fsum(self.masses * self.losses**order)

    def divergence(self) -> float:
        """Mean of the loss, the Kullback-Leibler divergence, rounded up."""
        terms = self.masses * self.losses
        return self.moment(1) + _ROUNDING * float(np.abs(terms).sum())

    def bins(self, first: int, count: int, step: float) -> tuple[Floats, Floats]:
        """Point masses gathered by interval."""
        place = (np.ceil(self.losses / step) - 1 - first).astype(np.int64)
        kept = (place >= 0) & (place < count)
        place, mass = place[kept], self.masses[kept]
        above = np.clip(self.losses[kept] - (first + place) * step, 0.0, step)
        return (
            np.bincount(place, mass, minlength=count).astype(np.float64),
            np.bincount(place, -mass * np.expm1(-above), minlength=count).astype(np.float64),
        )


def randomised_response_atoms(epsilon: float, categories: int) -> DiscretePLD:
    """Loss of answering the truth with odds ``exp(epsilon)`` against each other category."""
    wide = upper_double(epsilon)  # a larger level is worse
    small = math.exp(-wide)
    total = 1.0 + (categories - 1) * small
    if categories == 2:
        return DiscretePLD(np.array([-wide, wide]), np.array([small, 1.0]) / total, end=epsilon)
    masses = np.array([small, (categories - 2) * small, 1.0]) / total
    return DiscretePLD(np.array([-wide, 0.0, wide]), masses, end=epsilon)


def approximate_atoms(epsilon: float, delta: float) -> DiscretePLD:
    """Loss of the worst mechanism with nothing but an (epsilon, delta) promise.

    An infinite loss with probability ``delta``, else randomised response.

    Notes
    -----
    Kairouz, Oh and Viswanath, *The Composition Theorem for Differential Privacy*, ICML 2015,
    section 4: this pair dominates every (epsilon, delta) mechanism, also under composition.
    """
    if epsilon == 0.0:
        return DiscretePLD(np.zeros(1), np.array([1.0 - lower_double(delta)]), delta)
    pure = randomised_response_atoms(epsilon, 2)
    return DiscretePLD(pure.losses, pure.masses * (1.0 - lower_double(delta)), delta, end=epsilon)


def discrete_laplace_atoms(scale: float, sensitivity: int) -> DiscretePLD:
    """Loss of two-sided geometric noise, of mass proportional to ``exp(-|y|/scale)``.

    Notes
    -----
    Ghosh, Roughgarden and Sundararajan, *Universally Utility-Maximizing Privacy Mechanisms*,
    STOC 2009.
    """
    y = np.arange(sensitivity + 1, dtype=float)
    losses = (sensitivity - 2.0 * y) / scale
    ratio = math.exp(-1.0 / scale)
    masses = -math.expm1(-1.0 / scale) / (1.0 + ratio) * np.exp(-y / scale)
    masses[0] = 1.0 / (1.0 + ratio)
    masses[-1] = math.exp(-sensitivity / scale) / (1.0 + ratio)
    kept = masses > 0
    end = stated_above(Fraction(sensitivity) / Fraction(scale))
    return DiscretePLD(losses[kept][::-1].copy(), masses[kept][::-1].copy(), end=end)


def discrete_gaussian_atoms(sigma: float, sensitivity: int) -> DiscretePLD:
    """Loss of discrete Gaussian noise, of mass proportional to ``exp(-y**2 / (2 sigma**2))``.

    Losses ``(sensitivity**2 - 2 sensitivity y) / (2 sigma**2)``; noise beyond 37 sigma is counted
    as an infinite loss of probability 1e-290.

    Notes
    -----
    Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020;
    its Theorem 4 gives rho.
    """
    if sigma > _SPREAD_LIMIT:
        raise ParameterError(
            f"sigma must be at most {_SPREAD_LIMIT:g} for the discrete Gaussian, got {sigma}; "
            "measure in a coarser unit",
            parameter="sigma",
        )
    reach = max(1, math.floor(37.0 * sigma))
    y = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-0.5 * (y / sigma) ** 2)
    losses = sensitivity / sigma * ((0.5 * sensitivity - y) / sigma)
    masses = weights / math.fsum(weights)
    kept = masses > 0
    rho = 0.5 * (sensitivity / sigma) ** 2
    return DiscretePLD(losses[kept][::-1].copy(), masses[kept][::-1].copy(), 1e-290, rho)


def pair_atoms(p: ArrayLike, q: ArrayLike) -> DiscretePLD:
    """Loss of one finite distribution against another.

    Loss of P against Q, outcomes of equal loss kept apart. What p lacks to 1, beyond the rounding
    of its numbers, is an infinite loss.
    """
    first, second = read_array("p", p).ravel(), read_array("q", q).ravel()
    if first.shape != second.shape or first.size == 0:
        raise ParameterError(
            f"p and q must have the same length, 1 or more, got {first.size} and {second.size}"
        )
    for name, values in (("p", first), ("q", second)):
        total = math.fsum(values)
        if not np.all(values >= 0) or not -1e-9 <= total - 1.0 <= _SUM_ROUNDING:
            raise ParameterError(
                f"{name} must hold probabilities that sum to 1, got the sum {total}; "
                "divide counts by their total"
            )
    lost = (first > 0) & (second == 0)
    both = (first > 0) & (second > 0)
    infinite = round_up(math.fsum(first[lost]) + missing_mass(first))
    losses, masses = _log_ratio(first[both], second[both]), first[both]
    losses = np.where(losses == 0, 0.0, np.nextafter(np.nextafter(losses, np.inf), np.inf))
    if losses.size == 0:
        return DiscretePLD(np.zeros(1), np.array([5e-324]), 1.0)
    order = np.argsort(losses, kind="stable")
    return DiscretePLD(losses[order], masses[order], infinite)


def missing_mass(p: Floats) -> float:
    """Mass that probabilities lack to 1, as an infinite loss; 0 where rounding explains it.

    Rounded up.
    """
    missing = 1.0 - math.fsum(p)
    return round_up(missing) if missing > _SUM_ROUNDING else 0.0


def _log_ratio(p: Floats, q: Floats) -> Floats:
    """Logarithm of p / q to the last digits, where the two are close and where they are not."""
    with np.errstate(over="ignore", under="ignore"):
        ratio = p / q
    near = np.abs(p - q) < q / 2  # their difference is exact
    plain = (ratio > 1e-300) & (ratio < 1e300)
    far = np.where(plain, np.log(np.where(plain, ratio, 1.0)), np.log(p) - np.log(q))
    return np.where(near, np.log1p(np.where(near, (p - q) / q, 0.0)), far)


def profile_atoms(delta: Callable[[float], float]) -> DiscretePLD:
    """Smallest pair above a bound on delta that is looked at in finitely many places.

    Its curve is linear in ``exp(epsilon)`` between 4096 levels of equal distance, up to where the
    bound falls below 1e-40 or to 256, and flat from there on.

    Notes
    -----
    The real curve is convex in ``exp(epsilon)`` and decreasing, so it lies below the chords of any
    bound. At negative levels it is ``1 - exp(epsilon) + exp(epsilon) delta(-epsilon)``, because
    the bound holds in both orders. Every such curve is that of a pair, which dominates under
    composition, too: Zhu, Dong and Wang, AISTATS 2022, Proposition 8.
    """
    top = 1.0

    def bound(level: float) -> float:
        found = read("a bound on delta", delta(level), up=True)
        require_least("a bound on delta", found)
        return found

    while top < _LONGEST and not bound(top) <= _NEVER:
        top *= 2
    while top > 2.0**-60 and bound(top / 2) <= _NEVER:
        top /= 2
    levels = np.linspace(0.0, top, _NODES + 1)
    found = np.array([upper_double(bound(float(level))) for level in levels])
    height = np.minimum.accumulate(np.clip(found * _RAISED, 0.0, 1.0))
    mirrored = 1.0 - np.exp(-levels[:0:-1]) * (1.0 - height[:0:-1]) + 2.0**-40
    nodes = np.concatenate([-levels[:0:-1], levels])
    heights = np.minimum(np.concatenate([mirrored, height]), 1.0)
    kept = _convex(nodes, heights)
    return _from_curve(nodes[kept], heights[kept], float(height[-1]))


def _convex(nodes: Floats, height: Floats) -> list[int]:
    """Places of the corners of the largest function below that is convex in ``exp(node)``."""
    kept: list[int] = []
    for i in range(nodes.size):
        while len(kept) > 1 and _steeper(nodes, height, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return kept


def _steeper(nodes: Floats, height: Floats, first: int, middle: int, last: int) -> bool:
    """Whether the middle point lies on or above the chord of the others."""
    share = math.expm1(nodes[middle] - nodes[first]) / math.expm1(nodes[last] - nodes[first])
    return bool(height[middle] >= height[first] + share * (height[last] - height[first]))


def _from_curve(nodes: Floats, height: Floats, infinite: float) -> DiscretePLD:
    """Pair whose curve passes through ``height`` at the losses ``nodes``, linear between."""
    # The chord before the first node starts from 1 at ratio 0; after the last node the curve is
    # flat at `infinite`. The first mass is rounded up, so that no mass gets lost.
    rise = -np.diff(height) / np.expm1(np.diff(nodes))  # ratio times the fall, per unit ratio
    right = np.append(np.maximum(rise, 0.0), 0.0)
    if height[-1] > infinite:
        infinite = float(height[-1])
    left = np.append(1.0 - height[0] + 2.0**-48, rise * np.exp(np.diff(nodes)))
    masses = np.maximum(left - right, 0.0)
    kept = masses > 0
    losses, masses = nodes[kept], masses[kept]
    if losses.size == 0:
        return DiscretePLD(np.zeros(1), np.array([5e-324]), 1.0)
    return DiscretePLD(losses, masses, infinite)
