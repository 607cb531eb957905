"""Inverse sensitivity: the exact law on small tables, and its loss on every pair of neighbours."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats
from tests.frequencies import pvalue_of_counts

import hushed as hs
from hushed import noise
from hushed.errors import ParameterError

FALSE_ALARM = 1e-9
VALUES = (0, 2, 3, 9)
KEYS = ("a", "b", "c")
MEDIAN = hs.statistics.median(rows=7, low=0, high=30)


def law_of(lengths, epsilon, prior=None):
    """Probabilities of the candidates, by the definition, without the rounding of the draw."""
    weights = np.exp(-epsilon * np.asarray(lengths) / 2) * (1 if prior is None else prior)
    return weights / weights.sum()


def lengths_on(mechanism, rows):
    """Rows that must change before each candidate is the answer, as a search confirms them."""
    if isinstance(mechanism.statistic, hs.statistics.Mode):
        return mechanism.statistic.lengths(list(rows), mechanism.values)
    left = mechanism.prior or [1] * len(mechanism.values)
    found = np.full(len(left), 10**6)
    kept = np.flatnonzero(left)
    candidates = np.array(mechanism.values)[kept]
    found[kept] = mechanism.statistic.lengths(list(rows), candidates, nearest=True)
    return found


def neighbours_of(tables, private):
    """Give all pairs of tables that one row tells apart."""
    if private:
        return [(t, t[:i] + t[i + 1 :]) for t in tables for i in range(len(t))]
    return [
        (t, tuple(sorted((*t[:i], *t[i + 1 :], new))))
        for t in tables
        for i in range(len(t))
        for new in sorted(set().union(*tables))
    ]


CASES = [
    (hs.statistics.median(rows=5, low=0, high=9), VALUES, False),
    (hs.statistics.maximum(rows=4, low=0, high=9), VALUES, False),
    (hs.statistics.trimmed_mean(0.2, rows=5, low=0, high=9), VALUES, False),
    (hs.statistics.interquartile_range(rows=5, low=0, high=9), VALUES, False),
    (hs.statistics.quantile(0.3, low=0, high=9), VALUES, True),
    (hs.statistics.minimum(low=0, high=9), VALUES, True),
    (hs.statistics.mode(KEYS, rows=6), KEYS, False),
    (hs.statistics.mode(KEYS), KEYS, True),
]
IDS = [
    "median",
    "maximum",
    "mean",
    "spread",
    "q private",
    "minimum private",
    "mode",
    "mode private",
]


@pytest.mark.parametrize(("statistic", "values", "private"), CASES, ids=IDS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_pair_of_small_tables_loses_more_than_epsilon(statistic, values, private, epsilon):
    """With even and uneven weights, at the rate that is drawn with; more than half is reached."""
    few = None if isinstance(statistic, hs.statistics.Mode) else np.linspace(0, 8.7, 19)
    sizes = range(6) if private else [statistic.rows]
    tables = [t for n in sizes for t in combinations_with_replacement(values, n)]
    rate = 2 / noise.selection_scale(width=2.0, epsilon=epsilon)[0]
    assert rate == pytest.approx(epsilon, rel=1e-12)
    mechanism = hs.InverseSensitivity(statistic, epsilon=epsilon, candidates=few)
    lengths = {t: lengths_on(mechanism, t) for t in tables}
    for prior in (None, np.arange(1, len(mechanism.values) + 1) ** 2.0):
        law = {t: np.log(law_of(lengths[t], rate, prior)) for t in tables}
        worst = max(np.abs(law[a] - law[b]).max() for a, b in neighbours_of(tables, private))
        assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


def test_the_whole_epsilon_can_be_lost():
    """One length rises, another falls, nearly all weight is on the first: no smaller promise."""
    s = hs.statistics.median(rows=11, low=0, high=9)
    here, there = [0] * 3 + [5] * 5 + [9] * 3, [0] * 2 + [5] * 5 + [9] * 4
    assert s.lengths(here, [0, 9]).tolist() == [3, 3]
    assert s.lengths(there, [0, 9]).tolist() == [4, 2]
    one, other = (law_of(s.lengths(rows, [0, 9]), 1.0, [1, 1e-9]) for rows in (here, there))
    assert np.abs(np.log(one / other)).max() == pytest.approx(1.0, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [None, "uneven"])
@pytest.mark.parametrize(("statistic", "values", "private"), CASES, ids=IDS)
def test_draws_have_the_exact_law(statistic, values, private, prior):
    """Counts on one table each; false alarm 1e-9."""
    mode = isinstance(statistic, hs.statistics.Mode)
    few = None if mode else np.linspace(0, 9, 7)
    count = 3 if mode else 7
    weights = None if prior is None else [float(mode), *range(1, count)]
    mechanism = hs.InverseSensitivity(statistic, epsilon=1.5, candidates=few, prior=weights)
    rows = list(values[:1]) * 4 + list(values[1:])
    rows = rows if private else rows[: statistic.rows]
    law = law_of(lengths_on(mechanism, rows), 1.5, weights)
    drawn = [mechanism.values.index(mechanism.draw(rows)) for _ in range(2000)]
    counts = np.bincount(drawn, minlength=count)
    likely = law > 0
    assert not counts[~likely].any()
    assert pvalue_of_counts(counts[likely], 2000 * law[likely]) > FALSE_ALARM


@pytest.mark.slow
def test_the_accuracy_is_kept():
    """The drawn value is explained by so many changed rows except with probability beta."""
    rows = np.arange(200.0)
    s = hs.statistics.median(rows=200, low=-500, high=500)
    mechanism = hs.InverseSensitivity(s, epsilon=1.0)
    bound, error = mechanism.accuracy(0.3), mechanism.error_on(rows, 0.3)
    drawn = [mechanism.draw(rows) for _ in range(1500)]
    away = dict(zip(mechanism.values, lengths_on(mechanism, rows), strict=True))
    astray = sum(away[x] > bound for x in drawn)
    assert stats.binomtest(int(astray), 1500, 0.3, alternative="greater").pvalue > FALSE_ALARM
    beyond = sum(abs(x - 99) > error for x in drawn)
    assert stats.binomtest(beyond, 1500, 0.3, alternative="greater").pvalue > FALSE_ALARM
    assert error < 60  # rows lie 1 apart, and bound is about 2 log(2000 / 0.3)


@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_error_on_a_public_table_is_the_smallest_that_is_kept(epsilon, beta):
    """By the law of the exponential mechanism on lengths: no smaller distance is exceeded less."""
    rows = np.random.default_rng(3).lognormal(3, 1, 150)
    s = hs.statistics.median(rows=150, low=0, high=500)
    mechanism = hs.InverseSensitivity(s, epsilon=epsilon)
    weights = np.exp(-np.array(lengths_on(mechanism, rows), dtype=float) * epsilon / 2)
    law = weights / weights.sum()
    far = np.abs(np.array(mechanism.values) - s.value(rows))
    error = mechanism.error_on(rows, beta)
    assert law[far > error].sum() <= beta < law[far >= error].sum() * 1.01


@pytest.mark.slow
def test_a_right_prior_helps_and_a_wrong_one_costs_no_privacy():
    """Log odds of the prior count 2 / epsilon rows each; the promise stays."""
    rows, values = [5.0] * 3, np.linspace(0, 9, 10)
    s = hs.statistics.median(rows=3, low=0, high=9)
    near, far = (np.exp(-2 * np.abs(values - x)) for x in (5, 1))
    plain = hs.InverseSensitivity(s, epsilon=0.5, candidates=values)
    right = hs.InverseSensitivity(s, epsilon=0.5, candidates=values, prior=near)
    wrong = hs.InverseSensitivity(s, epsilon=0.5, candidates=values, prior=far)
    assert right.guarantee == wrong.guarantee == plain.guarantee
    hits = [sum(m.draw(rows) == 5 for _ in range(800)) for m in (plain, right, wrong)]
    law = [law_of(s.lengths(rows, values), 0.5, p)[5] for p in (None, near, far)]
    for count, chance in zip(hits, law, strict=True):
        assert stats.binomtest(count, 800, chance).pvalue > FALSE_ALARM
    assert law[1] > 2 * law[0] > 2 * law[2]


SPIKES = {
    "ratings of 3, and candidates that miss it": (
        hs.statistics.median(rows=1000, low=1, high=5),
        np.repeat([1.0, 2, 3, 4, 5], [30, 20, 900, 30, 20]),
        np.linspace(1, 5, 100),
    ),
    "a cost of 99 nearly everywhere": (
        hs.statistics.median(low=1, high=1e4),
        np.repeat([99.0, 3000.0], [900, 100]),
        None,
    ),
    "a mean of which half is trimmed": (
        hs.statistics.trimmed_mean(0.1, rows=5000, low=0, high=1),
        np.full(5000, 0.25),
        None,
    ),
    "a spread of equal rows": (
        hs.statistics.interquartile_range(rows=400, low=0, high=50),
        np.repeat([10.0, 41.3], [200, 200]),
        None,
    ),
}


@pytest.mark.parametrize("name", SPIKES)
def test_rows_that_repeat_need_no_candidate_that_they_equal(name):
    """Hundreds of equal rows: the candidate nearest to them needs no change, and is drawn."""
    s, rows, candidates = SPIKES[name]
    mechanism = hs.InverseSensitivity(s, epsilon=1.0, candidates=candidates)
    exact, values = float(s.value(rows)), np.array(mechanism.values)
    assert exact not in values
    assert min(s.lengths(rows, values)) > 90
    nearest = values[np.argmin(np.abs(values - exact))]
    drawn = [mechanism.draw(rows) for _ in range(20)]
    assert drawn == [nearest] * 20  # the next one needs so many rows that nobody waits for it
    assert mechanism.error_on(rows) == abs(nearest - exact)


@pytest.mark.parametrize(("statistic", "values", "private"), CASES[:6], ids=IDS[:6])
def test_cut_lengths_move_by_1_at_most(statistic, values, private, monkeypatch):
    """They are cut at a public number, here within reach: over all pairs of neighbours."""
    monkeypatch.setattr("hushed.mechanisms._inverse._NEGLIGIBLE", 0.5)
    mechanism = hs.InverseSensitivity(statistic, epsilon=2.0, candidates=[0.1, 4.4, 4.5, 8.9])
    sizes = range(6) if private else [statistic.rows]
    tables = [t for n in sizes for t in combinations_with_replacement(values, n)]
    cut = {t: mechanism._lengths(list(t), np.arange(4)) for t in tables}
    whole = {t: lengths_on(mechanism, t) for t in tables}
    assert any((cut[t] < whole[t]).any() for t in tables)
    for one, other in neighbours_of(tables, private=private):
        assert np.abs(cut[one] - cut[other]).max() <= 1


def test_the_loss_is_of_bounded_range():
    """As for every exponential mechanism: better than pure epsilon when composed."""
    mechanism = hs.InverseSensitivity(MEDIAN, epsilon=1.0)
    assert mechanism.loss.delta(1.0) == 0
    whole = hs.Smooth(MEDIAN, epsilon=1.0).loss
    assert mechanism.loss.delta(0.5) < whole.delta(0.5)


def test_the_candidates_can_be_given():
    """In the order given, without a trace of the default ones."""
    mechanism = hs.InverseSensitivity(MEDIAN, epsilon=50.0, candidates=[22, 7, 1])
    assert mechanism.values == (22, 7, 1)
    assert mechanism.draw([1, 2, 4, 7, 11, 16, 22]) == 7
    assert mechanism.spacing == "given"
    assert hs.InverseSensitivity(MEDIAN, epsilon=1.0).spacing == "geometric"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": 1, "candidates": [1, 31]}, "must lie in"),
        ({"epsilon": 1, "candidates": []}, "one number or more"),
        ({"epsilon": 1, "candidates": [1, 1]}, "must all differ"),
        ({"epsilon": 1, "candidates": [1, math.nan]}, "must lie in"),
        ({"epsilon": 1, "candidates": [1, 2], "prior": [1]}, "a list of 2 numbers"),
        ({"epsilon": 1, "candidates": [1, 2], "prior": [0, 0]}, "one above 0"),
        ({"epsilon": 1, "candidates": [1, 2], "prior": [1, -1]}, "0 or more"),
        ({"epsilon": 1e-8, "candidates": [1, 2], "prior": [1, 1e-200]}, "too uneven"),
        ({"epsilon": 1, "candidates": [1, 2], "prior": [1, 5e-324]}, "1e-290 of the largest"),
        ({"epsilon": 1, "candidates": [1, 2], "prior": [1e300, 5e-324]}, "1e-290 of the largest"),
        ({"epsilon": 1e-100}, r"2\*\*-200 or more"),
        ({"epsilon": 1e-308, "candidates": [1, 2], "prior": [1, 2]}, r"2\*\*-200 or more"),
    ],
)
def test_bad_parameters_are_refused(options, text):
    """Each refusal says what is allowed."""
    with pytest.raises(ParameterError, match=text):
        hs.InverseSensitivity(MEDIAN, **options)


def test_a_search_that_would_take_minutes_is_refused_at_once():
    """Lengths of an interquartile range take the square of the rows that may change."""
    many = hs.statistics.interquartile_range(rows=10**6, low=0, high=1)
    with pytest.raises(ParameterError, match=r"epsilon must be 0\.0082"):
        hs.InverseSensitivity(many, epsilon=0.008)
    hs.InverseSensitivity(many, epsilon=0.009)
    few = hs.statistics.interquartile_range(rows=1000, low=0, high=1)
    assert 0 <= hs.InverseSensitivity(few, epsilon=0.001).draw(np.linspace(0, 1, 1000)) <= 1


def test_what_has_no_known_lengths_is_refused_at_once():
    """A private number of rows and an interquartile range, and what is no statistic."""
    with pytest.raises(ParameterError, match=r"public number of rows only; give rows=NUMBER"):
        hs.InverseSensitivity(hs.statistics.interquartile_range(low=0, high=1), epsilon=1.0)
    with pytest.raises(ParameterError, match="takes a statistic"):
        hs.InverseSensitivity(np.median, epsilon=1.0)
    with pytest.raises(ParameterError, match="leave candidates out"):
        hs.InverseSensitivity(hs.statistics.mode(KEYS), epsilon=1.0, candidates=[1.0])


def test_chances_on_public_rows_are_those_of_the_definition():
    """On every small table, with and without a prior; a candidate of weight 0 has none."""
    s = hs.statistics.median(rows=5, low=0, high=9)
    prior = (0, 1, 2, 5)
    for table in combinations_with_replacement(VALUES, 5):
        plain = hs.InverseSensitivity(s, epsilon=1.5, candidates=VALUES)
        wanted = law_of(lengths_on(plain, table), 1.5)
        assert plain.chances_on(list(table)) == pytest.approx(wanted, abs=1e-9)
        guessed = hs.InverseSensitivity(s, epsilon=1.5, candidates=VALUES, prior=prior)
        wanted = law_of(lengths_on(guessed, table), 1.5, np.array(prior) / 5)
        assert guessed.chances_on(list(table)) == pytest.approx(wanted, abs=1e-5)
        assert guessed.chances_on(list(table))[0] == 0
