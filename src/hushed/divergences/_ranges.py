"""How far samples leave delta open: the plug-in's bias, and twice its scatter, in figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushed.divergences._counts import Tuples
from hushed.divergences._sampling import Sample

_SCATTER = 2.0  # standard deviations
_UNSEEN = 3.7  # runs in which an outcome is expected that is not seen once in 40 times


def compute_range(sample: Sample, tuples: Tuples, weight: float) -> tuple[float, float]:
    """Range in which delta plausibly lies, whichever estimator is chosen; no certificate.

    Notes
    -----
    The plug-in adds up ``[z_i]+`` with ``z_i = q_i - w p_i`` of observed shares. Its mean is never
    below delta (Jensen), and above it by at most ``(sqrt(s_i**2 + m_i**2) - |m_i|) / 2`` for each
    outcome, where m_i and s_i are mean and standard deviation of z_i (Scarf, 1958). Both are taken
    from the counts: m_i as small as two standard deviations allow, s_i as of Poisson counts, which
    is too large for samples of a fixed size. What outcomes that were never seen would add to the
    bias is made up for by rare ones that were, for those add more than they should; the upper end
    leaves room for one outcome of q that was missed.
    """
    variance, gap = np.zeros(len(tuples.multiplicity)), np.zeros(len(tuples.multiplicity))
    sides = zip((-weight, 1.0), tuples.columns, sample.sizes, sample.known, strict=True)
    for factor, column, size, known in sides:
        gap += factor * np.asarray(column, dtype=np.float64) / size
        if not known:
            variance += np.asarray(column, dtype=np.float64) * (factor / size) ** 2
    low, high = _bound(gap, variance, tuples.multiplicity.astype(np.float64))
    unseen = 0.0 if sample.known[1] else _UNSEEN / sample.sizes[1]
    return low, min(high + unseen, 1.0)


def _bound(
    gap: NDArray[np.float64], variance: NDArray[np.float64], times: NDArray[np.float64]
) -> tuple[float, float]:
    spread = np.sqrt(variance)
    near = np.maximum(np.abs(gap) - _SCATTER * spread, 0.0)
    bias = float(times @ (np.hypot(spread, near) - near)) / 2
    moves = gap > -_SCATTER * spread
    scatter = _SCATTER * float(np.sqrt((times * moves) @ variance))
    found = float(times @ np.maximum(gap, 0.0))
    return max(found - bias - scatter, 0.0), found + scatter
