"""Rows to change until a category is the mode, against rows that are moved one by one."""

import numpy as np
import pytest

from hushed.statistics._lengths import mode_lengths


def rows_to_win(counts, place, replace):
    """Add a row, and take one from the strongest rival, until none is ahead."""
    left = list(counts)

    def strongest():
        rivals = [r for r in range(len(left)) if r != place]
        return max(rivals, key=lambda r: (left[r], -r), default=place)

    moved = 0
    while (left[strongest()], -strongest()) > (left[place], -place):
        left[place] += 1
        if replace:
            left[strongest()] -= 1
        moved += 1
    return moved


@pytest.mark.parametrize("replace", [True, False])
def test_lengths_of_a_mode_are_those_of_moving_rows_one_by_one(replace):
    """Ties, empty categories, one alone, and many."""
    rng = np.random.default_rng(12)
    for size in [1, 2, 3, 5, 40] * 20:
        counts = rng.integers(0, rng.integers(1, 30), size)
        found = mode_lengths(counts, replace=replace)
        assert found.tolist() == [rows_to_win(counts, p, replace) for p in range(size)]
