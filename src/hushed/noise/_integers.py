"""Integers with exact laws, drawn from operating-system entropy."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.types import Floats, Integers
from hushed.errors import ParameterError
from hushed.noise._entropy import Words, operating_system_words
from hushed.noise._scales import Scale, scale_of, single_scale
from hushed.noise._singles import SingleSampler, exponential_draw, gaussian_draw, laplace_draw
from hushed.noise._thresholds import Uniform, below, below_exp
from hushed.noise._vectors import VectorSampler, blocks, gaussian_draws, laplace_draws

Size = int | tuple[int, ...]

FEW = 16  # up to so many draws are made one by one, which is faster
_LARGEST_INTEGER = (1 << 63) - 1


def _in_range(draw: int) -> int:
    return max(min(draw, _LARGEST_INTEGER), -_LARGEST_INTEGER)


def _scales_for(scale: float | Fraction | Floats, shape: tuple[int, ...]) -> Scale:
    given = scale_of(scale)
    if not given.high.ndim:
        return given
    try:
        high = np.broadcast_to(given.high, shape).ravel()
        low_bits = np.broadcast_to(given.low_bits, shape).ravel()
    except ValueError as error:
        raise ParameterError(
            f"scales of shape {given.high.shape} do not broadcast to size {shape}"
        ) from error
    return Scale(high=high, low_bits=low_bits)


def _shaped(
    one: SingleSampler, many: VectorSampler, scale: float | Fraction | Floats, size: Size
) -> Integers:
    result = np.empty(size, dtype=np.int64)
    flat = result.reshape(-1)
    words = operating_system_words()
    if flat.size <= FEW and not isinstance(scale, np.ndarray):
        single = single_scale(scale)
        for index in range(flat.size):
            flat[index] = _in_range(one(words, single))
        return result
    scales = _scales_for(scale, result.shape)
    for block in blocks(flat.size):
        draws = many(words, scales.at(block), block.stop - block.start)
        flat[block] = draws.values
        for index, value in draws.wide.items():
            flat[block.start + index] = _in_range(value)
    return result


@called_as("hs.noise.discrete_laplace(2)")
def discrete_laplace(scale: float | Fraction | Floats, size: Size = ()) -> Integers:
    """Draw integers with probability proportional to ``exp(-|x|/scale)``, exactly.

    Parameters
    ----------
    scale : float, Fraction or ndarray of float
        Scale of the law, in integer steps; in [2**-1000, 2**55]. A double stands for the rational
        number that it is. An array is broadcast to `size`: one scale for each draw.
    size : int or tuple of int, default ()
        Shape of the result.

    Returns
    -------
    ndarray of int64, shape `size`
        Independent draws. A draw beyond 64 bits (at the largest scale one in ``2**184``) is
        moved to the nearest end of the range.

    Raises
    ------
    ParameterError
        If a scale leaves its range, or does not broadcast to `size`.

    Notes
    -----
    The law is that of Ghosh, Roughgarden and Sundararajan, *Universally Utility-Maximizing
    Privacy Mechanisms*, STOC 2009. Proof of the sampler: docs/noise/laplace.md.
    """
    return _shaped(laplace_draw, laplace_draws, scale, size)


@called_as("hs.noise.discrete_gaussian(2)")
def discrete_gaussian(sigma: float | Fraction | Floats, size: Size = ()) -> Integers:
    """Draw integers with probability proportional to ``exp(-x**2 / (2 sigma**2))``, exactly.

    Parameters
    ----------
    sigma : float, Fraction or ndarray of float
        Parameter of the law, in integer steps; in [2**-1000, 2**55]. A double stands for the
        rational number that it is. An array is broadcast to `size`: one for each draw.
    size : int or tuple of int, default ()
        Shape of the result.

    Returns
    -------
    ndarray of int64, shape `size`
        Independent draws. A draw beyond 64 bits (at the largest scale, below one in ``2**184``)
        is moved to the nearest end of the range.

    Raises
    ------
    ParameterError
        If a sigma leaves its range, or does not broadcast to `size`.

    Notes
    -----
    The law and the rejection from a discrete Laplace variable are those of Canonne, Kamath and
    Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020. Proof of this
    sampler: docs/noise/gaussian.md.
    """
    return _shaped(gaussian_draw, gaussian_draws, sigma, size)


@called_as("hs.noise.discrete_exponential(2)")
def discrete_exponential(scale: float | Fraction) -> int:
    """Draw one integer of 0 or more with probability proportional to ``exp(-x/scale)``, exactly.

    Parameters
    ----------
    scale : float or Fraction
        Scale of the law, in integer steps; in [2**-1000, 2**55]. A double stands for the rational
        number that it is.

    Returns
    -------
    int
        The draw, of any size.

    Raises
    ------
    ParameterError
        If the scale leaves its range.

    Notes
    -----
    The geometric law: an exponential variable of this scale, rounded down. Proof of the sampler:
    docs/noise/laplace.md.
    """
    return exponential_draw(operating_system_words(), single_scale(scale))


def _uniform(words: Words, bound: int, count: int) -> Integers:
    last = (1 << 64) - (1 << 64) % bound - 1  # words up to here fall evenly on the residues
    raw = words.take(count).copy()
    while (pending := np.flatnonzero(raw > np.uint64(last))).size:
        raw[pending] = words.take(pending.size)
    return (raw % np.uint64(bound)).astype(np.int64)


@called_as("hs.noise.uniform_integers(6)")
def uniform_integers(bound: int, size: Size = ()) -> Integers:
    """Draw integers uniformly from 0 to ``bound - 1``, exactly.

    Parameters
    ----------
    bound : int
        Number of equally likely values; 1 to ``2**63``.
    size : int or tuple of int, default ()
        Shape of the result.

    Returns
    -------
    ndarray of int64, shape `size`
        Independent draws.

    Raises
    ------
    ParameterError
        If `bound` leaves its range.
    """
    bound = operator.index(bound)
    if not 1 <= bound <= 1 << 63:
        raise ParameterError(
            f"bound must lie in [1, 2**63], got {bound}; pass such an integer", parameter="bound"
        )
    result = np.empty(size, dtype=np.int64)
    flat = result.reshape(-1)
    words = operating_system_words()
    for block in blocks(flat.size):
        flat[block] = _uniform(words, bound, block.stop - block.start)
    return result


@called_as("hs.noise.bernoulli(Fraction(1, 3))")
def bernoulli(probability: float | Fraction) -> bool:
    """Toss one coin with an exact rational probability.

    Parameters
    ----------
    probability : float or Fraction
        In [0, 1]; a double stands for the rational number that it is.

    Returns
    -------
    bool
        True with exactly this probability.

    Raises
    ------
    ParameterError
        If `probability` leaves its range.
    """
    if not 0 <= probability <= 1:
        raise ParameterError(
            f"probability must lie in [0, 1], got {probability}; pass such a one",
            parameter="probability",
        )
    number = Uniform(0, 0, operating_system_words())
    return below(number, Fraction(probability))


@called_as("hs.noise.bernoulli_exp(Fraction(1, 3))")
def bernoulli_exp(exponent: float | Fraction) -> bool:
    """Toss one coin with probability ``exp(-exponent)``, exactly.

    Parameters
    ----------
    exponent : float or Fraction
        Finite, 0 or more; a double stands for the rational number that it is.

    Returns
    -------
    bool
        True with exactly this probability.

    Raises
    ------
    ParameterError
        If `exponent` leaves its range.
    """
    if not 0 <= exponent < math.inf:
        raise ParameterError(
            f"exponent must be finite, 0 or more, got {exponent}", parameter="exponent"
        )
    number = Uniform(0, 0, operating_system_words())
    return below_exp(number, Fraction(exponent))
