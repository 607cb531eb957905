"""Certified bounds from two counts, against exact sums and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from hushed.auditing import Renyi, ZeroConcentrated
from hushed.auditing._bounds import (
    Counts,
    JointTest,
    Rectangle,
    binomial_tail,
    clopper_pearson_high,
    clopper_pearson_low,
    renyi_divergence,
)
from hushed.auditing._goal import adapt_claim
from hushed.errors import ParameterError


def counts(x, n, y, m=None):
    return Counts(hits=x, samples=n, other_hits=y, other_samples=m or n)


@pytest.mark.parametrize(("hits", "samples"), [(0, 5), (3, 10), (10, 10), (4000, 100_000)])
def test_clopper_pearson_meets_its_definition(hits, samples):
    """At the bounds the tails of the binomial law are alpha, and never above."""
    low, high = (
        clopper_pearson_low(hits, samples, 0.025),
        clopper_pearson_high(hits, samples, 0.025),
    )
    assert stats.binom.sf(hits - 1, samples, low) <= 0.025 or hits == 0
    assert stats.binom.cdf(hits, samples, high) <= 0.025 or hits == samples
    if 0 < hits < samples:
        assert stats.binom.sf(hits - 1, samples, low) == pytest.approx(0.025, rel=1e-6)
        assert stats.binom.cdf(hits, samples, high) == pytest.approx(0.025, rel=1e-6)


def test_a_rectangle_splits_its_error():
    """Each of the two bounds is missed with exactly half of alpha, by the binomial's own tails."""
    box = Rectangle.from_counts(counts(30, 100, 10), 0.05)
    assert stats.binom.sf(29, 100, box.low) == pytest.approx(0.025, rel=1e-6)
    assert stats.binom.cdf(10, 100, box.other_high) == pytest.approx(0.025, rel=1e-6)


def test_tail_is_the_binomial_tail():
    """Tails agree with exact integer arithmetic, at the ends, too."""
    n, p = 12, 0.25
    exact = [
        sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))
        for k in range(n + 2)
    ]
    assert binomial_tail(np.arange(n + 2.0), n, p) == pytest.approx(exact, abs=1e-15)
    assert binomial_tail(np.array([-3.0]), n, p)[0] == 1


@pytest.mark.slow_cases(
    "joint-0.03-0.01-80-80",
    "joint-0.1-0.02-60-20",
    "joint-0.5-0.2-30-30",
    "joint-0.9-0.05-25-40",
    "rectangle-0.03-0.01-80-80",
)
@pytest.mark.parametrize(
    ("p", "q", "n", "m"),
    [(0.5, 0.2, 30, 30), (0.9, 0.05, 25, 40), (0.1, 0.02, 60, 20), (0.03, 0.01, 80, 80)],
)
@pytest.mark.parametrize("method", ["joint", "rectangle"])
def test_coverage_summed_exactly(p, q, n, m, method):
    """Over all counts, weighed exactly, any statement is wrong with chance at most alpha.

    Epsilon at two deltas and delta at two epsilons are all read off, and must hold together.
    """
    alpha, wrong = 0.1, 0.0
    for x in range(n + 1):
        for y in range(m + 1):
            weight = stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
            if weight < 1e-7:
                continue
            seen = counts(x, n, y, m)
            if method == "joint":
                test = JointTest(counts=seen, weight=p / q, alpha=alpha)
                # At the truth's own borders: rejecting there is what a wrong bound means.
                bad = any(
                    test.rejects(e, d)
                    for e, d in (
                        (math.log(p / q), 0.0),
                        (math.log((p - 0.01) / q), 0.01),
                        (0.5, p - math.exp(0.5) * q),
                    )
                    if d >= 0
                )
            else:
                box = Rectangle.from_counts(seen, alpha)
                bad = (
                    box.epsilon_low(0) > math.log(p / q)
                    or box.epsilon_low(0.01) > math.log((p - 0.01) / q)
                    or box.delta_low(0.5) > max(0, p - math.exp(0.5) * q)
                )
            wrong += weight * bad
    assert wrong <= alpha
    assert wrong > 0 or method == "rectangle"  # the joint test spends what it has


@pytest.mark.parametrize(("x", "n", "y", "m"), [(150, 200, 30, 200), (260, 300, 80, 250)])
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_p_values_are_those_summed_over_all_counts(x, n, y, m, alpha):
    """Never smaller than at any q of the interval, and little larger, on both sides of alpha.

    The count on the other table is summed in full, by the laws of scipy.
    """
    test = JointTest(counts=counts(x, n, y, m), weight=2.0, alpha=alpha)
    border = test.epsilon_low(0)
    every = np.arange(m + 1)
    needed = np.ceil(x + 2.0 * n / m * (every - y) - 1e-6)
    ends = (clopper_pearson_low(y, m, alpha / 40), clopper_pearson_high(y, m, alpha / 40))
    for epsilon in (border / 2, border, border + 0.02):
        exact = max(
            float(stats.binom.pmf(every, m, q) @ stats.binom.sf(needed - 1, n, p))
            for q in np.linspace(*ends, 40)
            for p in [min(1.0, math.exp(epsilon) * q)]
        )
        assert (exact + alpha / 20 > alpha) >= (epsilon > border)
        if epsilon <= border:
            assert exact + alpha / 20 <= test.p_value(epsilon, 0) <= alpha
    assert test.p_value(border, 0) == pytest.approx(alpha, rel=0.02)
    assert test.p_value(border + 0.02, 0) > alpha


def test_joint_test_sees_more_than_the_rectangle_and_no_more_than_the_ideal():
    """For frequent events the joint bound lies between the rectangle and the normal limit."""
    seen = counts(300_000, 6_000_000, 270_000)
    box = Rectangle.from_counts(seen, 0.05).epsilon_low(0)
    joint = JointTest(counts=seen, weight=1.1, alpha=0.05).epsilon_low(0)
    spread = math.sqrt(0.95 / 300_000 + 0.955 / 270_000)
    ideal = math.log(30 / 27) - 1.645 * spread
    assert box < joint <= ideal
    assert joint > ideal - 0.15 * 1.645 * spread


def test_bounds_are_monotone_in_the_counts():
    """A hit more never lowers a bound, a hit more on the other table never raises it."""
    for region in (
        lambda c: Rectangle.from_counts(c, 0.05),
        lambda c: JointTest(counts=c, weight=2.0, alpha=0.05),
    ):
        base = region(counts(60, 100, 20)).epsilon_low(0.01)
        assert region(counts(64, 100, 20)).epsilon_low(0.01) >= base
        assert region(counts(60, 100, 24)).epsilon_low(0.01) <= base


def test_nothing_is_certified_from_nothing():
    """No hits, or equal shares, give 0."""
    for c in (counts(0, 100, 0), counts(50, 100, 50)):
        for region in (Rectangle.from_counts(c, 0.05), JointTest(counts=c, weight=1.0, alpha=0.05)):
            assert region.epsilon_low(0) == 0
            assert region.delta_low(0) == 0
    assert Rectangle(low=0.9, other_high=0.1).delta_low(1e6) == 0


def test_renyi_divergence_of_coins():
    """Order 2 by hand; its limit at order 1 is Kullback and Leibler's."""
    p, q = 0.7, 0.2
    assert renyi_divergence(p, q, 2) == pytest.approx(math.log(p**2 / q + 0.3**2 / 0.8))
    limit = p * math.log(p / q) + 0.3 * math.log(0.3 / 0.8)
    assert renyi_divergence(p, q, 1 + 1e-7) == pytest.approx(limit, rel=1e-5)
    assert renyi_divergence(0.5, 0.0, 2) == math.inf


def test_claims_about_divergences_never_exceed_the_truth():
    """The true shares of a Gaussian's tail show at most its rho, and a good part of it."""
    rho = 0.125  # mean 0 against 1, standard deviation 2
    box = Rectangle(low=stats.norm.sf(0.5, 1, 2), other_high=stats.norm.sf(0.5, 0, 2))
    assert 0.6 * rho < adapt_claim(ZeroConcentrated(rho=rho)).certify(box).measured < rho
    assert adapt_claim(Renyi(order=3, epsilon=1)).certify(box).measured < 3 * rho


def test_a_joint_test_says_nothing_of_divergences():
    """It was inverted for (epsilon, delta) alone; a claim about divergences takes a rectangle."""
    seen = counts(30, 100, 10)
    region = JointTest(counts=seen, weight=1.0, alpha=0.05)
    claim = adapt_claim(ZeroConcentrated(rho=0.1))
    with pytest.raises(ParameterError, match="judged from a Rectangle"):
        claim.certify(region)
    assert claim.test(seen, 0.05, None) == Rectangle.from_counts(seen, 0.05)


@pytest.mark.parametrize("bad", [(-1, 5, 0), (6, 5, 0), (0, 0, 0), (1, 5, 6)])
def test_bad_counts_are_refused(bad):
    """Counts lie between 0 and the samples."""
    with pytest.raises(ParameterError, match="not counts"):
        counts(bad[0], bad[1], bad[2], bad[1])
