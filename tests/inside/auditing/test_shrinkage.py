"""Shares shrunk towards scores: rare events scatter less, counts overrule a wrong score."""

import numpy as np
import pytest
from scipy import stats

from hushed.auditing._scores import fit_slope
from hushed.auditing._selection import shrink_shares

RUNS, SHIFT = 20_000, 0.1


def shares_above(cuts, *sides):
    return tuple(1 - np.searchsorted(side, cuts) / len(side) for side in sides)


def normal_scores(rng, factor=1.0):
    """Sorted log ratios, up to a factor, of two normal laws a little apart."""
    sides = (np.sort(rng.normal(mean, 1, RUNS)) for mean in (SHIFT, 0))
    return tuple(factor * (SHIFT * x - SHIFT**2 / 2) for x in sides)


@pytest.mark.slow
def test_rare_events_scatter_less():
    """Root mean squared errors of log ratios of rare events over 40 repeats: 0.6 of raw ones."""
    rng = np.random.default_rng(11)
    at = np.array([2.5, 3.0])  # 140 and 30 of 20,000
    truth = stats.norm.logsf(at - SHIFT) - stats.norm.logsf(at)
    errors = {"raw": [], "shrunk": []}
    for _ in range(40):
        factor = rng.uniform(0.5, 2)  # a score need not be on scale
        ahead, behind = normal_scores(rng, factor)
        cuts = factor * (SHIFT * at - SHIFT**2 / 2)
        one, other = shares_above(cuts, ahead, behind)
        believed = shrink_shares(ahead, behind, cuts, (one, other))
        for name, share in (("raw", np.maximum(other, 0.5 / RUNS)), ("shrunk", believed)):
            errors[name].append(np.log(np.maximum(one, 0.5 / RUNS) / share) - truth)
    raw, got = (np.sqrt(np.mean(np.square(each), axis=0)) for each in errors.values())
    assert np.all(got < 0.6 * raw)


def test_counts_overrule_a_score_that_is_wrong():
    """Outputs that one table alone gives stand out, however little the score makes of them."""
    rng = np.random.default_rng(12)
    ahead, behind = normal_scores(rng)
    ahead = np.sort(np.append(ahead[200:], np.full(200, 1.0)))  # the score knows nothing of these
    one, other = shares_above(np.array([0.9]), ahead, behind)
    assert other[0] == 0
    believed = shrink_shares(ahead, behind, np.array([0.9]), (one, other))
    assert np.log(one[0] / believed[0]) > 4  # with 200 against none, half a count says 6


def test_a_cut_above_every_score_is_no_error():
    """Thresholds come from both tables; one may lie above all scores of the likelier one."""
    ahead, behind = (np.sort(np.random.default_rng(i).normal(size=100)) for i in (1, 2))
    cuts = np.array([ahead[-1], ahead[-1] + 1])
    assert np.all(
        np.isfinite(shrink_shares(ahead, behind, cuts, shares_above(cuts, ahead, behind)))
    )


def test_the_slope_is_that_of_a_logistic_regression():
    """Against maximum likelihood by a general optimiser with the same offset."""
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(13)
    guess = rng.normal(size=50)
    first, second = rng.poisson(30 * np.exp(0.4 * guess)), rng.poisson(30, 50)
    offset = np.log(first.sum() / second.sum())

    def loss(slope):
        odds = slope * guess + offset
        return float(first @ np.logaddexp(0, -odds) + second @ np.logaddexp(0, odds))

    best = minimize_scalar(loss, bounds=(0, 3), method="bounded", options={"xatol": 1e-9}).x
    assert abs(fit_slope(first, second, guess) - best) < 1e-6
