"""Exact discrete Laplace and discrete Gaussian draws, in vectors.

Both are drawn by rejection from the same proposal: a sign, a geometric high part by inversion and
uniform low digits. Every decision is first tried in double precision with a proven margin, and
settled in integer arithmetic with further random digits when the margin does not exclude a doubt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.noise.entropy import Words, operating_system_words
from hushed.noise.thresholds import Uniform, below, below_exp, floor_exponential

__all__ = [
    "LARGEST_SCALE",
    "Draws",
    "Scale",
    "bernoulli",
    "bernoulli_exp",
    "blocks",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_draws",
    "laplace_draws",
    "uniform_integers",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Raw = NDArray[np.uint64]
Size = int | tuple[int, ...]
Sampler = Callable[[Words, "Scale", int], "Draws"]
Proposal = Callable[[Words, "Scale", int], tuple["Draws", Flags]]

LARGEST_SCALE = 2.0**55
SMALLEST_SCALE = 2.0**-1000
BLOCK = 1 << 15  # draws worked on at a time: the arrays of one block fit into a cache
HIGH_BITS = 12  # a scale above 2**13 is split: the high part has a scale in [2**12, 2**13)

_SIGN_FREE = (1 << 63) - 1
_LEAST_PREFIX = 1 << 43  # shorter prefixes are settled exactly (probability 2**-20)
_LOG_MARGIN = 2.0**-40  # bounds the error of -log(u), see docs/noise/thresholds.md
_EXP_MARGIN = 2.0**-40  # bounds the error of exp(-x)
_DROPPED = 11  # low digits, or at least so many, do not take part in a comparison: 53 remain
_WIDE = 62  # magnitudes of 2**62 and more leave the 64-bit arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """One scale for all draws of a block, or one scale for each draw.

    Attributes
    ----------
    high : ndarray of float, shape () or (n,)
        Scale of the high part, `whole` divided by ``2**low_bits``; correctly rounded.
    low_bits : ndarray of int64, shape () or (n,)
        Number of uniform low digits, 0 to 43.
    whole : Fraction or None
        The exact scale, where it is no double; then it is common to all draws.
    """

    high: Floats
    low_bits: Integers
    whole: Fraction | None = None

    def at(self, index: NDArray[np.intp]) -> Scale:
        """Select the scales of some draws."""
        if self.high.ndim == 0:
            return self
        return Scale(high=self.high[index], low_bits=self.low_bits[index])

    def exact(self, index: int) -> tuple[Fraction, int]:
        """Scale of the high part of one draw as a rational number, and its low digits."""
        if self.high.ndim == 0:
            low_bits = int(self.low_bits)
            whole = self.whole
            high = Fraction(float(self.high)) if whole is None else whole / (1 << low_bits)
            return high, low_bits
        return Fraction(float(self.high[index])), int(self.low_bits[index])


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Integers, nearly always within 64 bits.

    Attributes
    ----------
    values : ndarray of int64, shape (n,)
        The draws; 0 where a draw is wide.
    wide : dict of int to int
        Position and value of each draw of magnitude ``2**62`` or more. Nearly always empty:
        at the largest scale one draw in ``2**184`` is wide.
    """

    values: Integers
    wide: dict[int, int]


def scale_of(scale: float | Fraction | Floats) -> Scale:
    """Check scales and split them into a high part and low digits."""
    whole: Fraction | None = None
    if isinstance(scale, Fraction):
        if not Fraction(SMALLEST_SCALE) <= scale <= Fraction(LARGEST_SCALE):
            raise ParameterError(_range_of_scales())
        whole, scale = scale, float(scale)
    scales = np.asarray(scale, dtype=np.float64)
    if not np.all((scales >= SMALLEST_SCALE) & (scales <= LARGEST_SCALE)):
        raise ParameterError(_range_of_scales())
    exponents = np.frexp(scales)[1].astype(np.int64)
    low_bits = np.maximum(exponents - (HIGH_BITS + 1), 0)
    return Scale(high=np.ldexp(scales, -low_bits), low_bits=low_bits, whole=whole)


def _range_of_scales() -> str:
    return f"every scale must lie in [{SMALLEST_SCALE}, 2**55 = {LARGEST_SCALE}]; pass such a scale"


def _geometric(words: Words, raw: Raw, scale: Scale, tilt: Floats) -> Integers:
    """Round ``-(high / tilt) log(u)`` down; u is uniform, its first 63 digits end each raw word."""
    prefix = (raw & np.uint64(_SIGN_FREE)).view(np.int64)
    high = scale.high / tilt
    with np.errstate(divide="ignore"):  # a prefix of zeros: settled below
        real = np.log(prefix * 2.0**-63) * -high
    floor = np.floor(real)
    doubt = np.abs(real - floor - 0.5) > 0.5 - high * _LOG_MARGIN
    doubt |= prefix < _LEAST_PREFIX
    where = np.flatnonzero(doubt)
    floor[where] = 0.0
    result = floor.astype(np.int64)
    for index in where.tolist():
        exact = scale.exact(index)[0] / Fraction(float(tilt[index] if tilt.ndim else tilt))
        result[index] = floor_exponential(Uniform(int(prefix[index]), 63, words), exact)
    return np.asarray(result)


def _accepted(
    words: Words, prefix: Raw, bits: Integers, exponent: Floats, exact: Callable[[int], Fraction]
) -> Flags:
    """Decide for each draw whether a uniform number with these first digits is below exp(-x)."""
    width = np.ldexp(1.0, -bits)
    excess = np.exp(-exponent) - prefix.view(np.int64) * width
    accepted = excess > 0
    doubt = np.abs(excess - 0.5 * width) < 0.5 * width + _EXP_MARGIN
    for index in np.flatnonzero(doubt):
        length = int(bits[index] if bits.ndim else bits)
        number = Uniform(int(prefix[index]), length, words)
        accepted[index] = below_exp(number, exact(int(index)))
    return accepted


def _split(words: Words, scale: Scale, count: int) -> tuple[Integers, Raw, Integers]:
    """Draw uniform low digits, and the first digits of a uniform number with their length."""
    raw = words.take(count)
    low_bits = scale.low_bits.astype(np.uint64)
    low = (raw & ((np.uint64(1) << low_bits) - np.uint64(1))).view(np.int64)
    dropped = np.maximum(low_bits, np.uint64(_DROPPED))
    return np.asarray(low), raw >> dropped, 64 - dropped.astype(np.int64)


def _assemble(raw: Raw, high: Integers, low: Integers, scale: Scale, accepted: Flags) -> Draws:
    """Join sign, high part and low digits; a negative zero is not accepted."""
    wide: dict[int, int] = {}
    for index in np.flatnonzero(high >> (_WIDE - scale.low_bits)).tolist():
        shift = int(scale.low_bits[index] if scale.low_bits.ndim else scale.low_bits)
        size = (int(high[index]) << shift) + int(low[index])
        wide[index] = -size if int(raw[index]) > _SIGN_FREE else size
        high[index] = 0
    values = (high << scale.low_bits) + low
    sign = raw.view(np.int64) >> 63
    nonzero = values != 0
    nonzero[list(wide)] = True
    accepted &= nonzero | (sign == 0)
    values ^= sign
    values -= sign
    for index in wide:
        values[index] = 0
    return Draws(values=values, wide=wide)


def _propose_laplace(words: Words, scale: Scale, count: int) -> tuple[Draws, Flags]:
    raw = words.take(count)
    high = _geometric(words, raw, scale, np.ones(()))
    if not scale.low_bits.any():
        accepted = np.ones(count, dtype=np.bool_)
        return _assemble(raw, high, np.zeros((), np.int64), scale, accepted), accepted
    low, prefix, bits = _split(words, scale, count)

    def exact(index: int) -> Fraction:
        whole, shift = scale.exact(index)
        return int(low[index]) / (whole * (1 << shift))

    exponent = low * np.ldexp(1.0, -scale.low_bits) / scale.high
    accepted = _accepted(words, prefix, bits, exponent, exact)
    return _assemble(raw, high, low, scale, accepted), accepted


def _propose_gaussian(words: Words, scale: Scale, count: int) -> tuple[Draws, Flags]:
    exponents = np.frexp(scale.high)[1]
    tilt = np.asarray(np.ldexp(1.0, np.minimum(exponents // 2, 0)))
    raw = words.take(count)
    high = _geometric(words, raw, scale, tilt)
    low, prefix, bits = _split(words, scale, count)

    def exact(index: int) -> Fraction:
        sigma, shift = scale.exact(index)
        ratio = Fraction(float(tilt[index] if tilt.ndim else tilt))
        size = (int(high[index]) + Fraction(int(low[index]), 1 << shift)) / sigma
        return (size * size + ratio * ratio) / 2 - int(high[index]) * ratio / sigma

    size = (high + low * np.ldexp(1.0, -scale.low_bits)) / scale.high
    exponent = 0.5 * (size * size + tilt * tilt) - high / scale.high * tilt
    accepted = _accepted(words, prefix, bits, exponent, exact)
    return _assemble(raw, high, low, scale, accepted), accepted


def _draw(propose: Proposal, words: Words, scale: Scale, count: int) -> Draws:
    """Propose until every draw is accepted."""
    draws, accepted = propose(words, scale, count)
    pending = np.flatnonzero(~accepted)
    for index in [index for index in draws.wide if not accepted[index]]:
        del draws.wide[index]
    while pending.size:
        retried, accepted = propose(words, scale.at(pending), pending.size)
        draws.values[pending[accepted]] = retried.values[accepted]
        for index, value in retried.wide.items():
            if accepted[index]:
                draws.wide[int(pending[index])] = value
        pending = pending[~accepted]
    return draws


def laplace_draws(words: Words, scale: Scale, count: int) -> Draws:
    """Draw from the discrete Laplace law; see `discrete_laplace`."""
    return _draw(_propose_laplace, words, scale, count)


def gaussian_draws(words: Words, scale: Scale, count: int) -> Draws:
    """Draw from the discrete Gaussian law; see `discrete_gaussian`."""
    return _draw(_propose_gaussian, words, scale, count)


def blocks(count: int) -> Iterator[slice]:
    """Cut a range of draws into blocks, so that memory stays bounded."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def _shaped(sampler: Sampler, scale: float | Fraction | Floats, size: Size) -> Integers:
    given = scale_of(scale)
    result = np.empty(size, dtype=np.int64)
    shape = result.shape
    if given.high.ndim:
        try:
            high = np.broadcast_to(given.high, shape).ravel()
            low_bits = np.broadcast_to(given.low_bits, shape).ravel()
        except ValueError as error:
            raise ParameterError(
                f"scales of shape {given.high.shape} do not broadcast to size {shape}"
            ) from error
        given = Scale(high=high, low_bits=low_bits)
    flat = result.reshape(-1)
    words = operating_system_words()
    for block in blocks(flat.size):
        scale_here = given
        if given.high.ndim:
            scale_here = Scale(high=given.high[block], low_bits=given.low_bits[block])
        draws = sampler(words, scale_here, block.stop - block.start)
        flat[block] = draws.values
        for index, value in draws.wide.items():
            flat[block.start + index] = max(min(value, _SIGN_FREE), -_SIGN_FREE)
    return result


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
    return _shaped(laplace_draws, scale, size)


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
    return _shaped(gaussian_draws, sigma, size)


def _uniform(words: Words, bound: int, count: int) -> Integers:
    last = (1 << 64) - (1 << 64) % bound - 1  # words up to here fall evenly on the residues
    raw = words.take(count).copy()
    while (pending := np.flatnonzero(raw > np.uint64(last))).size:
        raw[pending] = words.take(pending.size)
    return (raw % np.uint64(bound)).astype(np.int64)


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
    if not 1 <= bound <= 1 << 63:
        raise ParameterError(f"bound must lie in [1, 2**63], got {bound}; pass such an integer")
    result = np.empty(size, dtype=np.int64)
    flat = result.reshape(-1)
    words = operating_system_words()
    for block in blocks(flat.size):
        flat[block] = _uniform(words, bound, block.stop - block.start)
    return result


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
        raise ParameterError(f"probability must lie in [0, 1], got {probability}; pass such a one")
    number = Uniform(0, 0, operating_system_words())
    return below(number, Fraction(probability))


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
        raise ParameterError(f"exponent must be finite, 0 or more, got {exponent}")
    number = Uniform(0, 0, operating_system_words())
    return below_exp(number, Fraction(exponent))
