"""What is public of the rows of a chain is compared before the charge: a mistake costs nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed import measurements as m
from hushed import transformations as t
from hushed.errors import BadFunction, BadRows
from hushed.spaces import CHANGE_ONE, SYMMETRIC, Cell, Column, Space, Table, Vectors

AGE = Cell(low=0, high=100)
COLUMN = Space(domain=Column(cell=AGE), metric=SYMMETRIC) >> t.clip(0, 100)
TABLE = Space(domain=Table.of({"age": AGE}), metric=SYMMETRIC) >> t.select("age")
FOUR = Space(domain=Column(cell=AGE, size=4), metric=CHANGE_ONE) >> t.clip(0, 100)
SOME = Space(domain=Column(cell=AGE, least=4), metric=SYMMETRIC) >> t.clip(0, 100) >> t.mean()
POINTS = Space(domain=Vectors(dims=2), metric=SYMMETRIC) >> t.clip_norm(1.0) >> t.vector_sum()
MEDIAN = hs.InverseSensitivity(hs.statistics.median(low=0, high=100), epsilon=0.5)
AGES = pd.DataFrame({"age": [31.0, 64.0], "cost": [1.0, 2.0]})
COSTS = AGES[["cost"]]
TEXTS = pd.DataFrame({"age": ["31", "64"]})
TWICE = pd.DataFrame([[31.0, 64.0]], columns=["age", "age"])


def total(chain):
    return chain >> t.sum_of()


def noise(chain):
    return hs.Laplace(m.chain_sensitivity(chain), epsilon=0.5)


SUM, SUM_OF_TABLE, SUM_OF_FOUR = map(total, (COLUMN, TABLE, FOUR))
ONES = {"low": 0, "high": 100, "epsilon": 0.5, "aggregate": "mean", "blocks": 2, "beta": 0.9}
BLOCKS, EVEN = hs.Blocks(**ONES, neighbours="add-remove"), hs.Blocks(**ONES)
MISFITS = {
    "blocks, other column": (SUM_OF_TABLE, COSTS, BLOCKS, "no column 'age'"),
    "blocks, texts": (SUM_OF_TABLE, TEXTS, BLOCKS, "column 'age': what is needed is .* numbers"),
    "blocks, of random sizes": (SUM_OF_FOUR, np.ones(8), BLOCKS, "takes tables of 4 rows"),
    "blocks, too few": (
        SOME,
        np.ones(7),
        EVEN,
        "takes tables of 4 rows or more",
    ),
    "blocks, of other sizes": (SUM_OF_FOUR, np.ones(4), EVEN, "takes tables of 4 rows"),
    "statistic, other column": (TABLE, COSTS, MEDIAN, "no column 'age'"),
    "statistic, no names": (TABLE, np.ones(3), MEDIAN, "expected columns by name"),
    "statistic, a list": (TABLE, [31.0], MEDIAN, "expected columns by name"),
    "statistic, texts": (TABLE, TEXTS, MEDIAN, "column 'age': what is needed is .* numbers"),
    "statistic, two columns": (COLUMN, AGES, MEDIAN, "takes one column"),
    "statistic, text array": (COLUMN, np.array(["31"]), MEDIAN, "a column of numbers"),
    "function, other column": (SUM_OF_TABLE, COSTS, noise(SUM_OF_TABLE), "no column 'age'"),
    "function, Polars": (
        SUM_OF_TABLE,
        pl.from_pandas(COSTS),
        noise(SUM_OF_TABLE),
        "no column 'age'",
    ),
    "function, a name twice": (SUM_OF_TABLE, TWICE, noise(SUM_OF_TABLE), "one is needed"),
    "function, a frame": (SUM, AGES[["age"]], noise(SUM), "one is needed, got a pandas frame"),
    "function, two dimensions": (SUM, np.ones((3, 2)), noise(SUM), "got a NumPy array with 2"),
    "function, text array": (SUM, np.array(["31"]), noise(SUM), "a column of numbers"),
    "function, number of rows": (SUM_OF_FOUR, [1.0], noise(SUM_OF_FOUR), "not the public one, 4"),
    "function, vectors": (
        POINTS,
        np.ones((3, 3)),
        hs.Gaussian(m.chain_sensitivity(POINTS), epsilon=0.5, delta=1e-7),
        "takes vectors of 2 floats.*, got a NumPy array with 3 columns",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_rows_that_no_cell_makes_fit_cost_nothing(name, tmp_path):
    """It was found as the chain ran: the charge stayed, and no word said what was wrong."""
    chain, rows, mechanism, text = MISFITS[name]
    relation = mechanism.guarantee.neighbours
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("stays", hs.Guarantee(epsilon=1.0, delta=1e-5, neighbours=relation))
        with pytest.raises(BadRows, match=text) as refused:
            hs.release(chain, rows, mechanism, ledger=ledger, budget="stays")
        assert ledger.balance("stays").spent.epsilon == 0
    assert "31" not in str(refused.value)


FITTING = {
    "a series": pd.Series([31.0, 64.0]),
    "a Polars series": pl.Series([31.0, 64.0]),
    "a frame of one": AGES[["age"]],
    "an array of one": np.array([[31.0], [64.0]]),
    "an array": np.array([31.0, 64.0]),
    "a list": [31.0, 64.0],
}


@pytest.mark.parametrize("name", FITTING)
def test_a_chain_takes_the_column_in_all_forms_that_a_statistic_takes(name):
    """A series, too: it was made a frame, which no column fits."""
    mechanism = hs.InverseSensitivity(
        hs.statistics.maximum(low=0, high=100), epsilon=100.0, candidates=[0.0, 64.0, 100.0]
    )
    assert hs.release(COLUMN, FITTING[name], mechanism).value == 64.0


def test_rows_that_fit_are_taken_by_functions(by_value):
    """Of every kind that is refused above."""
    for chain, rows in (
        (SUM, [31.0, 64.0]),
        (SUM, np.array([31, 64])),
        (SUM_OF_TABLE, AGES),
        (SUM_OF_TABLE, pl.from_pandas(AGES)),
        (SUM_OF_FOUR, [1.0, 2.0, 3.0, 4.0]),
    ):
        hs.release(chain, rows, noise(chain))
    for chain in (SUM_OF_FOUR, SOME):
        hs.release(chain, np.ones(8), EVEN)
    made = hs.Gaussian(m.chain_sensitivity(POINTS), epsilon=0.5, delta=1e-7)
    for rows in (np.ones((3, 2)), [[1.0, 0.5]]):
        hs.release(POINTS, rows, made)


def test_a_chain_in_blocks_is_named_by_its_steps(by_value):
    """It was "Transformation", whatever its steps."""
    certificate = hs.release(SOME, np.ones(8), EVEN).certificate
    assert "Released was 'clip(0, 100) >> mean()', asked about 2 blocks" in certificate.explain()
    assert hs.verify(certificate).reproduced


def test_words_do_not_say_of_a_chain_what_holds_for_rows_alone():
    """It gives numbers and no others: where a row is a text, nothing is released."""
    words = hs.release(COLUMN, [31.0, 64.0], MEDIAN).certificate.explain()
    assert "Each row that they make was moved into [0, 100] by itself." in words
    assert "low end" not in words
    with pytest.raises(BadFunction):
        hs.release(COLUMN, ["31", "64"], MEDIAN)
    words = hs.release(hs.statistics.median(low=0, high=100), ["31", "64"], MEDIAN)
    assert "counted as the low end" in words.certificate.explain()
