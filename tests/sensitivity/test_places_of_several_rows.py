"""Of several rows that change at once, a place is in more pairs than its share of the places."""

from itertools import combinations

import pytest

from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._remarks import count_places


@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("gamma", [0.05, 0.1, 0.2, 0.3, 0.5, 0.9])
def test_places_that_are_said_to_be_left_out_can_be(distance, gamma):
    """All pairs with one of them may fail together, and those with one more may not: counted."""
    rows = 10
    pairs = list(combinations(range(rows), distance))
    left = [sum(min(pair) < k for pair in pairs) / len(pairs) for k in range(rows + 1)]
    counted = max(k for k in range(rows + 1) if left[k] <= gamma + 1e-9)
    reach = Neighbourhood(rows=rows, distance=distance)
    assert count_places(reach, gamma, symmetric=False) == counted
