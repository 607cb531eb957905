"""Tests of a declared bound that could not fail are refused, and do not pass."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadFunction, ParameterError
from hushed.testing import assert_sensitivity

UNIT = hs.populations.Uniform(low=0, high=1)
PEOPLE = hs.populations.Users(UNIT, sizes={1: 0.5, 4: 0.5})


@pytest.mark.parametrize(("gamma", "pairs"), [(0.99, 300), (0.1, 3), (0.5, 9)])
def test_so_few_pairs_that_all_might_move_farther_are_refused(gamma, pairs):
    """The share of a bound that nothing keeps was not above gamma with confidence: it passed."""
    with pytest.raises(ParameterError, match="even if all of them do: draw at least") as few:
        assert_sensitivity(np.sum, 1e-9, UNIT, rows=5, gamma=gamma, pairs=pairs)
    needed = int(str(few.value).rsplit(" ", 1)[1])
    assert gamma**needed <= 0.001 < gamma ** (needed - 2)  # all of them, by chance
    with pytest.raises(AssertionError, match="REFUTED"):
        assert_sensitivity(np.sum, 1e-9, UNIT, rows=5, gamma=gamma, pairs=needed)


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (lambda rows: rows[0], {"rows": 50}),
        (lambda rows: np.diff(rows).max(), {"rows": 50}),
        (lambda rows: rows[rows[:, 0] == 0, 1].sum(), {"rows": 20, "user": 0}),
    ],
)
@pytest.mark.parametrize("ask", [assert_sensitivity, hs.test_sensitivity])
def test_a_function_that_is_not_symmetric_is_not_tested_as_if_it_were(function, more, ask):
    """Its last row was exchanged alone, at which the first one never looks."""
    population = PEOPLE if "user" in more else UNIT
    with pytest.raises(BadFunction, match="was declared symmetric, but reordering"):
        ask(function, population=population, bound=9.0, symmetric=True, **more)


SYMMETRIC = {
    "mean": np.mean,
    "large sum": lambda rows: 1e9 + rows.sum(),
    "median": np.median,
    "vector": lambda rows: np.array([rows.max(), rows.std()]),
}


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("rows", [3, 400])
def test_a_symmetric_function_passes_in_spite_of_rounding(name, rows):
    """Sums in another order have other last digits."""
    found = hs.test_sensitivity(SYMMETRIC[name], UNIT, rows, bound=9.0, pairs=20, symmetric=True)
    assert found.verdict == "not refuted"


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_frames_are_tested_whatever_library_they_are_of(frame, symmetric):
    """Those of Polars have no method copy, on which the test ended."""
    table = frame({"cost": np.random.default_rng(0).random(900)})
    public = hs.populations.PublicTable(table, promise="table")
    given = {"pairs": 20, "symmetric": symmetric}

    def mean(rows):
        return rows["cost"].mean()

    assert hs.test_sensitivity(mean, public, 9, bound=1 / 9, **given).verdict == "not refuted"
    assert hs.test_sensitivity(mean, public, 9, bound=0.01, **given).verdict == "refuted"


def test_people_in_a_frame_of_polars_are_tested():
    """All rows of one of them are exchanged."""
    rows = PEOPLE.draw(np.random.default_rng(1), 400)
    table = pl.DataFrame({"who": rows[:, 0].astype(int), "cost": rows[:, 1]})
    public = hs.populations.PublicTable(table, promise="table")

    def capped(rows):
        return np.minimum(np.bincount(rows["who"], rows["cost"]), 1).mean()

    for symmetric in (False, True):
        found = hs.test_sensitivity(
            capped, public, 8, bound=1 / 8, pairs=20, user="who", symmetric=symmetric
        )
        assert found.verdict == "not refuted"
