"""Exact discrete Laplace and discrete Gaussian draws, many at a time.

Both are drawn by rejection from one kind of proposal: a sign, a geometric high part by inversion,
and uniform low digits. Every decision is first tried in doubles with a proven margin; where the
margin leaves a doubt, it is settled in integer arithmetic with further random digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushed._ground.types import Flags, Floats, Integers
from hushed.noise._entropy import Words
from hushed.noise._scales import (
    DROPPED,
    EXP_MARGIN,
    LEAST_PREFIX,
    LOG_MARGIN,
    PREFIX_BITS,
    SIGN_FREE,
    Scale,
    gaussian_exponent,
    laplace_exponent,
    power_of_two,
    tilt_of,
)
from hushed.noise._thresholds import Uniform, below_exp, floor_exponential

Raw = NDArray[np.uint64]
VectorSampler = Callable[[Words, Scale, int], "Draws"]
Proposal = Callable[[Words, Scale, int], tuple["Draws", Flags]]

_BLOCK = 1 << 15  # draws worked on at a time: the arrays of one block fit into a cache
_WIDE = 62  # magnitudes of 2**62 and more leave the 64-bit arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Integers, nearly always within 64 bits."""

    values: Integers  # 0 where a draw is wide
    # Position and value of each draw of magnitude ``2**62`` or more. Nearly always empty: at the
    # largest scale one draw in ``2**184`` is wide.
    wide: dict[int, int]


def blocks(count: int) -> Iterator[slice]:
    """Cut a range of draws into blocks, so that memory stays bounded."""
    for start in range(0, count, _BLOCK):
        yield slice(start, min(start + _BLOCK, count))


def _geometric(words: Words, raw: Raw, scale: Scale, tilt: Floats) -> Integers:
    """Round ``-(high / tilt) log(u)`` down; u is uniform, its first digits end each raw word."""
    prefix = (raw & np.uint64(SIGN_FREE)).view(np.int64)
    high = scale.high / tilt
    real = np.log(np.maximum(prefix, LEAST_PREFIX) * 2.0**-PREFIX_BITS) * -high
    floor = np.floor(real)
    doubt = np.abs(real - floor - 0.5) > 0.5 - high * LOG_MARGIN
    doubt |= prefix < LEAST_PREFIX
    where = np.flatnonzero(doubt)
    floor[where] = 0.0
    result = floor.astype(np.int64)
    for index in where.tolist():
        exact = scale.exact(index)[0] / Fraction(float(tilt[index] if tilt.ndim else tilt))
        result[index] = floor_exponential(Uniform(int(prefix[index]), PREFIX_BITS, words), exact)
    return np.asarray(result)


def _accepted(
    words: Words, prefix: Raw, bits: Integers, exponent: Floats, exact: Callable[[int], Fraction]
) -> Flags:
    """Decide for each draw whether a uniform number with these first digits is below exp(-x)."""
    width = power_of_two(-bits)
    excess = np.exp(-exponent) - prefix.view(np.int64) * width
    accepted = excess > 0
    doubt = np.abs(excess - 0.5 * width) < 0.5 * width + EXP_MARGIN
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
    dropped = np.maximum(low_bits, np.uint64(DROPPED))
    return np.asarray(low), raw >> dropped, 64 - dropped.astype(np.int64)


def _share(low: Integers, scale: Scale) -> Floats:
    """Write the low digits as a fraction of 1, exactly."""
    return low * power_of_two(-scale.low_bits)


def _assemble(raw: Raw, high: Integers, low: Integers, scale: Scale, accepted: Flags) -> Draws:
    """Join sign, high part and low digits; a negative zero is not accepted."""
    wide: dict[int, int] = {}
    for index in np.flatnonzero(high >> (_WIDE - scale.low_bits)).tolist():
        shift = int(scale.low_bits[index] if scale.low_bits.ndim else scale.low_bits)
        size = (int(high[index]) << shift) + int(low[index])
        wide[index] = -size if int(raw[index]) > SIGN_FREE else size
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
        high_scale, shift = scale.exact(index)
        return laplace_exponent(Fraction(int(low[index]), 1 << shift), high_scale)

    exponent = laplace_exponent(_share(low, scale), scale.high)
    accepted = _accepted(words, prefix, bits, exponent, exact)
    return _assemble(raw, high, low, scale, accepted), accepted


def _propose_gaussian(words: Words, scale: Scale, count: int) -> tuple[Draws, Flags]:
    tilt = tilt_of(scale.high)
    raw = words.take(count)
    high = _geometric(words, raw, scale, tilt)
    low, prefix, bits = _split(words, scale, count)

    def exact(index: int) -> Fraction:
        high_scale, shift = scale.exact(index)
        ratio = Fraction(float(tilt[index] if tilt.ndim else tilt))
        share = Fraction(int(low[index]), 1 << shift)
        return gaussian_exponent(Fraction(int(high[index])), share, high_scale, ratio)

    with np.errstate(over="ignore"):  # an exponent beyond the doubles: surely not accepted
        real = high.astype(np.float64)
        exponent = gaussian_exponent(real, _share(low, scale), scale.high, tilt)
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
        done = np.flatnonzero(accepted)
        draws.values[pending.take(done)] = retried.values.take(done)
        for index, value in retried.wide.items():
            if accepted[index]:
                draws.wide[int(pending[index])] = value
        pending = pending.compress(~accepted)
    return draws


def laplace_draws(words: Words, scale: Scale, count: int) -> Draws:
    """Draw from the discrete Laplace law; see `discrete_laplace`."""
    return _draw(_propose_laplace, words, scale, count)


def gaussian_draws(words: Words, scale: Scale, count: int) -> Draws:
    """Draw from the discrete Gaussian law; see `discrete_gaussian`."""
    return _draw(_propose_gaussian, words, scale, count)
