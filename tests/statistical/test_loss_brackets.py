"""Brackets over the whole range of levels, releases and deltas; long."""

import math

import pytest

from hushed import privacy_loss

MAKERS = {
    "laplace": privacy_loss.laplace,
    "bounded range": privacy_loss.bounded_range,
    "randomised response": privacy_loss.randomised_response,
    "discrete laplace": lambda e: privacy_loss.discrete_laplace(1 / e, 3),
}
LEVELS = [1e-6, 1e-4, 1e-2, 0.3, 1.0, 5.0, 50.0]


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon0", LEVELS)
def test_bracket_is_narrow_everywhere(name, epsilon0):
    """From 2 to 1e5 releases, delta 1e-100 to 0.3: ordered and narrow.

    A third of all settings, so that every two values of name, epsilon, releases and delta meet.
    """
    single, place = MAKERS[name](epsilon0), list(MAKERS).index(name) + LEVELS.index(epsilon0)
    for i, releases in enumerate((2, 10, 300, 10_000, 100_000)):
        for j, delta in enumerate((1e-100, 1e-15, 1e-9, 1e-5, 1e-2, 0.3)):
            if (place + i + j) % 3 or (releases > 10_000 and delta < 1e-50):
                continue  # the largest grid is too coarse for a narrow bracket there
            bracket = single.compose(releases).epsilon_bracket(delta)
            assert 0 <= bracket.low <= bracket.high
            assert bracket.high <= releases * single.supremum * (1 + 1e-9)
            assert math.isfinite(bracket.high)
            limit = 2e-3 if delta < 1e-50 else 5e-4
            assert bracket.relative_gap < limit, (releases, delta, bracket)
