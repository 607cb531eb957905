"""A run that is killed again and again finds what it would have found."""

import pytest
from benchmarks.journal import soak


@pytest.mark.slow
def test_kills_lose_nothing():
    """Signal 9 at random moments after something was kept, and the same bits at the end.

    `make soak` kills 200 times, of one process and of two.
    """
    assert soak(3, seed=7, pairs=20_000)
