"""Public values that a quantile is chosen from; statistics and tables ask for them here."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hushed._ground.precise import mp
from hushed._ground.types import Floats

CANDIDATES = 2000
_DECADES = 1e6  # of a range that begins at 0, its candidates above 0 begin at this part

Spacing = Literal["geometric", "even"]


def choose_spacing(low: float) -> Spacing:
    """Space geometrically in a range that is not negative, evenly in any other."""
    return "even" if low < 0 else "geometric"


def first_above_zero(low: float, high: float) -> float:
    """First candidate above 0 of a geometric range: a millionth of a range that begins at 0."""
    return low if low > 0 else high / _DECADES


def space_candidates(low: float, high: float, count: int, spacing: Spacing) -> Floats:
    """Space so many candidates from one end of a range to the other; ascending.

    Geometric ones, for ``low`` of 0 or more: each is the same multiple of the one before; from 0 on
    they are 0 and the numbers from a millionth of the high end on.
    """
    if spacing == "even" or low > 0:
        return _spaced(low, high, count, spacing)
    above = _spaced(first_above_zero(low, high), high, count - 1, spacing)
    return np.append(0.0, above if count > 2 else [high])


def list_candidates(low: float, high: float, count: int) -> tuple[Floats, Spacing]:
    """List the candidates that a range has by rule, and how they are spaced."""
    spacing = choose_spacing(low)
    return np.unique(space_candidates(low, high, count, spacing)), spacing


def _spaced(low: float, high: float, count: int, spacing: Spacing) -> Floats:
    """Space numbers evenly, or so that each is the same multiple of the one before."""
    with mp.workprec(128):  # the same doubles on every computer
        first, last = mp.mpf(low), mp.mpf(high)
        steps = max(count - 1, 1)
        if spacing == "even":
            found = [first + (last - first) * k / steps for k in range(count)]
        else:
            ratio, found = mp.root(last / first, steps), [first]
            for _ in range(count - 1):
                found.append(found[-1] * ratio)
        return np.asarray(np.clip(np.array([float(each) for each in found]), low, high))
