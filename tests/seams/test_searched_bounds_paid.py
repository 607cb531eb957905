"""What a search for a bound may find is provided for before it is charged."""

import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.tables._release import plan_query

STARS = pa.table({"stars": [1, 2, 3, 4, 5] * 40, "paid": [0.5, 8.0, 3.0, 1.0] * 50})


@pytest.mark.slow_cases(
    "0.01-gaussian",
    "0.01-laplace",
    "0.1-gaussian",
    "0.1-laplace",
    "1.0-gaussian",
    "1.0-laplace",
    "10000.0-gaussian",
    "10000.0-laplace",
    "1e-06-gaussian",
)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-6, 0.01, 0.1, 1.0, 1e4])
def test_whatever_bound_is_found_has_its_noise(noise, epsilon):
    """A query that is not refused at first can be planned with each bound, near and far."""
    table = hs.table(STARS)
    query = table.sum("stars", low=0, high="search").variance("paid", low="search", high="search")
    terms = {"epsilon": epsilon, "delta": 1e-6 if noise == "gaussian" else 0.0, "noise_name": noise}
    try:
        plan_query(query.query, **terms)
    except ParameterError:
        assert epsilon < 1e-3
        return
    for search in query.query.searched:
        for bound in {*search.bounds[:2], *search.bounds[::4], *search.bounds[-2:]}:
            found = query.query.with_bounds({(search.output, search.side): bound})
            parts = plan_query(found, **terms).parts
            assert len(parts) == 4


@pytest.mark.slow
def test_a_sum_of_small_numbers_with_gaussian_noise_is_answered(ledger):
    """Ratings from 1 to 5, at a small epsilon: one charge, and an answer."""
    query = hs.table(STARS).sum("stars", low=0, high="search")
    answer = query.release(epsilon=0.1, delta=1e-6, noise="gaussian", ledger=ledger, budget="b")
    assert len(ledger.log) == 1
    assert answer.bounds["sum_stars"][0] == 0.0
