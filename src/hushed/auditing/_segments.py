"""Neighbouring bins with like ratios put together, so that the noise of fine bins averages out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["segments"]

_TINY = 1e-300


def segments(
    first: NDArray[np.int64], second: NDArray[np.int64], penalty: float
) -> NDArray[np.int64]:
    """Cut a row of bins into stretches, each of one share of the first sample.

    Parameters
    ----------
    first, second : ndarray of int, shape (bins,)
        Counts of two samples.
    penalty : float
        Log-likelihood that one more stretch must bring, in nats; 0 or more.

    Returns
    -------
    ndarray of int, shape (bins,)
        Number of the stretch of each bin, from 0 upwards.

    Notes
    -----
    The cut of the largest penalised binomial likelihood, found exactly by dynamic programming
    over the last stretch (Jackson et al., IEEE Signal Processing Letters 12, 2005).
    """
    ahead = np.concatenate([[0.0], np.cumsum(first)])
    behind = np.concatenate([[0.0], np.cumsum(second)])
    bins = len(first)
    best, last = np.zeros(bins + 1), np.zeros(bins + 1, dtype=np.int64)
    for end in range(1, bins + 1):
        a, b = ahead[end] - ahead[:end], behind[end] - behind[:end]
        total = np.maximum(a + b, _TINY)
        fit = a * np.log(np.maximum(a, _TINY) / total) + b * np.log(np.maximum(b, _TINY) / total)
        values = best[:end] + fit - penalty
        last[end] = int(values.argmax())
        best[end] = values[last[end]]
    labels, end, number = np.zeros(bins, dtype=np.int64), bins, 0
    while end > 0:
        labels[last[end] : end] = number
        end, number = int(last[end]), number + 1
    return np.asarray(number - 1 - labels)
