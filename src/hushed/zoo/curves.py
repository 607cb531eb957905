"""Hockey-stick divergences of the noises in the zoo: closed forms and sums over few outcomes.

Every function returns ``sup_E P(E) - exp(epsilon) Q(E)`` for one pair of output laws. They hold
for any real epsilon, also below 0, because a mechanism with several parts asks for the curve of
one part at an epsilon that another part has already used up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "constant",
    "discrete_delta",
    "discrete_epsilon",
    "laplace_delta",
    "laplace_product_delta",
    "subsampled_epsilon",
    "sum_of_losses_delta",
]

_NODES = 24


def constant(epsilon: float, *, value: float) -> float:  # noqa: ARG001
    """Divergence that is the same at every epsilon.

    Parameters
    ----------
    epsilon : float
        Not used.
    value : float
        The divergence.

    Returns
    -------
    float
        ``value``.
    """
    return value


def discrete_delta(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """Divergence of two laws on the same finite set of outcomes.

    Parameters
    ----------
    p, q : ndarray of float, shape (outcomes,)
        Probabilities on the rows and on the neighbour.
    epsilon : float
        Privacy loss allowed, in nats.

    Returns
    -------
    float
        ``sum [p - exp(epsilon) q]+``; in [0, 1].
    """
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def discrete_epsilon(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Largest privacy loss of two laws on the same finite set of outcomes.

    Parameters
    ----------
    p, q : ndarray of float, shape (outcomes,)
        Probabilities on the rows and on the neighbour.

    Returns
    -------
    float
        ``max log(p / q)`` over outcomes with ``p > 0``; infinite where ``q`` vanishes there.
    """
    seen = p > 0
    if bool((q[seen] <= 0).any()):
        return math.inf
    return max(0.0, float(np.log(p[seen] / q[seen]).max()))


def laplace_delta(loss: float, epsilon: float) -> float:
    """Divergence of Laplace noise whose centre moves.

    Parameters
    ----------
    loss : float
        Movement of the centre in units of the scale, which is the largest privacy loss; 0 or more.
    epsilon : float
        Privacy loss allowed, in nats; may be negative.

    Returns
    -------
    float
        ``1 - exp((epsilon - loss)/2)`` while ``|epsilon| <= loss``, and ``[1 - exp(epsilon)]+``
        beyond.

    Notes
    -----
    The event is a half line. Dwork and Roth, *The Algorithmic Foundations of Differential
    Privacy*, 2014, section 3.3, gives the density; the integral is elementary.
    """
    if epsilon >= loss:
        return 0.0
    if epsilon <= -loss:
        return -math.expm1(epsilon)
    return -math.expm1((epsilon - loss) / 2)


@lru_cache(maxsize=256)
def laplace_product_delta(loss: float, count: int, epsilon: float) -> float:
    """Divergence of several Laplace noises, each of whose centres moves equally far.

    Parameters
    ----------
    loss : float
        Movement of one centre in units of its scale; above 0.
    count : int
        Number of independent draws; 1 or more.
    epsilon : float
        Privacy loss allowed, in nats; may be negative.

    Returns
    -------
    float
        Divergence of the two product laws, to about 1e-12.

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

    def kept(u: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(-u) * -np.expm1(np.minimum(epsilon - total + 2 * u, 0.0)))

    corners: NDArray[np.float64] = np.linspace(0.0, total, count + 1)
    chances = np.array([float(math.comb(count, a)) for a in range(count + 1)])
    answer = float((chances * kept(corners)).sum())
    knots = sorted({*corners[corners < cut].tolist(), cut})
    x, w = np.polynomial.legendre.leggauss(_NODES)
    for low, high in pairwise(knots):
        u = np.asarray((high - low) / 2 * x + (high + low) / 2, dtype=np.float64)
        answer += float((w * kept(u) * _spline_mass(u, loss, count)).sum()) * (high - low) / 2
    return math.ldexp(answer, -count)


def _spline_mass(u: NDArray[np.float64], loss: float, count: int) -> NDArray[np.float64]:
    """Density of the continuous part of the convolution power at points between its knots."""
    from scipy.interpolate import BSpline  # noqa: PLC0415

    mass = np.zeros_like(u)
    for m in range(1, count + 1):
        spline = BSpline.basis_element(np.arange(m + 1.0), extrapolate=False)
        for a in range(count - m + 1):
            ways = math.comb(count, m) * math.comb(count - m, a)
            mass += ways * loss ** (m - 1) * np.nan_to_num(spline(u / loss - a))
    return mass


def sum_of_losses_delta(
    p: NDArray[np.float64], q: NDArray[np.float64], count: int, epsilon: float
) -> float:
    """Divergence of an even number of independent copies of one discrete pair.

    Parameters
    ----------
    p, q : ndarray of float, shape (outcomes,)
        Probabilities of one copy on the rows and on the neighbour; all above 0.
    count : int
        Number of copies; even.
    epsilon : float
        Privacy loss allowed, in nats.

    Returns
    -------
    float
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


def _multiset_power(
    p: NDArray[np.float64], q: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both probabilities of every multiset of ``count`` outcomes, orderings counted."""
    from itertools import combinations_with_replacement  # noqa: PLC0415

    picks = np.array(list(combinations_with_replacement(range(p.size), count)))
    ways = np.full(len(picks), float(math.factorial(count)))
    run = np.ones(len(picks))
    for j in range(1, count):
        run = np.where(picks[:, j] == picks[:, j - 1], run + 1, 1.0)
        ways /= run
    return ways * p[picks].prod(axis=1), ways * q[picks].prod(axis=1)


def subsampled_epsilon(epsilon: float, rate: float) -> float:
    """Epsilon of the whole mechanism turned into that of its part under Poisson sampling.

    Parameters
    ----------
    epsilon : float
        Privacy loss allowed to the mechanism on sampled rows, in nats; 0 or more.
    rate : float
        Probability with which each row takes part; in (0, 1].

    Returns
    -------
    float
        ``log(1 + (exp(epsilon) - 1)/rate)``: the mixture ``(1-rate) Q + rate P`` against Q has
        divergence ``rate`` times that of P against Q at this epsilon.

    Notes
    -----
    Balle, Barthe, Gaboardi, *Privacy Amplification by Subsampling*, NeurIPS 2018, Theorem 2.
    """
    return math.log1p(math.expm1(epsilon) / rate)
