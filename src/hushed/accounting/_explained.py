"""Whether the law of a release is the one that its promise is about."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.privacy_loss import PrivacyProfile

_ROUNDED = 1 + 2.0**-48  # sums of doubles
_SAME = 0.999  # a law that keeps a smaller share of epsilon is not that of the promise


def find_priced_law(promise: Guarantee, loss: PrivacyProfile | None) -> PrivacyProfile | None:
    """Find the law by which a promise is charged; none if it promises less, as one part of many.

    The promise is then charged alone, which is more: nothing is released for less than it says.
    """
    if loss is None or not _promises_less(loss, promise.epsilon, promise.delta):
        return loss
    return None


@lru_cache(maxsize=4096)
def _promises_less(loss: PrivacyProfile, epsilon: float, delta: float) -> bool:
    """Whether a law surely keeps a smaller epsilon at the same delta."""
    level = _SAME * epsilon
    if math.isinf(epsilon) or epsilon == 0.0:
        return epsilon > 0 and loss.infinite <= delta
    if loss.supremum <= level and loss.infinite <= delta:
        return True
    if delta == 0.0:
        return False
    try:
        with np.errstate(all="ignore"):
            return loss.delta_bracket(level).high <= delta
    except ParameterError:
        return False


@lru_cache(maxsize=4096)
def explains(loss: PrivacyProfile, epsilon: float, delta: float) -> bool:
    """Whether a law, be it of many parts, surely keeps a promise; by the outer end of a bracket."""
    if math.isinf(epsilon):
        return True
    if loss.supremum <= epsilon * _ROUNDED and loss.infinite <= delta:
        return True  # by adding up
    if delta == 0.0:  # however little may be lost beyond epsilon, it is not nothing
        return False
    try:
        with np.errstate(all="ignore"):  # near the ends of the doubles: not explained then
            if loss.delta_bracket(epsilon).high <= delta * (1 + 1e-9):
                return True
            # A promise found as the smallest epsilon for its delta: by the same computation.
            return loss.epsilon_bracket(delta).high <= epsilon * _ROUNDED
    except ParameterError:
        return False
