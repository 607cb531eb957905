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


def test_people_of_many_blocks_are_never_given_one_number():
    """A type may hold those of a block, and not of all: fewer blocks would be averaged."""

    def mean(rows):
        return float(rows[:, 1].mean())

    def draw(rng, count):
        return np.stack([np.arange(count), rng.random(count)], axis=1).astype("f2")

    blocks = hs.Blockwise(mean, rows=2, user=0)
    public = hs.populations.Simulator(draw)
    settings = {"rows": 4096, "gamma": 0.5, "calibration": "marginal", "user": 0}
    mechanism = hs.Laplace(hs.sample_sensitivity(blocks, public, **settings), epsilon=1.0)
    names = np.arange(1, 4097, dtype="u2").view("f2")  # all different, and small
    private = np.stack([names, np.ones(4096, dtype="f2")], axis=1)
    with pytest.raises(hs.errors.HushedError, match="cannot hold the places of so many users"):
        hs.release(blocks, private, mechanism)


@pytest.mark.parametrize("position", [0, np.int64(0)])
def test_a_position_of_any_integer_type_names_the_column(position):
    """It is written into certificates as a plain number."""
    s = hs.sample_sensitivity(
        count_sums, PEOPLE, rows=9, gamma=0.5, calibration="marginal", user=position
    )
    released = hs.release(
        count_sums, PEOPLE.draw(np.random.default_rng(2), 9), hs.Laplace(s, epsilon=1.0)
    )
    assert hs.verify(released.certificate, count_sums, population=PEOPLE).reproduced
