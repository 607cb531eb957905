"""How many rows must change before a statistic has a given value: lengths of the inverse.

A length is a distance to a set of tables, so one row moves it by at most 1. Where a statistic
depends continuously on its rows, the values that k changes can reach are an interval, and the
length of v is the first k whose interval holds v. The proofs are in docs/worst-case.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hushed._ground.types import Floats, Integers
from hushed.statistics._values import exact_sum
from hushed.statistics._windows import Window

Rounding = Callable[[Floats], Floats]


def round_to_nearest(candidates: Floats) -> Rounding:
    """Make the map of numbers to the nearest candidate: it never falls, and a tie goes down."""
    ladder = np.sort(candidates)
    middles = ladder[:-1] + (ladder[1:] - ladder[:-1]) / 2
    bars = np.minimum(middles, np.nextafter(ladder[1:], -np.inf))  # each candidate stays itself
    return lambda values: np.asarray(ladder[np.searchsorted(bars, values)])


def leave(values: Floats) -> Floats:
    """Round nothing."""
    return values


def rank_lengths(values: Floats, rank: int, candidates: Floats) -> Integers:
    """Rows to replace until the value of a rank is a candidate."""
    less = np.searchsorted(values, candidates, side="left")
    more = values.size - np.searchsorted(values, candidates, side="right")
    moved = np.maximum(less - (rank - 1), more - (values.size - rank))
    return np.asarray(np.maximum(moved, less + more == values.size), dtype=np.int64)


def quantile_lengths(values: Floats, q: Fraction, candidates: Floats) -> Integers:
    """Rows to add or remove until the value of rank ``max(1, ceil(q n))`` is a candidate."""
    less = np.searchsorted(values, candidates, side="left").tolist()
    upto = np.searchsorted(values, candidates, side="right").tolist()
    found = [
        _added_or_removed(below, below_or_equal - below, values.size - below_or_equal, q)
        for below, below_or_equal in zip(less, upto, strict=True)
    ]
    return np.array(found, dtype=np.int64)


def _added_or_removed(less: int, equal: int, more: int, q: Fraction) -> int:
    """Length of one candidate, from the numbers of rows below, at and above it."""
    if q in (0, 1):  # smallest and largest value: what lies beyond must go
        return (more if q else less) + (not equal)
    top, whole = q.numerator, q.denominator
    under = top * (less + equal + more) - whole * less  # of the rank, above the rows below
    over = whole * equal - under
    if under <= 0:
        return _lower_rank(-under, equal, top, whole)
    return _raise_rank(-over, equal, top, whole) if over < 0 else 0


def _lower_rank(excess: int, equal: int, top: int, whole: int) -> int:
    """Count the changes when too many rows are below: they go, or others come at or above it."""
    if 2 * top >= whole:
        return excess // top + 1
    if equal:
        return excess // (whole - top) + 1
    return 1 if excess < top else 2 + (excess - top) // (whole - top)


def _raise_rank(excess: int, equal: int, top: int, whole: int) -> int:
    """Count the changes when too many rows are above."""
    if 2 * top <= whole:
        return -(-excess // (whole - top))
    if equal:
        return -(-excess // top)
    return 1 - (-max(0, excess - (whole - top)) // top)


def interval_lengths(least: Floats, most: Floats, candidates: Floats) -> Integers:
    """First k whose interval holds a candidate; the number of intervals if none does."""
    up = np.searchsorted(most, candidates, side="left")
    down = np.searchsorted(-least, -candidates, side="left")
    return np.maximum(up, down)


def mean_intervals(
    values: Floats, window: Window, low: float, high: float, changes: int
) -> tuple[Floats, Floats]:
    """Means of ranks that so many changes can reach; each is rounded once, to the nearest."""
    kept = exact_sum(values[window.lower - 1 : window.upper])
    down, up = [kept], [kept]
    for k in range(changes):
        up.append(up[-1] + _at(values, window.upper + 1 + k, low, high))
        up[-1] -= _at(values, window.lower + k, low, high)
        down.append(down[-1] + _at(values, window.lower - 1 - k, low, high))
        down[-1] -= _at(values, window.upper - k, low, high)
    parts = window.parts
    return np.array([float(s / parts) for s in down]), np.array([float(s / parts) for s in up])


def _at(values: Floats, rank: int, low: float, high: float) -> Fraction:
    """Value of a rank, from 1; the ends of the range beyond the table."""
    if rank < 1:
        return Fraction(low)
    return Fraction(high if rank > values.size else float(values[rank - 1]))


def spread_intervals(
    values: Floats, lower: int, upper: int, low: float, high: float, changes: int
) -> tuple[Floats, Floats]:
    """Differences of two ranks that so many changes can reach."""
    padded = np.concatenate([np.full(changes, low), values, np.full(changes, high)])
    first, last = lower - 1 + changes, upper - 1 + changes
    least, most = np.zeros(changes + 1), np.empty(changes + 1)
    for k in range(changes + 1):
        most[k] = (padded[last : last + k + 1] - padded[first - k : first + 1]).max()
        if k < upper - lower:
            least[k] = (padded[last - k : last + 1] - padded[first : first + k + 1]).min()
    return least, most


def mode_lengths(counts: Integers, *, replace: bool) -> Integers:
    """Rows to change until each category is the most frequent one; ties go to the first."""
    places = np.arange(counts.size)
    behind: Integers = counts.max() - counts + (places > np.argmax(counts))
    return _replaced_lengths(counts, places) if replace else behind


def _replaced_lengths(counts: Integers, places: Integers) -> Integers:
    """Fewest k such that k rows can be taken from rivals who then lead a category no more.

    With k more rows a category has the level c + k. What rivals have above it, summed, has to be
    taken, and one row more of each rival before it: at most k in all. Without those before it, k
    is that of all categories of this count; with them it is the same or one more.
    """
    levels, which = np.unique(counts, return_inverse=True)
    low, high = np.full_like(levels, -1), levels.max() - levels
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = _sum_above(counts, levels + middle) <= middle
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    spare = high - _sum_above(counts, levels + high)
    found: Integers = high[which]
    for group, level in enumerate((levels + high).tolist()):
        rivals = np.flatnonzero(counts >= level)  # of those before it, as many as spare are no more
        if rivals.size > spare[group]:
            found[(which == group) & (places > rivals[spare[group]])] += 1
    return found


def _sum_above(counts: Integers, levels: Integers) -> Integers:
    """Sum what the counts have above each level."""
    ordered = np.sort(counts)
    sums = np.append(np.cumsum(ordered[::-1])[::-1], 0)
    first = np.searchsorted(ordered, levels, side="right")
    above: Integers = sums[first] - levels * (counts.size - first)
    return above


def mode_distance(counts: Integers, *, replace: bool) -> int:
    """Rows that can change, whichever they are, and the most frequent category stays the same."""
    winner = int(np.argmax(counts))
    leads = counts[winner] - counts + (np.arange(counts.size) > winner)
    needed = int(np.delete(leads, winner).min())
    return (needed - 1) // 2 if replace else needed - 1
