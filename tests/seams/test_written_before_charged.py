"""A certificate that cannot be written is found before the charge, not after the answer."""

import json

import numpy as np
import pytest

import hushed as hs
from hushed.releasing._stored import read_release

UNIT = hs.populations.Uniform(low=0, high=1)


@pytest.fixture
def books(tmp_path):
    made = hs.Ledger(f"sqlite:///{tmp_path}/books.db")
    made.open_budget("b", hs.Guarantee(epsilon=100.0, delta=1e-6, gamma=0.9))
    yield made
    made.close()


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_sizes_in_integers_of_numpy(integer, books):
    """The number of blocks was one of NumPy's, which JSON has no word for: charged, not stored."""
    f = hs.Blockwise(np.mean, rows=integer(10))
    s = hs.sample_sensitivity(f, UNIT, rows=integer(100), workers=1, pairs=integer(40))
    data = np.linspace(0, 1, 100)
    made = hs.release(f, data, hs.Laplace(s, epsilon=1.0), books, budget="b")
    assert read_release(books.answer("b", made.entry))[0] == made.value
    assert json.loads(made.certificate.to_json())["sampling"]["blocks"] == 10


def test_what_cannot_be_written_costs_nothing(books):
    """Whatever else it may be that JSON has no word for."""
    s = hs.sample_sensitivity(np.mean, UNIT, rows=20, workers=1, pairs=40)
    s.sampling.environment["cores"] = np.int64(2)
    before = books.balance("b")
    with pytest.raises(ValueError, match="serialize"):
        hs.release(np.mean, np.linspace(0, 1, 20), hs.Laplace(s, epsilon=1.0), books, budget="b")
    assert books.balance("b") == before
