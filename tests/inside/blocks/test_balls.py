"""Vectors moved into a ball: their exact length, and how far two means are apart."""

from fractions import Fraction

import numpy as np
import pytest

from hushed.blocks._averaging import Mean, VectorMean


@pytest.mark.parametrize("dims", [1, 3, 50])
def test_no_clipped_vector_is_longer_than_the_radius(dims):
    """In exact arithmetic, whatever their size."""
    rng = np.random.default_rng(dims)
    ball = VectorMean((0.0,) * dims, 0.1, 1.0, 1e-6, 1)
    for size in (1e-300, 0.01, 0.1, 0.3, 1e5, 1e300):
        for _ in range(30):
            middle = ball.middle(rng.normal(size=(1, dims)) * size)
            assert sum(Fraction(x) ** 2 for x in middle.tolist()) <= Fraction(0.1) ** 2


def test_two_means_that_differ_in_one_answer_are_within_the_movement():
    """Also where the range is far from 0, and the middle is rounded."""
    rng = np.random.default_rng(1)
    for low in (0.0, 1e15):
        mean = Mean(low, low + 1, 1.0, 7)
        for _ in range(200):
            one = low + rng.random(7)
            other = np.r_[one[:6], rng.choice([low, low + 1, -np.inf, np.inf, np.nan])]
            apart = Fraction(mean._offset(one)) - Fraction(mean._offset(other))
            assert abs(apart) <= Fraction(mean.movement)
