"""Scales of the integer laws, split into a high part and low digits, and the laws' exponents.

A scale is written as ``high * 2**low_bits``: the proposal for a magnitude is a geometric high part
of scale `high` followed by `low_bits` uniform binary digits. A proposal is accepted with
probability ``exp(-x)``; x is given here once, for doubles, arrays and rational numbers alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hushed._ground.checks import take_plain
from hushed._ground.types import Floats
from hushed.errors import ParameterError

LARGEST_SCALE = 2.0**55
SMALLEST_SCALE = 2.0**-1000
HIGH_BITS = 12  # a scale above 2**13 is split: the high part has a scale in [2**12, 2**13]

PREFIX_BITS = 63  # a word holds a sign and the first 63 digits of the uniform number behind `high`
SIGN_FREE = (1 << PREFIX_BITS) - 1
LEAST_PREFIX = 1 << 43  # a smaller prefix is settled exactly (probability 2**-20)
LOG_MARGIN = 2.0**-40  # bounds the error of -log(u) in doubles, see docs/noise/thresholds.md
EXP_MARGIN = 2.0**-40  # bounds the error of exp(-x) in doubles, see docs/noise/thresholds.md
DROPPED = 11  # digits of the second word kept out of its comparison, so that 53 remain at most

Number = TypeVar("Number", float, Fraction, Floats)


def laplace_exponent(low: Number, high_scale: Number) -> Number:
    """Give x for a discrete Laplace proposal; `low` are the low digits as a fraction of 1."""
    return low / high_scale


def gaussian_exponent(high: Number, low: Number, high_scale: Number, tilt: Number) -> Number:
    """Give x for a discrete Gaussian proposal: ``(m/s)**2 / 2 - tilt high/s + tilt**2 / 2``.

    Here m is ``high + low`` and s the `high_scale`; the high part was drawn with scale s / tilt.
    It is ``((m/s - tilt)**2) / 2 + tilt low/s``, hence never negative.
    """
    size = (high + low) / high_scale
    return (size * size + tilt * tilt) / 2 - high / high_scale * tilt


def power_of_two(exponents: NDArray[np.int64]) -> Floats:
    """Raise 2 to small integer powers, exactly (the C int is what `ldexp` takes everywhere)."""
    return np.asarray(np.ldexp(1.0, exponents.astype(np.intc)))


def tilt_of(high_scale: Floats) -> Floats:
    """Give the tilt for a sigma: 1 from 1/2 on, else a power of two near the root of sigma.

    For a small sigma, proposals above zero would be refused nearly always; the tilt makes them
    rare without making the proposal zero less welcome.
    """
    return np.asarray(np.ldexp(1.0, np.minimum(np.frexp(high_scale)[1] // 2, 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """One scale for all draws of a block, or one scale for each draw."""

    high: Floats  # of the high part, `whole` divided by ``2**low_bits``; correctly rounded
    low_bits: NDArray[np.int64]  # number of uniform low digits, 0 to 43
    whole: Fraction | None = None  # exact, where it is no double; then common to all draws

    def at(self, index: NDArray[np.intp] | slice) -> Scale:
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
class Single:
    """The scale of a single draw."""

    high: float  # of the high part; correctly rounded
    low_bits: int  # number of uniform low digits, 0 to 43
    exact: Fraction  # of the high part
    tilt: float  # see `tilt_of`


@lru_cache(maxsize=1024)
def single_scale(scale: float | Fraction) -> Single:
    """Check one scale and split it into a high part and low digits."""
    scale = take_plain(scale)
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise ParameterError(_range_of_scales())
    low_bits = max(math.frexp(scale)[1] - (HIGH_BITS + 1), 0)
    exact = Fraction(scale) / (1 << low_bits)
    tilt = float(tilt_of(np.asarray(float(exact))))
    return Single(high=float(exact), low_bits=low_bits, exact=exact, tilt=tilt)


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
    return Scale(high=scales * power_of_two(-low_bits), low_bits=low_bits, whole=whole)


def _range_of_scales() -> str:
    return f"every scale must lie in [{SMALLEST_SCALE}, 2**55 = {LARGEST_SCALE}]; pass such a scale"
