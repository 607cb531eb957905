"""A run that is killed again and again finds what it would have found."""

import pytest
from benchmarks.journal import soak


@pytest.mark.slow
def test_twenty_kills_lose_nothing():
    """Signal 9 at random times, of one process and of two, and the same bits at the end."""
    assert soak(20, seed=7, pairs=20_000, longest=1.5)
