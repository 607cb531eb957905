"""Log ratios that change smoothly from bin to bin, so that rare outputs borrow from their likes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["smoothed"]

Floats = NDArray[np.float64]

_HALF = 0.5  # of a count, added to each bin: it keeps bins seen on one table alone finite
_PENALTIES = np.logspace(8, -2, 21)
_STEPS = 50
_STEP = 3.0
_NEAR = 1e-6
_FEWEST = 4


def smoothed(first: NDArray[np.int64], second: NDArray[np.int64], offset: float) -> Floats:
    """Fit log ratios of neighbouring bins by a curve whose bends cost.

    Parameters
    ----------
    first, second : ndarray of int, shape (bins,)
        Counts of two samples in bins that lie in a row; up to 1e9, for which doubles suffice.
    offset : float
        Log of the ratio of the sizes of the samples.

    Returns
    -------
    ndarray, shape (bins,)
        Log ratios of shares. Where counts are few they go on in a straight line.

    Notes
    -----
    Logistic regression with a penalty on squared second differences (Eilers and Marx, *Flexible
    smoothing with B-splines and penalties*, Statistical Science 11, 1996). The penalty is
    weighted to the largest marginal likelihood, in Laplace's approximation (Wood, *Fast stable
    restricted maximum likelihood*, Journal of the Royal Statistical Society B 73, 2011).
    """
    one, other = (each.astype(np.float64) + _HALF for each in (first, second))
    if len(one) < _FEWEST:
        return np.asarray(np.log(one / other) - offset)
    rough = _roughness(len(one))
    curve = best = np.zeros(len(one))
    likeliest = -np.inf
    for penalty in _PENALTIES:  # from the straightest on, each from where the last one ended
        curve, likelihood = _fitted(one, other, offset, penalty * rough, curve)
        likelihood += (len(one) - 2) / 2 * np.log(penalty)
        if likelihood > likeliest:
            best, likeliest = curve, likelihood
    return best


def _roughness(bins: int) -> Floats:
    """Sum of squared second differences, as the upper bands of a symmetric matrix."""
    bands = np.zeros((3, bins))
    for at, weight in enumerate((1, 4, 1)):  # squares and products of (1, -2, 1)
        bands[2, at : bins - 2 + at] += weight
    bands[1, 1:-1] -= 2
    bands[1, 2:] -= 2
    bands[0, 2:] = 1
    return bands


def _fitted(
    one: Floats, other: Floats, offset: float, penalty: Floats, curve: Floats
) -> tuple[Floats, float]:
    """Penalised fit by Newton's method, and its log marginal likelihood up to a constant."""
    from scipy import linalg, special  # noqa: PLC0415

    total = one + other

    def bent() -> tuple[Floats, Floats]:
        share = special.expit(curve + offset)
        curved = penalty.copy()
        curved[-1] += total * share * (1 - share)
        return share, curved

    for _ in range(_STEPS):
        share, curved = bent()
        uphill = one - total * share - _times(penalty, curve)
        step = np.clip(linalg.solveh_banded(curved, uphill, check_finite=False), -_STEP, _STEP)
        curve = curve + step
        if np.abs(step).max() < _NEAR:
            break
    logit = curve + offset
    likelihood = -float(one @ np.logaddexp(0, -logit) + other @ np.logaddexp(0, logit))
    volume = float(np.log(linalg.cholesky_banded(bent()[1], check_finite=False)[-1]).sum())
    return curve, likelihood - float(curve @ _times(penalty, curve)) / 2 - volume


def _times(bands: Floats, vector: Floats) -> Floats:
    """Symmetric banded matrix times a vector."""
    product = bands[-1] * vector
    for shift in range(1, len(bands)):
        side = bands[-1 - shift, shift:]
        product[:-shift] += side * vector[shift:]
        product[shift:] += side * vector[:-shift]
    return np.asarray(product)
