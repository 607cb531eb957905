"""Polynomial approximations of kinked functions, computed here to full double precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hushed.errors import ParameterError

_LARGEST_DEGREE = 60
_NODES = 60
_ROUNDS = 100
_CONVERGED = 1e-12
_END = 1e-5
_MIDDLE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestPolynomial:
    """A best uniform approximation on [-1, 1].

    Parameters
    ----------
    coefficients : ndarray of float, shape (degree + 1,)
        Chebyshev coefficients, lowest first; read-only.
    error : float
        Largest distance to the function on [-1, 1].
    derivatives : ndarray of float, shape (degree + 1, degree + 1)
        Column m holds the Chebyshev coefficients of the m-th derivative over m!; read-only.
    """

    coefficients: NDArray[np.float64]
    error: float
    derivatives: NDArray[np.float64]

    def taylor(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expand the polynomial around points: derivatives over factorials.

        Parameters
        ----------
        at : ndarray of float, shape (n,)
            Points; the digits are full inside [-1, 1].

        Returns
        -------
        ndarray of float, shape (degree + 1, n)
            Row m holds the m-th derivative divided by m!.
        """
        powers = chebyshev.chebvander(at, len(self.coefficients) - 1)
        return np.asarray(self.derivatives.T @ powers.T)


@lru_cache(maxsize=4096)
def best_absolute_value(degree: int, kink: float = 0.0) -> BestPolynomial:
    """Best uniform polynomial approximation of ``|z - kink|`` on [-1, 1].

    Parameters
    ----------
    degree : int
        Largest degree of the polynomial; in [0, 60].
    kink : float, default 0
        Where the function bends; in [-1, 1].

    Returns
    -------
    BestPolynomial
        The approximation and its error, to about 9 digits of the error. A kink within 1e-5 of
        an end gets a line instead, off by that distance; one within 1e-12 of 0 counts as 0.

    Raises
    ------
    ParameterError
        If the degree or the kink leaves its range, or the exchange does not converge.

    Notes
    -----
    The exchange algorithm of Remez (1934). With the kink in the middle the polynomial is even,
    and the search runs over its even part on [0, 1]: errors 0.125, 0.0676209, 0.0459291 for
    degrees 2, 4, 6 (Varga and Carpenter, *Constructive Approximation* 1, 1985).

    Examples
    --------
    >>> round(best_absolute_value(4).error, 7)
    0.0676209
    """
    if not 0 <= degree <= _LARGEST_DEGREE:
        raise ParameterError(
            f"degree must lie in [0, {_LARGEST_DEGREE}], got {degree}", parameter="degree"
        )
    if not -1 <= kink <= 1:
        raise ParameterError(f"kink must lie in [-1, 1], got {kink}", parameter="kink")
    if degree and abs(kink) >= 1 - _END:  # the line 1 - z, or 1 + z, is off by 1 - |kink|
        line = np.zeros(degree + 1)
        line[:2] = 1.0, -math.copysign(1.0, kink)
        return _frozen(line, 1 - abs(kink))
    kink = kink if abs(kink) > _MIDDLE else 0.0
    orders = np.arange(degree + 1) if kink else 2 * np.arange(degree // 2 + 1)
    found, error = _exchange(orders, kink)
    coefficients = np.zeros(degree + 1)
    coefficients[orders] = found
    return _frozen(coefficients, error)


def _frozen(coefficients: NDArray[np.float64], error: float) -> BestPolynomial:
    size = len(coefficients)
    table = np.zeros((size, size))
    row = coefficients
    for order in range(size):
        table[: len(row), order] = row
        row = chebyshev.chebder(row) / (order + 1)
    coefficients.flags.writeable = table.flags.writeable = False
    return BestPolynomial(coefficients=coefficients, error=error, derivatives=table)


def _exchange(orders: NDArray[np.int64], kink: float) -> tuple[NDArray[np.float64], float]:
    """Remez exchange over T_orders; over [0, 1] when the kink is in the middle."""
    count = len(orders) + 1
    span = math.pi if kink else math.pi / 2
    angles = np.linspace(0.0, span, 40 * count + 1)
    angles = np.unique(np.append(angles, math.acos(kink)))
    reference = np.linspace(0.0, span, count)
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    for _ in range(_ROUNDS):
        points = np.cos(reference)
        system = np.column_stack([np.cos(np.outer(reference, orders)), signs])
        solution = np.linalg.solve(system, np.abs(points - kink))
        found, level = solution[:-1], abs(float(solution[-1]))
        reference, largest = _extrema(angles, orders, found, kink, count)
        if len(reference) < count:
            break
        if largest - level <= _CONVERGED * max(largest, 1e-3):
            return found, largest
    raise ParameterError(
        f"no best polynomial of degree {int(orders[-1])} for a kink at {kink}: "
        "the exchange did not converge; move the kink or lower the degree"
    )


def _extrema(
    angles: NDArray[np.float64],
    orders: NDArray[np.int64],
    found: NDArray[np.float64],
    kink: float,
    count: int,
) -> tuple[NDArray[np.float64], float]:
    """Alternating extremes of the error, ``count`` of them, and the largest."""

    def error(at: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.cos(np.outer(at, orders)) @ found - np.abs(np.cos(at) - kink))

    errors = error(angles)
    starts = np.flatnonzero(np.diff(np.signbit(errors))) + 1
    runs = np.split(np.arange(len(angles)), starts)
    peaks = np.array([run[np.argmax(np.abs(errors[run]))] for run in runs])
    at, height = angles[peaks], errors[peaks]
    inner = np.flatnonzero((peaks > 0) & (peaks < len(angles) - 1))
    step = angles[1] / 4
    for _ in range(2):  # parabolas of shrinking width, kept only where they climb
        centre = at[inner]
        refined = _vertex(centre, step, error(centre - step), height[inner], error(centre + step))
        better = error(refined)
        gain = np.abs(better) > np.abs(height[inner])
        at[inner[gain]], height[inner[gain]] = refined[gain], better[gain]
        step /= 16
    largest = float(np.abs(height).max())
    while len(at) > count:  # drop the smaller end, so that signs keep alternating
        kept = slice(1, None) if abs(height[0]) < abs(height[-1]) else slice(None, -1)
        at, height = at[kept], height[kept]
    return at, largest


def _vertex(
    centre: NDArray[np.float64],
    step: float,
    before: NDArray[np.float64],
    here: NDArray[np.float64],
    after: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Vertex of the parabola through three evenly spaced points, at most four steps away."""
    curvature = before - 2 * here + after
    flat = curvature == 0
    move = 0.5 * (before - after) / np.where(flat, 1.0, curvature)
    return np.asarray(centre + step * np.clip(np.where(flat, 0.0, move), -4.0, 4.0))


def _square_root_nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Square roots of 60 Chebyshev points of the second kind on [0, 1], as a column and a row."""
    nodes = (np.cos(np.pi * np.arange(_NODES) / (_NODES - 1)) + 1) / 2
    roots = np.sqrt(np.clip(nodes, 0.0, 1.0))
    return roots[:, None], roots[None, :]


def tensor_coefficients(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chebyshev coefficients of the polynomial through values on a tensor grid."""
    last = len(values) - 1
    index = np.arange(last + 1)
    halves = np.where((index == 0) | (index == last), 0.5, 1.0)
    cosines = np.cos(np.pi * np.outer(index, index) / last)
    transform = (2.0 / last) * halves[:, None] * cosines * halves[None, :]
    return np.asarray(transform @ values @ transform.T)


@lru_cache(maxsize=64)
def root_difference(degree: int) -> NDArray[np.float64]:
    """Chebyshev coefficients of ``[sqrt(y) - sqrt(x)]+`` on the unit square.

    Notes
    -----
    Liu and Oh, NeurIPS 2019, equation (16), by interpolation at 60 by 60 Chebyshev points of
    the second kind, cut off at the degree.
    """
    y, x = _square_root_nodes()
    return _cut(np.maximum(y - x, 0.0), degree)


@lru_cache(maxsize=64)
def root_sum(degree: int) -> NDArray[np.float64]:
    """Chebyshev coefficients of ``sqrt(x) + sqrt(y)`` on the unit square."""
    y, x = _square_root_nodes()
    return _cut(y + x, degree)


def _cut(values: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    if not 0 <= degree < _NODES:
        raise ParameterError(
            f"degree must lie in [0, {_NODES - 1}], got {degree}", parameter="degree"
        )
    kept = tensor_coefficients(values)[: degree + 1, : degree + 1].copy()
    kept.flags.writeable = False
    return kept


def tensor_product(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chebyshev coefficients of the product of two polynomials in two variables."""
    degree = 2 * (len(first) - 1)
    if degree == 0:
        return np.asarray(first * second)
    grid = chebyshev.chebvander(np.cos(np.pi * np.arange(degree + 1) / degree), degree // 2)
    return tensor_coefficients((grid @ first @ grid.T) * (grid @ second @ grid.T))
