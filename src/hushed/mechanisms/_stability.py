"""A private test of how many rows must change before an answer would not be safe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hushed import noise
from hushed._ground.checks import require_probability
from hushed._ground.decimals import read, stated_above
from hushed._ground.precise import Mpf, mp
from hushed.errors import ParameterError
from hushed.noise._scales import SMALLEST_SCALE

_LEAST_LEVEL, _LARGEST_LEVEL = Fraction(1, 1 << 50), 1 / Fraction(SMALLEST_SCALE)
_BITS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceTest:
    """Whether a number of rows is large: it is compared with a threshold, with noise.

    Notes
    -----
    The noise K has ``Pr(K = k)`` in proportion to ``exp(-level |k|)``, so that it exceeds m >= 0
    with probability ``exp(-level (m + 1)) / (1 + exp(-level))``. Proofs: docs/worst-case.md.
    """

    level: Fraction  # epsilon that the comparison costs if one row moves the number by at most 1
    delta: Fraction  # largest probability with which the number 0 may pass

    def __post_init__(self) -> None:
        if not _LEAST_LEVEL <= self.level <= _LARGEST_LEVEL:
            raise ParameterError(
                "the test of the distance needs an epsilon of 2**-50 or more, and 2**1000 at most",
                parameter="epsilon",
            )

    @property
    def threshold(self) -> int:
        """Smallest whole number that the noise alone exceeds with probability delta at most."""
        return _find_threshold(self.level, self.delta)

    def passes(self, distance: int) -> bool:
        """Draw whether so many rows and the noise exceed the threshold."""
        return distance + int(noise.discrete_laplace(1 / self.level)) > self.threshold

    def chance(self, distance: int) -> float:
        """Probability that so many rows pass; to nearest."""
        missing = self.threshold - distance
        with mp.workprec(_BITS):
            if missing >= 0:
                return float(_tail(self.level, missing))
            return float(1 - _tail(self.level, -missing - 1))

    def delta_at(self, rows: float) -> float:
        """Probability with which a table passes that is fewer than so many rows from a jump.

        Rounded up, never below that of fewer rows; for one row it is delta as it was given.
        """
        stated = stated_above(self.delta)
        if rows <= 1:
            return stated if rows else 0.0
        if rows == math.inf:
            return 1.0
        missing = self.threshold - int(rows) + 1
        with mp.workprec(_BITS):
            tail = (
                _tail(self.level, missing) if missing >= 0 else 1 - _tail(self.level, -1 - missing)
            )
            chance = Fraction(int(mp.ceil(mp.ldexp(tail, _BITS))), 1 << _BITS)
        return max(stated, min(stated_above(chance), 1.0))

    def distance_for(self, beta: float) -> int:
        """Rows from which on the test fails with probability beta at most."""
        failing = Fraction(require_probability("beta", beta))
        return self.threshold + 1 + _find_threshold(self.level, failing)


def read_delta(value: Any) -> float:
    """Read a delta that somebody asks for; exact numbers become the next decimal below."""
    return require_probability("delta", read("delta", value, up=False))


def _tail(level: Fraction, most: int) -> Mpf:
    """Probability that the noise exceeds a whole number of 0 or more."""
    rate = mp.mpf(level.numerator) / level.denominator
    return mp.exp(-rate * (most + 1)) / (1 + mp.exp(-rate))


@lru_cache(maxsize=1024)
def _find_threshold(level: Fraction, chance: Fraction) -> int:
    """Smallest whole number of 0 or more that the noise surely exceeds no oftener than that."""
    with mp.workprec(_BITS):
        allowed = mp.mpf(chance.numerator) / chance.denominator * (1 - mp.ldexp(1, -200))
        rate = mp.mpf(level.numerator) / level.denominator
        guess = (-mp.log(allowed) - mp.log1p(mp.exp(-rate))) / rate - 1
        found = max(int(mp.floor(guess)) - 1, 0)
        while _tail(level, found) > allowed:
            found += 1
    return found
