"""Rounding and searches land on the side that their name says, whatever they are given."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushed._ground.numeric import (
    ARITHMETIC,
    COARSE,
    LIBRARY,
    SERIES,
    finite_above,
    first_true,
    first_true_near,
    first_whole,
    float_above,
    kept_to,
    last_true,
    last_true_near,
    last_whole,
    root_above,
    round_down,
    round_up,
)
from hushed.errors import ParameterError

LARGEST, SMALLEST = sys.float_info.max, 5e-324
MOST_CALLS = 2_300  # halvings from the largest double to the smallest, and the bits of one
POSITIVE = st.floats(min_value=SMALLEST, max_value=LARGEST)
THREE = st.tuples(POSITIVE, POSITIVE, POSITIVE)
EXACT = st.fractions() | st.builds(
    lambda digits, power: Fraction(digits) * Fraction(10) ** power,
    st.integers(-(10**30), 10**30),
    st.integers(-350, 330),
)


class Asked:
    """A condition that remembers where it was asked, and what it answered."""

    def __init__(self, holds):
        self.holds, self.answers = holds, {}

    def __call__(self, number):
        assert len(self.answers) < MOST_CALLS
        self.answers[number] = self.holds(number)
        return self.answers[number]


def wavering(seed):
    """A condition that is no step at all, but the same whenever it is asked."""
    return lambda number: hash((seed, number)) % 3 == 0


class TestRounding:
    @given(EXACT)
    @example(Fraction(10) ** 400)
    @example(-(Fraction(10) ** 400))
    @example(Fraction(1, 10**400))
    @example(Fraction(LARGEST) + 1)
    def test_fractions_become_the_nearest_double_of_their_side(self, exact):
        """Above is the smallest double that is not below."""
        above = float_above(exact)
        assert math.isinf(above) or Fraction(above) >= exact
        before = math.nextafter(above, -math.inf)
        assert before == -math.inf or Fraction(before) < exact

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_doubles_stay(self, value):
        """What is a double already is not moved."""
        assert float_above(Fraction(value)) == value

    def test_what_exceeds_every_double_is_refused_where_it_must_be_finite(self):
        """The largest double passes, and one more does not."""
        assert finite_above(Fraction(LARGEST)) == LARGEST
        with pytest.raises(ParameterError, match="rescale"):
            finite_above(Fraction(LARGEST) + 1)

    @given(st.integers(0, 10**30))
    @example(10**12)
    @example(2**104)
    def test_roots_are_exact_for_squares_and_above_otherwise(self, number):
        """Squared, the root is not below the number, and no more above it than it says."""
        root = root_above(number)
        assert (root - Fraction(1, 2**60)) ** 2 < number <= root**2 or root == number == 0
        assert root_above(number * number) == number

    @given(st.floats(min_value=0, max_value=LARGEST), st.sampled_from([0.0, 1.0, 4.0, 64.0]))
    @example(SMALLEST, 4.0)
    @example(0.0, 4.0)
    @example(LARGEST, 4.0)
    def test_steps_move_to_their_side(self, value, ulps):
        """Up is above by the wanted share, down below by it and never negative; 0 stays."""
        share = Fraction(ulps) * Fraction(1, 2**52)
        up, down = round_up(value, ulps), round_down(value, ulps)
        assert math.isinf(up) or Fraction(up) >= Fraction(value) * (1 + share * (1 - share))
        assert 0 <= Fraction(down) <= Fraction(value) * (1 - share * (1 - share))
        assert (up > value > down) or value == 0 == up == down
        assert round_up(value, ulps, ceiling=1.0) <= 1.0
        assert -down >= round_up(-value, ulps) >= -value

    @pytest.mark.parametrize(
        ("margin", "share"),
        [(ARITHMETIC, 1e-15), (LIBRARY, 1e-14), (SERIES, 1e-13), (COARSE, 1e-12)],
    )
    @given(value=st.floats(min_value=1e-290, max_value=1e300))
    def test_margins_hide_a_share_on_both_sides(self, margin, share, value):
        """What was computed too small by the share is no more, nor what was computed too large."""
        share = Fraction(share)
        assert Fraction(round_up(value, margin)) >= Fraction(value) * (1 + share)
        assert Fraction(round_down(value, margin)) <= Fraction(value) * (1 - share)
        assert Fraction(round_up(-value, margin)) >= -Fraction(value) * (1 - share)


class TestFirstAndLast:
    @given(THREE)
    @example((1.0, SMALLEST, LARGEST))
    @example((2 * SMALLEST, SMALLEST, 3 * SMALLEST))
    @example((LARGEST, 1.0, LARGEST))
    def test_neighbouring_doubles_are_told_apart(self, three):
        """The first true is the step itself, and the last true the double before it."""
        low, step, high = sorted(three)
        if low == step:
            return
        first = first_true(Asked(lambda x: x >= step), low, high)
        assert first == step
        last = last_true(Asked(lambda x: x < step), low, high)
        assert last == math.nextafter(step, 0.0)

    @given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.integers(), st.booleans())
    def test_a_wavering_condition_holds_where_the_search_ends(self, one, other, seed, tight):
        """Whatever the answers are, the end was found to hold, or was known to before."""
        tolerance = 0.0 if tight else 1e-9
        asked = Asked(wavering(seed))
        found = first_true(asked, one, other, tolerance=tolerance)
        assert found == other or asked.answers[found]
        asked = Asked(wavering(seed))
        found = last_true(asked, one, other, tolerance=tolerance)
        assert found == one or asked.answers[found]

    @given(THREE, st.sampled_from([1e-3, 1e-9]))
    def test_a_tolerance_bounds_what_is_lost(self, three, share):
        """Above the step by no more than the tolerance says, below it by no more."""
        low, step, high = sorted(three)
        if low == step:
            return
        first = first_true(Asked(lambda x: x >= step), low, high, tolerance=share)
        assert step <= first <= max(step * (1 + 2 * share), math.nextafter(step, math.inf))
        last = last_true(Asked(lambda x: x < step), low, high, tolerance=share)
        assert last < step
        assert last >= min(step * (1 - 2 * share), math.nextafter(step, 0.0))

    def test_an_absolute_tolerance_stops_at_zero(self):
        """A step at 0, between numbers of both signs, is found within it."""
        asked = Asked(lambda x: x >= 0)
        assert 0 <= first_true(asked, -700.0, 700.0, absolute=1e-9) <= 1e-9
        assert len(asked.answers) < 50

    def test_ends_may_be_infinite_swapped_or_equal(self):
        """An infinite end is kept where it was known; swapped ends search the other way."""
        assert first_true(Asked(lambda x: x > 3), 0.0, math.inf) == math.inf
        assert last_true(Asked(lambda x: x < 3), 0.0, math.inf) == 0.0
        assert first_true(Asked(lambda x: False), -math.inf, math.inf) == math.inf
        assert first_true(Asked(lambda x: x <= 3), 8.0, 0.0) == 3.0
        assert first_true(Asked(lambda x: False), 2.0, 2.0) == 2.0


class TestFromAGuess:
    @given(POSITIVE, POSITIVE)
    @example(SMALLEST, LARGEST)
    @example(LARGEST, SMALLEST)
    @example(SMALLEST, SMALLEST)
    @example(1.0, 1.0)
    def test_the_step_is_found_from_anywhere(self, step, guess):
        """Both searches end at the step, within as many questions as there are powers of two."""
        ends = {"least": SMALLEST, "most": LARGEST}
        assert first_true_near(Asked(lambda x: x >= step), guess, **ends) == step
        assert last_true_near(Asked(lambda x: x <= step), guess, **ends) == step

    @given(st.integers(), THREE)
    def test_wavering_conditions_hold_at_the_result(self, seed, three):
        """The result was asked for and held, or says that nothing did."""
        least, guess, most = sorted(three)
        asked = Asked(wavering(seed))
        found = first_true_near(asked, guess, least=least, most=most)
        assert (least <= found <= most and asked.answers[found]) or found == math.inf
        asked = Asked(wavering(seed))
        found = last_true_near(asked, guess, least=least, most=most)
        assert (least <= found <= most and asked.answers[found]) or found == 0.0

    @given(THREE)
    def test_limits_are_kept(self, three):
        """A guess outside the limits is no harm; nothing is asked beyond them."""
        least, guess, most = three[0], three[1], max(three[0], three[2])
        for search, end in ((first_true_near, math.inf), (last_true_near, 0.0)):
            for answer in (True, False):
                asked = Asked(lambda _, answer=answer: answer)
                found = search(asked, guess, least=least, most=most)
                assert all(least <= number <= most for number in asked.answers)
                wanted = least if search is first_true_near else most
                assert found == (wanted if answer else end)


class TestWholeNumbers:
    @given(st.integers(1, 10**12), st.integers(0, 10**6))
    def test_the_first_and_the_last_are_exact(self, step, more):
        """Every whole number is told from its neighbour, with a known end or without."""
        assert first_whole(Asked(lambda n: n >= step)) == step
        assert first_whole(Asked(lambda n: n >= step), known=step + more) == step
        assert last_whole(Asked(lambda n: n < step), most=step + more) == step - 1
        assert last_whole(Asked(lambda n: n < step + 10), most=step) == step

    @given(st.integers(), st.integers(1, 10**9))
    def test_wavering_conditions_hold_at_the_result(self, seed, most):
        """The number was asked for and held, or is the known one, or 0 for none."""
        asked = Asked(wavering(seed))
        found = first_whole(asked, known=most)
        assert found == most or asked.answers[found]
        asked = Asked(wavering(seed))
        found = last_whole(asked, most=most)
        assert found == 0 or (found <= most and asked.answers[found])
        assert all(number <= most for number in asked.answers)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_so_many_errors_are_kept_to_as_is_said(share):
    """Of 30, the 95th percentile of NumPy keeps 28: 93.3 %."""
    for count in range(1, 250):
        errors = np.random.default_rng(count).permutation(count).astype(float)
        kept = np.sum(errors <= kept_to(errors, share))
        assert Fraction(int(kept), count) >= Fraction(str(share)) > Fraction(int(kept) - 1, count)
