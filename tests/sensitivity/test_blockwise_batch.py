"""Averages over blocks by a function that takes many blocks at once."""

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError

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
