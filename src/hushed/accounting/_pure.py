"""Worst losses of a pure promise in other terms: those of randomised response, rounded up.

A level stands for its shortest decimal; formulas are evaluated at a double that is not below it.
"""

from __future__ import annotations

import math
from functools import lru_cache

from hushed._ground.checks import require_least
from hushed._ground.decimals import upper_double
from hushed._ground.numeric import LIBRARY, first_true_near, round_down, round_up

_SMALLEST = 5e-324  # the smallest double above 0


def pure_zcdp(epsilon: float) -> float:
    """Rho of the worst mechanism that keeps epsilon, rounded up.

    ``epsilon tanh(epsilon / 2)``, at most ``epsilon**2 / 2``; above 0 if epsilon is.

    Notes
    -----
    Bun and Steinke, *Concentrated Differential Privacy*, TCC 2016, Proposition 3.3: the worst
    mechanism is randomised response, whose divergence over its order is largest at order 1.
    """
    wide = upper_double(epsilon)
    return at_least_some(round_up(wide * math.tanh(wide / 2), 8), epsilon)


@lru_cache(maxsize=4096)
def pure_gaussian(epsilon: float) -> float:
    """Smallest ratio of a Gaussian pair that is worse than every mechanism with this epsilon.

    ``2 Phi^-1(1 / (1 + exp(-epsilon)))``, rounded up.

    Notes
    -----
    Dong, Roth and Su, *Gaussian Differential Privacy*, JRSS-B 2022: the trade-off function of
    randomised response has one kink, at ``1 / (1 + exp(epsilon))`` on the diagonal, and lies above
    the convex Gaussian one that passes through it.
    """
    if epsilon == 0.0 or math.isinf(epsilon):
        return epsilon
    epsilon = upper_double(epsilon)
    small = round_up(epsilon * math.sqrt(math.pi / 2), 8)  # the tangent at 0, above the function
    if epsilon < 1e-3:
        return small
    if epsilon > 700.0:
        return math.inf
    kink = round_down(1.0 / (1.0 + math.exp(epsilon)), 8)
    ratio = first_true_near(
        lambda x: round_up(0.5 * math.erfc(x / math.sqrt(8.0)), LIBRARY) <= kink,
        1.0,
        tolerance=1e-12,
    )
    return min(small, round_up(ratio, 8))


@lru_cache(maxsize=4096)
def pure_renyi(epsilon: float, order: float) -> float:
    """Renyi divergence of the worst mechanism that keeps epsilon, rounded up.

    That of randomised response, in nats; above 0 if epsilon is.

    Notes
    -----
    Mironov, *Renyi Differential Privacy*, CSF 2017, Proposition 5.
    """
    require_least("order", order, 1)
    if order == 1:
        return min(epsilon, pure_zcdp(epsilon))
    if epsilon > 700.0 or math.isinf(order):
        return epsilon
    wide = upper_double(epsilon)
    power = (order - 1) * wide
    if power >= 700:
        return epsilon
    # The mean of exp(power) and exp(-power) under (1, exp(-epsilon)), less 1: no term is negative,
    # so that nothing cancels.
    odds = 2.0 * math.sinh(power / 2) ** 2 + math.tanh(wide / 2) * math.sinh(power)
    exact = math.log1p(odds) / (order - 1)
    return at_least_some(min(epsilon, pure_zcdp(epsilon) * order, exact * (1 + 1e-9)), epsilon)


def at_least_some(cost: float, level: float) -> float:
    """Cost of a loss: above 0 if there is any, also where its square underflows.

    The cost, but at least the smallest double if the level is above 0.
    """
    return max(cost, _SMALLEST) if level > 0 else cost
