"""An added row has no old value: the ends of the range do not tell how far several numbers move."""

import numpy as np
import pytest

import hushed as hs

ENDS = hs.populations.Simulator(lambda rng, count: rng.integers(2, size=count) * 1.0, bounds=(0, 1))


def counts(rows):
    """How many rows lie below 0.6, and how many above 0.4: each goes one way with every cell."""
    return np.array([(rows < 0.6).sum(), (rows > 0.4).sum()], dtype=float)


def sample(function, **more):
    settings = {"rows": 6, "gamma": 0.5, "calibration": "marginal"} | more
    return hs.sample_sensitivity(
        function, ENDS, neighbours="add-remove", protect="table", **settings
    )


def test_the_ends_tell_too_little_of_an_added_row():
    """A row of 0.5 moves both numbers, and the ends of the range only one."""
    assert sample(counts, values=[0.0, 1.0]).value == 1.0
    assert np.abs(counts(np.array([0.0, 0.5])) - counts(np.array([0.0]))).sum() == 2.0


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_several_numbers_are_refused_under_add_remove(norm):
    """The promise is for any row within the range, and would not hold for 0.5."""
    with pytest.raises(hs.errors.ParameterError, match="or one is added"):
        sample(counts, monotone=True, norm=norm)


def test_one_number_and_the_sup_norm_are_covered_by_the_ends():
    """Every single number moves furthest at an end; replaced rows of one column come back to it."""
    assert sample(counts, monotone=True, norm="sup").value == 1.0
    assert sample(lambda rows: counts(rows)[0], monotone=True).value == 1.0
    settings = {"rows": 6, "gamma": 0.5, "calibration": "marginal"}
    replaced = hs.sample_sensitivity(counts, ENDS, protect="table", monotone=True, **settings)
    assert replaced.value == 2.0
