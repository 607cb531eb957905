"""Certified bounds from two counts: how far two probabilities of one event must lie apart.

Every bound here is exact for fixed sample sizes: no normal approximation, rounded to the side
that accuses less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError

Floats = NDArray[np.float64]

_ROUNDING = 1e-12
_LARGEST_EPSILON = 200.0
_PRECISION = 2e-4  # of a bound found by bisection, which stops on the safe side
_CELLS, _BLOCKS = 64, 192
_NEGLIGIBLE = 1e-10
_NEGLIGIBLE_SHARE = 1e-6  # of alpha, which bounds in place of tails may add to a p-value
_CANCELLED = 1e-13  # digits that a difference of logarithms may lose
_NUISANCE = 1 / 20  # of alpha, spent on where the smaller probability lies


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How often an event happened on each of two tables, in samples of fixed size.

    Parameters
    ----------
    hits : int
        Times on the table where the event is the likelier one.
    samples : int
        Runs on that table; 1 or more.
    other_hits : int
        Times on the other table.
    other_samples : int
        Runs on the other table; 1 or more.

    Raises
    ------
    ParameterError
        If the counts do not lie between 0 and the samples.
    """

    hits: int
    samples: int
    other_hits: int
    other_samples: int

    def __post_init__(self) -> None:
        for hits, samples in (
            (self.hits, self.samples),
            (self.other_hits, self.other_samples),
        ):
            if samples < 1 or not 0 <= hits <= samples:
                raise ParameterError(f"{hits} hits in {samples} samples are not counts")

    @property
    def other_share(self) -> float:
        """Share of the event on the table where it is rarer."""
        return self.other_hits / self.other_samples


class Evidence(Protocol):
    """A confidence region for the two probabilities of one event, fixed before the counts.

    All that is read off one region holds at once, with the region's confidence.
    """

    def epsilon_low(self, delta: float) -> float:
        """Lower bound on epsilon at a delta."""

    def delta_low(self, epsilon: float) -> float:
        """Lower bound on delta at an epsilon."""

    def divergence_low(self, order: float, /) -> float:
        """Lower bound on the Renyi divergence of an order."""

    def rejects(self, epsilon: float, delta: float) -> bool:
        """Tell whether (epsilon, delta) is contradicted."""


def binomial_tail(hits: Floats, samples: float, probability: Floats | float) -> Floats:
    """Probability that a binomial count reaches a (whole) number of hits."""
    from scipy import special  # noqa: PLC0415

    inside = np.clip(hits, 1, samples)
    exact = special.betainc(inside, samples - inside + 1, probability)
    return np.where(hits <= 0, 1.0, np.where(hits > samples, 0.0, exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """Probabilities to reach each number of hits at each p, bounded, and in part computed.

    The incomplete beta function is dear, so it is asked only where it matters. Arrays have the
    shape (blocks, cells); `bound` is never too small, and `weighed` tells where it will not do.
    """

    hits: Floats  # one for each block
    samples: int
    p: Floats  # one for each cell
    mass: Floats  # what a block counts in a cell
    bound: Floats
    weighed: NDArray[np.bool_]

    @classmethod
    def estimate(
        cls, hits: Floats, samples: int, p: Floats, mass: Floats, negligible: float
    ) -> _Reach:
        """Bound all of them; `negligible` is what the bounds may add to a cell.

        Notes
        -----
        Chernoff, Annals of Mathematical Statistics 23, 1952: one tail of a binomial count, that
        above its mean or that below, is at most ``exp(-samples KL(hits / samples, probability))``.
        """
        share = np.clip(hits / samples, 0.0, 1.0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.stack([p, 1 - p]))
            own = np.where(share > 0, share * np.log(share), 0.0)
            own += np.where(share < 1, (1 - share) * np.log1p(-share), 0.0)
            cross = share * logs[0] + (1 - share) * logs[1]
            apart = own - cross - _CANCELLED * (1 - cross)
            tail = np.exp(-samples * np.maximum(0.0, apart))
        within = (p > 0) & (p < 1) & (share > 0) & (share < 1)
        tail = np.where(within, tail, 1.0)
        bound = np.where(share > p, tail, 1.0)
        weighed = mass * tail > negligible / len(hits)
        return cls(hits=hits, samples=samples, p=p, mass=mass, bound=bound, weighed=weighed)

    def sum_cells(self, cells: NDArray[np.intp]) -> Floats:
        """Probability to reach what was seen, in some cells; rounded up."""
        found, at = self.bound[:, cells], np.nonzero(self.weighed[:, cells])
        found[at] = binomial_tail(self.hits[at[0]], self.samples, self.p[cells][at[1]])
        return np.asarray((self.mass[:, cells] * found).sum(axis=0))


def clopper_pearson_guide(hits: Floats, samples: float, alpha: float) -> Floats:
    """Lower bounds of Clopper and Pearson before rounding; hits may be fractions.

    Certificates take `clopper_pearson_low`, which rounds.
    """
    from scipy import special  # noqa: PLC0415

    inside = np.maximum(hits, 1e-9)
    return np.where(hits <= 0, 0.0, special.betaincinv(inside, samples - hits + 1, alpha))


def clopper_pearson_low(hits: float, samples: float, alpha: float) -> float:
    """Lower bound on a probability, too high with probability alpha; rounded down.

    Notes
    -----
    Clopper and Pearson, *The use of confidence or fiducial limits*, Biometrika 26, 1934.
    """
    bound = float(clopper_pearson_guide(np.asarray(hits), samples, alpha))
    return max(0.0, bound * (1 - _ROUNDING))


def clopper_pearson_high(hits: float, samples: float, alpha: float) -> float:
    """Upper bound on a probability, too low with probability alpha; rounded up."""
    from scipy import special  # noqa: PLC0415

    if hits >= samples:
        return 1.0
    # The upper tail by its own function: 1 minus the lower bound of the misses loses digits.
    bound = float(special.betainccinv(hits + 1, samples - hits, alpha))
    return min(1.0, bound * (1 + _ROUNDING))


def renyi_divergence(first: float, second: float, order: float) -> float:
    """Renyi divergence of two coins, in nats; of an order above 1, may be infinite.

    Notes
    -----
    ``log(p^a q^(1-a) + (1-p)^a (1-q)^(1-a)) / (a - 1)``. Renyi, *On measures of entropy and
    information*, Berkeley Symposium 1961. By data processing no event shows more than the whole
    output.
    """
    terms = []
    for p, q in ((first, second), (1 - first, 1 - second)):
        if p <= 0:
            continue
        if q <= 0:
            return math.inf
        terms.append(order * math.log(p) + (1 - order) * math.log(q))
    return max(0.0, float(np.logaddexp.reduce(terms)) / (order - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """Clopper-Pearson bounds on both probabilities, each at half the error.

    `low` bounds the probability where the event is likelier from below, `other_high` that on the
    other table from above.
    """

    low: float
    other_high: float

    @classmethod
    def from_counts(cls, counts: Counts, alpha: float) -> Rectangle:
        """Bounds from the counts of an event that was chosen without these samples."""
        return cls(
            low=clopper_pearson_low(counts.hits, counts.samples, alpha / 2),
            other_high=clopper_pearson_high(counts.other_hits, counts.other_samples, alpha / 2),
        )

    def epsilon_low(self, delta: float) -> float:
        """``log((low - delta) / other_high)``, 0 if that is negative; rounded down."""
        if self.low <= delta:
            return 0.0
        return max(0.0, math.log((self.low - delta) / self.other_high) - _ROUNDING)

    def delta_low(self, epsilon: float) -> float:
        """``low - exp(epsilon) other_high``, 0 if that is negative; rounded down."""
        if epsilon > _LARGEST_EPSILON:
            return 0.0
        return max(0.0, self.low - math.exp(epsilon) * self.other_high * (1 + _ROUNDING))

    def divergence_low(self, order: float) -> float:
        """Divergence of the two coins at the bounds: for p > q it grows with p, falls with q."""
        if self.low <= self.other_high:
            return 0.0
        return renyi_divergence(self.low, self.other_high, order) * (1 - _ROUNDING)

    def rejects(self, epsilon: float, delta: float) -> bool:
        """Tell whether the lower bound on epsilon lies above this one."""
        return self.epsilon_low(delta) > epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest:
    """Exact test of ``p <= exp(epsilon) q + delta`` for both probabilities together.

    Event and `weight` (what one hit on the other table counts against a hit: about exp of the
    epsilon that is expected) are chosen without these samples. `alpha` is the probability of any
    wrong statement.

    Notes
    -----
    The statistic ``X / n - weight Y / m`` is compared with itself: the p-value is the largest
    probability, over ``p <= exp(epsilon) q + delta`` and q in an interval of confidence
    ``1 - alpha / 20``, of reaching what was seen, plus ``alpha / 20`` (Berger and Boos, JASA 89,
    1994). The largest is bounded on cells of q, with p at its largest and q at its smallest
    there, since reaching the statistic is likelier for larger p and smaller q. The statistic
    does not depend on epsilon or delta, so the p-value is monotone in both and every statement
    ``(epsilon, delta)`` it rejects holds at once: a true one can be rejected only if the true
    (p, q) made the statistic this large or q fell out of its interval.
    """

    counts: Counts
    weight: float
    alpha: float

    def rejects(self, epsilon: float, delta: float) -> bool:
        """Tell whether the counts contradict (epsilon, delta), with error at most alpha."""
        return self._excess(epsilon, delta) <= 0

    def _excess(self, epsilon: float, delta: float) -> float:
        """Log of the p-value over alpha: at most 0 where the claim is rejected."""
        return math.log(self.p_value(epsilon, delta) / self.alpha)

    def p_value(self, epsilon: float, delta: float) -> float:
        """Bound on the probability of a statistic as large as the one seen; rounded up.

        Above alpha it may be that at one q, for which the claim cannot be rejected; far below it
        is a coarser bound.
        """
        c, spent = self.counts, self.alpha * _NUISANCE
        if epsilon > _LARGEST_EPSILON or c.hits == 0:
            return 1.0
        edges, blocks, mass, outside = _weigh_other_counts(c.other_hits, c.other_samples, spent)
        # The hits that it takes to reach the statistic, for each block of the count.
        more = blocks[:-1] - c.other_hits
        needed = np.ceil(c.hits + self.weight * (c.samples / c.other_samples) * more - 1e-6)
        p = np.minimum(1.0, math.exp(epsilon) * edges[1:] + delta)
        reach = _Reach.estimate(needed, c.samples, p, mass, _NEGLIGIBLE_SHARE * self.alpha)
        most, room = (mass * reach.bound).sum(axis=0) + outside, self.alpha - spent - _ROUNDING
        reached = float(most.max())
        if reached > room:
            first = most.argmax(keepdims=True)  # mostly the worst; if not, others decide
            reached = float((reach.sum_cells(first) + outside[first])[0])
            if reached <= room:
                others = np.flatnonzero(most > reached)
                found = reach.sum_cells(others) + outside[others]
                reached = float(found.max(initial=reached))
        return min(1.0, reached + spent + _ROUNDING)

    def epsilon_low(self, delta: float) -> float:
        """Find an epsilon at and below which the claim is rejected, 0 if there is none."""
        guess = self._guess().epsilon_low(delta)
        return _find_last_rejected(lambda each: self._excess(each, delta), guess, _LARGEST_EPSILON)

    def delta_low(self, epsilon: float) -> float:
        """Find a delta at and below which the claim is rejected, 0 if there is none."""
        guess = self._guess().delta_low(epsilon)
        return _find_last_rejected(lambda each: self._excess(epsilon, each), guess, 1.0)

    def divergence_low(self, _order: float, /) -> float:
        """Refused: the test is about (epsilon, delta) alone."""
        raise ParameterError("claims about divergences are judged from a Rectangle")

    def _guess(self) -> Rectangle:
        """Bounds that are nearly as good, to start the search from."""
        return Rectangle.from_counts(self.counts, self.alpha)


@lru_cache(maxsize=1)
def _weigh_other_counts(
    hits: int, samples: int, spent: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Weigh what the count on the other table may be, which neither claim nor hits change.

    Edges of cells of its probability q; edges of blocks of the count; the mass of each block at
    the lower edge of each cell; and the mass outside of them, which counts as reached.
    """
    least = clopper_pearson_low(hits, samples, spent / 2)
    most = clopper_pearson_high(hits, samples, spent / 2)
    # Cells of q: each judged with the largest p and the smallest q that it allows.
    edges = np.linspace(least, most, _CELLS + 1)
    # Blocks of Y: each judged as if Y were its smallest number, for which X needs least.
    blocks = _choose_blocks(samples, least, most)
    below = 1 - binomial_tail(blocks[:, None], samples, edges[None, :-1])
    mass = np.diff(below, axis=0)  # of counts from one edge up to the next
    return edges, blocks, mass, below[0] + 1 - below[-1]


def _choose_blocks(samples: int, least: float, most: float) -> Floats:
    """Edges of blocks of counts that hold all but a negligible part of the other side."""
    start, stop = least * samples, most * samples
    room = math.log(1 / _NEGLIGIBLE)  # Chernoff's bounds, with exponents of this size
    first = math.floor(start - math.sqrt(2 * room * start) - 1)
    last = math.ceil(stop + math.sqrt(2 * room * stop) + room + 1)
    first, last = max(0, first), min(samples + 1, last)
    if last - first <= _BLOCKS:
        return np.arange(first, last + 1, dtype=np.float64)
    return np.unique(np.round(np.linspace(first, last, _BLOCKS + 1)))


def _find_last_rejected(excess: Callable[[float], float], guess: float, most: float) -> float:
    """Largest value known to be rejected, where ``log(p / alpha)`` is at most 0.

    The search brackets the border around a guess, closes in by false position and halving in
    turn, and returns the rejected end.
    """
    low, below = 0.0, excess(0.0)
    if below > 0:
        return 0.0
    # Upwards from the guess, in steps that square themselves, until something is not rejected.
    step, factor = max(guess, most * 2**-20), 1.05
    high, above = step, excess(step)
    while above <= 0 and high < most:
        low, below = high, above
        high = min(most, high * factor)
        above, factor = excess(high), factor * factor
    if above <= 0:
        return high
    # Downwards in the same way, if even the guess was not rejected.
    factor = 0.95
    while low == 0.0 and high * factor > most * 2**-30:
        trial = excess(high * factor)
        if trial <= 0:
            low, below = high * factor, trial
        else:
            high, above, factor = high * factor, trial, factor * factor
            if factor < 1e-3:
                break
    turn = 0
    while high - low > _PRECISION * high:
        turn += 1
        # False position twice, then halving, for one end may stay where it is for long.
        share = below / (below - above) if turn % 3 and above > below else 0.5
        middle = low + (high - low) * min(0.9, max(0.1, share))
        found = excess(middle)
        low, below, high, above = (
            (middle, found, high, above) if found <= 0 else (low, below, middle, found)
        )
    return low
