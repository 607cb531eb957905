"""Statistics that know how far rows move them, against a search over all small tables."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadRows, HushedWarning, ParameterError
from hushed.sensitivity import global_sensitivity
from hushed.statistics._values import only_column

ROWS = [1, 2, 4, 7, 11, 16, 22]
KEYS = ("a", "b", "c")


def on_seven(make, *args):
    """Make a statistic of the seven reference rows."""
    return make(*args, rows=7, low=0, high=30)


# What is computed, written down anew: no formula of the code is used below.


def of_rank(rank):
    return lambda table: Fraction(sorted(table)[rank - 1])


def mean_of_ranks(dropped):
    def mean(table):
        kept = sorted(table)[dropped : len(table) - dropped]
        return Fraction(sum(kept), len(kept))

    return mean


def spread(table):
    ordered, n = sorted(table), len(table)
    return Fraction(ordered[-(-3 * n // 4) - 1] - ordered[-(-n // 4) - 1])


def first_mode(table):
    return max(range(3), key=lambda key: (table.count(key), -key))


@lru_cache(maxsize=8)
def all_tables(values, rows):
    """Give all tables of a size up to their order, and the rows in which each pair differs."""
    tables = list(combinations_with_replacement(values, rows))
    counts = np.array([[table.count(value) for value in values] for table in tables])
    shared = np.minimum(counts[:, None, :], counts[None, :, :]).sum(axis=2)
    return tables, rows - shared


def searched_moves(f, values, rows):
    """Local sensitivity of every table at every distance, by search."""
    tables, apart = all_tables(values, rows)
    answers = [f(table) for table in tables]
    gaps = np.array([[float(abs(a - b)) for b in answers] for a in answers])
    local = np.where(apart <= 1, gaps, 0).max(axis=1)
    moves = [np.where(apart <= k, local[None, :], 0).max(axis=1) for k in range(rows + 1)]
    return tables, np.array(moves).T


STATISTICS = [
    *(
        pytest.param(
            f"quantile({q}, rows={n}, low=LOW, high=HIGH)", of_rank(p), n, id=f"{p} of {n}"
        )
        for n, q, p in [
            (1, 0.5, 1), (4, 0.5, 2), (5, 0.5, 3), (5, 0, 1), (5, 1, 5), (6, 0.3, 2), (6, 0.75, 5)
        ]
    ),
    *(
        pytest.param(
            f"trimmed_mean({t}, rows={n}, low=LOW, high=HIGH)",
            mean_of_ranks(m),
            n,
            id=f"without {m} of {n}",
        )
        for n, t, m in [(3, 0, 0), (5, 0.2, 1), (6, 0.2, 1), (6, 0.34, 2)]
    ),
    *(
        pytest.param(
            f"interquartile_range(rows={n}, low=LOW, high=HIGH)", spread, n, id=f"spread of {n}"
        )
        for n in (2, 3, 4, 5, 6)
    ),
]  # fmt: skip


def made(text, low, high):
    """Make the statistic that a text says, for a range."""
    return eval(text, {**vars(hs.statistics), "LOW": low, "HIGH": high})


@pytest.mark.slow_cases("2 of 6", "5 of 6", "spread of 6", "without 1 of 6", "without 2 of 6")
@pytest.mark.parametrize(("text", "oracle", "rows"), STATISTICS)
def test_value_and_local_sensitivities_are_those_of_a_search(text, oracle, rows):
    """On all tables over five uneven values, at every distance."""
    values = (0, 1, 4, 9, 11)
    statistic = made(text, 0, 11)
    tables, moves = searched_moves(oracle, values, rows)
    for table, wanted in zip(tables, moves, strict=True):
        assert statistic.value(list(table)) == oracle(table)
        found = [statistic.local_sensitivity(list(table), k) for k in range(rows + 1)]
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=0)


@pytest.mark.parametrize("smoothing", ["1/10", "1/2", "8/5"])
@pytest.mark.parametrize(("text", "oracle", "rows"), STATISTICS)
def test_smooth_sensitivities_are_those_of_a_search(text, oracle, rows, smoothing):
    """The largest discounted movement, but for the floor; never below it, 2**-43 above at most."""
    values = (-3, 0, 2, 7)
    beta = Fraction(smoothing)
    statistic = made(text, -3, 7)
    tables, moves = searched_moves(oracle, values, rows)
    discount = np.exp(-float(beta) * np.arange(rows + 1))
    for table, moved in zip(tables, moves, strict=True):
        wanted = max((moved * discount).max(), 0)
        found = statistic.smooth_sensitivity(list(table), beta)
        assert found >= wanted * (1 - 1e-15)
        assert found <= max(wanted, 10 * 2.0**-45) * (1 + 2.0**-42)


@pytest.mark.parametrize(
    ("text", "oracle", "rows"), [each for each in STATISTICS if each.values[2] <= 5]
)
def test_lengths_are_those_of_a_search(text, oracle, rows):
    """Fewest rows in which a table with that answer differs, over all tables of whole numbers."""
    statistic = made(text, 0, 6)
    tables, apart = all_tables(tuple(range(7)), rows)
    answers = [oracle(table) for table in tables]
    low, high = statistic.span
    wanted = sorted({answer for answer in answers if low <= answer <= high})
    shown = [float(answer) for answer in wanted]
    where = [np.array([a == answer for a in answers]) for answer in wanted]
    for i, table in enumerate(tables):
        if len(tables) > 100 and i % 7:
            continue
        truth = [int(apart[i][mask].min()) for mask in where]
        kept = [k for k, x in enumerate(shown) if Fraction(x) == wanted[k]]
        found = statistic.lengths(list(table), shown)
        assert [found[k] for k in kept] == [truth[k] for k in kept]


def nearest_to(candidates, answer):
    """Give the candidate that is nearest; of two the lower one."""
    return min(sorted(candidates), key=lambda each: abs(Fraction(each) - answer))


@pytest.mark.parametrize(
    ("text", "oracle", "rows"), [each for each in STATISTICS if each.values[2] <= 5]
)
def test_lengths_to_the_nearest_candidate_are_those_of_a_search(text, oracle, rows):
    """Fewest rows before the answer is nearer to a candidate than to the others, or as near."""
    statistic = made(text, 0, 6)
    tables, apart = all_tables(tuple(range(7)), rows)
    candidates = [3.25, 0.5, 2.0, 5.5]
    chosen = np.array([nearest_to(candidates, oracle(table)) for table in tables])
    for i, table in enumerate(tables):
        if len(tables) > 100 and i % 7:
            continue
        wanted = [int(apart[i][chosen == each].min()) for each in candidates]
        found = statistic.lengths(list(table), candidates, nearest=True).tolist()
        assert found == wanted
        cut = statistic.lengths(list(table), candidates, nearest=True, most=2)
        assert np.minimum(cut, 2).tolist() == np.minimum(wanted, 2).tolist()


@pytest.mark.parametrize("q", ["0", "0.3", "0.5", "0.8", "1"])
def test_private_lengths_to_the_nearest_candidate_are_those_of_a_search(q):
    """Rows added and removed, through all tables of up to 8 rows, from those of up to 3."""
    share, candidates, values = Fraction(q), [0.5, 3.0], (0, 1, 2, 4)
    s = hs.statistics.quantile(float(q), low=0, high=4)
    tables = [t for n in range(9) for t in combinations_with_replacement(values, n)]
    counts = np.array([[t.count(each) for each in values] for t in tables])
    answers = [t[max(1, math.ceil(share * len(t))) - 1] if t else None for t in tables]
    chosen = np.array([9 if a is None else nearest_to(candidates, a) for a in answers])
    for i, table in enumerate(tables):
        if len(table) <= 3:
            steps = np.abs(counts - counts[i]).sum(axis=1)
            wanted = [int(steps[chosen == each].min()) for each in candidates]
            assert s.lengths(list(table), candidates, nearest=True).tolist() == wanted


@pytest.mark.parametrize(("text", "oracle", "rows"), STATISTICS)
def test_one_row_moves_no_length_by_more_than_1(text, oracle, rows):
    """Between all neighbours, for candidates that tables reach and others, cut short or not."""
    del oracle
    statistic = made(text, -3, 7)
    tables, apart = all_tables((-3, 0, 2, 7), rows)
    candidates = np.linspace(*statistic.span, 23)
    for most, nearest in ((None, False), (2, False), (None, True), (2, True)):
        found = np.array(
            [statistic.lengths(list(t), candidates, most=most, nearest=nearest) for t in tables]
        )
        for i, j in zip(*np.nonzero(apart == 1), strict=True):
            assert np.abs(found[i] - found[j]).max() <= 1


# Other sizes than those above, even and odd, over another range; each by its own name.
LARGER = [
    pytest.param(text, oracle, n, id=f"{text.split('(')[0]} of {n}")
    for n in (7, 8)
    for text, oracle in [
        (f"median(rows={n}, low=LOW, high=HIGH)", of_rank(4)),
        (f"minimum(rows={n}, low=LOW, high=HIGH)", of_rank(1)),
        (f"maximum(rows={n}, low=LOW, high=HIGH)", of_rank(n)),
        (f"quantile(0.9, rows={n}, low=LOW, high=HIGH)", of_rank(-(-9 * n // 10))),
        (f"trimmed_mean(0.25, rows={n}, low=LOW, high=HIGH)", mean_of_ranks(n // 4)),
        (f"interquartile_range(rows={n}, low=LOW, high=HIGH)", spread),
    ]
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "oracle", "rows"), LARGER)
def test_larger_tables_have_the_sensitivities_and_lengths_of_a_search(text, oracle, rows):
    """Local and smooth sensitivities, lengths, and that a row moves each by as much as it may."""
    low, high, beta = -2, 9 - rows, Fraction(3, 7)
    values, statistic = tuple(range(low, high + 1)), made(text, low, high)
    tables, moves = searched_moves(oracle, values, rows)
    _, apart = all_tables(values, rows)
    near = np.nonzero(apart == 1)
    discount = np.exp(-float(beta) * np.arange(rows + 1))
    answers = [oracle(table) for table in tables]
    wanted = sorted({a for a in answers if Fraction(float(a)) == a})
    closest = np.array([[apart[i][[a == w for a in answers]].min() for w in wanted]
                        for i in range(len(tables))])  # fmt: skip
    shown = [float(each) for each in wanted]
    bounds, lengths = [], []
    for table, moved, truth in zip(tables, moves, closest, strict=True):
        assert statistic.value(list(table)) == oracle(table)
        found = [statistic.local_sensitivity(list(table), k) for k in range(rows + 1)]
        np.testing.assert_allclose(found, moved, rtol=1e-14, atol=0)
        bounds.append(statistic.smooth_sensitivity(list(table), beta))
        assert bounds[-1] == pytest.approx(
            max((moved * discount).max(), (high - low) * 2.0**-45), rel=1e-12
        )
        lengths.append(statistic.lengths(list(table), shown))
        assert lengths[-1].tolist() == truth.tolist()
    logs, rough = (
        np.log(bounds),
        np.array([statistic.lengths(list(t), [0.4, 0.8]) for t in tables]),
    )
    assert np.abs(logs[near[0]] - logs[near[1]]).max() <= float(beta) + 2.0**-42
    for each in (np.array(lengths), rough):
        assert np.abs(each[near[0]] - each[near[1]]).max() == 1


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("a", "b"), ("a", "b", "c", "d")], ids=len)
def test_modes_of_eight_rows_need_as_many_rows_as_a_search_finds(keys):
    """Over two and four categories and one that does not count; a row moves each by 1 at most."""
    s = hs.statistics.mode(keys, rows=8)
    places = range(len(keys))
    tables, apart = all_tables((*places, len(keys)), 8)
    modes = np.array([max(places, key=lambda k: (t.count(k), -k)) for t in tables])
    found = np.array([s.lengths([(*keys, "?")[k] for k in t], keys) for t in tables])
    wanted = [[int(apart[i][modes == k].min()) for k in places] for i in range(len(tables))]
    assert found.tolist() == wanted
    one, other = np.nonzero(apart == 1)
    assert np.abs(found[one] - found[other]).max() == 1


def test_the_mode_of_a_public_number_of_rows_needs_as_many_rows_as_a_search_finds():
    """Replacing rows, over all tables of 6 with three categories and one that does not count."""
    s = hs.statistics.mode(KEYS, rows=6)
    tables, apart = all_tables((0, 1, 2, 3), 6)
    modes = np.array([first_mode(table) for table in tables])
    for i, table in enumerate(tables):
        named = [(*KEYS, "?")[place] for place in table]
        assert s.value(named) == KEYS[modes[i]]
        wanted = [int(apart[i][modes == key].min()) for key in range(3)]
        assert s.lengths(named, KEYS).tolist() == wanted


@pytest.mark.parametrize("rows", [4, None])
def test_one_row_moves_no_length_of_a_mode_by_more_than_1(rows):
    """Between all neighbours of up to 4 rows, with three categories and one that does not count."""
    s = hs.statistics.mode(KEYS, rows=rows)
    sizes = range(5) if rows is None else [rows]
    every = [n for n in product(range(5), repeat=4) if sum(n) in sizes]
    found = {
        n: s.lengths([k for k, m in zip((*KEYS, "?"), n, strict=True) for _ in range(m)], KEYS)
        for n in every
    }
    steps = 1 if rows is None else 2  # in counts
    pairs = [(a, b) for a in every for b in every if np.abs(np.subtract(a, b)).sum() == steps]
    moves = [np.abs(found[a] - found[b]).max() for a, b in pairs]
    assert set(moves) == {0, 1}


def test_the_mode_of_a_private_number_of_rows_needs_as_many_rows_as_a_search_finds():
    """Adding and removing rows, from all tables of up to 5 rows, through tables of up to 11."""
    s = hs.statistics.mode(KEYS)
    every = [(a, b, c) for a in range(12) for b in range(12 - a) for c in range(12 - a - b)]
    modes = np.array([max(range(3), key=lambda key: (n[key], -key)) for n in every])
    grid = np.array(every)
    for counts in (n for n in every if sum(n) <= 5):
        rows = [key for key, n in zip(KEYS, counts, strict=True) for _ in range(n)]
        steps = np.abs(grid - counts).sum(axis=1)
        wanted = [int(steps[modes == key].min()) for key in range(3)]
        assert s.lengths(rows, KEYS).tolist() == wanted


@pytest.mark.parametrize(
    "make", [list, np.array, lambda x: pd.DataFrame({"x": x}), pd.Series, pl.Series]
)
def test_categories_are_counted_in_every_container(make):
    """By value; what is none of them does not count, numbers of NumPy do."""
    s = hs.statistics.mode([3, 4], rows=5)
    cells = [np.int64(4), 4, 3, 5, 4] if make is list else [4, 4, 3, 5, 4]
    assert s.count(make(cells)).tolist() == [1, 3]
    flags = hs.statistics.mode([True, "a"])
    assert hs.InverseSensitivity(flags, epsilon=1.0).values == (True, "a")
    ones = hs.statistics.mode([1, "a"])
    assert type(hs.InverseSensitivity(ones, epsilon=1.0).values[0]) is int


QS = ("0", "0.02", "0.1", "0.25", "0.4", "0.5", "0.6", "0.75", "0.9", "0.98", "1")


@pytest.mark.parametrize("q", QS)
def test_a_quantile_of_a_private_number_of_rows_needs_as_many_rows_as_a_search_finds(q):
    """By the numbers of rows below, at and above a value: only they matter."""
    share, most = Fraction(q), 24
    every = np.array(
        [
            (a, b, c)
            for a in range(most + 1)
            for b in range(most + 1 - a)
            for c in range(most + 1 - a - b)
        ]
    )
    total = every.sum(axis=1)
    ranks = np.array([max(1, math.ceil(share * int(n))) for n in total])
    holds = (total > 0) & (every[:, 0] < ranks) & (ranks <= every[:, 0] + every[:, 1])
    goals = every[holds]
    s = hs.statistics.quantile(float(q), low=0, high=2)
    compared = 0
    for below, at, above in every[total <= 6].tolist():
        wanted = int(np.abs(goals - (below, at, above)).sum(axis=1).min())
        table = [0.0] * below + [1.0] * at + [2.0] * above
        found = int(s.lengths(table, [1.0])[0])
        if wanted <= most - (below + at + above):  # else a nearer goal may be beyond the search
            assert found == wanted, (below, at, above)
            compared += 1
        else:
            assert found <= wanted
    assert compared > 40


@pytest.mark.parametrize("q", QS)
def test_a_private_number_of_rows_has_a_smooth_bound(q):
    """All tables of up to 6 rows: at least what a row more or less moves, and smooth."""
    beta, share = Fraction(3, 10), Fraction(q)
    s = hs.statistics.quantile(float(q), low=0, high=9)
    tables = [t for n in range(7) for t in combinations_with_replacement((0, 2, 3, 9), n)]
    bound = {t: s.smooth_sensitivity(list(t), beta) for t in tables}
    value = {
        t: Fraction(t[max(1, math.ceil(share * len(t))) - 1]) if t else Fraction(0) for t in tables
    }
    pairs = 0
    for big in tables:
        assert s.value(list(big)) == value[big]
        for place in range(len(big)):
            small = big[:place] + big[place + 1 :]
            assert abs(value[big] - value[small]) <= min(bound[big], bound[small])
            assert abs(math.log(bound[big] / bound[small])) <= float(beta) + 2.0**-42
            pairs += 1
    assert pairs > 500


def test_the_median_of_a_private_number_of_rows_moves_as_far_as_a_search_finds():
    """Local sensitivity at every distance, and the smooth one; an empty table answers its low end.

    From all tables of up to 4 rows, through all of up to 9.
    """
    values, most, beta = (0, 2, 3, 9), 9, Fraction(3, 10)
    tables = [t for n in range(most + 1) for t in combinations_with_replacement(values, n)]
    counts = np.array([[t.count(each) for each in values] for t in tables])
    sizes = counts.sum(axis=1)
    answers = np.array([t[-(-len(t) // 2) - 1] if t else 0 for t in tables])
    apart = np.abs(counts[:, None] - counts[None]).sum(axis=2)
    moved = np.where(apart <= 1, np.abs(answers[:, None] - answers[None]), 0).max(axis=1)
    s = hs.statistics.median(low=0, high=9)
    for i, table in enumerate(tables):
        if sizes[i] > 4:
            continue
        inside = range(most - sizes[i])  # of the largest tables not all neighbours are there
        wanted = [moved[(apart[i] <= k) & (sizes < most)].max() for k in inside]
        assert [s.local_sensitivity(list(table), k) for k in inside] == wanted
        assert wanted[-1] == 9  # the whole range: farther ones add nothing
        smooth = max(w * math.exp(-0.3 * k) for k, w in enumerate(wanted))
        assert s.smooth_sensitivity(list(table), beta) == pytest.approx(smooth, rel=1e-12)


@pytest.mark.slow
def test_the_interquartile_range_of_a_private_number_of_rows_has_a_smooth_bound():
    """All tables of up to 9 rows: a row more or less moves both quartiles the same way."""
    beta = Fraction(1, 5)
    s = hs.statistics.interquartile_range(low=0, high=9)
    tables = [t for n in range(10) for t in combinations_with_replacement((0, 2, 3, 9), n)]
    bound = {t: s.smooth_sensitivity(list(t), beta) for t in tables}
    local = {t: s.local_sensitivity(list(t)) for t in tables}
    value = {t: spread(t) if t else Fraction(0) for t in tables}
    moves = 0
    for big in tables:
        assert s.value(list(big)) == value[big]
        for place in range(len(big)):
            small = big[:place] + big[place + 1 :]
            moved = abs(value[big] - value[small])
            assert moved <= min(local[big], local[small]) <= min(bound[big], bound[small])
            assert abs(math.log(bound[big] / bound[small])) <= float(beta) + 2.0**-42
            moves += moved > 0
    assert moves > 300


@pytest.mark.slow_cases("4", "5")
@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_one_row_moves_a_variance_far_on_every_table(rows):
    """So it is no statistic here: by an eighth of the global sensitivity or more.

    A search over the new row in twelfths finds the ends and every mean of the others.
    """
    low, high = 0, 4
    most = Fraction((rows - 1) * (high - low) ** 2, rows**2)

    def variance(table):
        return sum(x * x for x in table) / Fraction(rows) - (sum(table) / Fraction(rows)) ** 2

    found = []
    for table in combinations_with_replacement(range(low, high + 1), rows):
        searched, closed = Fraction(0), Fraction(0)
        for place, x in enumerate(table):
            others = table[:place] + table[place + 1 :]
            m = Fraction(sum(others), rows - 1)
            for v in range(12 * low, 12 * high + 1):
                gap = variance((*others, Fraction(v, 12))) - variance(table)
                searched = max(searched, abs(gap))
            for v in (low, high, m):
                gap = (v - m) ** 2 - (x - m) ** 2
                closed = max(closed, Fraction(rows - 1, rows**2) * abs(gap))
        assert searched == closed
        found.append(searched)
    assert max(found) == most
    assert most / 8 <= min(found) < most / 2


def test_reference_values():
    """Numbers that were derived and searched independently."""
    median = on_seven(hs.statistics.median)
    assert [median.local_sensitivity(ROWS, k) for k in range(8)] == [4, 9, 15, 23, 26, 28, 29, 30]
    for r, wanted in ((0.9, 17.0586), (0.8, 11.776), (0.5, 4.5)):
        found = median.smooth_sensitivity(ROWS, Fraction(-math.log(r)))
        assert found == pytest.approx(wanted, rel=1e-11)
    least, largest = on_seven(hs.statistics.minimum), on_seven(hs.statistics.maximum)
    assert [least.local_sensitivity(ROWS, k) for k in range(4)] == [1, 3, 6, 10]
    assert [largest.local_sensitivity(ROWS, k) for k in range(4)] == [8, 14, 19, 23]
    mean = on_seven(hs.statistics.trimmed_mean, 0.3)
    wanted = [4, 6, 26 / 3, 28 / 3, 29 / 3, 10]
    assert [mean.local_sensitivity(ROWS, k) for k in range(6)] == wanted
    candidates = [0, 2, 4, 5, 7, 8, 11, 22, 30]
    assert median.lengths(ROWS, candidates).tolist() == [4, 2, 1, 1, 0, 1, 1, 3, 4]


@pytest.mark.slow
def test_the_median_of_a_private_number_has_a_sharper_bound_than_all_windows():
    """On 100 incomes 0.62 to 0.82 of it for smoothings that are used, and 0.11 at 0.05."""
    rng, median = np.random.default_rng(2), hs.statistics.median(low=0, high=1e6)
    tables = [np.sort(rng.lognormal(math.log(45_000), 0.8, 100)) for _ in range(30)]
    places = np.arange(102)
    windows = places[None, :] - places[:, None]
    around = (places[:, None] <= 50) & (places[None, :] >= 50) & (windows > 0)
    for beta, least, most in (("0.3", 0.62, 0.82), ("0.1", 0.55, 0.82), ("0.05", 0.08, 0.14)):
        shares = []
        for rows in tables:
            ends = np.array([0.0, *rows, 1e6])
            wide = (ends[None, :] - ends[:, None]) * np.exp(-float(beta) * (windows - 1.0))
            found = median.smooth_sensitivity(rows, Fraction(beta))
            shares.append(found / wide[around].max())
        assert least < np.mean(shares) < most
        assert max(shares) <= 1 + 1e-9


@pytest.mark.slow
def test_far_windows_are_not_forgotten():
    """With little smoothing the whole range counts, also beyond the windows that are looked at."""
    rows = 40_000
    s = hs.statistics.median(rows=rows, low=0, high=1)
    halves = np.repeat([0.5], rows)
    for beta in (Fraction(1, 10**6), Fraction(1, 10**4)):
        # Half of the rows must change before the range lies open.
        wanted = max(0.5 * math.exp(-float(beta) * (rows / 2 - 1)), math.exp(-float(beta) * 2**14))
        found = s.smooth_sensitivity(halves, beta)
        assert wanted * (1 - 1e-9) <= found <= wanted * (1 + 1e-9)


def test_the_empty_table_has_the_whole_range_as_its_bound():
    """Rounded up: with these ends the nearest double is too small."""
    low, high = -(2.0**-60), 1.0 + 2.0**-52
    s = hs.statistics.median(low=low, high=high)
    assert Fraction(high - low) < Fraction(high) - Fraction(low)
    for bound in (s.smooth_sensitivity([], Fraction(1)), s.local_sensitivity([])):
        assert Fraction(bound) >= Fraction(high) - Fraction(low)


def test_equal_rows_still_get_noise():
    """Where a whole table is one value, the floor of 2**-45 of the range is left."""
    s = hs.statistics.median(rows=2000, low=0, high=8)
    assert s.smooth_sensitivity(np.ones(2000), Fraction(2)) >= 8 * 2.0**-45


def test_trimmed_means_are_exact():
    """The sum is a rational number, however badly doubles cancel."""
    s = hs.statistics.trimmed_mean(0, rows=4, low=-1e16, high=1e16)
    assert s.value([1e16, 1.0, -1e16, 2.0**-40]) == (1 + Fraction(1, 2**40)) / 4


@pytest.mark.parametrize(
    "rows",
    [
        [3, None, math.nan, "text", 10**400, -5],
        np.array([3, np.nan, np.nan, np.nan, np.inf, -5]),
        np.array([[3.0], [np.nan], [np.nan], [np.nan], [1e300], [-5]]),
        pd.DataFrame({"x": pd.array([3, None, None, None, 400, -5], dtype="Int64")}),
        pd.DataFrame({"x": [3, None, "text", [1], 1e9, -5]}),
        pl.DataFrame({"x": [3.0, None, math.nan, None, 1e300, -5.0]}),
    ],
    ids=["list", "array", "column", "nullable", "objects", "polars"],
)
@pytest.mark.filterwarnings("ignore:the column holds objects")
def test_each_row_is_moved_into_the_range_by_itself(rows):
    """What is not a number counts as the low end, in every container."""
    s = hs.statistics.median(rows=6, low=0, high=100)
    assert s.read(rows).tolist() == [0, 0, 0, 0, 3, 100]


TEXTS = {
    "numpy": np.array(["a", "b", "c"]),
    "pandas, str": pd.DataFrame({"x": ["a", "b", "c"]}, dtype="str"),
    "pandas, string": pd.DataFrame({"x": ["a", "b", "c"]}, dtype="string"),
    "pandas, categories": pd.DataFrame({"x": ["a", "b", "c"]}, dtype="category"),
    "pandas, categories of which one is a number": pd.DataFrame(
        {"x": pd.Series(["a", 1, "c"], dtype=object).astype("category")}
    ),
    "pandas, categories that are numbers": pd.DataFrame({"x": [3, 4, 5]}, dtype="category"),
    "pandas, periods": pd.DataFrame({"x": pd.period_range("2020", periods=3)}),
    "pandas, intervals": pd.DataFrame({"x": pd.interval_range(0, 3)}),
    "polars": pl.DataFrame({"x": ["a", "b", "c"]}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_column_of_texts_is_refused_by_its_type(name):
    """All would count as the low end, silently; the type of a column is public."""
    with pytest.raises(BadRows, match="column of numbers"):
        hs.statistics.median(rows=3, low=0, high=9).value(TEXTS[name])


OBJECTS = {
    "numpy": np.array(["1", "2", "3"], dtype=object),
    "pandas": pd.DataFrame({"x": ["1", "2", "3"]}, dtype=object),
    "polars": pl.DataFrame({"x": pl.Series(["1", "2", "3"], dtype=pl.Object)}),
    "numbers": np.array([1, 2, 3], dtype=object),  # the same words: what it holds is private
}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_column_of_objects_is_warned_of_by_its_type(name):
    """Texts in it count as the low end; the warning is the same whatever it holds."""
    median = hs.statistics.median(rows=3, low=0, high=9)
    with pytest.warns(HushedWarning, match="counts as the low end of the range"):
        hs.release(median, OBJECTS[name], hs.Laplace(global_sensitivity(median), epsilon=1))
    with pytest.warns(HushedWarning, match="as within every bound"):
        hs.find_bound(only_column(OBJECTS[name]), epsilon=1.0)


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"x": [3, 4, 5]}, dtype="Int8"),
        pd.DataFrame({"x": [3, 4, "a"]}),
        pd.DataFrame({"x": [3, 4, 5]}, dtype="float32"),
        ["a", 4, 5],
    ],
    ids=["nullable", "objects", "floats", "list"],
)
@pytest.mark.filterwarnings("ignore:the column holds objects")
def test_a_column_that_may_hold_numbers_is_read(rows):
    """Also where a cell is a text: that it is one is private."""
    assert hs.statistics.median(rows=3, low=0, high=9).value(rows) in (3, 4)


def test_a_table_is_refused_by_its_public_size_and_types_only():
    """A private number of rows is never refused, nor a value in a list."""
    s = hs.statistics.median(rows=3, low=0, high=1)
    with pytest.raises(BadRows, match="for 3 rows, the table has 2"):
        s.value([1, 2])
    with pytest.raises(BadRows, match="one column"):
        s.value(np.ones((3, 2)))
    with pytest.raises(BadRows, match="column of numbers"):
        s.value(np.array(["a", "b", "c"]))
    for rows in ([], [1], [object()]):
        assert hs.statistics.median(low=0, high=1).value(rows) in (0, 1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: hs.statistics.quantile(1.5, low=0, high=1), "q must lie"),
        (lambda: hs.statistics.quantile("half", low=0, high=1), "q must be a number"),
        (
            lambda: hs.statistics.median(low=1, high=1),
            "high must be above the low end of the range, which is 1; got 1",
        ),
        (lambda: hs.statistics.median(low=0, high=math.inf), "finite"),
        (lambda: hs.statistics.median(rows=0, low=0, high=1), "rows must be"),
        (lambda: hs.statistics.median(low=0, high=1, unit="user"), "unit must be"),
        (lambda: hs.statistics.trimmed_mean(rows=None, low=0, high=1), "public number of rows"),
        (lambda: hs.statistics.mean(rows=None, low=0, high=1), "public number of rows"),
        (lambda: hs.statistics.trimmed_mean(0.5, rows=4, low=0, high=1), "nothing is left"),
        (lambda: hs.statistics.interquartile_range(rows=1, low=0, high=1), "one row"),
        (lambda: hs.statistics.mode(["a"]), "2 to 10000"),
        (lambda: hs.statistics.mode(["a", "a"]), "must all differ"),
        (lambda: hs.statistics.mode("abc"), "must be a list"),
        (lambda: hs.statistics.from_description({"kind": "sum"}), "no statistic"),
    ],
)
def test_bad_parameters_are_refused(call, text):
    """Each refusal says what is allowed."""
    with pytest.raises(ParameterError, match=text):
        call()


def test_a_description_makes_the_same_statistic():
    """As certificates need it."""
    for s in (
        hs.statistics.quantile(0.9, rows=7, low=0, high=1),
        hs.statistics.trimmed_mean(rows=7, low=0, high=1, unit="person"),
        hs.statistics.interquartile_range(low=-1, high=1),
        hs.statistics.mode(["a", 1, True][:2], rows=2),
    ):
        assert hs.statistics.from_description(s.description()) == s


def test_default_candidates_are_geometric_where_the_range_is_not_negative():
    """From end to end of the range; even where it is negative."""
    above, spacing = hs.statistics.median(low=1, high=1e6).candidates()
    assert spacing == "geometric"
    assert (above[0], above[-1], above.size) == (1, 1e6, 2000)
    np.testing.assert_allclose(np.diff(np.log(above)), math.log(1e6) / 1999, rtol=1e-9)
    zero, spacing = hs.statistics.median(low=0, high=50).candidates()
    assert spacing == "geometric"
    assert (zero[0], zero[1], zero[-1]) == (0, 5e-5, 50)
    even, spacing = hs.statistics.median(low=-1, high=1).candidates(101)
    assert spacing == "even"
    np.testing.assert_allclose(even, np.linspace(-1, 1, 101), atol=1e-15)


@pytest.mark.parametrize("shown", [
    "quantile(0.9, low=0, high=365)", "median(low=0, high=365)", "minimum(low=0, high=365)",
    "maximum(low=0, high=365)", "mean(rows=1000, low=0, high=365)",
    "trimmed_mean(0.05, rows=1000, low=0, high=365)", "interquartile_range(low=0, high=365)",
    "mode(['no', 'yes'])",
])  # fmt: skip
def test_a_statistic_without_its_range_is_told_how(shown):
    """The message shows a call, and that call works."""
    name = shown.split("(")[0]
    with pytest.raises(ParameterError) as caught:
        getattr(hs.statistics, name)()
    assert str(caught.value).startswith(f"{name} lacks ")
    assert shown in str(caught.value)
    assert eval(f"statistics.{shown}", {"statistics": hs.statistics}).kind


@pytest.mark.parametrize(
    "told",
    [{"q": 0.5, "low": 0, "high": 1, "rank": 1}, {"low": 0}, {"q": "a", "low": 0, "high": 1}],
)
def test_a_description_of_none_is_named_as_such(told):
    """And not as a call, which nobody has made."""
    with pytest.raises(ParameterError, match=r"^that describes no quantile: "):
        hs.statistics.from_description({"kind": "quantile"} | told)


def test_a_variance_is_told_why_it_is_not_there():
    """And what to use; a name that is no statistic is not there, as in any module."""
    with pytest.raises(AttributeError, match=r"no statistic variance: .*interquartile_range"):
        hs.statistics.variance  # noqa: B018
    assert not hasattr(hs.statistics, "modus")
