"""Minimax scores when one distribution is known: one sampled side, one kink per symbol."""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hushed.divergences._approximation import best_absolute_value
from hushed.divergences._counts import Column
from hushed.divergences._minimax import Scheme
from hushed.divergences._unbiased import central_moments, chebyshev_table

_Floats = NDArray[np.float64]
_KNOTS = 256


def distance_scores(
    scheme: Scheme, counts: Column, samples: float, kinks: _Floats
) -> NDArray[np.float64]:
    """Estimates of ``|x - kink|`` for sampled probabilities x.

    Notes
    -----
    Liu and Oh, NeurIPS 2019, Algorithm 1. With ``r = log(n)/n``: a kink below ``c1 r`` has the
    window [0, (c1 + c2) r], any other one ``sqrt((c1 + c2) kink r)`` to both sides. The
    polynomials reach twice as far. For low kinks they are shifted to be exact at x = 0: symbols
    that cannot occur would otherwise each add a little.
    """
    shares = counts / samples
    distances = np.abs(shares - kinks)
    if scheme.degree < 1:
        return distances
    reach = (scheme.small + scheme.slack) * scheme.rate
    low = kinks < scheme.small * scheme.rate
    near = np.where(low, shares <= reach, distances <= np.sqrt(reach * kinks)) & (kinks > 0)
    few, many = near & low, near & ~low
    if few.any():
        distances[few] = _low(scheme, counts[few], samples, kinks[few], 2 * reach)
    if many.any():
        width = 2 * np.sqrt(reach * kinks[many])
        taylor = best_absolute_value(scheme.degree).taylor((shares - kinks)[many] / width)
        moments = central_moments(counts[many], samples, scheme.degree, scheme.model)
        moments /= width ** np.arange(scheme.degree + 1)[:, None]
        distances[many] = width * np.einsum("ij,ij->j", taylor, moments)
    return np.asarray(distances)


def _low(scheme: Scheme, counts: Column, samples: float, kinks: _Floats, top: float) -> _Floats:
    """Best polynomials on [0, top], one per distinct kink (up to a few hundred)."""
    table = chebyshev_table(int(counts.max()), scheme.degree, samples, 1 / top, scheme.model)
    levels, which = np.unique(2 * kinks / top - 1, return_inverse=True)
    polynomials = _polynomials(scheme.degree, levels)
    # T_k(-1) = (-1)**k is the first row of the table: the polynomials at probability 0.
    at_zero = polynomials @ table[0]
    scores = np.einsum("ij,ij->i", polynomials[which], table[counts])
    return np.asarray(top / 2 * (scores - at_zero[which]) + kinks)


def _polynomials(degree: int, kinks: _Floats) -> _Floats:
    """Chebyshev coefficients for ``|z - kink|``; between knots when the kinks are many."""
    if len(kinks) <= _KNOTS:
        return np.array([best_absolute_value(degree, float(c)).coefficients for c in kinks])
    knots = chebyshev.chebpts2(_KNOTS)
    table = np.array([best_absolute_value(degree, float(c)).coefficients for c in knots])
    right = np.clip(np.searchsorted(knots, kinks), 1, _KNOTS - 1)
    share = ((kinks - knots[right - 1]) / (knots[right] - knots[right - 1]))[:, None]
    return np.asarray((1 - share) * table[right - 1] + share * table[right])
