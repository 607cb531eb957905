"""Norms of a movement against exact arithmetic, also where squares leave the doubles."""

import math
import re
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import BadRows
from hushed.spaces import NORMS, Cell, Column, Table, size

VECTOR = np.array([3.0, -4.0, 0.5])


@pytest.mark.parametrize(
    ("norm", "expected"), [("l1", 7.5), ("l2", math.hypot(3, 4, 0.5)), ("sup", 4.0), ("range", 7.0)]
)
def test_known_sizes(norm, expected):
    """Each norm of (3, -4, 0.5) is what pencil and paper give."""
    assert float(size(VECTOR, norm)) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 1e307])
def test_euclidean_neither_underflows_nor_overflows(scale):
    """The length of tiny and huge movements agrees with math.hypot."""
    small = np.array([3.0, 4.0, 12.0]) * scale
    assert float(size(small, "l2")) == pytest.approx(math.hypot(*small.tolist()), rel=1e-15)


@pytest.mark.parametrize("norm", NORMS)
def test_zero_and_stacks(norm):
    """No movement has size 0, and stacked movements are measured one by one."""
    stack = np.stack([np.zeros(3), VECTOR, -VECTOR])
    sizes = size(stack, norm)
    assert sizes.shape == (3,)
    assert sizes[0] == 0
    assert sizes[1] == sizes[2] == size(VECTOR, norm)


def test_tiny_movements_are_not_lost():
    """A movement of the smallest double has a size above 0 in every norm."""
    for norm in NORMS:
        assert size(np.array([0.0, 5e-324]), norm) > 0


def test_error_stays_within_what_the_noise_makes_up_for():
    """Rounded l1 and l2 sizes are within (d + 4) 2^-52 of exact, the widening of the grid."""
    rng = np.random.default_rng(1)
    for d in (1, 2, 7, 100):
        vector = rng.standard_normal(d) * 10.0 ** rng.integers(-8, 8, d)
        parts = [abs(Fraction(x)) for x in vector.tolist()]
        slack = 1 + Fraction(d + 4, 2**52)
        assert Fraction(float(size(vector, "l1"))) * slack >= sum(parts)
        squared = (Fraction(float(size(vector, "l2"))) * slack) ** 2
        assert squared >= sum(p * p for p in parts)


ODD = [
    None, "x", "", b"x", math.nan, math.inf, -math.inf, -0.0, 1.5, 2.5, -7, True, 10**310,
    -(10**310), 2**53 + 1, 1e300, np.float32(0.1), np.int8(-3), np.uint64(2**64 - 1),
    np.longdouble("1e4000"), np.array(4.0), np.array([1.0, 2.0]), 1j, [], object(), float,
    np.str_("y"), Fraction(1, 3),
]  # fmt: skip
CELLS = [
    Cell(),
    Cell(missing=True),
    Cell(low=-1, high=2),
    Cell(low=0.5, high=0.5, missing=True),
    Cell(type="int"),
    Cell(type="int", low=-2, high=5),
    Cell(type="string"),
    Cell(type="string", missing=True),
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_nearest_value_of_a_cell_is_in_it(cell):
    """Anything becomes what the check of the cell takes, and what it takes stays as it is."""
    moved = [cell.nearest(each) for each in ODD]
    read = cell.check(moved)
    assert len(read) == len(ODD)
    assert [cell.nearest(each) for each in read.tolist()] == pytest.approx(
        read.tolist(), nan_ok=True
    )


@pytest.mark.parametrize(
    ("cell", "value", "expected"),
    [
        (Cell(low=-1, high=2), 7, 2.0),
        (Cell(low=-1, high=2), -math.inf, -1.0),
        (Cell(low=-1, high=2), math.nan, -1.0),
        (Cell(low=-1, high=2), "1", -1.0),
        (Cell(), 10**310, math.inf),
        (Cell(), None, 0.0),
        (Cell(type="int"), 2.5, 2),
        (Cell(type="int"), 2**53 + 1, 2**53),
        (Cell(type="int", low=3, high=5), None, 3),
        (Cell(type="string"), 7, ""),
        (Cell(type="string", missing=True), 7, None),
    ],
)
def test_nearest_values(cell, value, expected):
    """Numbers go to the nearest bound, the rest to a public constant or missing."""
    assert cell.nearest(value) == expected


def _containers():
    frame = pd.DataFrame({"who": ["a", "b"], "x": [1.0, 2.0]})
    yield pa.table(frame), "pyarrow.Table: say to_pandas()"
    yield pa.table(frame).to_batches()[0], "pyarrow.RecordBatch: say to_pandas()"
    yield duckdb.from_df(frame), "duckdb.DuckDBPyRelation: say df()"
    yield duckdb.connect(), "duckdb.DuckDBPyConnection: say sql"
    yield pl.DataFrame({"who": ["a"], "x": [1.0]}).lazy(), "polars.LazyFrame: say collect()"
    yield hs.table(pa.table(frame)), "hushed.Table: an hs.table is asked by its own methods"


@pytest.mark.parametrize("number", range(6))
def test_a_container_that_chains_do_not_read_is_named(number):
    """By its type, with what makes rows of it; its columns are not said to be absent."""
    data, words = list(_containers())[number]
    table = Table.of({"who": Cell(type="string"), "x": Cell(low=0, high=1)})
    for domain in (table, Column(cell=Cell(low=0, high=1))):
        with pytest.raises(BadRows, match=re.escape(words)) as refused:
            domain.check(data)
        assert "a chain takes" in str(refused.value)
