"""Lomax and Student noise: exact real numbers, rounded to a public grid."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.frequencies import pvalue_of_counts

from hushed import noise
from hushed.errors import ParameterError
from hushed.noise._heavy import _lomax_exceeds, _release, _student_exceeds

FALSE_ALARM = 1e-9
DRAWS = 8_000
WORD = 1 << 64


class Recorded:
    """Words written down in advance, then 1000... for ever."""

    def __init__(self, words):
        self.left = list(words)

    def word(self):
        return self.left.pop(0) if self.left else 1 << 63


def size_of(law, word):
    """Absolute value of the noise that a word and a half stand for, by its quantile function."""
    u = (mpmath.mpf(word) + mpmath.mpf(1) / 2) / WORD
    if law == "t2":  # u is the probability of a smaller one
        return mpmath.sqrt(2) * u / mpmath.sqrt(1 - u * u)
    return mpmath.power(u, -mpmath.mpf(1) / law) - 1


@pytest.mark.parametrize("law", [1, 2, 5, 20, "t2"])
def test_recorded_words_give_the_nearest_grid_point(law):
    """Against 400-digit arithmetic, for values and scales of every kind, and extreme words."""
    rng = np.random.default_rng(5)
    exceeds = _student_exceeds if law == "t2" else _lomax_exceeds(law)
    extreme = [0, 1, WORD - 1, WORD - 2, 1 << 63]
    low, high = -3.0, 1000.0
    step = Fraction(2) ** (9 - 45)
    inside = 0
    for trial in range(150):
        value = Fraction(float(rng.uniform(low, high))) / (3 if trial % 2 else 1)
        scale = Fraction(float(10 ** rng.uniform(-12, 3)))
        word = extreme[trial] if trial < 5 else int(rng.integers(WORD, dtype=np.uint64))
        sign = trial % 2
        found = _release(Recorded([sign, word]), value, scale, exceeds, low, high)
        with mpmath.workdps(400):
            moved = size_of(law, word) * scale.numerator / scale.denominator
            exact = mpmath.mpf(value.numerator) / value.denominator + (moved if sign else -moved)
            steps = mpmath.floor(exact * step.denominator / step.numerator + mpmath.mpf(1) / 2)
            inside += low < exact < high
            wanted = min(max(float(int(steps) * step), low), high) if abs(steps) < 1e30 else None
        if wanted is None:
            wanted = high if exact > 0 else low
        assert found == wanted
    assert inside > 75


@pytest.mark.slow
@pytest.mark.slow_cases("t2", "5")
@pytest.mark.parametrize("law", [2, 5, "t2"])
def test_draws_have_the_exact_law(law):
    """Counts of 40 equally likely cells, both signs; false alarm 1e-9."""
    far = 1e9
    if law == "t2":
        draws = [noise.add_student(0, scale=1.0, low=-far, high=far) for _ in range(DRAWS)]
        chance = [(1 + x / math.sqrt(2 + x * x)) / 2 for x in draws]
    else:
        draws = [noise.add_lomax(0, scale=1.0, tail=law, low=-far, high=far) for _ in range(DRAWS)]
        chance = [1 - (1 + x) ** -law / 2 if x > 0 else (1 - x) ** -law / 2 for x in draws]
    counts = np.bincount((np.array(chance) * 40).astype(int).clip(0, 39), minlength=40)
    assert pvalue_of_counts(counts, np.ones(40)) > FALSE_ALARM


def test_the_grid_does_not_depend_on_value_or_scale():
    """Releases are multiples of 2**-45 of the range, or its ends, whatever is private."""
    step = 2.0 ** noise.range_grid(0, 1)
    assert step == 2.0**-45
    for value, scale in ((0.5, 1e-9), (Fraction(1, 3), 1.0), (0.5 + 2.0**-53, 2.0**-60)):
        for _ in range(20):
            drawn = noise.add_lomax(value, scale=scale, tail=5, low=0, high=1)
            assert (drawn / step).is_integer()
            assert 0 <= drawn <= 1


def test_what_leaves_the_range_becomes_its_end():
    """With huge noise half of the draws are at either end; the ends need not be grid points."""
    low, high = 0.1, 0.7
    drawn = [noise.add_student(0.3, scale=1e12, low=low, high=high) for _ in range(400)]
    assert set(drawn) == {low, high}
    assert stats.binomtest(drawn.count(low), 400).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "call",
    [
        lambda: noise.add_lomax(0, scale=0, tail=5, low=0, high=1),
        lambda: noise.add_lomax(0, scale=math.inf, tail=5, low=0, high=1),
        lambda: noise.add_lomax(math.nan, scale=1, tail=5, low=0, high=1),
        lambda: noise.add_lomax(0, scale=1, tail=0, low=0, high=1),
        lambda: noise.add_lomax(0, scale=1, tail=1.5, low=0, high=1),
        lambda: noise.add_student(0, scale=1, low=1, high=1),
        lambda: noise.add_student(0, scale=1, low=0, high=math.inf),
    ],
)
def test_bad_parameters_are_refused(call):
    """Nothing is drawn."""
    with pytest.raises(ParameterError):
        call()
