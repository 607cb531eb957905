"""The stable mode: its exact loss on all small tables, at the delta that it promises."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import ParameterError

FALSE_ALARM = 1e-9
KEYS = ("a", "b", "c")


@cache
@cache
def exceeds(level, most):
    """Probability that two-sided geometric noise exceeds a whole number, by summing."""
    ks = np.arange(-2000, 2001)
    law = np.exp(-level * np.abs(ks))
    return float((law[ks > most] / law.sum()).sum())


def graph(private):
    """Counts of three categories and of other rows, modes, and how many rows tell two apart."""
    sizes = range(10) if private else (6,)
    counts = np.array(
        [
            (a, b, c, n - a - b - c)
            for n in sizes
            for a in range(n + 1)
            for b in range(n + 1 - a)
            for c in range(n + 1 - a - b)
            if n - a - b - c <= (1 if private else n)
        ]
    )
    modes = np.array([max(range(3), key=lambda key: (n[key], -key)) for n in counts.tolist()])
    if private:
        return counts, modes, np.abs(counts[:, None] - counts[None]).sum(axis=2)
    return counts, modes, 6 - np.minimum(counts[:, None], counts[None]).sum(axis=2)


def rows_of(counts):
    return [key for key, n in zip((*KEYS, "?"), counts.tolist(), strict=True) for _ in range(n)]


@pytest.mark.parametrize("private", [False, True])
def test_the_distance_is_that_of_a_search(private):
    """Fewest rows to a table with another mode, less one; ties go to the first."""
    s = hs.statistics.mode(KEYS, rows=None if private else 6)
    counts, modes, apart = graph(private)
    compared = 0
    for i, each in enumerate(counts):
        if each.sum() <= (4 if private else 6):  # from larger ones the search is cut off
            wanted = apart[i][modes != modes[i]].min() - 1
            assert s.distance(rows_of(each)) == wanted
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.5, 0.01), (2.0, 0.3)])
def test_delta_is_reached_on_small_tables_and_never_exceeded(private, epsilon, delta):
    """Between tables of two modes delta is lost whole; between others epsilon, and all of it."""
    s = hs.statistics.mode(KEYS, rows=None if private else 6)
    mechanism = hs.StableMode(s, epsilon=epsilon, delta=delta)
    bar = next(m for m in range(999) if exceeds(epsilon, m) <= delta)
    assert mechanism.threshold == bar
    counts, modes, apart = graph(private)
    chance = np.array([mechanism.chance_on(rows_of(each)) for each in counts])
    distance = [s.distance(rows_of(each)) for each in counts]
    assert chance == pytest.approx([exceeds(epsilon, bar - d) for d in distance], rel=1e-9)
    slack, pure = 0.0, 0.0
    for i, j in zip(*np.nonzero(apart == 1), strict=True):
        refused = max(0.0, (1 - chance[i]) - math.exp(epsilon) * (1 - chance[j]))
        told = chance[i] if modes[i] != modes[j] else 0.0
        if modes[i] == modes[j]:
            told = max(0.0, chance[i] - math.exp(epsilon) * chance[j])
            pure = max(pure, abs(math.log(chance[i] / chance[j])))
            if chance[i] < 0.999:  # nearer to 1 the doubles are too few
                pure = max(pure, abs(math.log((1 - chance[i]) / (1 - chance[j]))))
        slack = max(slack, refused + told)
    assert slack == pytest.approx(exceeds(epsilon, bar), rel=1e-9)
    assert slack <= delta
    assert pure <= epsilon * (1 + 1e-9)
    assert pure == pytest.approx(epsilon, rel=1e-9) or bar == 0


@pytest.mark.slow
def test_a_category_is_told_as_often_as_the_noise_says():
    """And it is the most frequent one; false alarm 1e-9."""
    s = hs.statistics.mode(KEYS)
    mechanism = hs.StableMode(s, epsilon=0.5, delta=0.01)
    rows = ["b"] * 14 + ["a"] * 4
    chance = mechanism.chance_on(rows)
    assert 0.2 < chance < 0.9
    drawn = [mechanism.draw(rows) for _ in range(4000)]
    assert set(drawn) == {"b", None}
    assert stats.binomtest(drawn.count("b"), 4000, chance).pvalue > FALSE_ALARM


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_the_accuracy_is_the_lead_that_is_rarely_refused(beta):
    """At that distance the chance of a refusal is at most beta, and one row less is not enough."""
    mechanism = hs.StableMode(hs.statistics.mode(KEYS), epsilon=1.0, delta=1e-6)
    needed = int(mechanism.accuracy(beta))
    assert mechanism.chance_on(["a"] * needed) >= 1 - beta
    assert needed == mechanism.threshold + 1 or mechanism.chance_on(["a"] * (needed - 1)) < 1 - beta


def test_many_categories_cost_no_rows():
    """The exponential mechanism errs among 5,000 categories where the lead is 40 rows."""
    keys = [f"k{i}" for i in range(5000)]
    s = hs.statistics.mode(keys)
    rows = ["k7"] * 41
    stable = hs.StableMode(s, epsilon=0.5, delta=1e-6)
    assert stable.chance_on(rows) > 0.99
    likelihood = np.exp(-0.25 * np.asarray(s.lengths(rows, keys)))
    assert likelihood[7] / likelihood.sum() < 0.9


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": 1e-300}, r"2\*\*-50 or more"),
        ({"delta": 0}, "delta must lie in"),
        ({"delta": 1}, "delta must lie in"),
    ],
)
def test_bad_parameters_are_refused(options, text):
    """Each refusal says what is allowed."""
    with pytest.raises(ParameterError, match=text):
        hs.StableMode(hs.statistics.mode(KEYS), **{"epsilon": 1.0, "delta": 1e-6} | options)


def test_what_is_no_mode_is_refused():
    """A statistic of numbers has mechanisms of its own; a subclass may compute anything."""

    class Own(hs.statistics.Mode):
        """One that computes something else."""

    for other in (hs.statistics.median(low=0, high=1), Own(categories=["a", "b"])):
        with pytest.raises(ParameterError, match="StableMode takes"):
            hs.StableMode(other, epsilon=1.0, delta=1e-6)
