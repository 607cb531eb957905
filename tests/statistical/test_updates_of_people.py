"""People at every place, sampled by updates: covered at several gammas, and not one rank lower."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.sensitivity import choose_rank

pytestmark = pytest.mark.slow

USERS, FALSE_ALARM = 5, 1e-6
DRAWS = [30_000, pytest.param(190_000, marks=pytest.mark.soak)]  # 10,000 samplers at each gamma
LEVELS = [("0.05", 19), ("0.1", 9), ("0.25", 3)]
SIZES = {1: 0.7, 2: 0.2, 30: 0.1}  # very unequal
LAW = hs.populations.Users(hs.populations.Uniform(low=0, high=1), sizes=SIZES)
WEIGHTS = np.array([3.2, 0.2, 0.2, 0.2, 0.2])  # the first one counts more


def totals_of(rows):
    return np.bincount(rows[:, 0].astype(int), weights=rows[:, 1])


def weighted(rows):
    return float(totals_of(rows) @ WEIGHTS)


def update_weighted(answer, rows, places, new):
    return answer + WEIGHTS[places] * (totals_of(new) - totals_of(rows)[places])


def persons(rng, runs, count):
    """Totals of persons, drawn by plain code."""
    sizes = rng.choice(list(SIZES), p=list(SIZES.values()), size=runs * count)
    owner = np.repeat(np.arange(runs * count), sizes)
    return np.bincount(owner, weights=rng.random(len(owner))).reshape(runs, count)


def real(kind, rng, runs):
    """Movements of private tables, from the totals of old and new persons alone."""
    held = persons(rng, runs, USERS)
    new = persons(rng, runs, USERS if kind == "simultaneous" else 1)
    return np.max(np.abs(new - held) * WEIGHTS, axis=1)


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("kind", ["simultaneous", "worst place"])
def test_people_at_every_place_are_covered_and_not_at_one_rank_lower(kind, draws):
    """Samplers of 19, 9 and 3 tables fail as often as gamma says, and more often a rank lower."""
    reach = {"protect": kind} if kind == "simultaneous" else {"position": "worst"}
    s = hs.sample_sensitivity(
        weighted, LAW, rows=USERS, user=0, pairs=draws, update=update_weighted, workers=1, **reach
    )
    rng = np.random.default_rng(7)
    drawn = rng.permutation(s.draws)
    for gamma, pairs in LEVELS:
        runs = draws // pairs
        kept = np.sort(drawn[: runs * pairs].reshape(runs, pairs), axis=1)
        moved = real(kind, rng, runs)
        rank = choose_rank("marginal", gamma=Fraction(gamma), pairs=pairs).rank
        failed, lower = (int((moved > kept[:, rank - k]).sum()) for k in (1, 2))
        assert stats.binom.sf(failed - 1, runs, float(gamma)) > FALSE_ALARM
        assert stats.binom.cdf(failed, runs, float(gamma)) > FALSE_ALARM
        assert stats.binom.sf(lower - 1, runs, float(gamma)) < FALSE_ALARM
