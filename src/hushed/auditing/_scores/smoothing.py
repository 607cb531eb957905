"""Log ratios without the noise of their counts: bins merged, a smooth curve, a guess on scale."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TINY = 1e-300
HALF = 0.5  # of a count, added to each bin: it keeps bins seen on one table alone finite
_PENALTIES = np.logspace(8, -2, 11)  # then the halves of a decade beside the best
_BESIDE = 10 ** np.array([0.5, -0.5])
_LOST = 5.0  # of log marginal likelihood, after which a curve that bends more is not tried
_STEPS = 50
_STEP = 3.0
_NEAR = 1e-6
_NEARLY = 1e-3  # step of a Newton search after which the next would be about its square
_FEWEST = 4
_STEEPEST = 3.0
_SLOPE_STEPS = 20


def partition_bins(
    first: NDArray[np.int64], second: NDArray[np.int64], penalty: float
) -> NDArray[np.int64]:
    """Cut a row of bins at its change points: number of the segment of each bin, from 0 on.

    One more segment must bring at least `penalty` of log-likelihood, in nats.

    Notes
    -----
    Optimal partitioning: the cut of the largest penalised binomial likelihood, found exactly by
    dynamic programming over the last segment (Jackson et al., *An algorithm for optimal
    partitioning of data on an interval*, IEEE Signal Processing Letters 12, 2005).
    """
    ahead = np.concatenate([[0.0], np.cumsum(first)])
    behind = np.concatenate([[0.0], np.cumsum(second)])
    bins = len(first)
    # worth[end, start] is the value of one segment from the bin `start` up to the bin `end`.
    worth = _weigh_segments(ahead, behind)
    # best[end] is the value of the best cut of the first `end` bins, last[end] where its last
    # segment starts.
    best, last = np.zeros(bins + 1), np.zeros(bins + 1, dtype=np.int64)
    for end in range(1, bins + 1):
        values = best[:end] + worth[end, :end]
        last[end] = start = values.argmax()
        best[end] = values[start] - penalty
    labels, end, number = np.zeros(bins, dtype=np.int64), bins, 0
    while end > 0:  # from the last segment back to the first
        labels[last[end] : end] = number
        end, number = int(last[end]), number + 1
    return np.asarray(number - 1 - labels)


def _weigh_segments(ahead: Floats, behind: Floats) -> Floats:
    """Log-likelihood of every segment by itself, from the bin of the column to that of the row."""
    worth = np.zeros((len(ahead), len(ahead)))
    ends, starts = _list_segments(len(ahead))
    a, b = ahead[ends] - ahead[starts], behind[ends] - behind[starts]
    total = np.maximum(a + b, _TINY)
    fit = a * np.log(np.maximum(a, _TINY) / total)
    fit += b * np.log(np.maximum(b, _TINY) / total)
    worth[ends, starts] = fit
    return worth


@lru_cache(maxsize=64)  # the numbers of bins are few, and come again and again
def _list_segments(edges: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """End and start of every segment between so many edges."""
    ends, starts = np.tril_indices(edges, -1)
    return ends, starts


def fit_p_spline(first: NDArray[np.int64], second: NDArray[np.int64], offset: float) -> Floats:
    """Fit log ratios of neighbouring bins by a curve whose bends cost.

    The offset is the log of the ratio of the sizes of the samples. Counts may go up to 1e9, for
    which doubles suffice. Where counts are few the curve goes on in a straight line.

    Notes
    -----
    Logistic regression with a penalty on squared second differences (Eilers and Marx, *Flexible
    smoothing with B-splines and penalties*, Statistical Science 11, 1996; of degree 0, so a
    Whittaker smoother). The penalty is weighted to the largest marginal likelihood, in Laplace's
    approximation (Wood, *Fast stable restricted maximum likelihood*, Journal of the Royal
    Statistical Society B 73, 2011).
    """
    one, other = (each.astype(np.float64) + HALF for each in (first, second))
    if len(one) < _FEWEST:
        return np.asarray(np.log(one / other) - offset)
    rough = _build_roughness(len(one))

    def fit(penalty: float, start: Floats) -> tuple[float, float, Floats]:
        curve, likelihood = _fit_penalised(one, other, offset, penalty * rough, start)
        # The penalty has rank bins - 2: lines cost nothing, so the prior has that many dimensions.
        return likelihood + (len(one) - 2) / 2 * math.log(penalty), penalty, curve

    tried = [fit(_PENALTIES[0], np.zeros(len(one)))]
    for penalty in _PENALTIES[1:]:  # from the straightest on, each from where the last one ended
        tried.append(fit(penalty, tried[-1][2]))
        if tried[-1][0] < max(tried, key=itemgetter(0))[0] - _LOST:
            break
    best = max(tried, key=itemgetter(0))
    tried = [best, *(fit(best[1] * factor, best[2]) for factor in _BESIDE)]
    return max(tried, key=itemgetter(0))[2]


def _build_roughness(bins: int) -> Floats:
    """Sum of squared second differences, as the upper bands of a symmetric matrix."""
    bands = np.zeros((3, bins))
    for at, weight in enumerate((1, 4, 1)):  # squares and products of (1, -2, 1)
        bands[2, at : bins - 2 + at] += weight
    bands[1, 1:-1] -= 2
    bands[1, 2:] -= 2
    bands[0, 2:] = 1
    return bands


def _fit_penalised(
    one: Floats, other: Floats, offset: float, penalty: Floats, curve: Floats
) -> tuple[Floats, float]:
    """Penalised fit by Newton's method, and its log marginal likelihood up to a constant."""
    from scipy import special  # noqa: PLC0415
    from scipy.linalg import blas, lapack  # noqa: PLC0415

    total, bends = one + other, len(penalty) - 1

    def find_curvature() -> tuple[Floats, Floats]:
        share = special.expit(curve + offset)
        hessian = penalty.copy()
        hessian[-1] += total * share * (1 - share)  # the last band is the diagonal
        return share, hessian

    for _ in range(_STEPS):
        share, hessian = find_curvature()
        gradient = one - total * share - blas.dsbmv(bends, 1.0, penalty, curve)
        # LAPACK itself, for its wrappers take many times as long as so small a system.
        _, step, failed = lapack.dpbsv(hessian, gradient, overwrite_ab=True, overwrite_b=True)
        if failed:
            break
        # Clipped, for where the samples are separated a full step would overshoot to infinity.
        largest = max(step.max(), -step.min())
        curve = curve + (step if largest <= _STEP else np.clip(step, -_STEP, _STEP))
        if largest < _NEARLY:
            break
    logit = curve + offset
    likelihood = -float(one @ np.logaddexp(0, -logit) + other @ np.logaddexp(0, logit))
    # Half the log determinant of the Hessian: the volume of the Gaussian around the best curve.
    factor, _ = lapack.dpbtrf(find_curvature()[1], overwrite_ab=True)
    volume = float(np.log(factor[-1]).sum())
    bent = float(curve @ blas.dsbmv(bends, 1.0, penalty, curve)) / 2
    return curve, likelihood - bent - volume


def fit_slope(first: NDArray[Any], second: NDArray[Any], guess: Floats) -> float:
    """Put guessed log ratios of outcomes on scale: a factor from 0 to 3.

    Notes
    -----
    Slope of a logistic regression of the tables on the guess, by Newton's method; the intercept is
    the log ratio of the sizes of the samples.
    """
    from scipy import special  # noqa: PLC0415

    total, offset, slope = first + second, math.log(first.sum() / second.sum()), 0.0
    for _ in range(_SLOPE_STEPS):
        share = special.expit(slope * guess + offset)
        curvature = float((total * share * (1 - share)) @ guess**2) + 1e-9
        step = float((first - total * share) @ guess) / curvature
        slope += min(1.0, max(-1.0, step))  # far from the solution a full step may run away
        if abs(step) < _NEAR:
            break
    return min(_STEEPEST, max(0.0, slope))
