"""Local and smooth sensitivity of what is read off sorted values: differences over windows.

With ``x_(i) = low`` for i < 1 and ``x_(i) = high`` for i > n, every statistic here moves between
tables at distance k + 1 by at most the largest ``x_(upper + b) - x_(lower - a)`` over
``a + b = k + 1``, divided by a whole number. Of the median of a private number of rows one of these
windows is enough for each k: the one in the middle. The proofs are in docs/worst-case.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from hushed._ground.precise import mp
from hushed._ground.types import Floats, Integers

MOST_CHANGES = 1 << 14  # beyond so many, the whole range stands in for the window
FLOOR = 2.0**-45  # share of the range that a smooth sensitivity never falls below
SLACK = 1 + 2.0**-44  # covers the rounding of a difference, a power, a product and a quotient

_DIGITS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Where windows begin: ``x_(lower - a)`` to ``x_(upper + b)``, and what differences count."""

    # Ranks, counted from 1; lower is at most upper.
    lower: int
    upper: int
    parts: int = 1  # what differences are divided by
    # Empty if all a and b count. Otherwise window and reach grow by turns, first this way: a and b
    # differ by 1 at most.
    grows: Literal["", "up", "down"] = ""

    def turns(self, changes: Integers) -> tuple[Integers, Integers]:
        """Give a and b of the one window that counts after so many changes."""
        first, then = changes // 2 + 1, (changes + 1) // 2
        return (then, first) if self.grows == "up" else (first, then)


def edges(
    values: Floats, window: Window, low: float, high: float, reach: int
) -> tuple[Floats, Floats]:
    """Values below and above a window: ``x_(lower - a)`` and ``x_(upper + b)`` up to a reach.

    They stop at the first one that is an end of the range.
    """
    start = max(window.lower - 1 - reach, 0)
    below = values[start : window.lower][::-1]
    above = values[window.upper - 1 : window.upper + reach]
    if below.size <= reach:
        below = np.append(below, low)
    if above.size <= reach:
        above = np.append(above, high)
    return below, above


def largest_move(values: Floats, window: Window, low: float, high: float, changes: int) -> float:
    """Local sensitivity at a distance: the most one further row moves it after so many changes."""
    below, above = edges(values, window, low, high, changes + 1)
    if window.grows:
        low_side, high_side = window.turns(np.array([changes]))
    else:
        high_side = np.arange(changes + 2)
        low_side = high_side[::-1]
    up = above[np.minimum(high_side, above.size - 1)]
    down = below[np.minimum(low_side, below.size - 1)]
    return float((up - down).max()) / window.parts


def smooth_bound(
    values: Floats, window: Window, low: float, high: float, smoothing: Fraction
) -> float:
    """Smooth sensitivity, rounded up by at most ``2**-43`` of it.

    Notes
    -----
    ``max over k of exp(-smoothing k)`` times the local sensitivity at distance k, but never below
    ``2**-45`` of the range, which hides whatever falls below. Powers are rounded up one by one;
    terms that cannot exceed the largest one so far are left out.
    """
    weights = powers_above(smoothing)
    span = high - low
    best = span * max(FLOOR, float(weights[-1]))
    reachable = -span * weights
    below, above = edges(values, window, low, high, weights.size)
    if window.grows:
        low_side, high_side = window.turns(np.arange(weights.size))
        widths = (
            above[np.minimum(high_side, above.size - 1)]
            - below[np.minimum(low_side, below.size - 1)]
        )
        best = max(best, float((widths * weights).max()))
        return best * SLACK / window.parts
    for down, start in enumerate(below.tolist()):
        longest = int(np.searchsorted(reachable, -best))  # windows from here on are too long
        first, last = int(down == 0), min(above.size, longest + 1 - down)
        if last <= first:
            if down > longest:
                break
            continue
        terms = (above[first:last] - start) * weights[first + down - 1 : last + down - 1]
        best = max(best, float(terms.max()))
    return best * SLACK / window.parts


@lru_cache(maxsize=64)
def powers_above(smoothing: Fraction) -> Floats:
    """Give ``exp(-smoothing k)`` for k = 0, 1, ..., each rounded up, until it is below 2**-45."""
    with mp.workprec(2 * _DIGITS):
        exact = mp.exp(-mp.mpf(smoothing.numerator) / smoothing.denominator)
        ratio = min(int(mp.floor(mp.ldexp(exact, _DIGITS))) + 2, 1 << _DIGITS)
    found, power = [], 1 << _DIGITS
    while True:
        shift = max(power.bit_length() - 53, 0)
        found.append(math.ldexp(-(-power >> shift), shift - _DIGITS))
        if found[-1] <= FLOOR or len(found) > MOST_CHANGES:
            break
        power = -(-power * ratio >> _DIGITS)
    weights = np.array(found)
    weights.flags.writeable = False
    return weights
