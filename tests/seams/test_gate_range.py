"""Private rows outside of the population's public range are moved into it, row by row."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed._functions._gate import admit_rows
from hushed._rows._containers import is_same, layout
from hushed._rows._owned import copy_rows
from hushed._rows._ranges import Range, clamp
from hushed.errors import BadRows, ParameterError
from hushed.populations import support

P = hs.populations
NAN, INF = math.nan, math.inf


def mean(rows):
    return float(np.mean(np.asarray(rows, dtype=float)))


def released(f, data, population, **settings):
    s = hs.sample_sensitivity(f, population, rows=len(data), pairs=12, workers=1)
    return hs.release(f, data, hs.Laplace(s, epsilon=1e9), **settings)


FRAME = pd.DataFrame({"age": [20, 40, 60] * 9, "pay": [0.5, 1.5, 2.5] * 9})
BOUNDS = {"age": (0, 120), "pay": (0.0, 3.0)}


def held(frame):
    """The same rows in every container, none in the memory of another."""
    small = frame.astype({"age": "uint8", "pay": "float32"})
    return {
        "pandas": frame,
        "small": small,
        "nullable": frame.astype({"age": "Int16", "pay": "Float64"}),
        "Arrow": frame.astype({"age": "int64[pyarrow]", "pay": "double[pyarrow]"}),
        "polars": pl.from_pandas(frame),
        "small polars": pl.from_pandas(small),
        "fields": frame.to_records(index=False),
        "dicts": frame.to_dict("records"),
    }


KINDS = held(FRAME)


def columns(rows):
    """Columns as arrays of doubles, whatever holds them."""
    if isinstance(rows, list):
        return [np.array([float(row[name]) for row in rows]) for name in BOUNDS]
    return [np.asarray(rows[name], dtype=float) for name in BOUNDS]


@pytest.mark.parametrize("name", KINDS)
def test_the_far_row_counts_as_the_end_of_the_range(name):
    """Bounds given with a table hold for every container, and the types stay."""
    public = KINDS[name]
    private = held(FRAME[:5].copy())[name]  # rows cut from the table lie in its memory
    if isinstance(private, pl.DataFrame):
        pay = pl.Series("pay", [0.5, 1.5, 1e6, -7.0, 1.0], dtype=private.dtypes[1])
        private = private.with_columns(pay)
    elif isinstance(private, pd.DataFrame):
        pay = pd.Series([0.5, 1.5, 1e6, -7.0, 1.0], dtype=private["pay"].dtype)
        private["pay"] = pay
    else:
        for place, value in enumerate([0.5, 1.5, 1e6, -7.0, 1.0]):
            private[place]["pay"] = value
    wanted = layout(copy_rows(public)).types

    def f(rows):
        assert layout(rows).types == wanted  # one that notes them is asked in a new process, too
        return float(columns(rows)[1].sum())

    r = released(f, private, P.PublicTable(public, bounds=BOUNDS, promise="table"))
    assert r.value == pytest.approx(0.5 + 1.5 + 3 + 0 + 1, abs=1e-5)
    assert "clamped to [0, 120] in 'age', [0, 3] in 'pay'" in r.certificate.explain()


@pytest.mark.parametrize("ends", [(0.1, 100.7), (0.9, 100.3)])  # single precision: in, out
@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "u1", "i2"])
def test_every_value_of_a_type_lands_inside(kind, ends):
    """Also where an end is no value of the type: then at the last one before it."""
    if kind[0] == "f":
        given = np.array([-INF, -1, 0, 0.05, 0.1, 50, 100.7, 101, 6e4, INF, NAN], dtype=kind)
    else:
        info = np.iinfo(kind)
        given = np.array([info.min, 0, 1, 50, 100, 101, info.max], dtype=kind)
    (one,) = (Range(column="", low=ends[0], high=ends[1]),)
    found = clamp(copy_rows(given), (one,))
    assert found.dtype == given.dtype
    assert ((found.astype(float) >= ends[0]) & (found.astype(float) <= ends[1])).all()
    inside = (given.astype(float) >= ends[0]) & (given.astype(float) <= ends[1])
    assert np.array_equal(found[inside], given[inside])
    if kind[0] == "f":
        assert found[-1] == found[0]  # NaN goes where minus infinity goes


TRUTHS = {
    "array": lambda x: np.array(x, dtype=bool),
    "pandas": lambda x: pd.DataFrame({"x": np.array(x, dtype=bool)}),
    "nullable": lambda x: pd.DataFrame({"x": pd.array(x, dtype="boolean")}),
    "Arrow": lambda x: pd.DataFrame({"x": pd.array(x, dtype="bool[pyarrow]")}),
    "polars": lambda x: pl.DataFrame({"x": pl.Series(x, dtype=pl.Boolean)}),
    "list": lambda x: [{"x": value} for value in x],
}


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("ends", [(0, 1), (0.5, 3), (-INF, 0.5)])
def test_truth_values_have_a_range_too(name, ends):
    """What is missing becomes an end of it, as of numbers, and a value outside the other one."""
    make = TRUTHS[name]
    (one,) = (Range(column="" if name == "array" else "x", low=ends[0], high=ends[1]),)
    private = [True, False, True] if name in ("array", "pandas", "list") else [None, False, True]
    found = clamp(copy_rows(make(private)), (one,))
    told = [row["x"] for row in found] if name == "list" else np.ravel(found).tolist()
    low, high = bool(ends[0] > 0), bool(ends[1] >= 1)
    first = high if private[0] else low if math.isfinite(ends[0]) else high
    assert told == [first, low, high]
    assert layout(found).types == layout(make([True, False, True])).types


@pytest.mark.parametrize("kind", ["?", "u1", "i8", "f2"])
def test_a_range_without_a_value_of_the_type_is_refused(kind):
    """Rows could be moved to no place in it, and the certificate says that they are there."""
    ends = {"?": (0.2, 0.8), "u1": (300, 400), "i8": (0.2, 0.8), "f2": (0.1, 0.1000001)}[kind]
    with pytest.raises(ParameterError, match="no number of type"):
        P.PublicTable(np.full(5, 255).astype(kind), bounds=ends)


HELD = {
    "pandas": lambda x: pd.DataFrame({"x": x}),
    "nullable": lambda x: pd.DataFrame({"x": x}).convert_dtypes(dtype_backend="numpy_nullable"),
    "Arrow": lambda x: pd.DataFrame({"x": x}).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda x: pl.DataFrame({"x": x}),
    "list": lambda x: [{"x": value} for value in x],
    "plain list": lambda x: [{"x": value} for value in x.tolist()],
}


@pytest.mark.parametrize("ends", [(0, INF), (-INF, 5), (-5, 1e300), (0.5, 3.5), (-1e300, 0)])
@pytest.mark.parametrize("kind", ["u8", "i8", "u1", "f4", "f8"])
@pytest.mark.parametrize("name", HELD)
def test_every_container_moves_rows_to_the_same_place(name, kind, ends):
    """Numbers are moved as in an array, and keep their type."""
    values = np.array([0, 1, 2, 100, 7], dtype=kind)
    if kind[0] == "f":
        values[4] = 0.25  # or pandas would take them for integers
    low, high = ends
    wanted = [min(max(x, low), high) for x in values.tolist()]
    if kind[0] != "f":
        wanted = [min(max(x, math.ceil(max(low, -9))), math.floor(min(high, 999))) for x in values]
    given = HELD[name](values)
    found = clamp(copy_rows(given), (Range(column="x", low=low, high=high),))
    assert layout(found).types == layout(given).types
    column = [row["x"] for row in found] if isinstance(found, list) else found["x"].to_list()
    assert [float(x) for x in column] == [float(x) for x in wanted]


def draws(population, count=500):
    for seed in range(20):
        yield population.draw(np.random.default_rng(seed), count)


POPULATIONS = [
    P.Uniform(low=0, high=1),
    P.Uniform(low=[-3.0, 0.1, 5], high=[1e9, 0.3, 5]),
    P.Uniform(low=1e16, high=1e16 + 6),
    P.Uniform(low=-0.1, high=0.7),
    P.Exponential(rate=3.0),
    P.Exponential(rate=[1e-300, 1e300]),
    P.Normal(),
    P.PublicTable(FRAME, bounds=BOUNDS, promise="table"),
    P.PublicTable(FRAME, promise="table"),
    P.PublicTable(pd.DataFrame({"x": [1.0, NAN, 3.0]}), bounds={"x": (0, 5)}, promise="table"),
    P.PublicTable(pl.DataFrame({"x": [1.0, None, NAN]}), bounds={"x": (0, 5)}, promise="table"),
    P.PublicTable(np.array([[1.0, 2.0], [3.0, 4.0]]), bounds=[(0, 3), None], promise="table"),
    P.PublicTable([1, 2, 3], bounds=(0, 5), promise="table"),
    P.PublicTable([(1, 2.5), (3, 4.5)], bounds=[None, (2, 5)], promise="table"),
    P.Simulator(lambda rng, n: rng.beta(2, 3, n), bounds=(0, 1)),
]


@pytest.mark.parametrize("number", range(len(POPULATIONS)))
def test_rows_of_the_population_stay_as_they_are(number):
    """Otherwise another function would be released than was sampled."""
    population = POPULATIONS[number]
    for table in draws(population):
        ranges = support(population, layout(table))
        assert is_same(clamp(copy_rows(table), ranges), table)


def test_rounding_does_not_lead_out_of_a_box():
    """The largest number that is drawn is the end, and not the double after it."""
    low, high = 0.1, 0.3
    box = P.Uniform(low=low, high=high)

    class Last:
        def random(self, shape):
            return np.full(shape, 1 - 2.0**-53)

    assert box.draw(Last(), 3).max() <= high
    worst = P.Uniform(low=-1.0, high=1.0 + 2.0**-52)
    assert worst.draw(Last(), 3).max() <= 1.0 + 2.0**-52


LISTED = {
    "whole numbers": (int, (0.5, 99.5), None, [1, 7]),
    "numbers of NumPy": (np.int16, (0.5, 99.5), None, [np.int16(1), np.int16(7)]),
    "singles": (np.float32, (0.1, 99.5), None, [np.float32(0.1), np.float32(7)]),
    "truth values": (bool, (0, 1), None, [False, True]),
    "pairs": (lambda x: (x, x), {"1": (0.5, 99)}, (7, None), [(7, 1), (7, 7)]),
    "lists": (lambda x: [x, x], [None, (2, 99)], [7, None], [[7, 2], [7, 7]]),
    "records": (lambda x: {"x": x}, {"x": (-INF, 99.5)}, {"x": None}, [{"x": 99}, {"x": 7}]),
}


@pytest.mark.parametrize("kind", LISTED)
def test_a_missing_cell_of_a_list_becomes_a_number_as_others_are(kind):
    """Not a float among whole numbers, on which a function may do something else."""
    make, bounds, gone, wanted = LISTED[kind]
    public = P.Simulator(
        lambda rng, n: [make(int(x)) for x in rng.integers(2, 99, n)], bounds=bounds
    )
    s = hs.sample_sensitivity(lambda rows: len(str(rows)), public, rows=9, gamma=0.3, workers=1)
    found = admit_rows([gone, *[make(7)] * 8], s.sampling)
    assert repr(found[:2]) == repr(wanted)


@pytest.mark.slow
def test_a_range_with_one_end():
    """Below 0 there is no waiting time; above, any is possible."""
    data = np.array([-5.0, 0.5, 1e9, NAN, 1.0])
    seen = {}
    r = released(
        lambda rows: seen.update(last=rows.tolist()) or 1e-9 * mean(rows), data, P.Exponential()
    )
    assert seen["last"] == [0, 0.5, 1e9, 0, 1]
    assert "clamped to [0, infinity)" in r.certificate.explain()


@pytest.mark.slow
def test_missing_values_stay_where_the_population_has_them():
    """A NaN that was sampled is no row outside; where none was, it becomes the low end."""
    seen = {}

    def f(rows):
        seen["last"] = rows["x"].tolist()
        return float(rows["x"].fillna(9).sum())

    data = pd.DataFrame({"x": [NAN, 2.0, -1.0]})
    known = pd.DataFrame({"x": [1.0, NAN, 3.0]})
    released(f, data, P.PublicTable(known, bounds={"x": (0.5, 5)}, promise="table"))
    assert np.isnan(seen["last"][0])
    assert seen["last"][1:] == [2, 0.5]
    full = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    released(f, data, P.PublicTable(full, bounds={"x": (0.5, 5)}, promise="table"))
    assert seen["last"] == [0.5, 2, 0.5]


def test_letting_them_pass_is_said(private):
    """Explicit, and the certificate says what is not covered."""
    f = lambda rows: float(rows.mean())  # noqa: E731
    r = released(f, private, P.Uniform(low=0, high=1), outside="allow")
    assert r.value > 1000
    assert r.certificate.outside == "allow"
    assert "a table that holds such rows is not covered" in r.certificate.explain()
    r = released(f, private, P.Uniform(low=0, high=1))
    assert r.value < 1
    assert r.certificate.outside == "clamp"
    assert hs.Certificate.from_json(r.certificate.to_json()) == r.certificate
    assert hs.verify(r.certificate, f).reproduced
    with pytest.raises(ParameterError, match="outside must be one of"):
        released(f, private, P.Uniform(low=0, high=1), outside="ignore")


def test_no_range_is_said():
    """A normal law has no range, nor has a table without bounds: its extremes are none."""
    data = np.linspace(0, 1, 20)
    for population in (
        P.Normal(),
        P.PublicTable(np.random.default_rng(4).random(500), promise="table"),
    ):
        c = released(mean, data, population).certificate
        assert c.outside == "no range"
        assert c.sampling.support == ()
        assert "no stated range" in c.explain()


def test_an_altered_range_does_not_verify():
    """The range is that of the population, as its description says."""
    c = released(mean, np.linspace(0, 1, 20), P.Uniform(low=0, high=1)).certificate
    loaded = json.loads(c.to_json())
    loaded["sampling"]["support"][0][2] = 1000.0
    with pytest.raises(ParameterError, match="contradicts itself"):
        hs.verify(json.dumps(loaded), mean)


def test_a_declared_private_range_stays_off_the_certificate(private, assert_silent):
    """The ends came from the rows; that rows were clamped may be said."""
    source = P.Uniform(low=987654.321, high=987654.421)
    s = hs.sample_sensitivity(mean, source, rows=20, pairs=12, workers=1, data_dependent=True)
    c = hs.release(mean, private, hs.Laplace(s, epsilon=1.0)).certificate
    assert c.sampling.support == ()
    assert "clamped to the range of the population" in c.explain()
    assert_silent(c.to_json())
    assert_silent(c.explain())


class Own:
    """A population of the user's, with a range in the words of bounds."""

    def __init__(self, bounds, width=1.0):
        self.bounds, self.width = bounds, width

    def draw(self, rng, count):
        return rng.random((count, 2)) * self.width

    def describe(self):
        return {"kind": "own"}

    def support(self):
        return self.bounds


def test_a_population_of_ones_own_states_its_range():
    """As a sequence of pairs; one that it does not keep to is refused."""
    data = np.array([[0.5, 7.0], [-3.0, 0.5], [0.1, 0.1]])
    r = released(mean, data, Own([(0, 1), (0, 1)]))
    assert r.value == pytest.approx((0.5 + 1 + 0 + 0.5 + 0.2) / 6, abs=1e-6)
    assert "[0, 1] in columns '0', '1'" in r.certificate.explain()
    with pytest.raises(BadRows, match="outside of the range"):
        released(mean, data, Own([(0, 1), (0, 1)], width=2.0))
    with pytest.raises(ParameterError, match="not a column of numbers"):
        released(mean, data, Own({"age": (0, 1)}))


@pytest.mark.parametrize("batch", [False, True])
def test_every_draw_keeps_to_the_stated_range(batch):
    """Not the first table alone: what lies outside is sampled and never released."""

    class Rare(Own):
        def draw(self, rng, count):
            return rng.random((count, 2)) * np.where(rng.random((count, 1)) < 0.02, 50, 1)

    f = (lambda tables: tables.mean(axis=(1, 2))) if batch else mean
    with pytest.raises(BadRows, match="outside of the range"):
        hs.sample_sensitivity(
            f, Rare([(0, 1), (0, 1)]), rows=3, pairs=200, batch=batch, workers=1, seed=1
        )


def test_a_table_that_left_its_bounds_since_is_refused():
    """The caller's array may be written to after the bounds were checked."""
    public = np.random.default_rng(0).random(2000)
    source = P.PublicTable(public, bounds=(0, 1))
    public[1234] = 99.0
    with pytest.raises(ParameterError, match="outside of the bounds"):
        hs.sample_sensitivity(mean, source, rows=10, gamma=0.2, workers=1)


@pytest.mark.parametrize("make", [np.array, list])
def test_ends_that_are_written_to_afterwards_stay_what_they_were(make):
    """What is drawn, described and clamped to is one box, and one law."""
    ends = [make([0.0, 0.0]), make([1.0, 2.0])]
    made = [P.Uniform(*ends), P.Normal(*ends), P.Exponential(ends[1])]
    told = [json.dumps(each.describe()) for each in made]
    rows = [each.draw(np.random.default_rng(1), 9) for each in made]
    for end in ends:
        end[1] = 50.0
    assert [json.dumps(each.describe()) for each in made] == told
    assert [(each.low, each.high) for each in made[0].support()] == [(0, 1), (0, 2)]
    for each, before in zip(made, rows, strict=True):
        assert np.array_equal(each.draw(np.random.default_rng(1), 9), before)
    assert P.Uniform([0, 0], [1, 2]) == made[0]


@pytest.mark.parametrize(
    "bounds", [3, "ab", (1, 0), (0, NAN), {"x": 5}, {"x": (0, 1, 2)}, [(0, 1), 5], (-INF, INF)]
)
def test_what_are_no_bounds(bounds):
    """Refused where they are given."""
    with pytest.raises(ParameterError, match="bounds"):
        P.Simulator(lambda rng, n: rng.random(n), bounds=bounds)


@pytest.mark.slow
def test_columns_without_a_name_of_their_own():
    """Numbers as labels are named by their text; two columns of one name by nothing."""
    public = pd.DataFrame(np.full((9, 2), 0.5))
    f = lambda rows: float(rows[1].sum()) + 1e-9 * float(rows.to_numpy().sum())  # noqa: E731
    for bounds in ({1: (0, 1)}, {"1": (0, 1)}):
        source = P.PublicTable(public + np.arange(9)[:, None] / 100, bounds=bounds, promise="table")
        assert released(f, public + 7, source).value == pytest.approx(9, abs=1e-3)
    double = pd.DataFrame(np.full((9, 2), 0.5), columns=["a", "a"])
    with pytest.raises(ParameterError, match="no single one"):
        P.PublicTable(double, bounds={"a": (0, 1)}, promise="table")


def test_bounds_that_public_rows_leave():
    """A table or simulator outside of its own bounds is another population than is said."""
    with pytest.raises(ParameterError, match="public rows lie outside"):
        P.PublicTable(FRAME, bounds={"age": (0, 50)}, promise="table")
    with pytest.raises(ParameterError, match="not a column of numbers"):
        P.PublicTable(FRAME.assign(age="x"), bounds={"age": (0, 50)}, promise="table")
    for draw in (lambda rng, n: rng.random(n) * 2, lambda rng, n: np.where(rng.random(n), NAN, 1)):
        with pytest.raises(BadRows, match="outside of its bounds"):
            released(mean, np.zeros(5), P.Simulator(draw, bounds=(0, 1)))


def test_the_certificate_names_the_ends_of_the_range():
    """As they are, both of them: a reader can tell which rows were moved."""
    population = hs.populations.Uniform(low=2.5, high=3.75)
    sampled = hs.sample_sensitivity(np.mean, population, rows=6, gamma=0.3, workers=1)
    made = hs.release(np.mean, np.linspace(2, 4, 6), hs.Laplace(sampled, epsilon=1.0))
    assert "clamped to [2.5, 3.75]" in made.certificate.explain()


def test_ends_of_many_digits_are_printed_as_they_are():
    """Rounded to fewer digits, the range on the certificate would be another one."""
    low, high = 1 / 3, 1e15 + 0.125
    population = hs.populations.Uniform(low=low, high=high)
    sampled = hs.sample_sensitivity(np.mean, population, rows=6, gamma=0.3, workers=1)
    made = hs.release(np.mean, np.linspace(2, 4, 6), hs.Laplace(sampled, epsilon=1.0))
    median = hs.statistics.median(low=low, high=high)
    inverse = hs.InverseSensitivity(median, epsilon=1.0)
    for words in (made, hs.release(median, np.linspace(2, 4, 7), inverse)):
        assert f"[{low!r}, {high!r}]" in words.certificate.explain()
