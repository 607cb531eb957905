"""The samplers of `_vectors` for one draw at a time, without the fixed cost of arrays.

The steps, the margins and the use of words are the same: from the same words, one draw here and a
vector of length 1 there give the same integer.

Why there are two, measured on two shared cores: an integer takes 5.5 microseconds here and 71 as a
vector of length 1 (a Gaussian one 8 and 115), a released double 10.5 and 101; `hs.release` of a
mean would take twice as long, with a ledger 1.1 times (`python -m benchmarks noise` has the first).
Integer arithmetic alone, without doubles and margins, would be half as much code and take 3 to 4
times as long, but its time tells the draw: 15 microseconds for 0 and 24 for 4 and more, at
scale 1. Here it is 2.9 for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from hushed.noise._entropy import Words
from hushed.noise._scales import (
    DROPPED,
    EXP_MARGIN,
    LEAST_PREFIX,
    LOG_MARGIN,
    PREFIX_BITS,
    SIGN_FREE,
    Single,
    gaussian_exponent,
    laplace_exponent,
)
from hushed.noise._thresholds import Uniform, below_exp, floor_exponential

SingleSampler = Callable[[Words, Single], int]


def _geometric(words: Words, raw: int, scale: Single, tilt: float) -> int:
    prefix = raw & SIGN_FREE
    if prefix >= LEAST_PREFIX:
        high = scale.high / tilt
        real = math.log(prefix * 2.0**-PREFIX_BITS) * -high
        floor = math.floor(real)
        if abs(real - floor - 0.5) <= 0.5 - high * LOG_MARGIN:
            return floor
    return floor_exponential(Uniform(prefix, PREFIX_BITS, words), scale.exact / Fraction(tilt))


def _accepted(
    words: Words, raw: int, scale: Single, exponent: float, exact: Callable[[], Fraction]
) -> bool:
    dropped = max(scale.low_bits, DROPPED)
    prefix, width = raw >> dropped, math.ldexp(1.0, dropped - 64)
    excess = math.exp(-exponent) - prefix * width
    if abs(excess - 0.5 * width) < 0.5 * width + EXP_MARGIN:
        return below_exp(Uniform(prefix, 64 - dropped, words), exact())
    return excess > 0


def _signed(raw: int, size: int) -> int | None:
    """Give the proposal its sign; a negative zero is no draw."""
    if raw <= SIGN_FREE:
        return size
    return -size if size else None


def _low(second: int, scale: Single) -> tuple[int, float]:
    low = second & ((1 << scale.low_bits) - 1)
    return low, math.ldexp(low, -scale.low_bits)


def _propose_size(words: Words, raw: int, scale: Single) -> int | None:
    """Propose a magnitude: a geometric high part, then uniform low digits."""
    high = _geometric(words, raw, scale, 1.0)
    if not scale.low_bits:
        return high
    second = words.word()
    low, share = _low(second, scale)

    def exact() -> Fraction:
        return laplace_exponent(Fraction(share), scale.exact)

    if _accepted(words, second, scale, laplace_exponent(share, scale.high), exact):
        return (high << scale.low_bits) + low
    return None


def _propose_laplace(words: Words, scale: Single) -> int | None:
    raw = words.word()
    size = _propose_size(words, raw, scale)
    return None if size is None else _signed(raw, size)


def _propose_gaussian(words: Words, scale: Single) -> int | None:
    raw = words.word()
    high = _geometric(words, raw, scale, scale.tilt)
    second = words.word()
    low, share = _low(second, scale)

    def exact() -> Fraction:
        ratio = Fraction(scale.tilt)
        return gaussian_exponent(Fraction(high), Fraction(share), scale.exact, ratio)

    exponent = gaussian_exponent(float(high), share, scale.high, scale.tilt)
    if _accepted(words, second, scale, exponent, exact):
        return _signed(raw, (high << scale.low_bits) + low)
    return None


def laplace_draw(words: Words, scale: Single) -> int:
    """Draw one integer from the discrete Laplace law; see `discrete_laplace`."""
    draw: int | None = None
    while draw is None:
        draw = _propose_laplace(words, scale)
    return draw


def exponential_draw(words: Words, scale: Single) -> int:
    """Draw one integer from the one-sided law; see `discrete_exponential`."""
    draw: int | None = None
    while draw is None:
        draw = _propose_size(words, words.word(), scale)
    return draw


def gaussian_draw(words: Words, scale: Single) -> int:
    """Draw one integer from the discrete Gaussian law; see `discrete_gaussian`."""
    draw: int | None = None
    while draw is None:
        draw = _propose_gaussian(words, scale)
    return draw
