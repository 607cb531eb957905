"""Populations made of others: outliers among rows, and a model of a public table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import BadRows, ParameterError, PrivateRowsAsPopulation
from hushed.populations import (
    Contaminated,
    Exponential,
    Normal,
    PublicTable,
    Simulator,
    Uniform,
    description,
    fitted,
)

UNIT, FAR = Uniform(low=0, high=1), Uniform(low=5, high=6)


def table_of(make, count=400, seed=1):
    rng = np.random.default_rng(seed)
    one = rng.normal(size=count)
    other = one + rng.normal(size=count)
    text = np.where(other > 1, "high", np.where(other > -1, "middle", "low"))
    whole = rng.integers(0, 9, size=count)
    return make({"one": one, "other": other, "text": text.tolist(), "whole": whole})


def test_each_row_is_an_outlier_by_itself():
    """The number of outliers is binomial, in the table and among the replaced rows."""
    mixed = Contaminated(UNIT, FAR, share=0.1)
    drawn = [mixed.draw(np.random.default_rng(seed), 30) for seed in range(500)]
    counts = np.bincount([int((each > 1).sum()) for each in drawn], minlength=31)
    wanted = 500 * stats.binom.pmf(np.arange(31), 30, 0.1)
    groups = [slice(0, 2), 2, 3, 4, slice(5, 31)]
    found = [counts[g].sum() for g in groups], [wanted[g].sum() for g in groups]
    assert stats.chisquare(*found).pvalue > 1e-4
    assert stats.kstest([each[7] for each in drawn if each[7] < 1], "uniform").pvalue > 1e-4
    assert np.mean([each[-1] > 1 for each in drawn]) == pytest.approx(0.1, abs=0.05)


def test_two_simulators_that_fill_one_array_are_mixed_as_they_were_drawn():
    held = np.empty(1000)

    def fill(value):
        def draw(_rng, _count):
            held[:] = value
            return held

        return Simulator(draw)

    rows = Contaminated(fill(1.0), fill(9.0), share=0.1).draw(np.random.default_rng(0), 1000)
    assert 50 < np.count_nonzero(rows == 9.0) < 150  # binomial(1000, 0.1): 5.3 deviations
    assert np.count_nonzero(rows == 1.0) == 1000 - np.count_nonzero(rows == 9.0)


def test_outliers_are_part_of_the_sampled_movement():
    """With 1 row in 10 far away, the mean moves by about 5 / n instead of 1 / n."""
    f, mixed = np.mean, Contaminated(UNIT, FAR, share=0.1)
    plain = hs.sample_sensitivity(f, UNIT, rows=50, workers=1).value
    assert 4 / 50 < hs.sample_sensitivity(f, mixed, rows=50, workers=1).value <= 6 / 50
    assert plain <= 1 / 50


def test_private_rows_are_moved_into_a_range_that_holds_both():
    """The ends come from either; a column that one of them leaves open stays open."""
    (found,) = Contaminated(UNIT, FAR, share=0.1).support()
    assert (found.low, found.high) == (0, 6)
    (half,) = Contaminated(UNIT, Exponential(), share=0.1).support()
    assert (half.low, half.high) == (0, np.inf)
    assert Contaminated(UNIT, Normal(), share=0.1).support() == ()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_are_mixed_and_fitted_in_their_types(make):
    """Rows come in the container, columns and types of the public table."""
    table = table_of(make)
    model = fitted(PublicTable(table))
    for population in (model, Contaminated(model, model, share=0.5)):
        drawn = population.draw(np.random.default_rng(3), 50)
        assert type(drawn) is type(table)
        assert list(drawn.columns) == list(table.columns)
        assert list(drawn.dtypes) == list(table.dtypes)
        assert len(drawn) == 50


def test_a_mixture_of_different_rows_is_refused():
    """Other columns, a share of 0, and a public table whose rows tables would share."""
    with pytest.raises(BadRows, match="different kinds of rows"):
        Contaminated(UNIT, Uniform(low=[0, 0], high=[1, 1]), share=0.1).draw(
            np.random.default_rng(0), 5
        )
    with pytest.raises(ParameterError, match="share"):
        Contaminated(UNIT, FAR, share=0)
    with pytest.raises(ParameterError, match="drawn at most once"):
        Contaminated(PublicTable(np.arange(50.0)), FAR, share=0.1)
    with pytest.raises(ParameterError, match="public source of rows"):
        Contaminated(np.arange(50.0), FAR, share=0.1)


def test_a_fitted_model_keeps_each_column_and_how_they_hang_together():
    """Every cell is one of its column; its law and the rank correlations are those of the table."""
    table = table_of(pd.DataFrame, count=2000)
    drawn = fitted(PublicTable(table)).draw(np.random.default_rng(3), 4000)
    assert stats.ks_2samp(table["one"], drawn["one"], method="asymp").pvalue > 1e-4
    assert set(drawn["one"]) <= set(table["one"])
    for name in ("text", "whole"):
        before, after = (each[name].value_counts(normalize=True) for each in (table, drawn))
        assert (before - after).abs().max() < 0.05
    before, after = (stats.spearmanr(each["one"], each["other"])[0] for each in (table, drawn))
    assert after == pytest.approx(before, abs=0.05)
    alone = fitted(PublicTable(table), "independent").draw(np.random.default_rng(3), 4000)
    assert abs(stats.spearmanr(alone["one"], alone["other"])[0]) < 0.08


def test_a_model_is_fitted_to_public_rows_alone():
    """Rows have to be called public first; then a release of these very rows is refused."""
    rows = np.random.default_rng(1).normal(size=(300, 2))
    with pytest.raises(ParameterError, match="public rows alone"):
        fitted(rows)
    with pytest.raises(BadRows, match="10 rows or more"):
        fitted(PublicTable(rows[:9]))
    model = fitted(PublicTable(rows))
    for population in (model, Contaminated(model, Normal(mean=[9, 9]), share=0.01)):
        f = np.sum
        s = hs.sample_sensitivity(f, population, rows=300, workers=1)
        with pytest.raises(PrivateRowsAsPopulation):
            hs.release(f, rows, hs.Laplace(s, epsilon=1.0))


def test_what_a_population_was_made_of_is_described():
    """With the digest of the public table, for a certificate."""
    table = PublicTable(np.random.default_rng(1).normal(size=(300, 2)), name="survey")
    told = description(Contaminated(fitted(table), Simulator(lambda rng, n: rng), share=0.25))
    assert told["share"] == 0.25
    assert told["base"]["table"]["sha256"] == table.describe()["sha256"]
    assert told["outliers"]["kind"] == "simulator"


@pytest.mark.parametrize("place", ["base", "outliers"])
def test_people_are_not_mixed_row_by_row(place):
    """A mixture draws as many rows as it is asked for: those of a few people, who depend."""
    parts = {"base": UNIT, "outliers": FAR} | {
        place: hs.populations.Users(UNIT, sizes={1: 1, 2: 1})
    }
    with pytest.raises(ParameterError, match=f"{place} draws users"):
        Contaminated(**parts, share=0.1)
    mixed = hs.populations.Users(Contaminated(UNIT, FAR, share=0.5), sizes=3)
    assert mixed.draw(np.random.default_rng(0), 5).shape == (15, 2)


@pytest.mark.parametrize("user", [0, 1, "who"])
def test_people_are_outliers_with_all_their_rows(user):
    """Whole users are mixed: small ones of the base, and a share of large ones far away."""
    make = (lambda rows: pd.DataFrame({"x": rows})) if user == "who" else np.asarray
    laws = [Simulator(lambda rng, n, law=law: make(law.draw(rng, n))) for law in (UNIT, FAR)]
    few, many = (
        hs.populations.Users(law, sizes=size, user=user)
        for law, size in zip(laws, (2, 7), strict=True)
    )
    mixed = Contaminated(few, many, share=0.2)
    rows = np.asarray(mixed.draw(np.random.default_rng(0), 2000), dtype=float)
    at = 0 if user == "who" else user
    who, values = rows[:, at].astype(int), rows[:, 1 - at]
    sizes = np.bincount(who)
    assert (np.diff(who) >= 0).all()
    assert len(sizes) == 2000
    assert set(sizes) == {2, 7}
    assert ((sizes[who] == 7) == (values >= 5)).all()
    # Exact binomial tails on both sides, 1e-6 each.
    assert (
        stats.binom.ppf(1e-6, 2000, 0.2) <= (sizes == 7).sum() <= stats.binom.isf(1e-6, 2000, 0.2)
    )
    with pytest.raises(ParameterError, match=f"user={user!r}"):
        hs.sample_sensitivity(len, mixed, rows=30, pairs=20)


def test_outliers_among_people_are_part_of_the_promise():
    """A user of 7 rows takes the place of one of 2, or the other way round: 5 rows move."""
    few, many = (hs.populations.Users(UNIT, sizes=size) for size in (2, 7))
    mixed = Contaminated(few, many, share=0.2)
    assert hs.sample_sensitivity(len, few, rows=30, pairs=200, user=0).value == 0
    assert hs.sample_sensitivity(len, mixed, rows=30, pairs=200, user=0).value == 5
    aside = hs.populations.Users(UNIT, sizes=7, user=1)
    with pytest.raises(ParameterError, match="the same column"):
        Contaminated(few, aside, share=0.2)


def test_sizes_that_are_changed_afterwards_leave_the_law_as_it_was():
    """One dictionary for several laws, changed between them: each says what it draws."""
    sizes = {1: 0.5, 9: 0.5}
    law = hs.populations.Users(UNIT, sizes=sizes)
    sizes[9] = 0.0
    assert description(law)["sizes"] == [[1, 0.5], [9, 0.5]]
    assert len(law.draw(np.random.default_rng(0), 100)) > 200


@pytest.mark.parametrize("more", [-1, 1])
def test_a_law_that_gives_users_another_number_of_rows_is_refused(more):
    """Rows of users are as many as their sizes say."""
    law = Simulator(lambda rng, n: rng.random((n + more, 1)))
    with pytest.raises(BadRows, match=f"asked for 10 and gave {10 + more}"):
        hs.populations.Users(law, sizes=2).draw(np.random.default_rng(0), 5)


def test_a_model_of_a_table_that_changed_since_is_refused():
    """It would draw rows of neither table, and be described by the new one."""
    table = table_of(pd.DataFrame)
    model = fitted(PublicTable(table))
    table["one"] = np.sort(table["one"])
    with pytest.raises(BadRows, match="changed since the model was fitted"):
        hs.sample_sensitivity(len, model, rows=30, pairs=20, workers=1)
