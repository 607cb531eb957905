"""Theorems on the joint level of several releases, one function each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import read_count, read_list, require_probability, require_within
from hushed._ground.decimals import decimal_of, lower_double, read, stated_above, upper_double
from hushed._ground.numeric import (
    ARITHMETIC,
    COARSE,
    LIBRARY,
    first_whole,
    round_down,
    round_up,
    sum_of_levels,
)
from hushed.errors import ParameterError

_MOST = 10**7  # releases whose number of hits is looked at one by one
_VAGUE = 700.0  # nats that masses may be off by: beyond it they leave the doubles


def _levels(epsilons: Iterable[float]) -> NDArray[np.float64]:
    given = read_list("epsilons", epsilons, of="[0.1, 0.2]")
    levels = [read("a level", each, up=True) for each in given]
    if not all(0 <= level < math.inf for level in levels):
        raise ParameterError("levels must be finite numbers of 0 or more")
    return np.array([upper_double(level) for level in levels])


@called_as("hs.accounting.advanced_epsilon([0.1, 0.1], 1e-6)")
def advanced_epsilon(epsilons: Iterable[float], delta: float) -> float:
    """Epsilon of advanced composition of pure promises.

    Parameters
    ----------
    epsilons : iterable of float
        Levels of the releases, in nats; 0 or more.
    delta : float
        Slack of the theorem; in (0, 1).

    Returns
    -------
    float
        ``sqrt(2 log(1/delta) sum(e^2)) + sum(e (exp(e) - 1))``, rounded up; infinite where the
        exponential overflows.

    Raises
    ------
    ParameterError
        If ``delta`` lies outside (0, 1), or a level is negative, infinite or NaN.

    Notes
    -----
    Dwork and Roth, *The Algorithmic Foundations of Differential Privacy*, 2014, Theorem 3.20,
    for equal levels; the same proof adds up different ones.
    """
    require_probability("delta", delta)
    levels = _levels(epsilons)
    with np.errstate(over="ignore"):
        drift = sum_of_levels(levels * np.expm1(levels))
        squares = sum_of_levels(levels**2)
    swing = math.sqrt(2 * math.log(1 / lower_double(delta)) * squares)
    return round_up(swing + drift, LIBRARY)


@called_as("hs.accounting.optimal_epsilon(0.1, 0.0, 2, 1e-6)")
def optimal_epsilon(epsilon: float, delta: float, count: int, joint_delta: float) -> float:
    """Smallest joint epsilon of equal releases of which only (epsilon, delta) is known.

    Parameters
    ----------
    epsilon : float
        Level of each release, in nats; 0 or more.
    delta : float
        Slack of each release; in [0, 1].
    count : int
        Number of releases; 1 to 10 million.
    joint_delta : float
        Joint slack; in [0, 1].

    Returns
    -------
    float
        Joint level, rounded up; infinite where ``1 - (1 - delta)^count`` exceeds the slack.

    Raises
    ------
    ParameterError
        If a number is out of range or NaN.

    Notes
    -----
    Kairouz, Oh and Viswanath, *The Composition Theorem for Differential Privacy*, ICML 2015,
    Theorem 3.3, between its levels ``(count - 2 i) epsilon`` too, where the same pair of
    distributions is the worst case. Summed in logarithms; the masses are rounded up by 1e-9, and by
    what the logarithms may be off for large counts. Where that is more than doubles can hold, as
    for levels beyond 10^10, it is the sum of the levels, which is always enough.
    """
    (wide,) = _levels([epsilon]).tolist()
    delta, joint_delta = read("delta", delta, up=True), read("joint_delta", joint_delta, up=False)
    if not 0 <= delta <= 1 or not 0 <= joint_delta <= 1:
        raise ParameterError(f"deltas must lie in [0, 1], got {delta} and {joint_delta}")
    count = read_count("count", count, 1, _MOST)
    if joint_delta >= 1:
        return 0.0
    own = upper_double(delta)
    lost = round_up(-math.expm1(count * math.log1p(-own)), LIBRARY) if own < 1 else 1.0
    left = (lower_double(joint_delta) - lost) / (1 - lost) if lost < 1 else -1.0
    if count == 1 and joint_delta == delta:
        return epsilon
    if left < 0 or (left == 0 and lost > 0):
        return math.inf
    left = round_down(left, ARITHMETIC)
    # Large terms cancel: each is good to a few units in the last place of the largest.
    error = 1e-9 + 2.0**-48 * (math.lgamma(count + 1) + count * (wide + 1))
    if left == 0 or epsilon == 0 or error > _VAGUE:
        return stated_above(count * decimal_of(epsilon))
    from scipy.special import gammaln  # noqa: PLC0415

    hits = np.arange(count + 1)
    log_choose = gammaln(count + 1) - gammaln(hits + 1) - gammaln(count - hits + 1)
    log_mass = log_choose - count * np.logaddexp(0.0, -wide) - (count - hits) * wide
    masses, losses = np.exp(log_mass + error), (2 * hits - count) * wide
    # delta(e) = sum of mass (1 - exp(e - loss)) is linear in exp(e) between two losses.
    high = first_whole(
        lambda i: masses[i:] @ -np.expm1(losses[i] - losses[i:]) <= left, known=count
    )
    above = float(masses[high:].sum())
    fading = float(masses[high:] @ np.exp(losses[high] - losses[high:]))
    if above <= left:
        return 0.0
    # As a step down from the loss: the quotient of the sums would lose a small slack to rounding.
    top = float(losses[high])
    gap = float(masses[high:] @ -np.expm1(top - losses[high:])) - round_down(left, COARSE)
    step = math.log1p(gap / fading) if -gap < fading else -math.inf
    return max(0.0, top + step + 8 * math.ulp(top))


@called_as("hs.accounting.optimal_bound_epsilon([0.1, 0.1], [0.0, 0.0], 1e-6)")
def optimal_bound_epsilon(
    epsilons: Sequence[float], deltas: Sequence[float], delta: float
) -> float:
    """Bound the joint epsilon of unequal releases of which only (epsilon, delta) is known.

    Parameters
    ----------
    epsilons : sequence of float
        Levels of the releases, in nats; 0 or more, finite.
    deltas : sequence of float
        Their slacks; in [0, 1].
    delta : float
        Joint slack; in [0, 1].

    Returns
    -------
    float
        Joint level, rounded up; infinite where the slack does not cover the releases' own.

    Raises
    ------
    ParameterError
        If a level is negative, infinite or NaN, or a slack lies outside [0, 1].

    Notes
    -----
    Kairouz, Oh and Viswanath, *The Composition Theorem for Differential Privacy*, ICML 2015,
    Theorem 3.5.
    """
    levels = _levels(epsilons)
    deltas = [read("a delta", own, up=True) for own in read_list("deltas", deltas, of="[0, 1e-6]")]
    delta = read("delta", delta, up=False)
    if len(deltas) != len(levels):
        raise ParameterError(
            f"give one delta for each level: {len(levels)} wanted, {len(deltas)} given"
        )
    if not all(0 <= own <= 1 for own in (*deltas, delta)):
        raise ParameterError("deltas must lie in [0, 1]", parameter="deltas")
    if any(own >= 1 for own in deltas):
        return math.inf
    if delta >= 1:
        return 0.0
    log_kept = math.fsum(math.log1p(-upper_double(own)) for own in deltas)
    slack = round_down(-math.expm1(math.log1p(-lower_double(delta)) - log_kept), LIBRARY)
    total = round_up(sum_of_levels(levels), ARITHMETIC)
    if slack <= 0:
        # One slack alone is compared as the decimal it is; the product of several is rounded.
        return total if sum(own > 0 for own in deltas) < 2 and delta >= max(deltas) else math.inf
    with np.errstate(over="ignore"):
        squares = sum_of_levels(levels**2)
    drift = sum_of_levels(levels * np.tanh(levels / 2))
    if squares == 0 or slack >= 1:
        return 0.0
    swing = 2 * squares
    one = drift + math.sqrt(swing * math.log(math.e + math.sqrt(squares) / slack))
    other = drift + math.sqrt(swing * math.log(1 / slack))
    return round_up(min(total, one, other), LIBRARY)


@called_as("hs.accounting.at_risk_epsilon(1.0, 0.05, 3, 1e-6, confidence=0.95)")
def at_risk_epsilon(
    epsilon0: float, level: float, count: int, delta: float, *, confidence: float
) -> float:
    """Joint epsilon of equal Laplace releases at risk, as published.

    Parameters
    ----------
    epsilon0 : float
        Level that the noise was calibrated to, in nats; above 0.
    level : float
        Stronger level claimed with ``confidence``, in nats; in [0, epsilon0].
    count : int
        Number of releases.
    delta : float
        Joint slack; in (0, 1).
    confidence : float
        Confidence of the stronger level; in [0, 1].

    Returns
    -------
    float
        ``epsilon0 sqrt(2 k log(1/delta)) + k mu`` with ``mu = c e (exp(e) - 1) + (1 - c) e0
        (exp(e0) - 1)``.

    Raises
    ------
    ParameterError
        If ``level`` exceeds ``epsilon0``, or a number is out of range.

    Notes
    -----
    Dandekar, Basu and Bressan, *Differential Privacy at Risk*, PoPETs 2021, Theorem 3.1; with
    confidence 0 it is Theorem 3.20 of Dwork and Roth. Hoeffding's inequality makes it a
    guarantee for Laplace noise where mu is at least the mean loss ``e0 - 1 + exp(-e0)``.
    """
    require_probability("delta", delta)
    epsilon0, level = read("epsilon0", epsilon0, up=True), read("level", level, up=True)
    count = read_count("count", count, 1)
    confidence = read("confidence", confidence, up=False)
    if not 0 <= level <= epsilon0:
        raise ParameterError(
            f"level must lie in [0, epsilon0={epsilon0}], got {level}", parameter="level"
        )
    require_within("confidence", confidence, 0, 1)
    swing = epsilon0 * math.sqrt(2 * count * math.log(1 / delta))
    return swing + count * at_risk_mean(epsilon0, level, confidence)


def at_risk_mean(epsilon0: float, level: float, confidence: float) -> float:
    """Bound the mean loss of one Laplace release at risk, as published.

    ``c e (exp(e) - 1) + (1 - c) e0 (exp(e0) - 1)``; infinite where it overflows.
    """
    if epsilon0 > 700:
        return math.inf
    strong, weak = level * math.expm1(level), epsilon0 * math.expm1(epsilon0)
    return confidence * strong + (1 - confidence) * weak


def renyi_conversion(orders: ArrayLike, divergences: ArrayLike, delta: float) -> float:
    """Epsilon of a bound on Renyi divergences: the best over the orders.

    ``min of divergence + log(1 - 1/order) - (log(delta) + log(order)) / (order - 1)``, rounded away
    from zero; any order gives a valid bound. May be negative: then 0 is one. An order that is not
    above 1 in doubles, or whose divergence is not known, bounds nothing: infinite.

    Notes
    -----
    Canonne, Kamath and Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020,
    Proposition 12.
    """
    orders = np.asarray(orders, dtype=float)
    reach = orders - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.asarray(divergences) + np.log1p(-1 / orders)
        bound = bound - (math.log(lower_double(delta)) + np.log(orders)) / reach
    known = (reach > 0) & ~np.isnan(bound)
    return round_up(float(np.where(known, bound, np.inf).min()), COARSE)
