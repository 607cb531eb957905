"""How long a sampling may take, told by a few calls: as many calls as are then made."""

import numpy as np
import pytest

import hushed as hs
from hushed.errors import RandomFunction, TooFewRows
from hushed.sensitivity._sampling import read_reach
from hushed.sensitivity._timing import expect_time

UNIT = hs.populations.Uniform(low=0, high=1)
PLAIN = {"neighbours": "replace-one", "distance": 1, "position": "random", "protect": "record"}


def expect(function, population=UNIT, symmetric=False, rows=20, **asked):
    reach = read_reach(function, rows, **PLAIN | asked, user=None, norm="l1", batch=False)
    known = {"calibration": "training-conditional", "gamma": 0.05, "pairs": None, "seed": 0}
    return expect_time(function, population, reach=reach, symmetric=symmetric, **known)


class Counting:
    """A mean that counts how often it is asked."""

    calls = 0

    def __call__(self, rows):
        Counting.calls += 1
        return float(np.mean(rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"neighbours": "add-remove", "rows": [20, 30], "symmetric": True},
    ],
    ids=str,
)
def test_about_as_many_calls_are_told_as_are_made(asked):
    """Within a third; a handful of calls are made to tell it."""
    Counting.calls = 0
    told = expect(Counting(), **asked)
    assert Counting.calls <= 4
    Counting.calls = 0
    sampled = hs.sample_sensitivity(Counting(), UNIT, **{"rows": 20, "gamma": 0.05} | asked)
    assert told.pairs == sampled.pairs
    assert 0.75 < told.calls / Counting.calls < 1.34


def test_time_grows_with_the_calls():
    """It is that of all calls, and of the tables that are drawn."""
    told = expect(lambda rows: float(np.mean(rows)))
    assert told.seconds > told.calls * told.seconds_per_call > 0


def test_what_cannot_be_sampled_is_refused():
    """Before the long run, in the words of the sampling."""
    with pytest.raises(RandomFunction):
        expect(lambda rows: np.random.default_rng().random())
    with pytest.raises(TooFewRows):
        expect(np.mean, hs.populations.PublicTable(np.arange(50.0)[:, None]))
