"""The gate numbers people in any array, however many there are and however narrow it is."""

import numpy as np
import pytest

import hushed as hs


def count_sums(rows):
    """Sum over people of their sums, each at most 2."""
    if not len(rows):
        return 0.0
    return float(np.minimum(np.bincount(rows[:, 0].astype(int), weights=rows[:, 1]), 2).sum())


BOX = hs.populations.Uniform(low=0, high=1)
PEOPLE = hs.populations.Users(BOX, sizes={1: 0.5, 2: 0.5})


@pytest.fixture(scope="module")
def sampled():
    """A sensitivity under which the number of people is private."""
    return hs.sample_sensitivity(
        count_sums,
        PEOPLE,
        rows=(200, 1100),
        gamma=0.5,
        calibration="marginal",
        neighbours="add-remove",
        user=0,
    )


@pytest.mark.parametrize(("dtype", "few", "many"), [("i1", 20, 200), ("f2", 20, 1100)])
def test_no_private_number_of_people_is_refused(sampled, dtype, few, many):
    """As the type is public, a refusal of many people only would tell their number."""
    mechanism = hs.Laplace(sampled, epsilon=1000.0)
    for count in (few, many):
        whose = np.arange(count) - count // 2  # all of them fit into the type
        rows = np.stack([whose, np.ones(count)], axis=1).astype(dtype)
        released = hs.release(count_sums, rows, mechanism)
        assert released.value == pytest.approx(count, abs=0.2)


@pytest.mark.parametrize("dtype", ["i1", "f2", "?", "U5"])
def test_a_law_of_people_in_an_array_that_holds_no_such_numbers_is_refused(dtype):
    """Else several people would be given one number, or one that is none."""
    law = hs.populations.Users(lambda rng: np.ones((1, 1), dtype=dtype))
    with pytest.raises(hs.errors.HushedError, match="users"):
        law.draw(np.random.default_rng(0), 3000)
