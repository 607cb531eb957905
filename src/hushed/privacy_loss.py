"""Loss curves: how much privacy a mechanism loses, one formula per mechanism."""

from __future__ import annotations

import mpmath

__all__ = ["gaussian_delta"]

_DIGITS = 60


def gaussian_delta(ratio: float, epsilon: float) -> mpmath.mpf:
    """Smallest delta of Gaussian noise at a given epsilon, to 40 digits or more.

    Parameters
    ----------
    ratio : float
        L2 sensitivity divided by the standard deviation of the noise; above 0.
    epsilon : float
        Privacy loss allowed, in nats; 0 or more.

    Returns
    -------
    mpmath.mpf
        ``Phi(r/2 - e/r) - exp(e) Phi(-r/2 - e/r)`` with ``r = ratio`` and ``e = epsilon``.

    Notes
    -----
    Balle and Wang, *Improving the Gaussian Mechanism for Differential Privacy*, ICML 2018,
    Theorem 8. Computed in 60 decimal digits, because the two terms cancel.
    """
    with mpmath.workdps(_DIGITS):
        r, e = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        root = mpmath.sqrt(2)
        upper = mpmath.erfc((e / r - r / 2) / root) / 2
        lower = mpmath.erfc((e / r + r / 2) / root) / 2
        return +(upper - mpmath.exp(e) * lower)
