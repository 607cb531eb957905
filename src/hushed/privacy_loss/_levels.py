"""Levels, orders and lines of one law: what its profile is searched for."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hushed._ground.numeric import first_true, first_true_near, round_down
from hushed.privacy_loss._discrete import DiscretePLD
from hushed.privacy_loss._families import Family, PrivacyLossDistribution


def distance_moved(family: Family, level: float) -> float:
    """Bound on how far the level and the law were moved by rounding, and by twice the blur.

    Each by a unit in the last place, and atoms by up to a few.
    """
    units = 16 if isinstance(family, DiscretePLD) else 4
    return units * math.ulp(max(abs(level), largest_loss(family))) + 4 * family.blur


def largest_loss(family: PrivacyLossDistribution) -> float:
    """Size of the largest loss that has a bound; 0 if none has."""
    if isinstance(family, DiscretePLD):
        return float(np.abs(family.losses).max())
    return family.supremum if math.isfinite(family.supremum) else 0.0


def list_orders(largest: float) -> NDArray[np.float64]:
    """Orders above 1, each 0.1 % farther from it than the last; more for small losses.

    The divergence of losses up to L is flat from orders about 1 / L on, and linear before.
    """
    end = 1e4 / min(1.0, max(largest, 1e-290))
    return 1.0 + np.geomspace(1e-4, end, math.ceil(2_500 * math.log10(end / 1e-4)))


def renyi_divergence(family: Family, order: float) -> float:
    """Renyi divergence of one law; of finite order."""
    if family.infinite > 0:
        return order * family.concentrated if isinstance(family, DiscretePLD) else math.inf
    if order == 1:
        mean = family.divergence() if isinstance(family, DiscretePLD) else family.moment(1)
        return max(0.0, mean)
    return max(0.0, float(family.log_mgf(np.array([order - 1]))[0])) / (order - 1)


def smallest_level(
    family: PrivacyLossDistribution, delta: float, known: float | None = None
) -> float:
    """Smallest float found at which ``family.delta`` is at most ``delta``, by bisection.

    If a level is ``known`` at which it is, nothing beyond is asked.
    """

    def kept(level: float) -> bool:
        return family.delta(level) <= delta

    if known is not None:
        near = round_down(known, 2.0**20)
        start, known = (near, known) if not kept(near) else (0.0, near)
        return first_true(kept, start, known, tolerance=1e-15)
    if math.isfinite(family.supremum):
        return first_true(kept, 0.0, family.supremum, tolerance=1e-15)
    return first_true_near(kept, family.scale, tolerance=1e-15)


def best_line(family: Family, rate: float) -> float:
    """Value of the best line: the one whose test has the wanted false-positive rate."""
    if isinstance(family, DiscretePLD):
        near = np.abs(family.losses) <= 700.0
        losses, masses = family.losses[near], family.masses[near]
        beyond = family.infinite + math.fsum(family.masses[family.losses > 700.0])
        above = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0) + beyond
        fading = masses * np.exp(-losses)
        under_q = np.append(np.cumsum(fading[::-1])[::-1][1:], 0.0)
        values = 1.0 - above + np.exp(losses) * (under_q - rate)
        return float(values.max()) if values.size else 0.0
    # The other laws are symmetric: Q(L > e) = P(L <= -e).
    bound = min(family.supremum, 700.0)
    level = first_true(lambda x: 1.0 - family.tail(-x) <= rate, -bound, bound, absolute=1e-15)
    return 1.0 - family.delta(level) - math.exp(level) * rate
