"""A public table that holds the private rows, as they are or rounded, does not pass for public."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadFunction, PrivateRowsAsPopulation

PRIVATE = np.random.default_rng(7).normal(50, 10, size=100)
FRESH = np.random.default_rng(8).normal(50, 10, size=20_000)
ROUNDED = {
    "single": PRIVATE.astype(np.float32).astype(np.float64),
    "half": np.linspace(0.001, 0.999, 100).astype(np.float16).astype(np.float64),
    "decimals": np.array([float(f"{x:.3f}") for x in PRIVATE]),
    "digits": np.array([float(f"{x * 1e9:.6g}") for x in PRIVATE]),
    "written": np.array([float(f"{x:.15g}") for x in PRIVATE]),
}
BEFORE = {"half": np.linspace(0.001, 0.999, 100), "digits": PRIVATE * 1e9}


def mean(rows):
    """Mean."""
    return float(np.mean(rows))


@pytest.mark.parametrize("how", ROUNDED)
def test_rounded_copies_among_fresh_rows_are_noticed(how):
    """Nobody gets by with the private rows in another precision, mixed with others."""
    private = BEFORE.get(how, PRIVATE)
    fresh = np.interp(FRESH, (0, 100), (private.min(), private.max()))
    public = hs.populations.PublicTable(
        np.random.default_rng(1).permutation(np.concatenate([ROUNDED[how], fresh]))
    )
    s = hs.sample_sensitivity(mean, public, rows=100, gamma=0.3, workers=1)
    with pytest.raises(PrivateRowsAsPopulation, match="holds the private rows"):
        hs.release(mean, private, hs.Laplace(s, epsilon=1.0))


def test_rounded_numbers_beside_texts_are_noticed():
    """Rows of several types are compared cell by cell."""
    texts = ["a", "b"]
    private = pd.DataFrame({"x": PRIVATE, "t": texts * 50})
    fresh = pd.DataFrame({"x": FRESH, "t": texts * 10_000})
    table = hs.populations.PublicTable(pd.concat([private.round(2), fresh]))
    assert hs.populations.overlaps(table, private)
    assert not hs.populations.overlaps(hs.populations.PublicTable(fresh), private)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("rows", [20, 50, 300])
def test_a_table_of_rounded_numbers_is_no_copy(rows, decimals):
    """A fresh table of which a third is rounded holds many a rounded private row by chance."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        private, public = rng.lognormal(10, 1, rows), rng.lognormal(10, 1, 20_000)
        public[::3] = public[::3].round(decimals)
        assert not hs.populations.overlaps(hs.populations.PublicTable(public), private)


def test_the_certificate_says_what_was_compared():
    """And that nothing was where a law was named instead of a table."""
    public = hs.populations.PublicTable(FRESH)
    for population, words in (
        (public, "copies of half of the private rows, as they are or rounded, if there are 20"),
        (hs.populations.Normal(50, 10), "nothing was compared"),
    ):
        s = hs.sample_sensitivity(mean, population, rows=100, gamma=0.3, workers=1)
        told = hs.release(mean, PRIVATE, hs.Laplace(s, epsilon=1.0)).certificate.explain()
        assert words in told


ODD = {
    "spans of time": lambda numbers: numbers.astype("m8[s]"),
    "integers beyond the doubles": lambda numbers: [10**400 + int(each) for each in numbers],
    "128 bits": lambda numbers: pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Int128)}),
    "objects of NumPy": lambda numbers: numbers.astype("m8[s]").astype(object),
}


@pytest.mark.parametrize("kind", ODD)
def test_rows_of_any_numbers_are_compared(kind):
    """What is no double is compared as a text, and refuses nothing."""
    make, numbers = ODD[kind], np.arange(3000)
    public = hs.populations.PublicTable(make(numbers))
    assert hs.populations.overlaps(public, make(numbers[:50]))
    assert not hs.populations.overlaps(public, make(numbers[:50] + 5000))
    s = hs.sample_sensitivity(
        lambda rows: len({str(each) for each in rows}), public, rows=30, gamma=0.3, workers=1
    )
    assert public.describe()["rows"] == 3000
    with pytest.raises(hs.errors.ZeroSensitivity):
        hs.Laplace(s, epsilon=1.0)


@pytest.mark.parametrize("held", ["array", "pandas"])
def test_a_public_table_that_was_written_to_since_is_refused(held, ledger):
    """It may have held the private rows while it was sampled, and hold others now."""
    make = {"array": lambda x: x, "pandas": lambda x: pd.DataFrame({"x": x})}[held]
    frame = make(np.concatenate([FRESH[:5000], PRIVATE]))
    public = hs.populations.PublicTable(frame)

    def average(rows):
        return float(np.asarray(rows).mean())

    s = hs.sample_sensitivity(average, public, rows=100, gamma=0.3, workers=1)
    if held == "array":
        frame[-100:] = FRESH[-100:]
    else:
        frame.loc[5000:, "x"] = FRESH[-100:]
    with pytest.raises(BadFunction, match="public table was changed since"):
        hs.release(average, make(PRIVATE), hs.Laplace(s, epsilon=1.0), ledger, budget="x")
    assert ledger.log == []
