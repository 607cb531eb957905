"""Gauss-Legendre rules that respect the kinks of Laplace noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rule", "composite", "laplace_above", "laplace_below", "laplace_density", "rule"]

_REACH = 45.0  # scales beyond the outermost kink: exp(-45) is below 3e-20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """Points and weights of a composite rule, panel by panel.

    Parameters
    ----------
    at : ndarray of float, shape (panels * points,)
        Points, ascending.
    weights : ndarray of float, shape (panels * points,)
        Weights.
    halves : ndarray of float, shape (panels, 1)
        Half the width of each panel.
    unit : ndarray of float, shape (points, points)
        Integrals from -1 to each point of the polynomials that are 1 at one point and 0 at the
        others.
    """

    at: NDArray[np.float64]
    weights: NDArray[np.float64]
    halves: NDArray[np.float64]
    unit: NDArray[np.float64]

    def running(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Integral from the left end to every point, for values at the points.

        Parameters
        ----------
        values : ndarray of float, shape (panels * points,)
            Integrand at ``at``.

        Returns
        -------
        ndarray of float, shape (panels * points,)
            Integrals up to each point, exact for polynomials inside a panel.
        """
        panels = values.reshape(len(self.halves), -1)
        whole = (panels * self.weights.reshape(panels.shape)).sum(axis=1)
        before = np.concatenate([[0.0], np.cumsum(whole)[:-1]])
        return np.asarray((before[:, None] + self.halves * (panels @ self.unit.T)).ravel())


def composite(edges: NDArray[np.float64], points: int) -> Rule:
    """Gauss-Legendre rule on each of several panels.

    Parameters
    ----------
    edges : ndarray of float, shape (panels + 1,)
        Ends of the panels, ascending.
    points : int
        Points in each panel.

    Returns
    -------
    Rule
        Exact for polynomials of degree ``2 points - 1`` in each panel.
    """
    x, w = np.polynomial.legendre.leggauss(points)
    halves = np.diff(edges)[:, None] / 2
    middles = (edges[1:] + edges[:-1])[:, None] / 2
    sums = np.stack(
        [
            np.polynomial.legendre.legval(x, np.polynomial.legendre.legint(row, lbnd=-1))
            for row in np.eye(points)
        ],
        axis=1,
    )
    return Rule(
        at=(middles + halves * x).ravel(),
        weights=(halves * w).ravel(),
        halves=halves,
        unit=sums @ np.linalg.inv(np.polynomial.legendre.legvander(x, points - 1)),
    )


def rule(
    kinks: Iterable[float], *, shortest: float, longest: float, per_scale: int = 2, points: int = 12
) -> Rule:
    """Composite rule for products of Laplace densities and tails.

    Parameters
    ----------
    kinks : iterable of float
        Places where the integrand is not smooth.
    shortest, longest : float
        Smallest and largest noise scale in the integrand; above 0.
    per_scale : int, default 2
        Panels in a stretch as long as the smallest scale.
    points : int, default 12
        Gauss-Legendre points in a panel.

    Returns
    -------
    Rule
        Covers all kinks and 45 of the largest scales on both sides.
    """
    return _rule(tuple(sorted(set(kinks))), shortest, longest, per_scale, points)


@lru_cache(maxsize=32)
def _rule(
    kinks: tuple[float, ...], shortest: float, longest: float, per_scale: int, points: int
) -> Rule:
    reach = _REACH * longest
    edges = []
    for low, high in pairwise([kinks[0] - reach, *kinks, kinks[-1] + reach]):
        panels = max(1, int(np.ceil((high - low) / shortest * per_scale)))
        edges.append(np.linspace(low, high, panels + 1)[:-1])
    return composite(np.append(np.concatenate(edges), kinks[-1] + reach), points)


def laplace_density(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Density of centred Laplace noise.

    Parameters
    ----------
    x : ndarray of float
        Points.
    scale : float
        Scale b, above 0 (the standard deviation is 1.41 b).

    Returns
    -------
    ndarray of float
        ``exp(-|x|/b) / (2b)``.
    """
    return np.asarray(np.exp(-np.abs(x) / scale) / (2 * scale))


def laplace_below(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Probability that centred Laplace noise lies below a point.

    Parameters
    ----------
    x : ndarray of float
        Points.
    scale : float
        Scale b, 0 or more; 0 means no noise, and the answer is 1 for x above 0.

    Returns
    -------
    ndarray of float
        Probabilities, to full relative precision in the lower tail.
    """
    if scale == 0:
        return np.asarray((x > 0).astype(np.float64))
    tail = 0.5 * np.exp(-np.abs(x) / scale)
    return np.asarray(np.where(x < 0, tail, 1 - tail))


def laplace_above(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Probability that centred Laplace noise lies at or above a point.

    Parameters
    ----------
    x : ndarray of float
        Points.
    scale : float
        Scale b, 0 or more; 0 means no noise.

    Returns
    -------
    ndarray of float
        Probabilities, to full relative precision in the upper tail.
    """
    if scale == 0:
        return np.asarray((x <= 0).astype(np.float64))
    tail = 0.5 * np.exp(-np.abs(x) / scale)
    return np.asarray(np.where(x > 0, tail, 1 - tail))
