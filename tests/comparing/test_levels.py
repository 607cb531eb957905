"""The search for the smallest epsilon against a walk over all levels."""

import math
from collections import Counter

import pytest

from hushed.comparing._levels import first_level

# Written down anew: every epsilon of three digits from 0.001 to 99.9.
LADDER = [float(f"{digits}e{power}") for power in range(-5, 0) for digits in range(100, 1000)]
ROOTS = [1e-5, 0.001, 0.00327, 0.0999, 0.1, 0.31, 1.0, 1.005, 2.5, 37.7, 99.9, 1e4]

SHAPES = {
    "as 1/epsilon": lambda x: -x,
    "as its square": lambda x: -2 * x,
    "bent": lambda x: -x - 0.3 * x * abs(x),
    "in steps": lambda x: math.ceil(-3 * x) / 3,
    "refused below": lambda x: -x if x > 0.7 else 50.0,
}


def walked(excess):
    """First level that keeps to the error, by asking all."""
    return next((step for step in range(1, 4501) if excess(step) <= 0), None)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_level_is_the_first_of_a_walk(shape):
    """For errors that fall with epsilon, wherever they meet the one allowed."""
    found = []
    for root in ROOTS:

        def excess(step, root=root):
            return SHAPES[shape](math.log(LADDER[step - 1] / root))

        found.append(first_level(excess))
        assert found[-1] == walked(excess)
    assert None in found
    assert len(set(found)) > 8


def test_few_levels_are_asked_if_errors_fall_with_epsilon():
    """Each takes as long as all tables; halving the ladder asks 13."""
    asked = Counter()
    for root in ROOTS[2:-2]:

        def excess(step, root=root):
            asked[root] += 1
            return math.log(root / LADDER[step - 1])

        step = first_level(excess)
        assert LADDER[step - 2] < root <= LADDER[step - 1]
    assert max(asked.values()) <= 8


def test_where_errors_rise_again_the_level_below_is_too_low_still():
    """As of blocks, whose number changes with epsilon."""

    def excess(step):
        place = math.log(LADDER[step - 1])
        return 0.3 - place + math.sin(5 * place)

    found = first_level(excess)
    assert excess(found) <= 0 < excess(found - 1)
