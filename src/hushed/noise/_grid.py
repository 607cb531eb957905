"""Real-valued release: round to a public grid of powers of two, add exact integer noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, take_plain
from hushed._ground.decimals import decimal_of, read
from hushed._ground.numeric import LARGEST, float_above, root_above
from hushed.errors import ParameterError
from hushed.noise._entropy import Words, operating_system_words
from hushed.noise._integers import FEW
from hushed.noise._scales import LARGEST_SCALE, scale_of, single_scale
from hushed.noise._singles import SingleSampler, gaussian_draw, laplace_draw
from hushed.noise._vectors import VectorSampler, blocks, gaussian_draws, laplace_draws

GRID_BITS: int = 45
_LEAST_EXPONENT = -1074  # every double is a multiple of 2**-1074
_LARGEST_COUNT = 1 << 53
_EXACT = 2.0**62  # below this many steps, sums stay within 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """How a real-valued release is made discrete; depends on public numbers only.

    Parameters
    ----------
    exponent : int
        The grid is the multiples of ``2**exponent``.
    scale : float
        Scale of the integer noise in grid steps: b for Laplace, sigma for Gaussian. It includes
        the enlargement and is rounded up.
    enlargement : float
        Factor, 1 or more, by which rounding enlarged the sensitivity, and with it the noise;
        rounded up.
    """

    exponent: int
    scale: float
    enlargement: float


def floor_log2(number: Fraction) -> int:
    """Round the binary logarithm of a positive rational number down, exactly."""
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if Fraction(2) ** guess <= number else guess - 1


def _grid(nominal: Fraction, sensitivity: Fraction, distance: Fraction, moved: Fraction) -> Grid:
    """Lay the grid for a nominal scale; rounding adds `moved` steps to the distance."""
    if nominal > Fraction(LARGEST):
        raise ParameterError("the noise would exceed every double: rescale the answer")
    exponent = max(floor_log2(nominal) - GRID_BITS, _LEAST_EXPONENT)
    step = Fraction(2) ** exponent
    enlargement = (distance + moved * step) / sensitivity
    scale = nominal / step * enlargement
    if scale > Fraction(LARGEST_SCALE):
        raise ParameterError(
            f"rounding to the grid would multiply the noise by {_shown(enlargement)}: "
            "ask for less noise, release fewer coordinates or rescale the answer"
        )
    return Grid(exponent=exponent, scale=float_above(scale), enlargement=float_above(enlargement))


def _shown(number: Fraction) -> str:
    return f"2**{floor_log2(number)} or more"


def _positive(name: str, value: float) -> Fraction:
    if not 0 < value < math.inf:
        raise ParameterError(f"{name} must be above 0 and finite, got {value}", parameter=name)
    return Fraction(value)


def _widened(sensitivity: float, dims: int) -> Fraction:
    """Cover the rounding in a sensitivity that was computed in double precision."""
    return _positive("sensitivity", sensitivity) * (1 + Fraction(dims + 4, 1 << 52))


@called_as("hs.noise.laplace_grid(sensitivity=1.0, epsilon=1.0, dims=1)")
def laplace_grid(*, sensitivity: float, epsilon: float, dims: int) -> Grid:
    """Lay the grid of a Laplace release.

    Parameters
    ----------
    sensitivity : float
        Bound on the L1 distance of the answers to neighbours; above 0, finite.
    epsilon : float
        Privacy loss of the release, in nats; above 0, finite. It stands for its shortest decimal.
    dims : int
        Number of coordinates; 1 or more.

    Returns
    -------
    Grid
        The grid, and the integer scale that makes epsilon hold exactly: rounding moves the L1
        distance by at most one step a coordinate, so the scale is
        ``(sensitivity (1 + (dims + 4) 2**-52) / 2**exponent + dims) / epsilon``, rounded up.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, if the noise would leave the range of doubles, or if
        the integer scale would exceed ``2**55``.
    """
    level = read("epsilon", epsilon, up=False)
    if not 0 < level < math.inf:
        raise ParameterError(
            f"epsilon must be above 0 and finite, got {epsilon}", parameter="epsilon"
        )
    return _laplace_grid(sensitivity, level, dims)


@lru_cache(maxsize=1024)
def _laplace_grid(sensitivity: float, level: float, dims: int) -> Grid:
    """Lay the grid for a level that is a plain float, so that equal keys mean equal decimals."""
    sensitivity, dims = take_plain(sensitivity), require_count("dims", dims)
    distance = _widened(sensitivity, dims)
    nominal = Fraction(sensitivity) / decimal_of(level)
    return _grid(nominal, Fraction(sensitivity), distance, Fraction(dims))


@lru_cache(maxsize=1024)
def gaussian_grid(*, sensitivity: float, sigma: float, dims: int) -> Grid:
    """Lay the grid of a Gaussian release.

    Parameters
    ----------
    sensitivity : float
        Bound on the L2 distance of the answers to neighbours; above 0, finite.
    sigma : float
        Standard deviation of the noise before the enlargement; above 0, finite.
    dims : int
        Number of coordinates; 1 or more.

    Returns
    -------
    Grid
        The grid, and the integer sigma that keeps sensitivity / sigma: rounding moves the L2
        distance by at most ``sqrt(dims)`` steps; everything is rounded up.

    Raises
    ------
    ParameterError
        If a parameter leaves its range, if the noise would leave the range of doubles, or if
        the integer sigma would exceed ``2**55``.
    """
    sensitivity, dims = take_plain(sensitivity), require_count("dims", dims)
    distance = _widened(sensitivity, dims)
    nominal = _positive("sigma", take_plain(sigma))
    grid = _grid(nominal, Fraction(sensitivity), distance, root_above(dims))
    if grid.scale < 2.0**GRID_BITS:  # the lemma on the curve would not hold
        raise ParameterError(
            f"sigma must be 2**-1029 or more, got {sigma}: rescale the answer", parameter="sigma"
        )
    return grid


def _to_double(steps: int, exponent: int) -> float:
    """Nearest double of ``steps * 2**exponent``; beyond the doubles, infinite."""
    try:
        return float(steps << exponent) if exponent >= 0 else steps / (1 << -exponent)
    except OverflowError:
        return math.copysign(math.inf, steps)


def _steps(value: float, exponent: int) -> int:
    """Round to the nearest multiple of ``2**exponent``, half to even, in steps."""
    try:
        return round(math.ldexp(value, -exponent))  # the product is exact, or rounds to 0
    except OverflowError:
        return round(Fraction(value) / Fraction(2) ** exponent)


@lru_cache(maxsize=1024)
def _top(exponent: int) -> float:
    """Largest finite double on the grid."""
    return _to_double(math.floor(Fraction(LARGEST) / Fraction(2) ** exponent), exponent)


def _clipped(steps: int, exponent: int) -> float:
    top = _top(exponent)
    return max(min(_to_double(steps, exponent), top), -top)


def _release_few(
    words: Words, values: NDArray[np.float64], grid: Grid, one: SingleSampler
) -> NDArray[np.float64]:
    scale = single_scale(grid.scale)
    released = [
        _clipped(_steps(value, grid.exponent) + one(words, scale), grid.exponent)
        for value in values.tolist()
    ]
    return np.array(released, dtype=np.float64)


def _release_many(
    words: Words, values: NDArray[np.float64], grid: Grid, many: VectorSampler
) -> NDArray[np.float64]:
    exponent, scale = grid.exponent, scale_of(grid.scale)
    top = _top(exponent)
    released = np.empty(values.size)
    for block in blocks(values.size):
        given = values[block]
        with np.errstate(over="ignore", under="ignore"):
            steps = np.rint(np.ldexp(given, -exponent))
            far = np.abs(steps) >= _EXACT
            steps[far] = 0.0
            noise = many(words, scale, given.size)
            total = steps.astype(np.int64) + noise.values
            result = np.ldexp(total.astype(np.float64), exponent)
        np.clip(result, -top, top, out=result)
        for index in {*np.flatnonzero(far).tolist(), *noise.wide}:
            draw = noise.wide.get(index, int(noise.values[index]))
            result[index] = _clipped(_steps(float(given[index]), exponent) + draw, exponent)
        released[block] = result
    return released


def _checked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take values as doubles; refuse what is not finite, or would be moved by the conversion."""
    given = np.asarray(values)
    if given.dtype.kind not in "biuf" or given.dtype.itemsize > 8:
        raise ParameterError(
            f"values must be an array of doubles, got type {given.dtype}", parameter="values"
        )
    if given.dtype.kind in "iu" and ((given > _LARGEST_COUNT) | (given < -_LARGEST_COUNT)).any():
        raise ParameterError("integers must lie within 2**53 to be released as doubles")
    given = given.astype(np.float64, copy=False)
    if not np.isfinite(given).all():
        raise ParameterError("every value to release must be finite (no NaN, no infinity)")
    return given


def _release(
    given: NDArray[np.float64], grid: Grid, one: SingleSampler, many: VectorSampler
) -> NDArray[np.float64]:
    """Round to the grid and add integer noise."""
    words, flat = operating_system_words(), given.ravel()
    if flat.size <= FEW:
        return _release_few(words, flat, grid, one).reshape(given.shape)
    return _release_many(words, flat, grid, many).reshape(given.shape)


@called_as("hs.noise.add_laplace([10.0], sensitivity=1.0, epsilon=1.0)")
def add_laplace(
    values: NDArray[np.float64], *, sensitivity: float, epsilon: float
) -> NDArray[np.float64]:
    """Release numbers with discrete Laplace noise on a grid.

    Parameters
    ----------
    values : ndarray of float
        Finite numbers of any shape; together one answer.
    sensitivity : float
        Bound on the L1 distance of the answers to neighbours; above 0, finite.
    epsilon : float
        Privacy loss of the release, in nats; above 0, finite. It stands for its shortest decimal,
        and holds exactly.

    Returns
    -------
    ndarray of float, shape of `values`
        Multiples of ``2**exponent`` of `laplace_grid`, whatever the values; never negative
        zero. A result beyond the doubles becomes the largest one on the grid.

    Raises
    ------
    ParameterError
        If a parameter leaves its range. No value is shown.

    Notes
    -----
    Dwork, McSherry, Nissim and Smith, *Calibrating Noise to Sensitivity in Private Data
    Analysis*, TCC 2006, made safe against the attack of Mironov, *On Significance of the Least
    Significant Bits for Differential Privacy*, CCS 2012. Proof: docs/noise/grid.md.
    """
    given = _checked(values)
    grid = laplace_grid(sensitivity=sensitivity, epsilon=epsilon, dims=max(given.size, 1))
    return _release(given, grid, laplace_draw, laplace_draws)


@called_as("hs.noise.add_gaussian([10.0], sensitivity=1.0, sigma=2.0)")
def add_gaussian(
    values: NDArray[np.float64], *, sensitivity: float, sigma: float
) -> NDArray[np.float64]:
    """Release numbers with discrete Gaussian noise on a grid.

    Parameters
    ----------
    values : ndarray of float
        Finite numbers of any shape; together one answer.
    sensitivity : float
        Bound on the L2 distance of the answers to neighbours; above 0, finite.
    sigma : float
        Standard deviation of the noise before the enlargement; above 0, finite.

    Returns
    -------
    ndarray of float, shape of `values`
        Multiples of ``2**exponent`` of `gaussian_grid`, whatever the values; never negative
        zero. A result beyond the doubles becomes the largest one on the grid.

    Raises
    ------
    ParameterError
        If a parameter leaves its range. No value is shown.

    Notes
    -----
    The release satisfies every (epsilon, delta) of `hushed.privacy_loss.gaussian` at the ratio of
    sensitivity and sigma: that of continuous noise but for a factor within 1e-17 of 1 and a level
    moved by less than 1e-17, for up to ``2**20`` coordinates. Proof: docs/noise/grid.md.
    """
    given = _checked(values)
    grid = gaussian_grid(sensitivity=sensitivity, sigma=sigma, dims=max(given.size, 1))
    return _release(given, grid, gaussian_draw, gaussian_draws)
