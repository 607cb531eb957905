"""The larger one of the curves of a finite pair and of the same pair the other way round."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.decimals import stated_above
from hushed.privacy_loss._discrete import DiscretePLD, missing_mass, pair_atoms

Corner = tuple[Fraction, Fraction]


def worst_of_both(p: ArrayLike, q: ArrayLike) -> DiscretePLD:
    """Smallest curve above the loss of P against Q and that of Q against P.

    Notes
    -----
    Zhu, Dong and Wang, AISTATS 2022, Proposition 8: every function of ``exp(epsilon)`` that is
    convex, non-increasing, 1 at 0 and at least ``1 - exp(epsilon)`` is the curve of a pair; the
    larger of two such functions is one.
    """
    there, back = pair_atoms(p, q), pair_atoms(q, p)
    same = (
        there.infinite == back.infinite
        and there.losses.shape == back.losses.shape
        and np.array_equal(there.losses, back.losses)
        and np.array_equal(there.masses, back.masses)
    )
    if same:
        return there
    first, second = (map(Fraction, np.ravel(np.asarray(each, float)).tolist()) for each in (p, q))
    outcomes = list(zip(first, second, strict=True))
    lost = max(missing_mass(np.ravel(np.asarray(each, float))) for each in (p, q))
    return _envelope(outcomes, [(q, p) for p, q in outcomes], Fraction(lost))


def _envelope(there: list[Corner], back: list[Corner], lost: Fraction) -> DiscretePLD:
    """Larger of two curves as a pair; exact, so that no mass comes from rounding a corner.

    A curve is ``sum(max(0, p - ratio q))``, convex and straight between its corners ``p / q``. At a
    corner of the larger one, the second law has as much mass as the slope rises by, and the first
    one that times the ratio.
    """
    nodes = sorted({Fraction(p, q) for p, q in (*there, *back) if p and q})
    lines = [_heights(there, nodes), _heights(back, nodes)]
    corners = _corners(nodes, *lines)
    ends = max(_beyond(there), _beyond(back))
    start = max(sum((p for p, _ in each), Fraction(0)) for each in (there, back))
    slopes = [
        (after[1] - before[1]) / (after[0] - before[0])
        for before, after in pairwise([(Fraction(0), start), *corners])
    ]
    masses = [
        (ratio, ratio * (right - left))
        for (ratio, _), left, right in zip(corners, slopes, [*slopes[1:], Fraction(0)], strict=True)
    ]
    kept = [(ratio, float(mass)) for ratio, mass in masses if float(mass) > 0]
    if not kept:
        return DiscretePLD(np.zeros(1), np.array([5e-324]), 1.0)
    losses = np.array([_log_of(ratio) for ratio, _ in kept])
    losses = np.where(losses == 0, 0.0, np.nextafter(np.nextafter(losses, np.inf), np.inf))
    infinite = min(1.0, stated_above(ends + lost))
    return DiscretePLD(losses, np.array([mass for _, mass in kept]), infinite)


def _beyond(pair: list[Corner]) -> Fraction:
    """Mass of the first law where the second one has none."""
    return sum((p for p, q in pair if not q), Fraction(0))


def _heights(pair: list[Corner], nodes: list[Fraction]) -> list[Fraction]:
    """Curve of a pair at some ratios, ascending."""
    falling = sorted(((p / q, p, q) for p, q in pair if p and q), reverse=True)
    first, second, found = _beyond(pair), Fraction(0), []
    place = 0
    for ratio in reversed(nodes):
        while place < len(falling) and falling[place][0] > ratio:
            first, second = first + falling[place][1], second + falling[place][2]
            place += 1
        found.append(first - ratio * second)
    return found[::-1]


def _corners(
    nodes: list[Fraction], one: list[Fraction], other: list[Fraction]
) -> list[tuple[Fraction, Fraction]]:
    """Points of the larger of two curves, with those where they cross."""
    found: list[tuple[Fraction, Fraction]] = []
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    for i, ratio in enumerate(nodes):
        if i and gaps[i - 1] * gaps[i] < 0:
            share = gaps[i - 1] / (gaps[i - 1] - gaps[i])
            between = nodes[i - 1] + share * (ratio - nodes[i - 1])
            found.append((between, one[i - 1] + share * (one[i] - one[i - 1])))
        found.append((ratio, max(one[i], other[i])))
    return found


def _log_of(ratio: Fraction) -> float:
    """Logarithm of an exact ratio to the last digits."""
    if 2 * abs(ratio - 1) < 1:
        return math.log1p(float(ratio - 1))
    if Fraction(1, 10**300) < ratio < 10**300:
        return math.log(float(ratio))
    return math.log(ratio.numerator) - math.log(ratio.denominator)
