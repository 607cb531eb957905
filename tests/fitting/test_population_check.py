"""Does a population fit: size, power, what is caught, what is bounded, and what it costs."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import (
    BadRows,
    KeyInUse,
    Overspent,
    ParameterError,
    PrivateRowsAsPopulation,
)
from hushed.fitting import _public, _tests
from hushed.populations import Normal, PublicTable, Simulator, Uniform, Users

SURE = 1e6  # so much epsilon that there is no noise to speak of


def letters(rng, count):
    return rng.choice(["a", "b", "c", "d"], size=count)


LETTERS = Simulator(letters)
SLOW_NOISE = pytest.param(800, 0.004, marks=pytest.mark.slow)


@pytest.fixture
def crude(monkeypatch):
    """Public shares from few rows: the p-value is as exact, and a test takes no time."""
    monkeypatch.setattr(_public, "_FEW", 400)
    monkeypatch.setattr(_public, "_REFERENCE", 1)
    monkeypatch.setattr(_public, "_CHOSEN_FROM", 200)


def band(runs, share):
    """Numbers between which a binomial one lies but for one run of tests in a million."""
    return stats.binom.interval(1 - 1e-6, runs, share)


def rejections(runs, epsilon, population, private, **options):
    rng = np.random.default_rng(7)
    return sum(
        hs.check_population(
            private(rng), population, epsilon=epsilon, tables=19, seed=seed, **options
        ).verdict
        == "contradicted"
        for seed in range(runs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 50.0])
@pytest.mark.usefixtures("crude")
def test_the_size_in_many_runs(epsilon):
    """1 of 20, of 1,000 runs: under noise alone, both, and rows alone."""
    low, high = band(1000, 0.05)
    found = rejections(1000, epsilon, Normal(), lambda rng: rng.normal(size=40))
    assert low <= found <= high


@pytest.mark.slow
@pytest.mark.usefixtures("crude")
def test_the_size_with_a_public_table_that_is_cut_into_parts():
    """Tables that share no row are exchangeable with the private one: 1 of 20 at most."""
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(60):
        public = PublicTable(rng.normal(size=700))
        made = hs.check_population(rng.normal(size=30), public, epsilon=1.0, seed=seed)
        assert made.null == "disjoint"
        assert len(made.deviations) in (19, 20, 21)
        found += made.verdict == "contradicted"
    assert found <= band(60, 0.05)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "epsilon", "caught"),
    [
        pytest.param(1000, 0.1, 0.121, marks=pytest.mark.slow),
        pytest.param(1000, 1.0, 0.083, marks=pytest.mark.slow),
        (200, 0.5, 0.214),
    ],
)
def test_what_is_caught_is_what_an_independent_simulation_found(rows, epsilon, caught):
    """Figures of another program: quantile of the null, noise and sampling error added."""
    private = np.random.default_rng(5).normal(size=rows)
    found = []
    for seed in range(5):  # of one check the quantile has a standard error of 0.0016
        made = hs.check_population(private, Normal(), epsilon=epsilon, seed=seed)
        found.append(made.caught)
    assert np.mean(found) == pytest.approx(caught, abs=0.006)
    assert made.caught_chance == 0.925
    kept = dataclasses.replace(made, p_value=1.0)  # as one in 20 is contradicted
    assert f"{made.caught_chance:g} or more" in kept.explain()


@pytest.mark.slow
@pytest.mark.usefixtures("crude")
def test_a_deviation_of_the_size_that_is_caught_is_caught():
    """Of 120 private tables with a category that is off by so much, 92.5 % or more."""
    public = PublicTable(np.repeat(["a", "b"], [140, 260]), promise="table")
    rng = np.random.default_rng(11)
    first = hs.check_population(
        rng.choice(["a", "b"], p=[0.35, 0.65], size=100), public, epsilon=0.5, tables=99
    )
    share = 0.35 + first.caught + 0.02  # the public shares come from few rows
    assert share < 1
    found = sum(
        hs.check_population(
            rng.choice(["a", "b"], p=[share, 1 - share], size=100), public, epsilon=0.5, tables=99
        ).verdict
        == "contradicted"
        for _ in range(60)
    )
    assert found >= band(60, 0.925)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "epsilon"), [(8, SURE), pytest.param(800, 0.004, marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("crude")
def test_the_total_variation_is_bounded_from_below(rows, epsilon):
    """Where rows are few and where noise is large: the bound is above the truth 1 time in 20."""
    rng = np.random.default_rng(2)
    law = [0.4, 0.4, 0.1, 0.1]  # total variation 0.3 from four equal letters
    bounds = [
        hs.check_population(
            rng.choice(list("abcd"), p=law, size=rows),
            LETTERS,
            epsilon=epsilon,
            tables=19,
            seed=seed,
        ).tv_at_least
        for seed in range(60)
    ]
    assert sum(bound > 0.3 for bound in bounds) <= band(60, 0.05)[1]


def test_the_bound_of_the_total_variation_says_something():
    """With many rows it comes near the truth, 0.5, from below: no letter alone is off by that."""
    private = np.array(["a", "b"] * 2500)
    made = hs.check_population(private, LETTERS, epsilon=1.0, tables=19)
    assert 0.46 < made.tv_at_least <= 0.5
    assert made.confidence == 0.95
    assert "total variation at least 0." in made.explain()


@pytest.mark.slow
def test_a_replaced_row_moves_the_statistic_by_one_row_at_most():
    """All tables of three rows of numbers, texts, and both, and all their neighbours."""
    numbers, worst = [0.0, 0.5, math.nan, math.inf], 0
    both = ([0.0, 0.5, 9.0], ["a", "z"])
    for cells, texts in ((numbers, ["a"]), ([1.0], list("abz")), both):
        values = list(itertools.product(cells, texts))
        public = [(cell, text) for cell in (0.0, 0.25, 0.5, 1.0) for text in ("a", "b")]
        functions = _tests.choose_tests(public, "pairs")
        counts = functions.count(public[:5])
        for table in itertools.product(values, repeat=3):
            one = _public.largest_deviation(functions.count(list(table)), 3, counts, 5)
            for place, other in itertools.product(range(3), values):
                rows = [*table[:place], other, *table[place + 1 :]]
                two = _public.largest_deviation(functions.count(rows), 3, counts, 5)
                worst = max(worst, abs(one - two))
    assert worst == 5  # the number of public rows: what the noise is made for


@pytest.mark.usefixtures("crude")
def test_the_certificate_is_of_the_noise_that_was_added():
    """Laplace noise for the number of public rows, replaced rows, people if said so; verified."""
    private = np.random.default_rng(1).normal(size=100)
    made = hs.check_population(private, Normal(), epsilon=0.5, unit="person")
    assert made.guarantee == hs.Guarantee(epsilon=0.5)
    assert made.certificate.sensitivity == made.public_rows
    assert made.certificate.mechanism.scale == pytest.approx(made.public_rows / 0.5)
    assert made.certificate.person
    assert hs.verify(made.certificate).reproduced


@pytest.mark.usefixtures("crude")
def test_words_of_a_contradiction_without_a_lower_bound():
    """Nothing is said of a total variation of which nothing is known."""
    made = hs.check_population(np.full(12, 0.5), Normal(), epsilon=2.0)
    words = dataclasses.replace(made, p_value=0.01, tv_at_least=0.0).explain()
    assert words.startswith(
        "contradicted (p = 0.01; how large the total variation is remains open)"
    )
    words = dataclasses.replace(made, p_value=0.01, tv_at_least=0.1239).explain()
    assert words.startswith(
        "contradicted (p = 0.01, total variation at least 0.123 with confidence 0.95)"
    )
    words = dataclasses.replace(made, p_value=0.2, caught=1.0).explain()
    assert "no deviation would surely have been caught" in words


@pytest.mark.usefixtures("crude")
def test_the_noise_is_there():
    """Two checks of the same rows and tables differ, by about the scale that was stated."""
    private = np.random.default_rng(1).normal(size=100)
    found = [
        hs.check_population(private, Normal(), epsilon=0.2, tables=19).statistic for _ in range(40)
    ]
    spread = float(np.abs(np.array(found) - np.median(found)).mean())
    assert 0.4 < spread / (1 / (100 * 0.2)) < 2.2


@pytest.mark.slow
@pytest.mark.usefixtures("crude")
@pytest.mark.parametrize("make", [pd.DataFrame, pytest.param(pl.DataFrame, marks=pytest.mark.slow)])
def test_frames_with_numbers_texts_and_times(make):
    """A column that is off is found whatever it holds; one that fits is not."""
    days = np.datetime64("2020-01-01", "us") + np.arange(1000).astype("timedelta64[D]")

    def draw(rng, count):
        cells = {"age": rng.uniform(0, 90, count), "ward": rng.choice(["a", "b", "c"], count)}
        return make(cells | {"day": rng.choice(days, count), "ill": rng.random(count) < 0.5})

    rng = np.random.default_rng(8)
    fine = draw(rng, 300)
    assert (
        hs.check_population(fine, Simulator(draw), epsilon=5.0, tables=39).verdict
        == "not contradicted"
    )
    for name, cells in {
        "age": rng.uniform(30, 90, 300),
        "ward": rng.choice(["a", "b", "z"], 300),
        "day": rng.choice(days[500:], 300),
        "ill": rng.random(300) < 0.9,
    }.items():
        plain = {each: fine[each].to_numpy() for each in fine.columns}
        made = hs.check_population(
            make(plain | {name: cells}), Simulator(draw), epsilon=5.0, tables=39
        )
        assert made.verdict == "contradicted", name
        assert made.columns == ("age", "ward", "day", "ill")


@pytest.mark.usefixtures("crude")
def test_two_columns_that_fit_alone_and_not_together():
    """Products of two columns find what no column shows."""
    rng = np.random.default_rng(8)
    one = rng.uniform(size=400)
    rows = np.stack([one, one], axis=1)
    box = Uniform(low=[0, 0], high=[1, 1])
    assert hs.check_population(rows, box, epsilon=1.0, tables=39).verdict == "contradicted"
    alone = hs.check_population(rows, box, epsilon=1.0, tables=39, tests="marginals")
    assert alone.functions < hs.check_population(rows, box, epsilon=1.0, tables=39).functions
    assert alone.verdict == "not contradicted"


@pytest.mark.usefixtures("crude")
def surely(rows, population):
    """With hardly any noise, so that the verdict follows from the seed."""
    return hs.check_population(rows, population, epsilon=1e4, tables=39)


@pytest.mark.slow
def test_times_of_a_zone_are_compared_whatever_their_unit():
    """Winter is not the year; a time that no nanoseconds hold, and a missing one, are read."""
    hours = np.random.default_rng(3).integers(0, 8760, size=5000)

    def made(hours, *others):
        times = np.datetime64("2024-01-01", "s") + np.asarray(hours).astype("timedelta64[h]")
        times = np.concatenate([times, np.array(others, dtype="datetime64[s]")])
        return pd.DataFrame({"at": pd.Series(times).dt.tz_localize("UTC")})

    public = PublicTable(made(hours))
    far = made(np.random.default_rng(4).integers(0, 8760, size=98), "9999-01-01", "NaT")
    assert surely(far, public).verdict == "not contradicted"
    assert surely(made(np.arange(100)), public).verdict == "contradicted"


@pytest.mark.parametrize(
    "cells",
    [
        pd.period_range("2020", periods=500, freq="D"),
        pd.interval_range(0, 500),
        np.arange(500) * 1j,
        pd.Series([[i] for i in range(500)]),
    ],
)
def test_a_column_of_which_nothing_would_be_tested_is_refused(cells):
    """Instead of "not contradicted"; one without any cell has nothing to test but that."""
    public, private = (pd.DataFrame({"odd": cells[start:]}) for start in (0, 400))
    with pytest.raises(BadRows, match="column 'odd' of the population holds neither"):
        surely(private.reset_index(drop=True), PublicTable(public))
    empty = PublicTable(pd.DataFrame({"odd": [None] * 500}))
    assert surely(pd.DataFrame({"odd": [None] * 100}), empty).functions == 1


def test_columns_of_an_array_are_named_by_their_place():
    """All of them."""
    rows = np.random.default_rng(4).normal(size=(100, 2))
    found = hs.check_population(rows, Normal(mean=[0, 0]), epsilon=1.0, tables=19)
    assert found.columns == ("0", "1")


def test_missing_numbers_where_the_population_has_none():
    """They are beyond every threshold, and found."""
    rows = np.random.default_rng(4).normal(size=300)
    rows[:150] = math.nan
    made = hs.check_population(rows, Normal(), epsilon=2.0)
    assert made.verdict == "contradicted"
    assert made.statistic == pytest.approx(0.5, abs=0.1)


def test_rows_outside_of_the_range_are_moved_into_it_unless_allowed():
    """As a release does: what is tested is what a function would see."""
    coin = Simulator(lambda rng, n: rng.integers(0, 2, n).astype(float), bounds=(0, 1))
    rows = np.repeat([-5.0, 7.0], 100)
    moved = hs.check_population(rows, coin, epsilon=SURE, tables=19)
    assert moved.statistic < 0.02
    kept = hs.check_population(rows, coin, epsilon=SURE, tables=19, outside="allow")
    assert kept.statistic == pytest.approx(0.5, abs=0.02)


def test_a_small_public_table_is_no_exact_test_and_says_so():
    """Tables are drawn from it with replacement; ten rows are the least."""
    rng = np.random.default_rng(4)
    made = hs.check_population(
        rng.normal(size=50), PublicTable(rng.normal(size=300)), epsilon=1.0, tables=99
    )
    assert made.null == "resampled"
    assert "only nearly exact" in made.explain()
    with pytest.raises(BadRows, match="10 rows at least"):
        hs.check_population(rng.normal(size=50), PublicTable(rng.normal(size=9)), epsilon=1.0)


@pytest.fixture
def books(tmp_path):
    """A ledger with a budget of epsilon 1."""
    made = hs.Ledger(f"sqlite:///{tmp_path}/books.db")
    made.open_budget("b", hs.Guarantee(epsilon=1.0))
    yield made
    made.close()


@pytest.mark.usefixtures("crude")
def test_a_check_is_charged_and_stored_under_its_key(books):
    """Asking again tells the same, for nothing; another question is refused; no budget, no look."""
    rows = np.random.default_rng(4).normal(size=100)

    def ask(**options):
        asked = {"epsilon": 0.6, "tables": 19, "ledger": books, "budget": "b"} | options
        return hs.check_population(rows, Normal(), **asked)

    first = ask(key="fit")
    assert ask(key="fit") == first
    assert first.entry is not None
    assert hs.PopulationCheck.from_json(books.answer("b", "fit")).statistic == first.statistic
    assert books.balance("b").spent.epsilon == 0.6
    with pytest.raises(KeyInUse):
        ask(key="fit", level=0.1)
    with pytest.raises(Overspent):
        ask()


@pytest.mark.slow
def test_what_is_refused_is_unpaid(books):
    """Each with what to do; the budget stays whole."""
    rows = np.random.default_rng(4).normal(size=100)
    asked = {"epsilon": 0.5, "ledger": books, "budget": "b"}
    with pytest.raises(ParameterError, match="name their column, user="):
        hs.check_population(rows, Normal(), unit="user", **asked)
    with pytest.raises(ParameterError, match="tables must be 19 or more"):
        hs.check_population(rows, Normal(), tables=18, **asked)
    with pytest.raises(BadRows, match="the population's rows are a NumPy array of scalars"):
        hs.check_population(np.zeros((30, 2)), hs.populations.Normal(), epsilon=1.0)
    with pytest.raises(BadRows, match="2 rows or more"):
        hs.check_population(rows[:1], Normal(), **asked)
    with pytest.raises(PrivateRowsAsPopulation, match="contradict themselves"):
        hs.check_population(rows, PublicTable(rows[5:]), **asked)
    with pytest.raises(ParameterError, match="say user=0"):
        hs.check_population(rows, Users(Normal(), sizes=1), **asked)
    with pytest.raises(BadRows, match="2 columns"):
        hs.check_population(rows, Normal(mean=[0, 0]), **asked)
    assert books.balance("b").spent.epsilon == 0


def test_a_check_survives_a_trip_through_json():
    """Bit for bit; another text is refused."""
    rows = np.random.default_rng(4).normal(size=100)
    made = hs.check_population(rows, Normal(), epsilon=0.5, tables=19)
    assert hs.PopulationCheck.from_json(made.to_json()) == made
    with pytest.raises(ParameterError, match="not a population check"):
        hs.PopulationCheck.from_json('{"schema": "something else"}')
    known = json.loads(made.to_json())
    odd = (
        {"p_value": "0"},
        {"rows": 1.5},
        {"null": "x"},
        {"deviations": ["a"]},
        {"level": math.nan},
        {"caught": 10**400},
    )
    for text in ("[" * 100_000, *(json.dumps(known | each) for each in odd)):
        with pytest.raises(ParameterError, match="not a population check"):
            hs.PopulationCheck.from_json(text)


@pytest.mark.slow
def test_an_audit_refutes_no_more_than_the_certificate_states():
    """At the epsilon of the certificate nothing is found; a tenth of it is refuted by the same."""
    public = PublicTable(np.linspace(0, 1, 60))

    def mechanism(rows):
        return hs.check_population(rows, public, epsilon=3, tables=19).statistic

    # A replaced row moves the statistic by a whole row here: 0.5 and 0.5, or 1 beyond the end.
    pair = (np.array([0.001, 0.999]), np.array([0.999, 0.999]))
    options = {"samples": 500, "bits": False, "workers": 1, "confidence": 0.999999}
    report = hs.audit(mechanism, [pair], claim=hs.Guarantee(epsilon=3.0), **options)
    assert report.verdict == "not refuted"
    assert report.epsilon_low > 0.3


@pytest.mark.parametrize("empty", [pd.DataFrame(index=range(400)), np.zeros((400, 0))])
def test_rows_without_a_column_are_refused_in_words(empty):
    """They are a table, of which nothing can be compared."""
    with pytest.raises(BadRows, match="no column"):
        hs.check_population(np.full(50, 0.5), PublicTable(empty), epsilon=1.0)
