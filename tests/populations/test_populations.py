"""Populations draw what they describe, and refuse nonsense."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import hushed as hs
from hushed.errors import BadRows, ParameterError
from hushed.populations import (
    Exponential,
    Normal,
    Population,
    PublicTable,
    Simulator,
    Uniform,
    description,
    from_description,
)

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("population", "law"),
    [
        (Uniform(low=-1, high=3), stats.uniform(-1, 4)),
        (Uniform(low=0, high=1), stats.uniform(0, 1)),
        (Normal(mean=2, std=0.5), stats.norm(2, 0.5)),
        (Exponential(rate=4), stats.expon(scale=0.25)),
    ],
)
def test_draws_follow_the_named_law(population, law):
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-6 over a fixed seed."""
    drawn = population.draw(np.random.default_rng(5), 20_000)
    assert stats.kstest(drawn, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "population",
    [
        Uniform(low=[0, 10], high=[1, 20]),
        Normal(mean=[0, 15], std=[1, 2]),
        Exponential(rate=[1, 1 / 15]),
    ],
)
def test_columns_are_drawn_separately(population):
    """Lists give one column each, with its own numbers."""
    drawn = population.draw(np.random.default_rng(5), 4000)
    assert drawn.shape == (4000, 2)
    assert abs(drawn[:, 0].mean()) < 2
    assert 13 < drawn[:, 1].mean() < 17
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(low=1, high=0),
        lambda: Uniform(low=[0, 0], high=1),
        lambda: Uniform(low=float("nan"), high=1),
        lambda: Uniform(low=0, high=float("inf")),
        lambda: Uniform(low=-1.7e308, high=1.7e308),
        lambda: Uniform(low="a", high=1),
        lambda: Uniform(low=None, high=1),
        lambda: Uniform(low=[], high=[]),
        lambda: Normal(std=-1),
        lambda: Normal(mean=float("nan")),
        lambda: Normal(mean=[0, 0], std=[1, 1, 1]),
        lambda: Exponential(rate=0),
        lambda: Exponential(rate=-1),
        lambda: Exponential(rate=float("inf")),
        lambda: Simulator(3),
    ],
)
def test_nonsense_is_refused(make):
    """Ranges, deviations and rates out of range are a parameter error."""
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize("empty", [np.empty((0, 2)), [], pd.DataFrame({"x": []}), pl.DataFrame()])
def test_an_empty_public_table_is_refused(empty):
    """There is nothing to resample in an empty table."""
    with pytest.raises(BadRows, match="no rows"):
        PublicTable(empty)


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
def test_public_tables_give_whole_rows(kind):
    """Drawn rows are rows of the table, each about equally often, in the same container."""
    x, y = np.arange(5.0), np.arange(5.0) * 10
    frame = {
        "array": np.column_stack([x, y]),
        "list": list(zip(x.tolist(), y.tolist(), strict=True)),
        "pandas": pd.DataFrame({"x": x, "y": y}),
        "polars": pl.DataFrame({"x": x, "y": y}),
    }[kind]
    drawn = PublicTable(frame, promise="table").draw(np.random.default_rng(0), 5000)
    assert type(drawn) is type(frame)
    pairs = np.asarray(drawn)
    assert np.array_equal(pairs[:, 1], 10 * pairs[:, 0])
    once = PublicTable(frame).draw(np.random.default_rng(0), 5)  # each row at most once
    assert np.array_equal(np.sort(np.asarray(once)[:, 0]), x)
    with pytest.raises(BadRows, match="6 rows were asked of a public table of 5"):
        PublicTable(frame).draw(np.random.default_rng(0), 6)
    counts = np.bincount(pairs[:, 0].astype(int), minlength=5)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "population",
    [
        Uniform(low=0.1, high=0.3),
        Uniform(low=[0, 1], high=[1, 5]),
        Normal(mean=[1 / 3, 2], std=[1, 0]),
        Exponential(rate=1e-7),
    ],
)
def test_descriptions_rebuild_the_population_exactly(population):
    """A description that went through JSON draws the same rows."""
    told = json.loads(json.dumps(description(population)))
    again = from_description(told)
    rngs = np.random.default_rng(1), np.random.default_rng(1)
    assert np.array_equal(population.draw(rngs[0], 9), again.draw(rngs[1], 9))


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"kind": "public table", "name": "x"},
        {"kind": "uniform"},
        {"kind": "uniform", "low": 0, "high": 1, "more": 2},
        {"kind": ["uniform"], "low": 0, "high": 1},
        {"kind": "os.system", "name": "true"},
    ],
)
def test_descriptions_that_do_not_say_it_all_rebuild_nothing(told):
    """An incomplete, foreign or strange description gives None, never an accident."""
    assert from_description(told) is None


def test_a_description_with_bad_numbers_is_refused():
    """A rebuilt population is checked like a new one."""
    with pytest.raises(ParameterError):
        from_description({"kind": "uniform", "low": 1, "high": 0})


class Custom:
    """A population of the caller's own making."""

    def __init__(self, told):
        self.told = told

    def draw(self, rng, count):
        """Draw as asked."""
        return rng.random(count)

    def describe(self):
        """Tell what it was told."""
        return self.told


def test_a_custom_population_is_described_in_plain_values():
    """Tuples become lists; arrays, NaN and other things are refused with advice."""
    assert isinstance(Custom({}), Population)
    assert description(Custom({"kind": "mine", "at": (1, 2)})) == {"kind": "mine", "at": [1, 2]}
    for told in ({"x": np.arange(2)}, {"x": float("nan")}, {"x": object()}, "text", None):
        with pytest.raises(ParameterError, match="describe"):
            description(Custom(told))
    with pytest.raises(ParameterError, match="draw"):
        description("uniform")


def test_digests_tell_tables_apart_and_show_no_values():
    """One changed cell changes the digest, and no cell is in the description."""
    frame = pd.DataFrame({"x": [1.5, 987654.321], "who": ["Ann", "Bob"]})
    other = frame.assign(x=[1.5, 987654.322])
    one, two = (description(PublicTable(f, name="people")) for f in (frame, other))
    assert one["sha256"] != two["sha256"]
    assert one | {"sha256": ""} == two | {"sha256": ""}
    assert "987654" not in json.dumps(one)
    assert "Ann" not in json.dumps(one)


def test_rows_in_place_of_a_population_are_refused_with_what_to_write():
    """By all that take one: rows that are public are said to be so."""
    rows = np.arange(100.0)
    blocks = hs.Blocks(low=0, high=100, epsilon=4.0)
    for use in (
        lambda: hs.sample_sensitivity(np.mean, rows, rows=10),
        lambda: blocks.simulate(np.mean, rows, rows=50),
        lambda: hs.public_prior(np.mean, rows, rows=50, blocks=5, candidates=[0, 50, 100]),
        lambda: hs.compare(np.mean, rows, rows=50),
    ):
        with pytest.raises(ParameterError, match=r"PublicTable\(rows\)\. Got ndarray"):
            use()
