"""Propose-test-release: its exact loss on all small tables, at the delta that it promises."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import ParameterError

FALSE_ALARM = 1e-9
VALUES = (0, 2, 3, 9)


def median_of(table):
    return sorted(table)[-(-len(table) // 2) - 1] if table else 0


def mean_of_three(table):
    return sum(sorted(table)[1:4]) / 3


def spread_of(table):
    n, ordered = len(table), sorted(table)
    return ordered[-(-3 * n // 4) - 1] - ordered[-(-n // 4) - 1] if table else 0


# Statistic, the same written down anew, sizes of the tables, whether the number of rows is private.
CASES = {
    "median": (hs.statistics.median(rows=5, low=0, high=9), median_of, (5,), False),
    "mean": (hs.statistics.trimmed_mean(0.2, rows=5, low=0, high=9), mean_of_three, (5,), False),
    "spread": (hs.statistics.interquartile_range(rows=5, low=0, high=9), spread_of, (5,), False),
    "private median": (hs.statistics.median(low=0, high=9), median_of, range(7), True),
    "private spread": (hs.statistics.interquartile_range(low=0, high=9), spread_of, range(7), True),
}


def graph(sizes, private):
    """Tables, and how many rows must change from one to another."""
    tables = [t for n in sizes for t in combinations_with_replacement(VALUES, n)]
    counts = np.array([[t.count(each) for each in VALUES] for t in tables])
    if private:
        return tables, np.abs(counts[:, None] - counts[None]).sum(axis=2)
    return tables, sizes[0] - np.minimum(counts[:, None], counts[None]).sum(axis=2)


@cache
@cache
def exceeds(level, most):
    """Probability that two-sided geometric noise exceeds a whole number, by summing."""
    ks = np.arange(-2000, 2001)
    law = np.exp(-level * np.abs(ks))
    return float((law[ks > most] / law.sum()).sum())


def laplace_hockey_stick(epsilon, moved):
    """Divergence of Laplace noise whose centre moves by so many scales; any real epsilon."""
    if epsilon >= moved:
        return 0.0
    if epsilon <= -moved:
        return 1 - math.exp(epsilon)
    return 1 - math.exp((epsilon - moved) / 2)


def divergence(one, other, epsilon, scale):
    """Hockey-stick of (chance of an answer, exact answer) pairs: a refusal, or Laplace noise."""
    (p, f), (q, g) = one, other
    refused = max(0.0, (1 - p) - math.exp(epsilon) * (1 - q))
    shifted = epsilon - math.log(p / q)
    return refused + p * laplace_hockey_stick(shifted, abs(f - g) / scale)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bound", [0.4, 1.5, 2.5, 6.5])
@pytest.mark.parametrize(("epsilon", "split", "delta"), [(1.0, 0.5, 0.02), (2.0, 0.3, 0.001)])
def test_no_pair_of_small_tables_exceeds_epsilon_and_delta(name, bound, epsilon, split, delta):
    """The chance of an answer is that of the noise; with it the law of each table is known."""
    s, f, sizes, private = CASES[name]
    bound = bound / 3 if name == "mean" else bound
    mechanism = hs.ProposeTest(s, bound=bound, epsilon=epsilon, delta=delta, split=split)
    tables, apart = graph(sizes, private)
    level = epsilon * split
    bar = next(m for m in range(99) if exceeds(level, m) <= delta)
    assert mechanism.threshold == bar
    scale = bound / (epsilon * (1 - split))
    assert mechanism.scale == pytest.approx(scale, rel=1e-9)
    laws = []
    for table in tables:
        chance = mechanism.chance_on(list(table))
        assert chance == pytest.approx(
            exceeds(level, bar - s.distance(list(table), bound)), rel=1e-9
        )
        laws.append((chance, float(f(table))))
    pairs = zip(*np.nonzero(apart == 1), strict=True)
    worst = max(divergence(laws[i], laws[j], epsilon, scale) for i, j in pairs)
    assert worst <= delta
    if bound <= 0.4:  # larger movements are seen by the noise: nearly all of delta is lost
        assert worst > 0.9 * exceeds(level, bar)


@pytest.mark.parametrize("name", ["median", "mean"])
@pytest.mark.parametrize("bound", [0.9, 1.5, 2.5, 6.5])
def test_the_distance_is_that_of_a_search(name, bound):
    """Fewest rows to a table that one more row moves by more than the bound, over all tables."""
    s, f, sizes, private = CASES[name]
    bound = bound / 3 if name == "mean" else bound
    tables, apart = graph(sizes, private)
    answers = np.array([float(f(table)) for table in tables])
    moved = np.where(apart <= 1, np.abs(answers[:, None] - answers[None]), 0).max(axis=1)
    for i, table in enumerate(tables):
        assert s.distance(list(table), bound) == apart[i][moved > bound + 1e-9].min()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bound", [0.9, 2.5, 6.5])
def test_the_distance_moves_by_1_and_is_safe_where_it_is_not_0(name, bound):
    """Between all neighbours, in both relations."""
    s, f, sizes, private = CASES[name]
    bound = bound / 3 if name == "mean" else bound
    tables, apart = graph(sizes, private)
    found = [s.distance(list(table), bound) for table in tables]
    assert max(found) > 0
    for i, j in zip(*np.nonzero(apart == 1), strict=True):
        assert abs(found[i] - found[j]) <= 1
        if found[i] > 0:
            assert abs(f(tables[i]) - f(tables[j])) <= bound * (1 + 1e-12)


def test_a_movement_that_rounds_down_to_the_bound_is_covered():
    """The exact difference of two rows is above its double: the noise is for a little more."""
    low, high = 0.3, 1.0
    bound = high - low
    assert Fraction(high) - Fraction(low) > Fraction(bound)
    s = hs.statistics.median(rows=3, low=-10, high=10)
    assert s.local_sensitivity([low, low, high]) == bound  # which is not above the bound
    mechanism = hs.ProposeTest(s, bound=bound, epsilon=1.0, delta=1e-6)
    step = Fraction(2) ** mechanism.grid
    moved = (Fraction(high) - Fraction(low)) / step
    assert mechanism.noise_scale * Fraction(1, 2) >= math.floor(moved) + 1


def test_what_two_roundings_may_hide_of_a_mean_is_covered():
    """Local sensitivity is a difference, rounded, over a number of rows, rounded again."""
    s = hs.statistics.trimmed_mean(0.2, rows=5, low=0, high=9)
    mechanism = hs.ProposeTest(s, bound=math.nextafter(1.0, 0.0), epsilon=1.0, delta=1e-6)
    above = Fraction(mechanism.bound) * (1 + Fraction(1, 2**51)) / Fraction(2) ** mechanism.grid
    assert math.floor(above) > Fraction(mechanism.bound) / Fraction(2) ** mechanism.grid
    assert mechanism.noise_scale * Fraction(1, 2) >= math.floor(above) + 1


@pytest.mark.slow
def test_answers_and_refusals_have_their_laws():
    """The share of refusals, and the noise of answers; false alarm 1e-9."""
    s = hs.statistics.median(rows=40, low=0, high=100)
    rows = np.linspace(40, 60, 40)
    mechanism = hs.ProposeTest(s, bound=5.0, epsilon=1.0, delta=0.01)
    chance = mechanism.chance_on(rows)
    assert 0.3 < chance < 0.999
    drawn = [mechanism.draw(rows) for _ in range(4000)]
    answers = np.array([x for x in drawn if x is not None])
    assert stats.binomtest(answers.size, 4000, chance).pvalue > FALSE_ALARM
    inside = answers[(answers > 0) & (answers < 100)]
    law = stats.laplace(float(s.value(rows)), 10.0)
    low, high = law.cdf(0), law.cdf(100)
    uniform = (law.cdf(inside) - low) / (high - low)
    assert stats.kstest(uniform, "uniform").pvalue > FALSE_ALARM
    off = np.abs(answers - float(s.value(rows))) > mechanism.accuracy(0.3)
    assert (
        stats.binomtest(int(off.sum()), answers.size, 0.3, alternative="greater").pvalue
        > FALSE_ALARM
    )


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_enough_rows_are_rarely_refused(beta):
    """At the distance that is named the chance of a refusal is beta; one row less is not enough."""
    mechanism = hs.ProposeTest(
        hs.statistics.median(rows=2001, low=0, high=1), bound=0.1, epsilon=1.0, delta=1e-6
    )
    needed = mechanism.distance_needed(beta)
    assert exceeds(0.5, needed - mechanism.threshold - 1) <= beta
    assert needed == mechanism.threshold + 1 or (
        exceeds(0.5, needed - mechanism.threshold - 2) > beta
    )


def test_reference_thresholds():
    """Numbers that were derived independently, at delta = 1e-6."""
    s = hs.statistics.median(rows=101, low=0, high=1)
    found = [
        hs.ProposeTest(s, bound=0.5, epsilon=2 * each, delta=1e-6).threshold
        for each in (0.25, 0.5, 1.0, 2.0)
    ]
    assert found == [52, 26, 13, 6]
    test = hs.ProposeTest(s, bound=0.5, epsilon=2.0, delta=1e-6).test
    tails = [test.chance(13 - most) for most in (0, 3, 13)]
    assert tails == pytest.approx([0.26894142, 0.013389805, 6.078962e-07], rel=1e-7)


@pytest.mark.slow
def test_reference_refusals_on_incomes():
    """Of medians of 1,000 at a bound of 3,000 between 31 % and 41 % in other runs; here 39 %."""
    rng = np.random.default_rng(1)
    s = hs.statistics.median(rows=1000, low=0, high=1e6)
    tables = [rng.lognormal(math.log(45_000), 0.8, 1000) for _ in range(300)]
    near, wide = (hs.ProposeTest(s, bound=b, epsilon=1.0, delta=1e-6) for b in (3000, 10_000))
    found = np.mean([1 - near.chance_on(table) for table in tables])
    assert found == pytest.approx(0.39, abs=0.06)  # three standard errors
    assert np.mean([1 - wide.chance_on(table) for table in tables]) < 1e-6
    assert wide.accuracy(0.5) == pytest.approx(14_691, rel=0.1)  # in 600 releases
    assert near.accuracy(0.05) == pytest.approx(17_974, rel=1e-3)  # docs/worst-case.md


def test_epsilon_is_split_in_exact_decimals():
    """Of 0.3 a third is a tenth, and what is left two tenths: no double is between."""
    s = hs.statistics.median(rows=101, low=0, high=1)
    mechanism = hs.ProposeTest(s, bound=0.5, epsilon=0.3, delta=1e-6, split=0.4)
    assert mechanism.test.level == Fraction(12, 100)
    steps = math.floor(Fraction(1, 2) * (1 + Fraction(1, 2**50)) / Fraction(2) ** mechanism.grid)
    assert mechanism.noise_scale == (steps + 1) / Fraction(18, 100)


MEDIAN = hs.statistics.median(rows=5, low=0, high=9)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": 1e-300}, r"2\*\*-50 or more"),
        ({"epsilon": 1e-14, "split": 0.999}, "more noise than can be drawn"),
        ({"delta": 0}, "delta must lie in"),
        ({"delta": 1}, "delta must lie in"),
        ({"split": 1}, "split must lie in"),
        ({"bound": 0}, "bound must be"),
        ({"bound": 9}, "bound must be below what one row can move"),
        ({"bound": 1e-15}, "bound must be below what one row can move"),
    ],
)
def test_bad_parameters_are_refused(options, text):
    """Each refusal says what is allowed."""
    with pytest.raises(ParameterError, match=text):
        hs.ProposeTest(MEDIAN, **{"bound": 2.0, "epsilon": 1.0, "delta": 1e-6} | options)


def test_what_is_no_statistic_of_numbers_is_refused():
    """A mode has a test of its own."""
    for other in (np.median, hs.statistics.mode(["a", "b"])):
        with pytest.raises(ParameterError, match="takes a statistic of numbers"):
            hs.ProposeTest(other, bound=1.0, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="bound must be above 0"):
        MEDIAN.distance([1, 2, 3, 4, 5], 9.0)


def test_the_loss_is_that_of_epsilon_and_delta():
    """Nothing more is known of it."""
    mechanism = hs.ProposeTest(MEDIAN, bound=2.0, epsilon=1.0, delta=1e-6)
    assert mechanism.guarantee == hs.Guarantee(epsilon=1.0, delta=1e-6)
    assert 1e-6 <= mechanism.loss.delta(1.0) <= 1.0000001e-6
