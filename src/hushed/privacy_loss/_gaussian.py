"""The law of Gaussian noise: its curve to many digits, and what its grid may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.decimals import lower_double
from hushed._ground.precise import Mpf, hand_out, mp
from hushed._ground.types import Floats
from hushed.privacy_loss._families import DIGITS

# Four Gauss-Legendre nodes and weights on [0, 1].
_NODES = 0.5 + 0.5 * np.polynomial.legendre.leggauss(4)[0]
_WEIGHTS = 0.5 * np.polynomial.legendre.leggauss(4)[1]
_FAR = 1e50  # standard deviations; no double is as small as what lies beyond


@called_as("hs.privacy_loss.gaussian_delta(0.5, 1.0)")
def gaussian_delta(ratio: float, epsilon: float) -> Any:
    """Smallest delta of Gaussian noise at a given epsilon, to 40 digits or more.

    Parameters
    ----------
    ratio : float
        L2 sensitivity divided by the standard deviation of the noise; above 0.
    epsilon : float
        Privacy loss allowed, in nats.

    Returns
    -------
    mpmath.mpf
        ``Phi(r/2 - e/r) - exp(e) Phi(-r/2 - e/r)`` with ``r = ratio`` and ``e = epsilon``.

    Notes
    -----
    Balle and Wang, *Improving the Gaussian Mechanism for Differential Privacy*, ICML 2018,
    Theorem 8. Computed in 60 decimal digits, because the two terms cancel, and in more for the
    squares of large numbers and for small ratios, which the terms differ by. Beyond 1e50 the
    second term is left out, which rounds up.
    """
    return hand_out(_delta(ratio, epsilon))


def _delta(ratio: float, epsilon: float) -> Mpf:
    size = max(ratio, abs(epsilon) / ratio, 1.0)
    cancelled = math.log10(min(size, _FAR)) + max(0.0, -math.log10(ratio))
    with mp.workdps(DIGITS + 2 * math.ceil(cancelled)):
        r, e = mp.mpf(ratio), mp.mpf(epsilon)
        root = mp.sqrt(2)
        reach = e / r - r / 2
        if size > _FAR:
            return mp.erfc(max(min(reach / root, _FAR), -_FAR)) / 2
        upper = mp.erfc(reach / root) / 2
        lower = mp.erfc((e / r + r / 2) / root) / 2
        return +(upper - mp.exp(e) * lower)


def released_delta(ratio: float, epsilon: float, releases: int = 1) -> Mpf:
    """Bound the delta of Gaussian release noise, drawn on its grid, at a given epsilon.

    ``exp(k) gaussian_delta(ratio, epsilon - 2 k)`` for the decimal that ``epsilon`` stands for,
    with the k of the lemma in docs/noise/grid.md, below 1e-18 for one release.
    """
    blur = GaussianPLD(ratio, releases).blur
    if blur > 1:
        return mp.mpf(1)
    with mp.workdps(DIGITS):
        level = mp.mpf(lower_double(epsilon)) - 2 * mp.mpf(blur)
        return _delta(ratio, level) * (1 + 2 * mp.mpf(blur))


@dataclass(frozen=True, slots=True)
class GaussianPLD:
    """Gaussian noise; ``ratio`` is L2 sensitivity over standard deviation.

    Under P the loss is Gaussian with mean ``ratio**2 / 2`` and standard deviation ``ratio``. Of
    several releases taken together it is the root of the sum of squares.
    """

    ratio: float
    releases: int = 1

    @property
    def supremum(self) -> float:
        """Losses are unbounded."""
        return math.inf

    @property
    def least(self) -> float:
        """Losses are unbounded."""
        return -math.inf

    @property
    def infinite(self) -> float:
        """No loss is infinite."""
        return 0.0

    @property
    def top(self) -> float:
        """There is no largest loss."""
        return 0.0

    @property
    def blur(self) -> float:
        """See docs/noise/grid.md; sums up over the releases."""
        reach = 40.0 + self.ratio
        one = (reach * reach + 1) * min(2.0**-73, self.ratio * self.ratio / 8)
        return self.releases * one * (1 + 2.0**-40)

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return self.ratio

    def delta(self, epsilon: float) -> float:
        """Balle and Wang's curve, from `released_delta`."""
        if math.isinf(epsilon):
            return 0.0 if epsilon > 0 else 1.0
        exact = released_delta(self.ratio, epsilon, self.releases)
        return min(1.0, math.nextafter(float(exact), math.inf)) if exact > 0 else 5e-324

    def tail(self, loss: float) -> float:
        """Gaussian tail."""
        return 0.5 * math.erfc((loss / self.ratio - self.ratio / 2) / math.sqrt(2.0))

    def log_mgf(self, order: Floats) -> Floats:
        """``order (order + 1) ratio**2 / 2``."""
        t = np.asarray(order, dtype=float)
        return t * (t + 1.0) * (self.ratio * self.ratio / 2)

    def moment(self, order: int) -> float:
        """Moments of a Gaussian with mean ``ratio**2 / 2``."""
        mean = self.ratio * self.ratio / 2
        terms, odd = [], 1.0
        for j in range(order // 2 + 1):
            terms.append(
                math.comb(order, 2 * j) * mean ** (order - 2 * j) * self.ratio ** (2 * j) * odd
            )
            odd *= 2 * j + 1
        return math.fsum(terms)

    def bins(self, first: int, count: int, step: float) -> tuple[Floats, Floats]:
        """Gauss-Legendre quadrature on panels of a quarter standard deviation or less.

        Losses beyond 39 standard deviations, of probability below 1e-320, are left out.
        """
        panels = max(1, math.ceil(4 * step / self.ratio))
        width = step / panels
        mean, r = self.ratio * self.ratio / 2, self.ratio
        low = max(first * panels, math.floor((mean - 39 * r) / width))
        high = min((first + count) * panels, math.ceil((mean + 39 * r) / width))
        if low >= high:
            return np.zeros(count), np.zeros(count)
        panel = np.arange(low, high)
        if panels < 2**62:
            place, inside = np.divmod(panel, panels)
        else:  # all of a narrow law is close to 0
            place = np.where(panel < 0, -1, 0)
            inside = panel + np.where(panel < 0, float(panels), 0.0)
        place = place - first
        mass, rise = np.zeros(panel.size), np.zeros(panel.size)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            above = (inside + node) * width
            z = (panel + node) * (width / r) - r / 2
            density = np.exp(-0.5 * z * z) * (weight * width / (r * math.sqrt(2.0 * math.pi)))
            mass += density
            rise -= density * np.expm1(-above)
        return (
            np.bincount(place, mass, minlength=count).astype(np.float64),
            np.bincount(place, rise, minlength=count).astype(np.float64),
        )
