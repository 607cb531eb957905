"""The exponential mechanism's draw: exact race, exact privacy, ends of the range."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.frequencies import pvalue_of_counts

from hushed.errors import ParameterError
from hushed.noise import select
from hushed.noise._selection import _exact_gap, _first, _gaps, _law, _select
from hushed.noise._thresholds import Uniform

WORD = 1 << 64
FALSE_ALARM = 1e-9


class Exhausted(Exception):
    """The recorded words are used up."""


class Recorded:
    """Words written down in advance."""

    def __init__(self, words: list[int]) -> None:
        self.left = list(words)

    def word(self) -> int:
        """Give the next word."""
        if not self.left:
            raise Exhausted
        return self.left.pop(0)

    def take(self, count: int) -> np.ndarray:
        """Give the next words."""
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


def race(words: list[int], penalties: list[Fraction], bits: int = 64) -> int:
    """Winner of the race in 200-digit arithmetic; every word is followed by 1000..."""
    with mpmath.workdps(200):
        keys = []
        for word, penalty in zip(words, penalties, strict=True):
            u = (mpmath.mpf(word) + mpmath.mpf(1) / 2) / (1 << bits)
            shift = mpmath.mpf(penalty.numerator) / penalty.denominator
            keys.append(mpmath.log(-mpmath.log1p(-u)) + shift)
        return min(range(len(keys)), key=lambda index: keys[index])


@pytest.mark.slow
def test_the_race_is_exact_over_all_words_of_a_reduced_width() -> None:
    """Over all pairs of 7-digit words, the decided share encloses the law tightly."""
    penalties = {0: Fraction(0), 1: Fraction(3, 4)}
    wins = ties = 0
    for first in range(128):
        for second in range(128):
            words = Recorded([])
            numbers = {0: Uniform(first, 7, words), 1: Uniform(second, 7, words)}
            try:
                wins += _first(numbers, penalties) == 0
            except Exhausted:
                ties += 1
    law = 1 / (1 + math.exp(-0.75))
    assert wins / 16384 <= law <= (wins + ties) / 16384
    assert ties / 16384 < 0.03


@pytest.mark.slow
def test_doubles_agree_with_high_precision_on_recorded_words() -> None:
    """Random and extreme words lead to the winner that 200-digit arithmetic names."""
    rng = np.random.default_rng(99)
    extreme = [2, 1 << 30, (1 << 34) + 2, WORD - (1 << 40), WORD - (1 << 48), WORD - 4]
    for _ in range(300):
        scores = rng.choice([0.0, 0.1, 1.0, -3.0, 700.0, -1e9], size=5)
        # The dropped lowest digit and the digits that follow are set to 1000... in the reference.
        words = [int(word) >> 1 << 1 for word in rng.integers(0, WORD, size=5, dtype=np.uint64)]
        if rng.random() < 0.5:
            words[int(rng.integers(5))] = extreme[int(rng.integers(len(extreme)))]
        exponent, rate = -45, Fraction(1, 1 << 45)
        penalties = [rate * _exact_gap(float(s), float(scores.max()), exponent) for s in scores]
        more = [1 << 63] * 60
        found = _select(Recorded(words + more), scores, exponent, rate)
        assert found == race([word >> 1 for word in words], penalties, bits=63)


@pytest.mark.parametrize(
    ("prefixes", "penalties"),
    [
        # So few digits that their continuation outweighs a penalty.
        ([1, 2], [Fraction(3, 5), Fraction(0)]),
        ([0, 3], [Fraction(1, 2), Fraction(0)]),
        # So near to 1 that the double of 1 - U is worthless.
        ([(1 << 63) - 2, 5829875402379186000], [Fraction(0), Fraction(3)]),
        ([(1 << 63) - 1, 5829875402379186000], [Fraction(0), Fraction(37, 10)]),
        # A penalty beyond all others.
        ([(1 << 62), 1], [Fraction(0), Fraction(2**70)]),
    ],
)
def test_extreme_words_are_left_to_exact_arithmetic(
    prefixes: list[int], penalties: list[Fraction]
) -> None:
    """Words for which the plain doubles would name the wrong winner."""
    scores = -np.array([float(penalty * 2**10) for penalty in penalties])
    rate = Fraction(1, 2**55)  # a step is 2**-45
    exact = [rate * _exact_gap(float(score), 0.0, -45) for score in scores]
    words = Recorded([prefix << 1 for prefix in prefixes] + [1 << 63] * 20)
    assert _select(words, scores, -45, rate) == race(prefixes, exact, bits=63)


def test_a_number_that_begins_with_ones_has_no_upper_bound_yet() -> None:
    """After 127 ones the candidate's key passes 4.4, and another one at 4.3 wins."""
    scores = -np.array([0.0, 4.3])
    prefixes = [(1 << 63) - 1, 5829875402379186000]  # -log(1 - u) of the second is 1
    words = Recorded([prefix << 1 for prefix in prefixes] + [WORD - 1] * 20)
    assert _select(words, scores, -45, Fraction(1, 2**45)) == 1


def test_a_near_tie_is_settled_by_further_words() -> None:
    """Two equal prefixes are decided by the words that follow."""
    prefix = (1 << 62) + 12345
    scores, rate = np.zeros(2), Fraction(1, 4)
    for low, winner in [([5, 9], 0), ([9, 5], 1)]:
        words = Recorded([prefix << 1, prefix << 1, *low])
        assert _select(words, scores, 0, rate) == winner
        assert not words.left


@pytest.mark.slow
@pytest.mark.slow_cases("scores0", "scores2")
@pytest.mark.parametrize("scores", [[0.0, 1.0, 2.0, 4.0], [5.0] * 6, [1e9, 1e9 + 0.5, 0.0]])
def test_the_winner_follows_the_law(scores: list[float]) -> None:
    """Counts of 6000 winners; false alarms 1e-9 each."""
    given_scores = np.array(scores)
    wins = np.bincount(
        [select(given_scores, width=2.0, epsilon=1.5) for _ in range(6000)], minlength=len(scores)
    )
    weights = np.exp(0.75 * (given_scores - given_scores.max()))
    expected = weights / weights.sum() * 6000
    kept = expected > 1e-6
    assert wins[~kept].sum() == 0
    assert pvalue_of_counts(wins[kept], expected[kept]) > FALSE_ALARM


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    scores=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6),
    moves=st.lists(st.floats(0, 1), min_size=6, max_size=6),
    shift=st.floats(-1e6, 1e6),
    width=st.floats(1e-9, 1e9),
)
def test_epsilon_holds_exactly_after_rounding(
    scores: list[float], moves: list[float], shift: float, width: float
) -> None:
    """For neighbours within the width, the exact law moves by at most exp(epsilon)."""
    other = [s + shift + move * width for s, move in zip(scores, moves, strict=False)]
    changes = [Fraction(b) - Fraction(a) for a, b in zip(scores, other, strict=True)]
    if max(changes) - min(changes) > Fraction(width) * (1 + Fraction(1, 1 << 49)):
        return
    exponent, rate = _law(width, 0.75)
    left = [_exact_gap(s, max(scores), exponent) for s in scores]
    right = [_exact_gap(s, max(other), exponent) for s in other]
    # With gap changes d_i, log-probabilities move by at most (max d - min d) * rate.
    moved = [b - a for a, b in zip(left, right, strict=True)]
    assert (max(moved) - min(moved)) * rate <= Fraction(3, 4)


def test_rounding_can_widen_the_change_by_nearly_two_steps() -> None:
    """A pair within the width that would break epsilon without the enlargement."""
    unit = 2.0**-52  # a 128th of a step
    width = 1 + 13 * unit
    left = [62 * unit, -62 * unit]
    right = [left[0] + 121 * unit + width, left[1] + 121 * unit]
    exponent, rate = _law(width, 1.0)
    change = [Fraction(b) - Fraction(a) for a, b in zip(left, right, strict=True)]
    assert change[0] - change[1] == Fraction(width)
    steps = [
        round(Fraction(b) * 2**45) - round(Fraction(a) * 2**45)
        for a, b in zip(left, right, strict=True)
    ]
    assert exponent == -45
    assert steps[0] - steps[1] == 2**45 + 2
    assert Fraction(steps[0] - steps[1], 1) > Fraction(width) * 2**45
    assert (steps[0] - steps[1]) * rate <= 1


@pytest.mark.slow
@given(
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    exponent=st.integers(-1119, 978),
)
@settings(max_examples=300, deadline=None)
def test_gaps_in_doubles_are_close_to_the_exact_ones(scores: list[float], exponent: int) -> None:
    """The double gap has a relative error of 2**-50 at most, or overflows where it must."""
    best = max(scores)
    found = _gaps(np.array(scores), best, exponent)
    for score, gap in zip(scores, found.tolist(), strict=True):
        true = _exact_gap(score, best, exponent)
        if math.isinf(gap):
            assert true > 1 << 1022
        else:
            assert abs(Fraction(gap) - true) <= Fraction(true, 1 << 50)


def test_extreme_scores_do_not_overflow() -> None:
    """The best candidate wins where the others are out of reach, at any magnitude."""
    assert select(np.array([-1e308, 1e308, 0.0]), width=1e-300, epsilon=1.0) == 1
    assert select(np.array([1e-300, 0.0]), width=5e-324, epsilon=1.0) == 0
    assert select(np.array([0.0, 1.0]), width=1.0, epsilon=1e308) == 1
    assert select(np.array([3.0]), width=1.0, epsilon=1.0) == 0
    many = np.zeros(100_000)
    many[77_777] = 100.0
    assert select(many, width=1.0, epsilon=1.0) == 77_777  # a chance loss: 4e-39


def test_bad_parameters_are_refused_without_a_score() -> None:
    """Shapes, infinite scores, widths and epsilons out of range; no score in the message."""
    for scores in (np.array([]), np.zeros((2, 2)), np.array([31337.0, np.inf])):
        with pytest.raises(ParameterError) as caught:
            select(scores, width=1.0, epsilon=1.0)
        assert "31337" not in str(caught.value)
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ParameterError, match="width"):
            select(np.zeros(2), width=bad, epsilon=1.0)
        with pytest.raises(ParameterError, match="epsilon"):
            select(np.zeros(2), width=1.0, epsilon=bad)
