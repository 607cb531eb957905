"""Averages over blocks by a function that takes many blocks at once."""

import math

import numpy as np
import pytest

import hushed as hs
from hushed.errors import BadFunction, ParameterError

UNIT = hs.populations.Uniform(low=0, high=1)


def largest(rows):
    return rows.max()


def largest_of_each(stack):
    return stack.max(axis=1)


def test_the_same_average_and_the_same_movement_as_block_by_block():
    """Same rows in the same blocks; movements of a maximum of 5 rows, a fourth of them."""
    table = np.random.default_rng(0).uniform(size=20)
    plain, batch = hs.Blockwise(largest, rows=5), hs.Blockwise(largest_of_each, rows=5, batch=True)
    assert batch(table[None]).tolist() == [plain(table)]
    options = {"rows": 20, "gamma": 0.1}
    one = hs.sample_sensitivity(plain, UNIT, **options)
    many = hs.sample_sensitivity(batch, UNIT, batch=True, **options)
    assert many.pairs == one.pairs
    assert many.value == pytest.approx(one.value, rel=0.5)
    assert many.value <= 0.25 * (1 + 2**-9)
    released = hs.release(batch, table, hs.Laplace(many, epsilon=1e6))
    assert released.value == pytest.approx(plain(table), abs=1e-4)
    assert hs.verify(released.certificate, batch).reproduced


def test_batches_are_said_in_both_places():
    """A function of stacks is none of tables, and the other way round."""
    for batch in (True, False):
        f = hs.Blockwise(largest_of_each if batch else largest, rows=5, batch=batch)
        with pytest.raises(ParameterError, match="in both"):
            hs.sample_sensitivity(f, UNIT, rows=20, gamma=0.1, batch=not batch)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_mean_is_its_average_over_blocks_of_one_row(symmetric):
    """So that a pair takes two rows, however long the table is; one row has no other order."""
    one = hs.Blockwise(lambda stack: stack[:, 0], rows=1, batch=True)
    s = hs.sample_sensitivity(
        one, UNIT, rows=100_000, gamma=0.05, batch=True, symmetric=symmetric, workers=1
    )
    assert s.value == pytest.approx(1e-5, rel=0.1)
    table = np.random.default_rng(0).uniform(size=100_000)
    released = hs.release(one, table, hs.Laplace(s, epsilon=1e6))
    assert released.value == pytest.approx(table.mean(), abs=1e-8)


@pytest.mark.parametrize("symmetric", [True, False])
def test_blocks_of_one_user(symmetric):
    """The total of a user with all rows is what the average moves by."""
    people = hs.populations.Users(UNIT, sizes={1: 0.5, 3: 0.5})
    total = hs.Blockwise(lambda rows: float(rows[:, 1].sum()), rows=1, user=0)
    s = hs.sample_sensitivity(
        total, people, rows=10, gamma=0.1, user=0, symmetric=symmetric, workers=1
    )
    assert 0.1 < s.value <= 0.3 * (1 + 2**-9)


@pytest.mark.parametrize(
    "function",
    [
        lambda part: float(np.mean(part)) if np.max(part) else math.nan,
        lambda part: float(np.mean(part)) if np.max(part) else math.log(0.0),
    ],
    ids=["NaN", "exception"],
)
def test_a_failure_of_one_block_is_told_as_what_it_may_be(function):
    """It need not be an exception; which of the two it was is withheld with its words."""
    average = hs.Blockwise(function, rows=5)
    box = hs.populations.Uniform(low=0, high=1)
    s = hs.sample_sensitivity(average, box, rows=20, gamma=0.05, symmetric=True)
    with pytest.raises(BadFunction, match="failed, or gave a part an answer that is no finite"):
        hs.release(average, np.zeros(20), hs.Laplace(s, epsilon=1.0))
