"""What a function is released on has the element types on which it was sampled."""

import array
import collections
import dataclasses
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed._functions._gate import admit_rows
from hushed.errors import BadRows

CODES = np.array([3, 250, 17, 99, 40, 8, 77, 61, 250, 5] * 2)


def far(values):
    """Wraps around in small unsigned integers, and does not in doubles."""
    return float(np.abs(np.asarray(values) - 50).sum())


ROUTES = {
    "array": (np.asarray, far, lambda x: x.dtype),
    "columns": (
        lambda x: np.stack([x, x[::-1]], axis=1),
        lambda t: far(t[:, 0]),
        lambda t: t.dtype,
    ),
    "fields": (
        lambda x: np.array([(v,) for v in x], dtype=[("x", x.dtype)]),
        lambda t: far(t["x"]),
        lambda t: t["x"].dtype,
    ),
    "pandas": (lambda x: pd.DataFrame({"x": x}), lambda t: far(t["x"]), lambda t: t["x"].dtype),
    "polars": (lambda x: pl.DataFrame({"x": x}), lambda t: far(t["x"]), lambda t: t["x"].dtype),
    "list": (list, far, lambda t: np.asarray(t).dtype),
    "rows": (
        lambda x: [{"x": [v]} for v in x],
        lambda t: far([row["x"][0] for row in t]),
        lambda t: np.asarray([row["x"][0] for row in t]).dtype,
    ),
}


def sampled_on(make, f, kind=np.float64, rows=20):
    """Laplace with hardly any noise, from tables of one element type."""
    source = hs.populations.Simulator(lambda rng, n: make(rng.integers(0, 256, n).astype(kind)))
    s = hs.sample_sensitivity(f, source, rows=rows, pairs=12, workers=1)
    return hs.Laplace(s, epsilon=1e9)


@pytest.mark.slow_cases("float32-list", "int16-list", "uint32-list", "uint8-list")
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint32, np.float32])
def test_smaller_types_become_the_sampled_one(route, kind):
    """The same numbers in a smaller type are computed with as the sampled doubles were."""
    make, f, _ = ROUTES[route]
    released = hs.release(f, make(CODES.astype(kind)), sampled_on(make, f))
    assert released.value == pytest.approx(np.abs(CODES - 50.0).sum(), abs=1e-3)


BIG = [2**53 + 1, 2**62 + 12_345, -(2**63) + 1, 5] * 5
HELD = {
    "array": lambda x: x,
    "list": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
    "pandas": lambda x: pd.DataFrame({"x": x}),
    "Arrow": lambda x: pd.DataFrame({"x": x}).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda x: pl.DataFrame({"x": x}),
}


@pytest.mark.parametrize("held", HELD)
def test_integers_beyond_the_doubles_are_rounded_in_every_container(held, ledger):
    """Each to its nearest double, and none gets the table refused: that would tell of a value."""
    make = HELD[held]

    def scaled(rows):
        values = rows if isinstance(rows, list | np.ndarray) else list(rows["x"])
        assert all(isinstance(each, float) for each in values)
        return sum(each / 2.0**50 for each in values)

    source = hs.populations.Simulator(lambda rng, n: make(rng.random(n) * 1e3))
    s = hs.sample_sensitivity(scaled, source, rows=20, pairs=12, workers=1)
    released = hs.release(
        scaled, make(np.array(BIG)), hs.Laplace(s, epsilon=1e9), ledger, budget="x"
    )
    assert released.value == pytest.approx(sum(BIG) / 2**50, abs=1e-3)


@pytest.mark.slow_cases("float32-float64-list", "uint8-float64-list", "uint8-int64-list")
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("kind", "other"), [(np.uint8, np.float64), (np.uint8, np.int64), (np.float32, np.float64)]
)
def test_larger_types_are_refused_whatever_the_values(route, kind, other, ledger):
    """All of these values would fit, but the type does not: it is no matter of values."""
    make, f, _ = ROUTES[route]
    mechanism = sampled_on(make, f, kind)
    for values in (CODES, np.zeros(20)):
        with pytest.raises(BadRows, match="without loss"):
            hs.release(f, make(values.astype(other)), mechanism, ledger, budget="x")
    assert ledger.log == []


@pytest.mark.parametrize("route", ROUTES)
def test_a_population_that_changes_its_type_is_refused(route):
    """One draw of integers among draws of doubles: two functions are sampled as one."""
    make, f, _ = ROUTES[route]

    def draw(rng, n):
        kind = np.float64 if rng.random() < 0.5 else np.int64
        return make(rng.integers(0, 256, n).astype(kind))

    with pytest.raises(BadRows, match="different types"):
        hs.sample_sensitivity(f, hs.populations.Simulator(draw), rows=20, pairs=12, workers=1)


FRAMES = {
    "nullable": ("Int64", "Int8", "Float64"),
    "Arrow": ("double[pyarrow]", "uint8[pyarrow]", "string[pyarrow]"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_nullable_and_arrow_columns(name):
    """They convert within their kind, and to or from no other kind."""
    wanted, smaller, other = FRAMES[name]
    f = lambda t: float(t["x"].astype("float64").sum())  # noqa: E731
    source = hs.populations.PublicTable(
        pd.DataFrame({"x": np.arange(100)}).astype({"x": wanted}).assign(y=1.5), promise="table"
    )
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=20, pairs=12, workers=1), epsilon=1e9)
    seen = []

    def frame(kind):
        return pd.DataFrame({"x": CODES % 100, "y": 1.5}).astype({"x": kind})

    released = hs.release(f, frame(smaller), m)
    assert released.value == pytest.approx((CODES % 100).sum(), abs=1e-3)
    for bad in (other, "int64"):
        with pytest.raises(BadRows, match=r"without loss|column 'x' holds numbers"):
            hs.release(f, frame(bad), m)
    assert seen == []


ARROW = {
    "text": (pa.string(), "a"),
    "large text": (pa.large_string(), "a"),
    "bytes": (pa.binary(), b"\xff"),
    "decimal": (pa.decimal128(10, 2), Decimal(1)),
    "list": (pa.list_(pa.float64()), [1.0]),
    "record": (pa.struct([("a", pa.float64())]), {"a": 1.0}),
}


@pytest.mark.parametrize("wanted", ARROW)
def test_arrow_columns_of_no_numbers_convert_to_no_other(wanted):
    """Bytes that are no text would fail as text, and a refusal would tell that a row holds them."""

    def frame(kind):
        held, value = ARROW[kind]
        return pd.DataFrame({"x": pd.Series([value] * 50, dtype=pd.ArrowDtype(held))})

    source = hs.populations.PublicTable(frame(wanted), promise="table")
    s = hs.sample_sensitivity(lambda t: 1.0 * len(t), source, rows=50, pairs=12, workers=1)
    admit_rows(frame(wanted), s.sampling)
    texts = pd.DataFrame({"x": pd.Series(["a"] * 50)})
    for private in (*(frame(kind) for kind in ARROW if kind != wanted), texts):
        with pytest.raises(BadRows, match="does not convert without loss"):
            admit_rows(private, s.sampling)


def test_categories_in_another_order_are_put_into_the_sampled_one():
    """Codes are what they were; other categories are refused and not named."""
    public = pd.DataFrame({"c": pd.Categorical(list("abcb") * 10, categories=list("abc"))})
    f = lambda t: float(t["c"].cat.codes.sum())  # noqa: E731
    s = hs.sample_sensitivity(
        f, hs.populations.PublicTable(public, promise="table"), rows=4, pairs=12, workers=1
    )
    turned = pd.DataFrame({"c": pd.Categorical(list("aacb"), categories=list("cba"))})
    assert hs.release(f, turned, hs.Laplace(s, epsilon=1e9)).value == pytest.approx(3, abs=1e-6)
    more = pd.DataFrame({"c": pd.Categorical(["a", "b", "c", "Wilhelmina-Quux"])})
    with pytest.raises(BadRows, match="column 'c'") as caught:
        hs.release(f, more, hs.Laplace(s, epsilon=1e9))
    assert "Wilhelmina" not in str(caught.value)


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_of_another_resolution_are_refused(unit):
    """Days are no seconds: what a function computes from them is another number."""
    f = lambda t: float(t["d"].to_numpy().astype(np.int64).mean())  # noqa: E731

    def make(numbers, unit):
        return pd.DataFrame({"d": np.asarray(numbers).astype(f"M8[{unit}]")})

    source = hs.populations.Simulator(lambda rng, n: make(rng.integers(0, 99, n), "s"))
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=20, pairs=12, workers=1), epsilon=1.0)
    other = make(range(20), "s" if unit == "D" else unit)
    if unit == "D":
        assert hs.release(f, other, m)
        other = np.arange(20).astype("M8[D]")
    with pytest.raises(BadRows):
        hs.release(f, other, m)


class Rows(list):
    """A list with rules of its own."""

    def __iter__(self):
        return iter(super().__getitem__(slice(None)))


@pytest.mark.parametrize(
    "make", [lambda x: x.view(np.matrix), lambda x: x.view(np.recarray), np.asfortranarray]
)
def test_subclasses_of_arrays_are_made_plain(make):
    """A matrix multiplies in another way; the function never sees one, in either place."""
    seen = set()

    def f(rows):
        seen.add(type(rows))
        return float((rows * rows).sum())

    square = np.linspace(0, 1, 16).reshape(4, 4)
    source = hs.populations.Simulator(lambda rng, n: make(rng.random((n, 4))))
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=4, pairs=12, workers=1), epsilon=1e9)
    assert hs.release(f, make(square), m).value == pytest.approx((square**2).sum(), abs=1e-5)
    assert seen == {np.ndarray}


def test_unknown_subclasses_are_refused():
    """An array with units, say, computes as it likes."""

    class Metres(np.ndarray):
        def __mul__(self, other):
            return 1000.0

    f = lambda rows: float((rows * rows).sum())  # noqa: E731
    m = sampled_on(np.asarray, f)
    with pytest.raises(BadRows, match=r"np\.asarray"):
        hs.release(f, CODES.astype(float).view(Metres), m)
    with pytest.raises(BadRows, match=r"np\.asarray"):
        sampled_on(lambda x: x.view(Metres), f)


@pytest.mark.slow
def test_a_subclass_of_lists_becomes_a_list():
    """The function gets what it got in the sample."""
    seen = []

    def f(rows):
        seen[:] = [*seen[-2:], type(rows)]  # what grows is looked through at every call
        return float(sum(rows))

    m = sampled_on(lambda x: x.tolist(), f)
    seen.clear()
    hs.release(f, Rows(CODES.astype(float).tolist()), m)
    assert seen == [list, list]  # the first sampled table again, then the private one


MIXED = {
    "integers among doubles": [1.0, 2, 3.0],
    "booleans among doubles": [1.0, True, 3.0],
    "NumPy's doubles": [np.float64(1), 2.0, 3.0],
    "integers": [1, 2, 3],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXED)
def test_mixed_lists_become_the_one_sampled_type(name):
    """Row by row, so that neighbours stay neighbours."""
    kinds = []

    def f(rows):
        kinds[:] = [*kinds[-2:], {type(x) for x in rows}]
        return float(sum(rows))

    source = hs.populations.Simulator(lambda rng, n: rng.random(n).tolist())
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=3, pairs=12, workers=1), epsilon=1.0)
    kinds.clear()
    hs.release(f, MIXED[name], m)
    assert kinds == [{float}, {float}]  # the first sampled table again, then the private one


@pytest.mark.parametrize(
    "rows", [[1.0, "2", 3.0], [1.0, 2j, 3.0], [1.0, [2.0], 3.0], [1.0, np.longdouble(2), 3.0]]
)
def test_other_types_in_lists_are_refused(rows, ledger):
    """A text among numbers, a list among scalars, what is wider than a double."""
    f = lambda rows: float(len(str(rows)))  # noqa: E731
    source = hs.populations.Simulator(lambda rng, n: rng.random(n).tolist())
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=3, pairs=12, workers=1), epsilon=1.0)
    with pytest.raises(BadRows, match="other types of values"):
        hs.release(f, rows, m, ledger, budget="x")
    assert ledger.log == []


RECORDS = {
    "fields": ([("a", "O"), ("b", "f8")], lambda cell: (cell, 0.0), lambda t: t["a"]),
    "fields within fields": (
        [("b", "f8"), ("of", [("a", "O")])],
        lambda cell: (0.0, (cell,)),
        lambda t: t["of"]["a"],
    ),
}
CELLS = {
    "integers": (float, lambda x: int(2 * x), lambda cell: type(cell) is float),
    "keys": (
        lambda x: {"x": float(x), "y": 0.0},
        lambda x: {"y": 0.0, "x": float(x)},
        lambda cell: next(iter(cell)) == "x",
    ),
}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("name", CELLS)
def test_objects_in_fields_become_as_sampled(record, name):
    """Numbers are of the sampled type, and keys in the sampled order, in records as in lists."""
    kind, put, cells_of = RECORDS[record]
    make, other, is_sampled = CELLS[name]

    def f(table):
        return float(sum(map(is_sampled, cells_of(table))))

    def spread(table):
        return f(table) + sum(len(str(cell)) for cell in cells_of(table)) / 1e9

    source = hs.populations.Simulator(
        lambda rng, n: np.array([put(make(x)) for x in rng.random(n)], dtype=kind)
    )
    s = hs.sample_sensitivity(spread, source, rows=4, pairs=12, workers=1)
    rows = np.array([put(other(x)) for x in (0.0, 0.5, 0.6, 0.9)], dtype=kind)
    assert f(rows) == 0  # not as they were sampled
    assert hs.release(spread, rows, hs.Laplace(s, epsilon=1e9)).value == pytest.approx(4, abs=0.1)


def test_arrays_of_objects_in_fields_are_refused(ledger):
    """They are not made anew: another type of numbers there is not let through."""
    kind = [("a", "O", (2,))]

    def f(table):
        return float(sum(sum(row) for row in table["a"]))

    source = hs.populations.Simulator(
        lambda rng, n: np.array([([float(x), 1.0],) for x in rng.random(n)], dtype=kind)
    )
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=3, pairs=12, workers=1), epsilon=1.0)
    same = np.array([([0.5, 1.0],)] * 3, dtype=kind)
    assert hs.release(f, same, m).value > -1e6
    with pytest.raises(BadRows, match="other types of values"):
        hs.release(f, np.array([([1, 1],)] * 3, dtype=kind), m, ledger, budget="x")
    assert ledger.log == []


@dataclasses.dataclass
class Person:
    """A row in a class of one's own."""

    age: float


Named = collections.namedtuple("Named", "age")  # noqa: PYI024
NESTED = {
    "frames": lambda x: pd.DataFrame({"x": x}),
    "series": pd.Series,
    "Polars": lambda x: pl.DataFrame({"x": x}),
    "Polars series": pl.Series,
    "Python's arrays": lambda x: array.array("B" if x.dtype == np.uint8 else "d", x.tolist()),
    "dataclasses": lambda x: Person(x[0]),
    "named tuples": lambda x: Named(x[0]),
}


@pytest.mark.slow_cases("dataclasses", "frames", "series")
@pytest.mark.parametrize("name", NESTED)
def test_what_is_held_within_rows_is_compared(name):
    """A row may be a table itself: small integers in it wrap around as anywhere."""
    f = lambda rows: float(sum(map(ord, "".join(map(str, rows)))))  # noqa: E731

    def draw(rng, n):
        return [NESTED[name](rng.integers(0, 255, 3).astype(float)) for _ in range(n)]

    s = hs.sample_sensitivity(f, hs.populations.Simulator(draw), rows=3, pairs=12, workers=1)
    rows = [NESTED[name](CODES[i : i + 3].astype(np.uint8)) for i in range(3)]
    with pytest.raises(BadRows, match="other types of values"):
        hs.release(f, rows, hs.Laplace(s, epsilon=1.0))


def test_a_list_that_holds_itself():
    """It is no table that anybody samples, but it must not keep a release from ending."""
    rows = [1.0]
    rows.extend([rows] * 10)
    m = hs.Laplace(hs.proven_sensitivity(1.0, argument="a constant"), epsilon=1.0)
    hs.release(lambda rows: 1.0, rows, m)
    with pytest.raises(BadRows):
        hs.release(far, rows, sampled_on(list, far, rows=11))


def test_a_column_of_texts_is_named_as_such():
    """One text makes a column of a CSV file texts: "other" said nothing of that."""
    f = lambda t: float(t["x"].sum())  # noqa: E731
    m = sampled_on(lambda v: pd.DataFrame({"x": v}), f, rows=3)
    told = r"'x' holds numbers in the sample and no numbers \(texts, for example\) in the data"
    with pytest.raises(BadRows, match=told):
        hs.release(f, pd.DataFrame({"x": ["1", "n/a", "3"]}), m)


def test_objects_in_cells_keep_their_types():
    """A column of objects is no way around: texts stay texts, and numbers the sampled ones."""
    f = lambda t: float(sum(map(len, map(str, t["x"]))))  # noqa: E731

    def frame(values):
        return pd.DataFrame({"x": pd.Series([*values, None], dtype=object)})

    source = hs.populations.PublicTable(frame(["a", "bc", "def"] * 9), promise="table")
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=3, pairs=12, workers=1), epsilon=1.0)
    assert hs.release(f, frame(["x", "yz"]), m)
    assert hs.release(f, frame(["x", np.nan]), m)
    with pytest.raises(BadRows, match="column 'x' is of type object in the sample and str"):
        hs.release(f, pd.DataFrame({"x": ["x", "yz", None]}), m)
    with pytest.raises(BadRows, match="column 'x'"):
        hs.release(f, frame(["x", 2.5]), m)


def test_what_hangs_on_a_frame_does_not_reach_the_function():
    """Index, attributes, flags and names of axes are gone, in the sample and in the release."""
    seen = set()

    def f(t):
        told = (t.attrs, t.flags.allows_duplicate_labels, t.columns.name, list(t.index))
        seen.add(repr(told))
        return float(t["x"].sum())

    def frame(note):
        made = pd.DataFrame({"x": np.linspace(0, 1, 30)}, index=range(100, 130))
        made.attrs["note"] = note
        made.columns.name = note
        return made

    source = hs.populations.PublicTable(frame("public"), promise="table")
    s = hs.sample_sensitivity(f, source, rows=5, pairs=12, workers=1)
    private = (frame("private").iloc[3:8] * 0.3).set_flags(allows_duplicate_labels=False)
    hs.release(f, private, hs.Laplace(s, epsilon=1.0))
    assert seen == {repr(({}, True, None, list(range(5))))}


def test_a_frame_that_lies_about_its_order_is_no_way_around():
    """Polars believes a column that is said to be sorted; the function sees one that is not."""
    f = lambda t: float(t["x"].max())  # noqa: E731
    source = hs.populations.Simulator(lambda rng, n: pl.DataFrame({"x": rng.random(n)}))
    m = hs.Laplace(hs.sample_sensitivity(f, source, rows=4, pairs=12, workers=1), epsilon=1e9)
    wrong = pl.DataFrame({"x": [0.5, 0.9, 0.1, 0.2]}).with_columns(pl.col("x").set_sorted())
    assert hs.release(f, wrong, m).value == pytest.approx(0.9, abs=1e-6)


def test_no_row_decides_what_is_said_of_a_whole_column():
    """Polars notes that no list is empty, which one row changes: nothing is said of drawn rows."""
    seen = []

    def noted(table):
        seen.append(dict(table["x"].flags))
        return float(table["x"].list.sum().mean())

    source = hs.populations.PublicTable(pl.DataFrame({"x": [[k / 500] for k in range(500)]}))
    m = hs.Laplace(hs.sample_sensitivity(noted, source, rows=4, pairs=12, workers=1), epsilon=1)
    known = set(map(repr, seen))
    hs.release(noted, pl.DataFrame({"x": [[0.1], [0.2], [0.3], [0.4]]}), m)
    assert set(map(repr, seen)) == known


def cells(table):
    """Share of cells that are filled, among all that the width of the texts leaves room for."""
    letters = np.ascontiguousarray(table["t"] if table.dtype.names else table)
    return float((letters.view(f"{letters.dtype.kind}1") != letters.dtype.type()).mean())


TEXTS = {
    "texts": np.array,
    "bytes": lambda held: np.array(held).astype("S"),
    "fields": lambda held: np.array(held).astype([("t", np.array(held).dtype)]),
}


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
def test_the_longest_text_does_not_set_the_width(make, ledger):
    """The width of an array follows from one row, and would move what is seen of all others."""
    public = make(["ab", "cdefgh"] * 500)
    s = hs.sample_sensitivity(
        cells, hs.populations.PublicTable(public), rows=20, gamma=0.2, workers=1
    )
    mechanism = hs.Laplace(s, epsilon=1e9)
    assert hs.release(cells, make(["abc"] * 20), mechanism).value == pytest.approx(0.5, abs=1e-6)
    with pytest.raises(BadRows) as refused:
        hs.release(cells, make(["abc"] * 19 + ["x" * 1234]), mechanism, ledger, budget="x")
    assert "1234" not in str(refused.value)
    assert ledger.log == []


def test_a_simulator_keeps_one_width_of_texts():
    """What is sampled is what the gate lets through."""
    source = hs.populations.Simulator(
        lambda rng, n: np.array(["x" * (1 + int(k)) for k in rng.integers(0, 9, n)])
    )
    with pytest.raises(BadRows, match="one width"):
        hs.sample_sensitivity(cells, source, rows=3, pairs=12, workers=1)


def codes(frame):
    """Numbers by which a column of categories is held."""
    return float(frame["c"].to_physical().mean())


def test_categories_that_are_numbered_as_they_come_up_are_refused(ledger):
    """A first row alone may move the numbers of all others; of an Enum it does not."""
    texts = pl.Series("c", ["a", "b", "c", "b"] * 300)
    rare = pl.Series("c", ["zz", "yy", "yy", "yy"])
    kind = pl.Enum(["a", "b", "c", "yy", "zz"])

    def asked(dtype, f=codes):
        source = hs.populations.PublicTable(texts.cast(dtype).to_frame())
        s = hs.sample_sensitivity(f, source, rows=4, gamma=0.2, workers=1)
        return hs.Laplace(s, epsilon=1e9)

    assert hs.release(codes, rare.cast(kind).to_frame(), asked(kind)).value == pytest.approx(3.25)
    with pytest.raises(BadRows, match="Enum"):
        asked(pl.Categorical)
    plain = asked(pl.String, first := lambda frame: float((frame["c"] < "b").mean()))
    with pytest.raises(BadRows, match="Enum"):
        hs.release(first, rare.cast(pl.Categorical).to_frame(), plain, ledger, budget="x")
    assert ledger.log == []


FORMS = {
    "dicts": (lambda x: {"a": x, "b": 1.0}, [{"b": 1.0}, {"a": 0.5}, {}], {"a": (0, 1)}),
    "tuples": (lambda x: (x, 1.0), [(0.5,), ()], [(0, 1), (0, 1)]),
    "lists": (lambda x: [x, 1.0], [[0.5], [0.5, 1.0, 77.0], []], [(0, 1), (0, 1)]),
    "arrays": (lambda x: np.array([x, 1.0]), [np.full(3, 77.0), np.full(1, 0.5)], [(0, 1)] * 2),
    "objects": (
        lambda x: np.array([x, 1.0], dtype=object),
        [np.array([0.5, 1.0, 77.0], dtype=object)],
        None,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_rows_with_less_or_more_in_them_than_any_sampled_one(name, ledger):
    """Where all rows have one form, no bound reaches what a row has besides, or has not."""
    make, odd, bounds = FORMS[name]

    def f(rows):  # a row that lacks something counts as a hundred
        held = [list(row.values()) if isinstance(row, dict) else list(row) for row in rows]
        return float(sum(np.sum(each) if len(each) else 100 for each in held))

    source = hs.populations.Simulator(
        lambda rng, n: [make(float(x)) for x in rng.random(n)], bounds=bounds
    )
    s = hs.sample_sensitivity(f, source, rows=4, pairs=12, workers=1)
    mechanism = hs.Laplace(s, epsilon=1e9)
    plain = [make(0.5)] * 3
    assert hs.release(f, [*plain, make(0.25)], mechanism).value == pytest.approx(5.75, abs=1e-3)
    for row in odd:
        with pytest.raises(BadRows, match="lengths or keys"):
            hs.release(f, [*plain, row], mechanism, ledger, budget="x")
        with pytest.raises(BadRows, match="lengths or keys"):
            hs.release(f, [row] * 4, mechanism, ledger, budget="x")
    assert ledger.log == []


def test_rows_of_many_lengths_keep_them():
    """Where lengths vary among the sampled rows, the data may have any."""
    source = hs.populations.Simulator(
        lambda rng, n: [rng.random(1 + int(k)) for k in rng.integers(0, 9, n)]
    )

    def f(rows):
        return float(sum(row.sum() for row in rows))

    s = hs.sample_sensitivity(f, source, rows=4, pairs=12, workers=1)
    data = [np.full(k, 0.5) for k in (1, 20, 3, 3)]
    assert hs.release(f, data, hs.Laplace(s, epsilon=1e9)).value == pytest.approx(13.5, abs=1e-3)
