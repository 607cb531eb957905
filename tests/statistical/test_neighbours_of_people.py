"""Promises for people of very unequal size, other neighbours: covered, and not one rank lower."""

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.populations import Uniform, Users

pytestmark = pytest.mark.slow

COSTS = Users(Uniform(low=0, high=1), sizes={1: 0.7, 2: 0.2, 30: 0.1})
N, FALSE_ALARM = 5, 1e-6
DRAWS = [30_000, pytest.param(190_000, marks=pytest.mark.soak)]  # 10,000 samplers at each gamma


def average(rows):
    """Moved far by a person with thirty rows, and hardly by most."""
    return rows[:, 1].sum() / len(rows)


def persons(rng, runs, count):
    """Totals and numbers of rows of the persons of many tables."""
    sizes = rng.choice([1, 2, 30], p=[0.7, 0.2, 0.1], size=(runs, count))
    owner = np.repeat(np.arange(runs * count), sizes.ravel())
    totals = np.bincount(owner, weights=rng.random(len(owner)))
    return totals.reshape(runs, count), sizes


def real(kind, rng, runs):
    """Movements of private tables, from totals and numbers of rows alone."""
    totals, sizes = persons(rng, runs, N + 3)

    def mean(*chosen):
        return sum(totals[:, c].sum(axis=1) for c in chosen) / sum(
            sizes[:, c].sum(axis=1) for c in chosen
        )

    base, new = list(range(N)), [N, N + 1, N + 2]
    if kind == "add-remove":
        return np.maximum(abs(mean(base) - mean(base, new[:1])), abs(mean(base) - mean(base[:-1])))
    return abs(mean(base) - mean(base[:2], new))


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(
    ("kind", "settings"), [("add-remove", {"neighbours": "add-remove"}), ("three", {"distance": 3})]
)
def test_people_are_covered_and_not_at_one_rank_lower(kind, settings, draws):
    """Failures of 10,000 samplers of 3, 3,333 of 9 and 1,578 of 19 are those of gamma, equally."""
    rng = np.random.default_rng(3)
    s = hs.sample_sensitivity(
        average,
        COSTS,
        rows=N,
        user=0,
        pairs=draws,
        gamma=0.25,
        workers=1,
        symmetric=True,
        **settings,
    )
    drawn = rng.permutation(s.draws)  # they are independent: in any order that does not see them
    for gamma, pairs in ((0.25, 3), (0.1, 9), (0.05, 19)):
        runs = draws // pairs
        kept = np.sort(drawn[: runs * pairs].reshape(runs, pairs), axis=1)
        moved = real(kind, rng, runs)
        failed, lower = (int((moved > kept[:, k]).sum()) for k in (pairs - 1, pairs - 2))
        assert stats.binom.cdf(failed, runs, gamma) > FALSE_ALARM
        assert stats.binom.sf(failed - 1, runs, gamma) > FALSE_ALARM
        assert stats.binom.sf(lower - 1, runs, gamma) < FALSE_ALARM
