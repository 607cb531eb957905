"""Edges that grow by a constant factor, and the rung of a value among them.

Every engine finds the rung by the same comparisons and divisions of doubles, which IEEE 754 rounds
in one way only: a logarithm may end in other digits on another engine, or in another part of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hushed._ground.numeric import float_above, round_up
from hushed._ground.precise import mp
from hushed._ground.printing import format_up, percent_up
from hushed._ground.types import Floats
from hushed.statistics._candidates import Spacing, first_above_zero, space_candidates
from hushed.tables._grid import FARTHEST, NEAREST

_LOG_MOST = 700.0
_ROUNDING = 2.0**-20  # of a distance between doubles
_BASE = 4  # rungs are found digit by digit: few stages of few cases each


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The public values that quantiles are chosen from."""

    number: int  # how many
    # Whether each is the same multiple of the one before, or the same distance away.
    spacing: Spacing
    # Distance of one from the next, rounded up: as a share of it if geometric, otherwise in the
    # units of the column. A value counts as the nearest one, half of that away at most.
    apart: float

    def __str__(self) -> str:
        if self.spacing == "even":
            return f"{self.number} candidates, {format_up(self.apart, 3)} apart"
        return f"{self.number} candidates, {percent_up(self.apart)} % apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Edges that grow by a factor; the rung of a value is the number of edges below it."""

    first: float  # first edge; above 0
    ratio: float  # above 1
    # A value is clipped to these first; 0 or more.
    low: float
    high: float
    rungs: int  # how many; one more than there are edges
    negated: bool = False  # whether the sign of a value is turned first

    def digits(self) -> Iterator[list[tuple[int, float]]]:
        """For each digit of a rung, the highest first: its values, downwards, and their factors."""
        most = 1
        while most * _BASE < self.rungs:
            most *= _BASE
        farthest = 2 * self.high / self.first
        while most:
            powers = [(n * most, _power(self.ratio, n * most)) for n in range(_BASE - 1, 0, -1)]
            found = [(n, factor) for n, factor in powers if factor <= farthest]
            if found:
                yield found
            most //= _BASE


def _power(ratio: float, exponent: int) -> float:
    """Power of a ratio, rounded once: the same on every computer."""
    if exponent * math.log(ratio) > _LOG_MOST:
        return math.inf
    with mp.workprec(128):
        return float(mp.mpf(ratio) ** exponent)


@lru_cache(maxsize=256)
def list_candidates(low: float, high: float, count: int, spacing: Spacing) -> Floats:
    """List the candidates of a quantile; what is closer to zero than 1e-100 counts as zero."""
    found = space_candidates(_least(low, spacing), high, count, spacing)
    found.flags.writeable = False
    return found


def describe_candidates(low: float, high: float, count: int, spacing: Spacing) -> Candidates:
    """Say how many candidates there are, and how far apart."""
    found = list_candidates(low, high, count, spacing)
    if spacing == "even":  # of the numbers meant: differences of doubles are not 1
        step = (Fraction(high) - Fraction(low)) / (count - 1)
        if np.diff(found).max() <= float_above(step) * (1 + _ROUNDING):  # else too few doubles
            return Candidates(number=count, spacing=spacing, apart=float_above(step))
    gaps = np.diff(found)
    if spacing == "geometric":
        gaps = gaps[found[:-1] > 0] / found[:-1][found[:-1] > 0]
    most = float(gaps.max(initial=0.0)) if gaps.size else 1.0
    return Candidates(number=count, spacing=spacing, apart=round_up(most))


def find_nearest(low: float, high: float, count: int) -> Ladder:
    """Ladder whose rungs are the values nearest to each geometric candidate."""
    low = _least(low, "geometric")
    start, steps = first_above_zero(low, high), count - (1 if low else 2)
    ratio = (high / start) ** (1 / steps) if steps else high / start
    ratio = max(ratio, math.nextafter(1.0, 2.0))
    halfway = start * ((1 + ratio) / 2 if low else (1 + 1 / ratio) / 2)
    return Ladder(first=halfway, ratio=ratio, low=low, high=high, rungs=count)


def _least(low: float, spacing: Spacing) -> float:
    return max(low, NEAREST) if spacing == "geometric" and low > 0 else low


def list_powers(above: float, least: int, most: int) -> tuple[float, ...]:
    """Powers of two above a number, with exponents in a range."""
    start = max(least, math.frexp(above)[1]) if above > 0 else least
    return tuple(math.ldexp(1.0, exponent) for exponent in range(start, most + 1))


def climb_powers(powers: tuple[float, ...], *, negated: bool) -> Ladder:
    """Ladder whose edges are powers of two: exact for every double."""
    rungs = len(powers) + 1
    return Ladder(first=powers[0], ratio=2.0, low=0.0, high=FARTHEST, rungs=rungs, negated=negated)
