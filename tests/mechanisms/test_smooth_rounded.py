"""Smooth noise as it is drawn, rounded and clipped: its exact law on all small tables.

The law is found by handing the draw every first word that makes a difference, and no formula of the
noise is used for that.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from tests.inside.noise.test_heavy import Recorded

import hushed as hs
from hushed import noise
from hushed.noise import _heavy

WORDS = 1 << 64
FINE = 1 << 26  # a threshold is found to 2**-38
LEVELS = (0.5, 1.0, 2.0)
OUT = -9.0, 12.0  # so wide that clipping hides little of the loss
# What is lost at most on these tables, computed once more, from distribution functions alone.
KNOWN = {
    ("lomax", 0.5): 0.4353,
    ("lomax", 1.0): 0.9388,
    ("lomax", 2.0): 1.8998,
    ("t2", 0.5): 0.4448,
    ("t2", 1.0): 0.9405,
    ("t2", 2.0): 1.9347,
}


def first_word(release, sign, least, *, rising):
    """Smallest word whose answer is beyond a cell: above it where answers rise, else below."""
    low, high = 0, WORDS
    while high - low > FINE:
        middle = (low + high) // 2
        found = release(sign, middle)
        if (found > least) if rising else (found <= least):
            high = middle
        else:
            low = middle
    return high if high < WORDS or low > WORDS - 2 * FINE else WORDS


def law_of(release, cells):
    """Chance of each cell: the share of words, for either sign, that give it."""
    total = np.zeros(len(cells))
    for sign in (0, 1):
        rising = release(sign, 1) <= release(sign, WORDS - 2)
        below = []  # share of the words whose answer is at most the cell
        for cell in cells[:-1]:
            if rising:
                below.append(first_word(release, sign, cell, rising=True) / WORDS)
            else:
                below.append(1 - first_word(release, sign, cell, rising=False) / WORDS)
        total += np.diff(np.concatenate([[0.0], below, [1.0]])) / 2
    return total


def by_density(law, centre, scale, cells):
    """Chance of each cell by the distribution function of the noise."""
    edges = (np.array(cells[:-1]) + np.array(cells[1:])) / 2
    z = (edges - centre) / scale
    if law == "t2":
        below = (1 + z / np.sqrt(2 + z * z)) / 2
    else:
        far = (1 + np.abs(z)) ** -5.0 / 2
        below = np.where(z < 0, far, 1 - far)
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("law", ["lomax", "t2"])
def test_what_is_drawn_loses_epsilon_at_most_after_rounding(law, epsilon, monkeypatch):
    """All tables of three rows over four values, on a grid of a half; nearly all is lost."""
    monkeypatch.setattr(_heavy, "GRID_BITS", 5)
    s = hs.statistics.median(rows=3, low=0, high=3)
    mechanism = hs.Smooth(s, epsilon=epsilon, noise=law)
    cells = np.arange(OUT[0], OUT[1] + 0.5, 0.5).tolist()
    assert 2.0 ** noise.range_grid(*OUT) == 0.5
    exceeds = _heavy._student_exceeds if law == "t2" else _heavy._lomax_exceeds(5)
    laws = {}
    for table in itertools.combinations_with_replacement((0.0, 1.0, 2.0, 3.0), 3):
        rows = list(table)
        value = Fraction(s.value(rows))
        scale = Fraction(mechanism.factor) * Fraction(s.smooth_sensitivity(rows, mechanism.beta))

        def release(sign, word, value=value, scale=scale):
            return _heavy._release(Recorded([sign, word]), value, scale, exceeds, *OUT)

        laws[table] = law_of(release, cells)
        wanted = by_density(law, float(value), float(scale), cells)
        assert laws[table] == pytest.approx(wanted, abs=1e-9)
    worst = 0.0
    for one, other in itertools.combinations(laws, 2):
        if 3 - sum(min(one.count(v), other.count(v)) for v in set(one)) == 1:
            worst = max(worst, float(np.abs(np.log(laws[one] / laws[other])).max()))
    assert worst <= epsilon * (1 + 1e-9)
    assert worst == pytest.approx(KNOWN[law, epsilon], abs=1e-4)
