"""A population audit says how many pairs can be bad enough to be caught."""

import numpy as np
import pytest
from scipy import stats

import hushed as hs

UNIT = hs.populations.Uniform(low=0, high=1)


def judged(scale, count):
    return hs.audit(
        lambda rows, rng, size: rows.sum() + rng.laplace(scale=scale(rows), size=size),
        hs.PopulationPairs(population=UNIT, rows=5, count=count),
        claim=hs.Guarantee(epsilon=1.0, gamma=0.3),
        samples=600 * count,
        batch=True,
        bits=False,
        workers=1,
    )


def test_no_pair_caught_bounds_the_share_from_above():
    """With 12 pairs and none caught: 1 - 0.05^(1/12), over the probability of being caught."""
    found = judged(lambda rows: 2.0, 12)
    assert found.population.caught == 0
    assert found.population.share_high == pytest.approx((1 - 0.05 ** (1 / 12)) / 0.95)
    assert "at most a share 0.233 of all pairs" in found.explain()
    assert found.to_dict()["population"]["share_high"] == found.population.share_high


def test_pairs_that_are_caught_count():
    """A mechanism with next to no noise on most tables: the bound is that of Clopper-Pearson."""
    found = judged(lambda rows: 0.01 if np.max(rows) > 0.8 else 2.0, 12)
    caught = found.population.caught
    assert 3 <= caught < 12
    expected = min(1.0, stats.beta.ppf(0.95, caught + 1, 12 - caught) / 0.95)
    assert found.population.share_high == pytest.approx(expected)
    assert found.population.share_low < found.population.share_high
