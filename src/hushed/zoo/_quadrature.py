"""Gauss-Legendre rules that respect the kinks of Laplace noise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_REACH = 45.0  # scales beyond the outermost kink: exp(-45) is below 3e-20
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """Points, ascending, and weights of a composite rule, panel by panel.

    ``halves`` has half the width of each panel; ``unit`` the integrals from -1 to each point of
    the polynomials that are 1 at one point and 0 at the others.
    """

    at: Values
    weights: Values
    halves: Values
    unit: Values

    def running(self, values: Values) -> Values:
        """Integrate from the left end to every point, exactly for polynomials inside a panel."""
        panels = values.reshape(len(self.halves), -1)
        whole = (panels * self.weights.reshape(panels.shape)).sum(axis=1)
        before = np.concatenate([[0.0], np.cumsum(whole)[:-1]])
        return np.asarray((before[:, None] + self.halves * (panels @ self.unit.T)).ravel())


def composite(edges: Values, points: int) -> Rule:
    """Make the rule with so many points between each two edges, exact to degree 2 points - 1."""
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
    """Make a rule for products of Laplace densities and tails that are smooth between the kinks.

    It reaches 45 of the longest scales beyond all kinks, and has ``per_scale`` panels in a stretch
    as long as the shortest scale.
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


def laplace_density(x: Values, scale: float) -> Values:
    """Density of centred Laplace noise, ``exp(-|x|/scale) / (2 scale)``."""
    return np.asarray(np.exp(-np.abs(x) / scale) / (2 * scale))


def laplace_below(x: Values, scale: float) -> Values:
    """Probability that Laplace noise (scale 0: none) lies below x, precise in the lower tail."""
    if scale == 0:
        return np.asarray((x > 0).astype(np.float64))
    tail = 0.5 * np.exp(-np.abs(x) / scale)
    return np.asarray(np.where(x < 0, tail, 1 - tail))


def laplace_above(x: Values, scale: float) -> Values:
    """Probability that Laplace noise (scale 0: none) lies at x or above, precise in that tail."""
    return laplace_below(-x, scale) if scale > 0 else 1 - laplace_below(x, scale)
