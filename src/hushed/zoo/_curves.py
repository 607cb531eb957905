"""Hockey-stick divergences of the noises in the zoo: closed forms and sums over few outcomes.

Every curve returns ``sup_E P(E) - exp(epsilon) Q(E)`` for one pair of output laws. They hold
for any real epsilon, also below 0, because a mechanism with several parts asks for the curve of
one part at an epsilon that another part has already used up.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushed import privacy_loss
from hushed.zoo._record import Curve

_NODES = 24
Law = NDArray[np.float64]


class Truth(NamedTuple):
    """Largest privacy loss of a pair, in nats, and its divergence at every epsilon."""

    epsilon: float | None
    delta: Curve | None


def laplace_truth(loss: float, draws: int = 1) -> Truth:
    """State the truth of Laplace noise on ``draws`` numbers, each moving by ``loss`` scales."""
    if draws == 1:
        return Truth(loss, partial(laplace_delta, loss))
    return Truth(draws * loss, partial(laplace_product_delta, loss, draws))


def gaussian_truth(ratio: float) -> Truth:
    """State the truth of Gaussian noise whose centre moves by ``ratio`` standard deviations."""
    return Truth(math.inf, partial(gaussian_delta, ratio=ratio))


def discrete_truth(p: Law, q: Law) -> Truth:
    """State the truth of two laws on the same finite set of outcomes."""
    return Truth(discrete_epsilon(p, q), partial(discrete_delta, p, q))


def certain_truth(mass: float) -> Truth:
    """State the truth where nothing is lost but on an event that the neighbour cannot show."""
    return Truth(math.inf, partial(_constant, mass=mass))


def _constant(_epsilon: float, *, mass: float) -> float:
    return mass


def discrete_delta(p: Law, q: Law, epsilon: float) -> float:
    """Sum ``[p - exp(epsilon) q]+`` over the outcomes."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def discrete_epsilon(p: Law, q: Law) -> float:
    """Find ``max log(p / q)`` over outcomes with ``p > 0``; infinite where ``q`` vanishes there."""
    seen = p > 0
    if bool((q[seen] <= 0).any()):
        return math.inf
    return max(0.0, float(np.log(p[seen] / q[seen]).max()))


def gaussian_delta(epsilon: float, *, ratio: float) -> float:
    """Give `hushed.privacy_loss.gaussian_delta` in doubles, for epsilon of 0 or more."""
    return float(privacy_loss.gaussian_delta(ratio, epsilon))


def geometric_tail(decay: float, least: int) -> float:
    """Probability that two-sided geometric noise is at least a whole number.

    Notes
    -----
    ``r^least / (1 + r)`` with ``r = exp(-decay)`` for ``least >= 1``, by symmetry below. Ghosh,
    Roughgarden, Sundararajan, STOC 2009.
    """
    if least <= 0:
        return 1 - geometric_tail(decay, 1 - least)
    return math.exp(-decay * least) / (1 + math.exp(-decay))


def laplace_delta(loss: float, epsilon: float) -> float:
    """Divergence of Laplace noise whose centre moves by ``loss`` scales.

    Notes
    -----
    ``1 - exp((epsilon - loss)/2)`` while ``|epsilon| <= loss``, and ``[1 - exp(epsilon)]+``
    beyond. The event is a half line. Dwork and Roth, *The Algorithmic Foundations of Differential
    Privacy*, 2014, section 3.3, gives the density; the integral is elementary.
    """
    if epsilon >= loss:
        return 0.0
    if epsilon <= -loss:
        return -math.expm1(epsilon)
    return -math.expm1((epsilon - loss) / 2)


@lru_cache(maxsize=256)
def laplace_product_delta(loss: float, count: int, epsilon: float) -> float:
    """Divergence of ``count`` Laplace noises whose centres move by ``loss`` each, to about 1e-12.

    Notes
    -----
    The privacy loss of one draw is ``loss - 2u`` with u equal to 0 with probability 1/2, to
    ``loss`` with probability ``exp(-loss)/2``, and with density ``exp(-u)/2`` in between. Hence
    ``count`` draws give ``count loss - 2u`` where u has the law ``2^-count exp(-u)`` times the
    convolution power of (point at 0 + length + point at ``loss``): point masses and cardinal
    B-splines (Schoenberg 1946), integrated by Gauss-Legendre between their knots.
    """
    total = count * loss
    if epsilon >= total:
        return 0.0
    cut = min((total - epsilon) / 2, total)

    def kept(u: Law) -> Law:
        return np.asarray(np.exp(-u) * -np.expm1(np.minimum(epsilon - total + 2 * u, 0.0)))

    corners: Law = np.linspace(0.0, total, count + 1)
    chances = np.array([float(math.comb(count, a)) for a in range(count + 1)])
    answer = float((chances * kept(corners)).sum())
    knots = sorted({*corners[corners < cut].tolist(), cut})
    x, w = np.polynomial.legendre.leggauss(_NODES)
    for low, high in pairwise(knots):
        u = np.asarray((high - low) / 2 * x + (high + low) / 2, dtype=np.float64)
        answer += float((w * kept(u) * _spline_mass(u, loss, count)).sum()) * (high - low) / 2
    return math.ldexp(answer, -count)


def _spline_mass(u: Law, loss: float, count: int) -> Law:
    """Density of the continuous part of the convolution power at points between its knots."""
    from scipy.interpolate import BSpline  # noqa: PLC0415

    mass = np.zeros_like(u)
    for m in range(1, count + 1):
        spline = BSpline.basis_element(np.arange(m + 1.0), extrapolate=False)
        for a in range(count - m + 1):
            ways = math.comb(count, m) * math.comb(count - m, a)
            mass += ways * loss ** (m - 1) * np.nan_to_num(spline(u / loss - a))
    return mass


def sum_of_losses_delta(p: Law, q: Law, count: int, epsilon: float) -> float:
    """Divergence of an even number of copies of one discrete pair, all probabilities above 0.

    Exact up to double rounding: half of the copies are enumerated as multisets, and the two
    halves are joined by sorting on the loss.
    """
    half_p, half_q = _multiset_power(p, q, count // 2)
    loss = np.log(half_p) - np.log(half_q)
    order = np.argsort(loss)
    loss, half_p, half_q = loss[order], half_p[order], half_q[order]
    tail_p = np.append(np.cumsum(half_p[::-1])[::-1], 0.0)
    tail_q = np.append(np.cumsum(half_q[::-1])[::-1], 0.0)
    start = np.searchsorted(loss, epsilon - loss, side="right")
    return float((half_p * tail_p[start] - math.exp(epsilon) * half_q * tail_q[start]).sum())


def _multiset_power(p: Law, q: Law, count: int) -> tuple[Law, Law]:
    """Both probabilities of every multiset of ``count`` outcomes, orderings counted."""
    picks = np.array(list(combinations_with_replacement(range(p.size), count)))
    ways = np.full(len(picks), float(math.factorial(count)))
    run = np.ones(len(picks))
    for j in range(1, count):
        run = np.where(picks[:, j] == picks[:, j - 1], run + 1, 1.0)
        ways /= run
    return ways * p[picks].prod(axis=1), ways * q[picks].prod(axis=1)


def subsampled_epsilon(epsilon: float, rate: float) -> float:
    """Turn the epsilon of a mechanism on a Poisson sample into that of its part, 0 or more.

    Notes
    -----
    ``log(1 + (exp(epsilon) - 1)/rate)``: the mixture ``(1-rate) Q + rate P`` against Q has
    divergence ``rate`` times that of P against Q at this epsilon. Balle, Barthe, Gaboardi,
    *Privacy Amplification by Subsampling*, NeurIPS 2018, Theorem 2.
    """
    return math.log1p(math.expm1(epsilon) / rate)
