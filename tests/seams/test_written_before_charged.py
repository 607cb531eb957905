"""A certificate that cannot be written is found before the charge, not after the answer."""

import json

import numpy as np
import pyarrow as pa
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


@pytest.fixture
def query(books):
    """Give a query, and what charges it."""
    limit = hs.Guarantee(epsilon=9.0, neighbours="add-remove")
    books.open_budget("rows", limit)
    return hs.table(pa.table({"x": [0.5] * 9})).count(), {"ledger": books, "budget": "rows"}


@pytest.mark.parametrize("beta", [np.float32(0.05), np.float16(0.05)])
def test_a_query_with_a_number_of_numpy(query, beta):
    """Its answer was charged, and could not be stored, at the second attempt neither."""
    table, account = query
    answer = table.release(epsilon=1.0, beta=beta, key="k", **account)
    assert table.release(epsilon=1.0, beta=beta, key="k", **account) == answer
    assert answer.level == 1 - float(beta)


def test_an_answer_of_a_query_that_cannot_be_written_costs_nothing(query, books, monkeypatch):
    """Whatever else it may be that JSON has no word for: an empty answer is written before."""
    table, account = query
    monkeypatch.setattr("hushed.tables._release.present_rows", lambda *_: {"count": {1}})
    with pytest.raises(TypeError, match="serializable"):
        table.release(epsilon=1.0, **account)
    assert books.balance("rows").entries == 0


def test_blocks_with_a_number_of_numpy():
    """What a certificate of blocks holds is plain: their chance of saying nothing, too."""
    blocks = hs.Blocks(np.linspace(0, 1, 9), epsilon=30.0, blocks=3, beta=np.float32(0.05))
    assert json.loads(json.dumps(blocks.beta)) == float(np.float32(0.05))
