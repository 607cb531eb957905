"""A log likelihood that fails on every row is refused before anything is charged for it."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.errors import BadFunction, ParameterError

pytestmark = pytest.mark.usefixtures("folder")

GRID = np.arange(1, 10) / 10
CITIES = {"Bern": 0.2, "Genf": 0.7}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for budgets."""
    monkeypatch.chdir(tmp_path)


def release(f, rows, **options):
    """Release a draw from a budget; say what was charged, too."""
    ledger = hs.Ledger(f"sqlite:///{uuid.uuid4().hex}.db")
    ledger.open_budget("b", hs.Guarantee(epsilon=5.0))
    try:
        made = hs.Posterior(f, GRID, epsilon=1.0, clip=2.0, **options)
        return hs.release(f, rows, made, ledger, budget="b").value, ledger
    except (BadFunction, ParameterError) as error:
        assert not ledger.entries("b")
        raise error from None


def misspelt(row, p):
    return np.logarithm(p) * row[0]


def wrong_column(row, p):
    return row["heigth"].iloc[0] * np.log(p)


def too_few(row, p):
    return np.log(p)[:-1]


def always_nan(row, p):
    return p * np.nan


def of_second(row, p):
    return float(np.asarray(row)[0, 1]) * np.log(p)


FRAME = pd.DataFrame({"height": [1.0, 2.0, 3.0], "age": [1, 2, 3]})


@pytest.mark.parametrize(
    ("f", "rows", "match"),
    [
        (misspelt, np.ones((5, 2)), "AttributeError"),
        (misspelt, np.ones(5), "AttributeError"),
        (wrong_column, FRAME, "KeyError: 'heigth'"),
        (wrong_column, pl.DataFrame({"height": [1.0]}), "heigth"),
        (too_few, np.ones(5), "9 numbers"),
        (always_nan, np.ones(5), "NaN"),
        (of_second, np.ones((5, 1)), "IndexError"),
        (of_second, np.ones(4, dtype=[("a", float), ("b", float)]), "IndexError"),
    ],
)
def test_a_function_that_fails_on_every_row_is_refused_and_costs_nothing(f, rows, match):
    """A misspelt name, a column that is not there, a wrong number of answers."""
    with pytest.raises(BadFunction, match=match):
        release(f, rows)


def rises(row, p):
    return np.log(p * (row[0, 1] - row[0, 0]))


def of_city(row, p):
    return np.log(p) * CITIES[row["city"].iloc[0]]


def of_text(row, p):
    return np.log(p) * len(row["city"].iloc[0]) + row["cost"].iloc[0]


TOWNS = pd.DataFrame({"city": ["Bern", "Genf"] * 20, "cost": 1.0})


@pytest.mark.parametrize(
    ("f", "rows"),
    [(rises, np.array([[1.0, 2.0]] * 5)), (of_text, TOWNS), (of_second, FRAME)],
)
def test_a_function_that_reads_some_made_up_row_is_released(f, rows):
    """Numbers that rise, or a text beside a number."""
    value, ledger = release(f, rows)
    assert value in GRID
    assert len(ledger.entries("b")) == 1


def test_a_function_that_needs_rows_like_the_private_ones_is_tried_on_public_ones():
    """A city that nobody makes up: public rows show that it can be read, or that it cannot."""
    with pytest.raises(BadFunction, match="public_rows="):
        release(of_city, TOWNS)
    public = pd.DataFrame({"city": ["Bern", "Genf"], "cost": 2.0})
    assert release(of_city, TOWNS, public_rows=public)[0] in GRID
    with pytest.raises(BadFunction, match="1 of 3 public rows"):
        release(of_city, TOWNS, public_rows=pd.concat([public, public[:1].assign(city="Rom")]))
    with pytest.raises(ParameterError, match="no rows"):
        release(of_city, TOWNS, public_rows=public[:0])


def test_whether_a_function_is_refused_follows_from_no_private_cell():
    """One text among numbers changes the type of a column: nobody is to hear it."""
    plain = [np.ones((6, 2)), pd.DataFrame(np.ones((6, 2)))]
    odd = [table.astype(object) for table in plain]
    odd[0][3, 1] = "secret"
    odd[1].iloc[3, 1] = "secret"
    for table in (*plain, *odd):
        assert release(of_second, table)[0] in GRID
    refusals = set()
    for table in (plain[0], odd[0]):
        with pytest.raises(BadFunction) as refused:
            release(misspelt, table)
        refusals.add(str(refused.value))
    assert len(refusals) == 1


class Running:
    """Log likelihoods about the mean of all rows asked so far: one row moves all others."""

    def __init__(self):
        self.asked = []

    def __call__(self, row, p):
        self.asked.append(float(np.asarray(row).ravel()[0]))
        return -((p - np.mean(self.asked)) ** 2)


@pytest.mark.parametrize("options", [{}, {"public_rows": np.linspace(0, 1, 5)}])
def test_a_function_that_keeps_rows_for_later_ones_is_refused_and_costs_nothing(options):
    """As in map_rows: a clip bounds what one row says, and not what others say after it."""
    with pytest.raises(BadFunction, match="in another order"):
        release(Running(), np.ones(5), **options)


def test_nothing_is_made_up_for_lists():
    """Their rows are whatever they are; a row that says nothing counts alike for all candidates."""
    assert release(misspelt, [{"x": 1.0}])[0] in GRID
    with pytest.raises(BadFunction, match="public rows"):
        release(misspelt, [{"x": 1.0}], public_rows=[{"x": 2.0}])
