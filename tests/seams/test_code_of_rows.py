"""What rows bring along is as sampled, too: the order of their keys, and what their methods do."""

import collections
import dataclasses
import datetime
import os
from collections import OrderedDict

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import hushed as hs
from hushed.errors import BadFunction, BadRows

CELLS = {"a list": list, "a frame": lambda rows: pd.DataFrame({"row": pd.Series(list(rows))})}


def sampled(f, draw, **settings):
    return hs.sample_sensitivity(
        f, hs.populations.Simulator(draw), **{"rows": 8, "pairs": 8, "workers": 1} | settings
    )


def refuses(kind, words, f, rows, sensitivity, ledger):
    with pytest.raises(kind, match=words):
        hs.release(f, rows, hs.Laplace(sensitivity, epsilon=1), ledger=ledger, budget="x")
    assert ledger.log == []


@pytest.mark.slow_cases("a frame-OrderedDict")
@pytest.mark.parametrize("make", [dict, OrderedDict])
@pytest.mark.parametrize("held", CELLS)
def test_keys_come_in_the_sampled_order(held, make):
    """A function that takes what stands first is given what stood first."""
    f = lambda rows: float(np.mean([next(iter(r.values())) for r in _cells(rows)]))  # noqa: E731

    def draw(rng, n):
        low, high = rng.random(n), 1e9 + rng.random(n)
        return CELLS[held]([make(a=x, b=make(c=y, d=x)) for x, y in zip(low, high, strict=True)])

    turned = CELLS[held]([make(b=make(d=0.5, c=1e9), a=0.5) for _ in range(8)])
    s = sampled(f, draw)
    assert abs(hs.release(f, turned, hs.Laplace(s, epsilon=1)).value - 0.5) < 100


def _cells(rows):
    return rows if isinstance(rows, list) else rows["row"]


def test_keys_in_no_fixed_order_stay_as_they_are():
    """The sample has seen both orders; rows without a key have the order of the others."""

    def draw(rng, n):
        both = ({"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0})
        return [dict(both[i]) for i in rng.integers(2, size=n)]

    first = lambda rows: sum(next(iter(r)) == "a" for r in rows) / len(rows)  # noqa: E731
    s = sampled(first, draw)
    rows = [{"b": 2.0, "a": 1.0}] * 8
    assert abs(hs.release(first, rows, hs.Laplace(s, epsilon=1e4)).value) < 0.1


CLASS = """
class Person:
    factor = {factor}

    def __init__(self, age):
        self.age = age

    def __eq__(self, other):
        return self.age == other.age

    def weigh(self):
        return self.age * self.factor if self.age < 2 else {late}
"""


def make_class(factor=1.0, late=0.0):
    known = {"__name__": "__main__"}
    exec(CLASS.format(factor=factor, late=late), known)
    return known["Person"]


class Holder:  # noqa: PLW1641
    """An object that holds another one, and has no fields that say so."""

    def __init__(self, inner):
        self.inner = inner

    def __eq__(self, other):
        return self.inner == other.inner

    def weigh(self):
        """Ask what it holds."""
        return self.inner.weigh()


@pytest.mark.slow_cases(
    "a frame-change0-<lambda>0",
    "a frame-change0-<lambda>1",
    "a frame-change0-<lambda>2",
    "a frame-change0-Holder",
    "a frame-change1-<lambda>0",
    "a frame-change1-<lambda>1",
    "a frame-change1-<lambda>2",
    "a frame-change1-Holder",
    "a list-change0-Holder",
    "a list-change1-Holder",
)
@pytest.mark.parametrize("wrap", [lambda x: x, Holder, lambda x: (x,), lambda x: {"p": x}])
@pytest.mark.parametrize("change", [{"factor": 1e6}, {"late": 1e6}])
@pytest.mark.parametrize("held", CELLS)
def test_a_class_that_only_has_the_name_is_refused(held, change, wrap, ledger):
    """A cell of a notebook that was run again: the rows are of another class than the sampled."""
    old, new = make_class(), make_class(**change)
    people = [wrap(old(float(x))) for x in np.random.default_rng(1).random(900)]
    population = hs.populations.PublicTable(CELLS[held](people))

    def f(rows):
        total = 0.0
        for row in _cells(rows):
            inner = row[0] if isinstance(row, tuple) else row["p"] if isinstance(row, dict) else row
            total += inner.weigh()
        return total

    s = hs.sample_sensitivity(f, population, rows=8, pairs=8, workers=1)
    refuses(BadRows, "its name", f, CELLS[held]([wrap(new(0.5))] * 8), s, ledger)
    same = CELLS[held]([wrap(old(0.5)) for _ in range(8)])
    assert abs(hs.release(f, same, hs.Laplace(s, epsilon=1)).value - 10) < 100


def test_a_class_that_changed_since_is_refused(ledger):
    """Its objects are those that were sampled, and do something else."""
    kind = make_class()
    people = [kind(float(x)) for x in np.random.default_rng(1).random(900)]
    f = lambda rows: float(sum(row.weigh() for row in rows))  # noqa: E731
    s = hs.sample_sensitivity(f, hs.populations.PublicTable(people), rows=8, pairs=8, workers=1)
    kind.weigh = lambda self: self.age if self.age != 0.5 else 1e6
    refuses((BadRows, BadFunction), "changed|class", f, [kind(0.5)] * 8, s, ledger)


def held(limit: 2.0):
    pass


READ = {
    "a variable of the environment": (
        lambda self: min(self.age, float(os.environ["HUSHED_LIMIT"])),
        lambda patch: patch.setenv("HUSHED_LIMIT", "0.99"),
    ),
    "an annotation": (
        lambda self: min(self.age, held.__annotations__["limit"]),
        lambda patch: patch.setitem(held.__annotations__, "limit", 0.99),
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_methods_of_rows_read_counts(case, ledger, monkeypatch):
    """It is looked up when it is read, as by the function itself, and no row has met it yet."""
    monkeypatch.setenv("HUSHED_LIMIT", "2")
    kind = make_class()
    kind.weigh, change = READ[case]
    people = [kind(0.9 * float(x)) for x in np.random.default_rng(1).random(900)]
    f = lambda rows: float(sum(row.weigh() for row in rows))  # noqa: E731
    s = hs.sample_sensitivity(f, hs.populations.PublicTable(people), rows=8, pairs=8, workers=1)
    change(monkeypatch)
    refuses((BadRows, BadFunction), "changed|class", f, [kind(0.5)] * 8, s, ledger)


@pytest.mark.slow_cases("a dataclass")
@pytest.mark.parametrize("kind", ["a dataclass", "a named tuple"])
def test_a_class_that_went_through_a_pickle_is_the_same(kind):
    """As where a thread of this process is a worker: its methods are made anew, and do the same."""
    if kind == "a dataclass":
        known = {"__name__": "__main__", "dataclasses": dataclasses}
        exec("@dataclasses.dataclass\nclass Person:\n    age: float", known)
        made = known["Person"]
    else:
        made = collections.namedtuple("Person", ["age"])  # noqa: PYI024
    made.__module__ = "__main__"
    f = lambda rows: float(sum(row.age for row in rows))  # noqa: E731
    s = sampled(f, lambda rng, n: [made(float(x)) for x in rng.random(n)])
    assert cloudpickle.loads(cloudpickle.dumps(made)) is made
    assert hs.release(f, [made(0.5)] * 8, hs.Laplace(s, epsilon=1))


@pytest.mark.slow
def test_a_class_that_counts_its_objects_is_named():
    """What changes by itself is no change since: the certificate says that nobody watches it."""
    known = {"__name__": "__main__"}
    exec(
        "class Row:\n    made = 0\n    def __init__(self, x):\n        self.x = x\n"
        "        Row.made += 1\n    def __eq__(self, other): return self.x == other.x",
        known,
    )
    draw = lambda rng, n: [known["Row"](float(x)) for x in rng.random(n)]  # noqa: E731
    f = lambda rows: float(sum(row.x for row in rows))  # noqa: E731
    s = sampled(f, draw)
    assert s.sampling.unwatched == ("rows' Row.made",)
    assert hs.release(f, draw(np.random.default_rng(0), 8), hs.Laplace(s, epsilon=1))


@pytest.mark.slow
def test_what_is_kept_is_of_one_class(tmp_path):
    """A run with objects of another class of that name is another run."""
    f = lambda rows: float(sum(row.weigh() for row in rows))  # noqa: E731
    for factor, movement in ((1.0, 1.0), (5.0, 5.0)):
        people = [make_class(factor)(float(x > 0.5)) for x in np.random.default_rng(1).random(900)]
        table = hs.populations.PublicTable(people)
        s = hs.sample_sensitivity(f, table, rows=8, pairs=8, workers=1, keep=tmp_path / "kept")
        assert s.value == movement
    assert len(hs.runs.list_runs(tmp_path / "kept")) == 2


class _Weighing:
    """An accessor of frames."""

    factor = 1.0

    def __init__(self, frame):
        self.frame = frame

    def score(self):
        """Weigh what is far away only."""
        x = self.frame["x"].to_numpy()
        return float(x.mean() * (self.factor if x.max() > 0.9999 else 1.0))


@pytest.mark.parametrize("library", ["pandas", "polars", "a method"])
def test_what_a_program_added_to_frames_is_watched(library, ledger, monkeypatch):
    """Code reaches an accessor by its rows: it is part of the function all the same."""
    frame = pl.DataFrame if library == "polars" else pd.DataFrame
    kind = type("Weighing", (_Weighing,), {})
    if library == "a method":
        pd.DataFrame.weighing = lambda self: kind(self)  # noqa: PLW0108
    elif library == "pandas":
        pd.api.extensions.register_dataframe_accessor("weighing")(kind)
    else:
        pl.api.register_dataframe_namespace("weighing")(kind)
    monkeypatch.setattr(frame, "weighing", vars(frame)["weighing"])
    if library == "a method":
        f = lambda rows: rows.weighing().score()  # noqa: E731
    else:
        f = lambda rows: rows.weighing.score()  # noqa: E731
    s = sampled(f, lambda rng, n: frame({"x": rng.random(n) * 0.99}))
    assert not s.sampling.unwatched
    kind.factor = 1e6
    refuses(BadFunction, "changed", f, frame({"x": [0.99995] * 8}), s, ledger)
    del frame.weighing


def _odd(value):
    return float(value is not True and value is not False)


ODD = {
    "truth values of NumPy": (
        lambda rng, n: [bool(each) for each in rng.integers(2, size=n)],
        np.True_,
        lambda rows: sum(map(_odd, rows)) + float(sum(map(int, rows))),
    ),
    "matrices that lie by column": (
        lambda rng, n: [rng.random((2, 2)) for _ in range(n)],
        np.asfortranarray(np.eye(2)),
        lambda rows: sum(each.sum() + 1e6 * (not each.flags.c_contiguous) for each in rows),
    ),
    "categories under a name": (
        lambda rng, n: pd.DataFrame({"x": pd.Categorical(rng.integers(2, size=n), [0, 1])}),
        pd.Categorical([1], pd.Index([0, 1], name="odd")),
        lambda rows: float(rows.x.astype(int).sum() + 1e6 * bool(rows.x.cat.categories.name)),
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_what_a_function_sees_of_a_cell_is_as_sampled(case):
    """Whatever holds it, and however it lies."""
    draw, cell, f = ODD[case]
    s = sampled(f, draw)
    column = isinstance(cell, pd.Categorical)
    rows = pd.DataFrame({"x": cell.take([0] * 8)}) if column else [cell] * 8
    assert abs(hs.release(f, rows, hs.Laplace(s, epsilon=1e6)).value) < 100


@dataclasses.dataclass
class Kept:
    """A row that holds a dict."""

    held: dict


OTHERS = {
    "times of a zone": (
        lambda rng, n: [datetime.datetime(2020, 1, 1 + int(d)) for d in rng.integers(28, size=n)],
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        lambda rows: float(sum(each.day for each in rows)),
    ),
    "numbers with their bytes reversed": (
        lambda rng, n: [rng.random(2) for _ in range(n)],
        np.array([0.5, 0.5], dtype=">f8"),
        lambda rows: float(sum(each.view("<i8").sum() % 1000 for each in rows)),
    ),
    "keys in another order, within an object": (
        lambda rng, n: [Kept({"a": float(x), "b": 1e9}) for x in rng.random(n)],
        Kept({"b": 1e9, "a": 0.5}),
        lambda rows: float(sum(next(iter(each.held.values())) for each in rows)),
    ),
    "columns in another order, of a frame within a row": (
        lambda rng, n: [pd.DataFrame({"a": rng.random(2), "b": rng.random(2)}) for _ in range(n)],
        pd.DataFrame({"b": [1e9, 1e9], "a": [0.5, 0.5]}),
        lambda rows: float(sum(each.iloc[0, 0] for each in rows)),
    ),
    "wider sparse matrices": (
        lambda rng, n: [sparse.csr_matrix(rng.random((1, 3))) for _ in range(n)],
        sparse.csr_matrix(np.ones((1, 9))),
        lambda rows: float(sum(each.sum() for each in rows)),
    ),
}


@pytest.mark.slow_cases(
    "columns in another order, of a frame within a row",
    "keys in another order, within an object",
    "wider sparse matrices",
)
@pytest.mark.parametrize("case", OTHERS)
def test_cells_of_another_type_are_refused(case, ledger):
    """Their class is the same; what they are is not."""
    draw, cell, f = OTHERS[case]
    refuses(BadRows, "other types", f, [cell] * 8, sampled(f, draw), ledger)
