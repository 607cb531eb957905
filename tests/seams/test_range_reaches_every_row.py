"""Where a population states a range, no private row gets past it, or the range is refused."""

import dataclasses
import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed._functions._gate import admit_rows
from hushed._rows._ranges import clamp, read_ranges
from hushed.errors import BadRows, ParameterError

P = hs.populations
INF, NAN = math.inf, math.nan


class Pair(NamedTuple):
    age: float
    pay: float


@dataclasses.dataclass
class Person:
    age: float


def sampled(make, bounds):
    population = P.Simulator(lambda rng, count: [make(x) for x in rng.random(count).tolist()])
    population = dataclasses.replace(population, bounds=bounds)
    return hs.sample_sensitivity(lambda rows: float(len(rows)), population, rows=3, workers=1)


@pytest.mark.parametrize(
    ("make", "bounds"),
    [
        (lambda x: Pair(x, 1.0), [(0, 1), (0, 9)]),
        (lambda x: Pair(x, 1.0), {"age": (0, 1)}),
        (Person, {"age": (0, 1)}),
        (lambda x: Decimal(repr(x)), (0, 1)),
        (lambda x: {"age": x}, {"aeg": (0, 1)}),
        (lambda x: {"age": [x]}, {"age": (0, 1)}),
        (lambda x: (x,), [(0, 1), (0, 9)]),
        (lambda x: np.array([x, 1.0]), {"age": (0, 1)}),
        (lambda x: np.array([x, None]), [(0, 1)]),
        (complex, (0, 1)),
        (np.complex128, (0, 1)),
        (lambda x: x, {"age": (0, 1)}),
    ],
)
def test_bounds_that_would_move_nothing_are_refused(make, bounds):
    """Each was let pass: the certificate said that rows are moved, and none was."""
    with pytest.raises(ParameterError, match="hold no numbers"):
        sampled(make, bounds)


def test_public_rows_that_are_not_all_numbers():
    """A text among the numbers would be a private row that nothing moves."""
    with pytest.raises(ParameterError, match="not only numbers"):
        P.PublicTable([{"age": 3}, {"age": "old"}], bounds={"age": (0, 120)})


@pytest.mark.parametrize(
    ("make", "bounds"),
    [
        (lambda x: x, (0, 1)),
        (lambda x: {"age": x}, {"age": (0, 1)}),
        (lambda x: (x, "north"), [(0, 1)]),
        (lambda x: [x, 1.0], [(0, 1)]),
    ],
)
@pytest.mark.parametrize("missing", [None, pd.NA, pd.NaT])
def test_a_missing_cell_of_a_list_counts_as_the_low_end(make, bounds, missing):
    """It has no type, so that nothing else keeps it out."""
    got = admit_rows([make(missing), make(7.0), make(0.5)], sampled(make, bounds).sampling)
    assert got == [make(0.0), make(1.0), make(0.5)]


def test_a_missing_cell_stays_where_the_public_list_has_them():
    """As in the columns of a frame."""
    (one,) = P.PublicTable([None, 0.5], bounds=(0, 1)).support()
    assert one.missing
    assert clamp([None, 7.0], (one,)) == [None, 1.0]


KINDS = [None, NAN, np.float64("nan"), pd.NA, pd.NaT]


@pytest.mark.parametrize(
    ("make", "bounds"),
    [(lambda x: x, (0, 1)), (lambda x: {"age": x}, {"age": (0, 1)}), (lambda x: [x], [(0, 1)])],
)
@pytest.mark.parametrize("known", KINDS)
def test_a_missing_cell_of_another_kind_than_the_public_ones_is_moved(make, bounds, known):
    """NaN among what was sampled with nothing, and the other way round, is no sampled value."""
    support = P.PublicTable([make(known), make(0.5)], bounds=bounds).support()
    for other in KINDS:
        (row,) = clamp([make(other)], support)
        alike = isinstance(known, float) if isinstance(other, float) else type(other) is type(known)
        assert repr(row) == repr(make(other)) if alike else row == make(0.0)


@pytest.mark.parametrize("known", [[None], [NAN], [None, NAN]])
def test_polars_tells_nothing_from_nan(known):
    """A cell with nothing in it is left out of a mean, and NaN makes it NaN."""
    table = pl.DataFrame({"x": [*known, 0.5]}, strict=False)
    support = P.PublicTable(table, bounds={"x": (0, 1)}).support()
    moved = clamp(pl.DataFrame({"x": [None, NAN]}, strict=False), support)["x"].to_list()
    kept = [None if None in known else 0.0, NAN if NAN in known else 0.0]
    assert repr(moved) == repr(kept)


FAR = [INF, NAN, 1e25, -1e25, -INF]
FRAMES = {
    "polars": pl.DataFrame({"x": FAR}),
    "nullable": pd.DataFrame(
        {"x": pd.arrays.FloatingArray(np.array(FAR), np.zeros(len(FAR), dtype=bool))}
    ),
    "Arrow": pd.DataFrame({"x": pd.array(FAR, dtype="double[pyarrow]")}),
    "pandas": pd.DataFrame({"x": FAR}),
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("ends", [(-1e20, 1e20), (-1e20, 1), (0, 1e19), (-1e24, INF)])
def test_ends_beyond_64_bits_are_ends(name, ends):
    """Only infinite ones are none; infinity in a private row is moved to a finite one."""
    got = clamp(FRAMES[name].copy() if name != "polars" else FRAMES[name], read_ranges({"x": ends}))
    values = [float(x) for x in got["x"]]
    assert all(ends[0] <= x <= ends[1] for x in values)
    assert values[0] == ends[1]


@pytest.mark.parametrize("name", ["polars", "UInt64", "uint64[pyarrow]", "uint64"])
@pytest.mark.parametrize("ends", [(0, 1e19), (2**63, 1e19), (0, 2**63), (0, 2**64)])
def test_ends_beyond_signed_integers_are_ends(name, ends):
    """An unsigned column has values there."""
    held = np.array([2**64 - 1, 3, 2**63 + 5], dtype=np.uint64)
    if name == "polars":
        frame = pl.DataFrame({"x": held})
    else:
        frame = pd.DataFrame({"x": pd.array(held.copy(), dtype=name)})
    kind = frame["x"].dtype
    got = clamp(frame, read_ranges({"x": ends}))["x"]
    assert got.dtype == kind
    assert [int(x) for x in got] == [min(max(int(x), int(ends[0])), int(ends[1])) for x in held]


@pytest.mark.parametrize("shape", [(20, 2, 3), (20, 3, 2), (20, 6, 1)])
def test_rows_of_another_shape_with_as_many_numbers(shape, ledger):
    """A sum over the first axis of a row is another function where that axis is shorter."""
    wide = P.Uniform(low=[0.0] * 6, high=[1.0] * 6)
    f = lambda rows: float(np.ravel(rows.sum(axis=1)).max())  # noqa: E731
    s = hs.sample_sensitivity(f, wide, rows=20, workers=1)
    with pytest.raises(BadRows, match="a row of the data has shape"):
        hs.release(f, np.zeros(shape), hs.Laplace(s, epsilon=1.0), ledger, budget="b")


def test_fields_that_hold_rows_of_fields():
    """The same for records: a table of tables has the same names of fields."""
    kind = np.dtype([("age", float)])
    flat = P.PublicTable(np.array([(x,) for x in range(40)], dtype=kind), promise="table")
    s = hs.sample_sensitivity(lambda rows: float(rows["age"].sum()), flat, rows=4, workers=1)
    with pytest.raises(BadRows, match="shape"):
        admit_rows(np.zeros((4, 3), dtype=kind), s.sampling)


@pytest.mark.parametrize("outside", ["clamp", "allow"])
@pytest.mark.parametrize("blocks", [False, True])
def test_a_population_made_from_private_rows_may_have_a_range(outside, blocks):
    """Its ends stay off the certificate, which was therefore taken to contradict itself."""
    source = P.Uniform(low=[3.0, 0.0], high=[4.0, 1.0])
    f = hs.Blockwise(np.sum, rows=5) if blocks else np.sum
    s = hs.sample_sensitivity(f, source, rows=20, pairs=40, workers=1, data_dependent=True)
    data = np.random.default_rng(1).random((20, 2))
    made = hs.release(f, data, hs.Laplace(s, epsilon=1.0), outside=outside).certificate
    assert (made.outside, made.sampling.support) == (outside, ())
    assert hs.verify(made.to_json(), f, population=source).reproduced
