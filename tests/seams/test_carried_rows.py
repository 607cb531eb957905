"""What holds the private rows is refused, and no refusal tells what values they have."""

import asyncio
import contextvars
import ctypes
import dataclasses
import functools
import pickle
import queue
import random
import sqlite3
import sys
import threading
import types
import weakref
from multiprocessing import shared_memory
from typing import ClassVar

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.spatial

import hushed as hs
from hushed import measurements as m
from hushed import transformations as t
from hushed._functions._carried import carries_rows, list_unsearched
from hushed._functions._fingerprints import look
from hushed.errors import BadFunction, PrivateRowsAsPopulation
from hushed.spaces import SYMMETRIC, Cell, Column, Space, Table

PRIVATE = np.random.default_rng(7).normal(50, 10, size=100)
FRESH = np.random.default_rng(8).normal(50, 10, size=20_000)
UNIT = hs.populations.Uniform(low=0, high=100)
TABLES = {
    "array": lambda x: x,
    "list": lambda x: [[each] for each in x.tolist()],
    "pandas": lambda x: pd.DataFrame({"x": x}),
    "nullable": lambda x: pd.DataFrame({"x": pd.array(x, dtype="Float64")}),
    "arrow": lambda x: pd.DataFrame({"x": pd.array(x, dtype="double[pyarrow]")}),
    "polars": lambda x: pl.DataFrame({"x": x}),
}


def mean(rows):
    """Mean."""
    return float(np.asarray(rows, dtype=float).mean())


def calibrated(population, f=mean, **settings):
    """Sample tables as long as the private one."""
    s = hs.sample_sensitivity(f, population, rows=100, gamma=0.3, workers=1, **settings)
    return hs.Laplace(s, epsilon=1.0)


@pytest.mark.parametrize("held", TABLES)
def test_the_very_table_and_views_of_it_are_no_population(held, ledger):
    """Whatever container holds it, before the charge."""
    private = TABLES[held](PRIVATE.copy())
    for public in (private, private[:], private[20:]):
        table = hs.populations.PublicTable(public, promise="table")
        with pytest.raises(PrivateRowsAsPopulation, match="holds the private rows"):
            hs.release(mean, private, calibrated(table), ledger, budget="x")
    assert ledger.log == []


def test_a_simulator_that_draws_from_the_private_rows_is_no_population(ledger):
    """The table is in its closure."""
    private = PRIVATE.copy()
    source = hs.populations.Simulator(lambda rng, n: rng.choice(private, n))
    with pytest.raises(PrivateRowsAsPopulation):
        hs.release(mean, private, calibrated(source), ledger, budget="x")
    assert ledger.log == []


@pytest.mark.parametrize("held", TABLES)
def test_no_guess_of_a_population_is_confirmed(held, ledger):
    """Who knows all rows but one could try the last: equal values are taken, and so are others."""
    for values in (PRIVATE, np.append(PRIVATE[1:], 50.0)):
        chosen = calibrated(
            hs.populations.PublicTable(TABLES[held](values.copy()), promise="table")
        )
        hs.release(mean, TABLES[held](PRIVATE.copy()), chosen, ledger, budget="x")
    assert len(ledger.log) == 2


HELD = PRIVATE.copy()


class Slots:
    """A function that cannot be pickled."""

    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held

    def __call__(self, rows):
        """Mean."""
        return mean(rows)

    def __reduce_ex__(self, protocol):
        raise TypeError(protocol)


class Holder:
    """A class that keeps a table for all."""

    held = HELD


def with_default(rows, held=HELD):
    """Mean, beside a table."""
    return mean(rows) + 0 * len(held)


def use_global(rows):
    """Mean, beside a table."""
    return mean(rows) + 0 * len(HELD)


def use_class(rows):
    """Mean, beside a table."""
    return mean(rows) + 0 * len(Holder.held)


def use_import(rows):
    """Mean, beside a table of a module."""
    import carrying

    return mean(rows) + 0 * len(carrying.TABLE)


def beside(*held):
    """Make a function with a closure."""
    return lambda rows: mean(rows) + 0 * len(held)


CARRYING = {
    "a closure": beside(HELD),
    "beside a lock": beside(threading.Lock(), HELD),
    "a view": beside(HELD[3:5]),
    "a list of it": beside([{"kept": HELD}]),
    "a default": with_default,
    "a global": use_global,
    "a class": use_class,
    "a module": use_import,
    "slots": Slots(HELD),
    "partial": functools.partial(with_default, held=HELD),
    "a cache": functools.lru_cache(use_global),
    "blocks": hs.Blockwise(use_global, rows=10),
}


@pytest.mark.slow_cases("a cache")
@pytest.mark.parametrize("way", CARRYING)
def test_a_sampled_function_that_carries_the_rows_is_refused(way, ledger, monkeypatch):
    """What was sampled moves as if the rows it carries were public."""
    monkeypatch.setitem(sys.modules, "carrying", types.ModuleType("carrying"))
    sys.modules["carrying"].TABLE = HELD
    f = CARRYING[way]
    given = (lambda rows: f(tuple(rows.tolist()))) if way == "a cache" else f
    chosen = calibrated(UNIT, given)
    with pytest.raises(BadFunction, match="carries the private rows"):
        hs.release(given, HELD, chosen, ledger, budget="x")
    assert ledger.log == []
    # Another table of the same values is nobody's business.
    assert hs.release(given, HELD.copy(), chosen, ledger, budget="x").value is not None


def test_a_chain_whose_function_carries_the_rows_is_refused():
    """In a chain as in a release."""
    f = CARRYING["a closure"]
    chain = hs.transformations.from_sensitivity(f, calibrated(UNIT, f).sensitivity)
    with pytest.raises(BadFunction, match="carries the private rows"):
        (chain >> hs.measurements.laplace(1.0))(HELD)


ASKED = {
    "filter_rows": lambda held: t.filter_rows(lambda row: value(row) > mean(held)) >> t.count(),
    "map_rows": lambda held: t.map_rows(lambda row: value(row) - mean(held), CELL) >> t.sum_of(),
}
CELL = Cell(low=-1.0, high=1.0)


def value(row):
    """The value of a row, alone or by name."""
    return row["x"] if isinstance(row, dict) else row


@pytest.mark.parametrize("step", ASKED)
def test_a_function_of_rows_that_carries_all_of_them_is_refused(step, ledger):
    """One row would move what it says of all others, and no distance counts that."""
    held = PRIVATE.copy()
    column = Space(domain=Column(cell=Cell()), metric=SYMMETRIC)
    table = Space(domain=Table.of({"x": Cell()}), metric=SYMMETRIC)
    chain = column >> ASKED[step](held)
    by_name = table >> ASKED[step](held)
    frame = pd.DataFrame({"x": held}, copy=False)
    uses = [
        lambda rows: chain(rows["x"]),
        lambda rows: (chain >> m.laplace(1.0))(rows["x"]),
        by_name,
        lambda rows: by_name(pd.DataFrame(rows, copy=False)),
    ]
    for use in uses:
        with pytest.raises(BadFunction, match="a function of rows in the chain"):
            use({"x": held})
        use({"x": held.copy()})  # no value is compared
    mechanism = hs.Laplace(m.chain_sensitivity(by_name), epsilon=1.0)
    with pytest.raises(BadFunction, match="a function of rows in the chain"):
        hs.release(by_name, frame, mechanism, ledger, budget="x")
    assert ledger.log == []


def test_a_function_of_rows_that_comes_in_later_is_found():
    """What the caller's own function refers to changes: only a chain that has none is passed by."""
    cell, inner = Cell(low=0, high=100), None
    column = Space(domain=Column(cell=cell), metric=SYMMETRIC)

    def through(rows):
        return rows if inner is None else inner.function(rows)

    plain = column >> t.sum_of() >> m.laplace(1.0)
    said = t.declared(through, source=column, target=column, stability=1, argument="rows as given")
    chain = said >> t.sum_of()
    for each in (plain, plain, chain, chain):
        each(HELD)
    inner = column >> t.map_rows(lambda row: value(row) - mean(HELD), cell)
    for late in (chain, chain >> m.laplace(1.0)):
        with pytest.raises(BadFunction, match="a function of rows in the chain"):
            late(HELD)
    plain(HELD)


def test_what_was_said_to_depend_on_the_rows_may_carry_them():
    """The certificate then promises nothing."""
    chosen = calibrated(hs.populations.PublicTable(HELD, promise="table"), data_dependent=True)
    assert hs.release(mean, HELD, chosen).certificate.guarantee.data_dependent


def test_the_certificate_says_what_was_compared():
    """And that nothing was where a law was named instead of a table."""
    public = hs.populations.PublicTable(FRESH)
    for population, words in (
        (public, "values were not compared, so a copy"),
        (hs.populations.Normal(50, 10), "nothing was compared"),
    ):
        told = hs.release(mean, PRIVATE, calibrated(population)).certificate.explain()
        assert words in told


ODD = {
    "spans of time": lambda numbers: numbers.astype("m8[s]"),
    "integers beyond the doubles": lambda numbers: [10**400 + int(each) for each in numbers],
    "128 bits": lambda numbers: pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Int128)}),
    "objects of NumPy": lambda numbers: numbers.astype("m8[s]").astype(object),
}


@pytest.mark.parametrize("kind", ODD)
def test_rows_of_any_numbers_have_a_digest(kind):
    """What is no double is read as a text, and refuses nothing."""
    make, numbers = ODD[kind], np.arange(3000)
    one, two, other = (hs.populations.PublicTable(make(numbers + by)) for by in (0, 0, 1))
    assert one.describe() == two.describe()
    assert one.describe()["sha256"] != other.describe()["sha256"]


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


@pytest.mark.parametrize("way", ["memoryview", "part", "bytearray", "arrow", "column", "buffer"])
def test_other_views_of_the_same_memory_are_the_rows(way):
    """What shares memory with the table without being an array is followed, too."""
    memory = bytearray(PRIVATE.tobytes())
    rows = np.frombuffer(memory)
    column = pa.array(PRIVATE.copy())
    if way in ("arrow", "column", "buffer"):
        rows = column.to_numpy()
    held = {
        "memoryview": memoryview(rows),
        "part": memoryview(rows)[3:9],
        "bytearray": memory,
        "arrow": pa.table({"x": column}),
        "column": pa.chunked_array([column]),
        "buffer": column.buffers()[1],
    }[way]
    assert carries_rows(beside(held), rows)
    assert not carries_rows(beside(held), PRIVATE.copy())


class Shelf:
    kept: ClassVar = {"rows": HELD}


class Inheriting(Shelf):
    """Has nothing of its own."""


class Labelled(type):
    kept = HELD


class ByClass(metaclass=Labelled):
    """Has what its class has."""


class ByProperty:
    @property
    def kept(self):
        return HELD


def paused():
    held = HELD
    yield
    yield held


STARTED = paused()
next(STARTED)
CURRENT = contextvars.ContextVar("rows")
CURRENT.set(HELD)
FARTHER = {
    "an inherited attribute": Inheriting,
    "a class of classes": ByClass,
    "a property": ByProperty(),
    "a generator": STARTED,
    "a context variable": CURRENT,
}


@pytest.mark.parametrize("way", FARTHER)
def test_rows_that_are_reached_in_two_steps_are_recognised(way):
    """What a class inherits, or another object gives when it is asked."""
    assert carries_rows(beside(FARTHER[way]), HELD)
    assert not carries_rows(beside(FARTHER[way]), HELD.copy())


def test_rows_in_a_module_within_a_module_are_recognised(monkeypatch):
    """As in ``package.data.TABLE``."""
    outer, inner = types.ModuleType("carrying"), types.ModuleType("carrying.data")
    outer.data, inner.TABLE = inner, HELD
    monkeypatch.setitem(sys.modules, "carrying", outer)

    def use(rows):
        import carrying

        return mean(rows) + 0 * len(carrying.data.TABLE)

    assert carries_rows(use, HELD)
    assert not carries_rows(use, HELD.copy())


def test_rows_in_a_module_whose_own_code_fails_are_recognised(monkeypatch):
    """It raises something else than `AttributeError` for what it does not have."""
    failing = types.ModuleType("failing")
    failing.TABLE, failing.__getattr__ = HELD, {}.__getitem__
    monkeypatch.setitem(sys.modules, "failing", failing)

    def use(rows, held=failing):
        return mean(rows) + 0 * len(held.TABLE)

    assert carries_rows(use, HELD)
    assert look(use).unseen == {}


class Absent:
    """Stands for something that is not there now, as the request of a web server."""

    def __reduce_ex__(self, protocol):
        raise RuntimeError("not now")

    def __getattr__(self, name):
        raise RuntimeError("not now")


class Endless:
    """Holds another one, which it makes whenever it is looked at."""

    def __reduce_ex__(self, protocol):
        return Endless, (Endless(),)


def nested(levels):
    held = []
    for _ in range(levels):
        held = [held]
    return held


@pytest.mark.parametrize("beside_it", [Absent(), nested(3000), Endless()], ids=lambda x: "")
def test_what_lies_beside_the_rows_does_not_hide_them(beside_it):
    """Something that fails when it is looked at, or lies too deep, ends no search."""
    for held in ((beside_it, PRIVATE), (PRIVATE, beside_it), ([{"x": PRIVATE[5:]}, beside_it],)):
        assert carries_rows(beside(*held), PRIVATE)
    if not isinstance(beside_it, Endless):  # of which a million are looked at
        assert not carries_rows(beside(beside_it, PRIVATE.copy()), PRIVATE)


TEXTS = [f"{each:.3f}" for each in PRIVATE]
COLUMNS = {
    "texts": pl.Series(TEXTS),
    "truth values": pl.Series((PRIVATE > 50).tolist()),
    "missing cells": pl.Series([None if each > 50 else each for each in PRIVATE]),
    "dates": pl.Series(PRIVATE.astype(int)).cast(pl.Date),
    "times of a day": pl.Series(PRIVATE.astype(int)).cast(pl.Time),
    "categories": pl.Series(["ab"[int(each > 50)] for each in PRIVATE], dtype=pl.Enum(["a", "b"])),
    "lists": pl.Series([[each] for each in PRIVATE]),
    "records": pl.Series([{"x": each} for each in PRIVATE]),
    "decimals": pl.Series(PRIVATE).cast(pl.Decimal(10, 2)),
    "intervals": pd.Series(pd.interval_range(0, 100)),
    "texts of pandas": pd.Series(TEXTS),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_views_of_columns_of_any_type_are_the_rows(kind):
    """A frame that holds no plain numbers has views as well: parts, columns, and their arrays."""
    column = COLUMNS[kind]
    make = pd.DataFrame if isinstance(column, pd.Series) else pl.DataFrame
    private, equal = (
        make({"x": column}),
        make({"x": type(column)(list(column), dtype=column.dtype)}),
    )
    views = [private[10:50], private["x"]]
    views += [private["x"].array, pd.Index(private["x"])] if make is pd.DataFrame else []
    for view in views:
        assert carries_rows(beside(view), private)
    assert not carries_rows(beside(equal), private)
    assert not carries_rows(beside(private[:40]), private[40:])  # another table of the same source


NOTHING = {
    "missing": lambda: pl.Series([1.0]).clear(100),
    "no text": lambda: pl.Series(["a"]).clear(100),
    "nowhere missing": lambda: pl.Series(PRIVATE).is_null(),
    "joined": lambda: pl.Series([None] * 100).cast(pl.Boolean),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_two_tables_without_a_value_are_not_one(kind):
    """Polars lays all of them into one memory: a refusal would tell that a column is empty."""
    private, public = (pl.DataFrame({"x": NOTHING[kind]()}) for _ in range(2))
    assert not carries_rows(beside(public), private)


def test_an_update_of_answers_that_holds_the_private_rows_is_refused(ledger):
    """It decides the sensitivity as the population does, and comes as often from a notebook."""
    private = PRIVATE.copy()
    s = [
        hs.sample_sensitivity(np.mean, UNIT, rows=100, gamma=0.3, workers=1, update=update)
        for update in (
            lambda found, rows, places, new: found + (new - rows[places]) / len(private),
            lambda found, rows, places, new: found + (new - rows[places]) / len(rows),
        )
    ]
    with pytest.raises(PrivateRowsAsPopulation, match="holds the private rows"):
        hs.release(np.mean, private, hs.Laplace(s[0], epsilon=1.0), ledger, budget="x")
    assert ledger.log == []
    hs.release(np.mean, private, hs.Laplace(s[1], epsilon=1.0), ledger, budget="x")


def released_by_blocks(prior, data):
    made = hs.Blocks(GRID, epsilon=9.0, blocks=2, prior=prior)
    return hs.release(mean, data, made)


def released_by_lengths(prior, data):
    median = hs.statistics.median(rows=100, low=0, high=100)
    made = hs.InverseSensitivity(median, epsilon=9.0, candidates=GRID, prior=prior)
    return hs.release(median, data, made)


def released_by_posterior(prior, data):
    made = hs.Posterior(likelihood, GRID, epsilon=9.0, clip=1.0, prior=prior)
    return hs.release(likelihood, data, made)


GRID = [float(each) for each in range(10, 100, 10)]


def likelihood(row, points):
    """Log likelihood of a row of one number."""
    return -((row - points) ** 2)


def make_prior(population, f=mean):
    """Weights by tables of ten rows."""
    return hs.public_prior(f, population, rows=100, blocks=10, candidates=GRID, draws=20)


PRIORS = [released_by_blocks, released_by_lengths, released_by_posterior]


@pytest.mark.parametrize("released", PRIORS)
def test_a_prior_that_was_made_from_the_private_rows_is_refused(released):
    """By a table or simulator that holds them, or by the function; another prior is taken."""
    data = PRIVATE.copy()
    priors = [
        make_prior(hs.populations.PublicTable(data[5:])),
        make_prior(hs.populations.Simulator(lambda rng, n: rng.choice(data, n))),
        make_prior(UNIT, lambda rows: data.mean()),
    ]
    for prior in priors:
        with pytest.raises(PrivateRowsAsPopulation, match="prior was made from the private rows"):
            released(prior, data)
    public = make_prior(hs.populations.PublicTable(FRESH))
    assert isinstance(public, tuple)
    if released is not released_by_blocks:  # which starts processes
        assert released(public, data).value in GRID
        assert released(priors[0], data.copy()).value in GRID  # no values are compared


def test_private_rows_are_no_public_rows_to_try_a_likelihood_on():
    """What fails on them is told; the very rows and views of them are refused."""
    data = PRIVATE.copy()
    for public, wrong in ((data, True), (data[:5], True), (FRESH, False)):
        made = hs.Posterior(likelihood, GRID, epsilon=9.0, clip=1.0, public_rows=public)
        if not wrong:
            assert hs.release(likelihood, data, made).value in GRID
            continue
        with pytest.raises(PrivateRowsAsPopulation, match="public_rows are the private rows"):
            hs.release(likelihood, data, made)


def test_a_prior_can_be_sent_without_what_it_was_made_from():
    """A simulator that no pickle takes is no obstacle."""
    lock = threading.Lock()
    prior = make_prior(hs.populations.Simulator(lambda rng, n: (lock, rng.normal(50, 10, n))[1]))
    blocks = hs.Blocks(GRID, epsilon=9.0, blocks=10, prior=prior)
    assert pickle.loads(pickle.dumps(blocks)) == blocks


INCOMES = np.sort(np.random.default_rng(8).random(60))


@pytest.mark.slow
@pytest.mark.slow_cases("given0", "given2")
@pytest.mark.parametrize("given", [INCOMES, INCOMES[3:9], pd.Series(INCOMES, copy=False)])
def test_candidates_are_not_the_private_rows(given):
    """What is chosen from them would be somebody's number, as it is."""
    middle = hs.statistics.median(rows=60, low=0, high=1)
    inverse = hs.InverseSensitivity(middle, epsilon=1.0, candidates=given)
    blocks = hs.Blocks(given, epsilon=30.0, beta=0.9)  # few blocks
    for asked, mechanism in ((middle, inverse), (np.median, blocks)):
        with pytest.raises(PrivateRowsAsPopulation, match="would be one of them"):
            hs.release(asked, INCOMES, mechanism)
        assert hs.release(asked, INCOMES.copy(), mechanism).value in INCOMES  # no value is compared


def test_categories_and_points_are_not_the_private_rows():
    """A mode or a draw would be somebody's number, too."""
    mode = hs.statistics.mode(INCOMES, rows=60)
    for mechanism in (
        hs.InverseSensitivity(mode, epsilon=1.0),
        hs.StableMode(mode, epsilon=1.0, delta=0.1),
    ):
        with pytest.raises(PrivateRowsAsPopulation, match="would be one of them"):
            hs.release(mode, INCOMES, mechanism)
        assert hs.release(mode, INCOMES.copy(), mechanism).certificate  # no value is compared
    drawn = hs.Posterior(likelihood, INCOMES, epsilon=9.0, clip=1.0)
    with pytest.raises(PrivateRowsAsPopulation, match="would be one of them"):
        hs.release(likelihood, INCOMES, drawn)
    assert hs.release(likelihood, INCOMES.copy(), drawn).value in INCOMES
    assert INCOMES.tobytes() not in pickle.dumps(drawn.given)


def test_noise_is_not_chosen_by_the_private_rows(ledger):
    """Which of nine laws is best for them would stand on the certificate, and cost nothing."""
    data = PRIVATE.copy()
    middle = hs.statistics.median(rows=100, low=0, high=100)

    def choose(rows):
        public = hs.populations.PublicTable(rows)
        return hs.Smooth.for_population(middle, public, epsilon=1.0, tables=2)

    chosen = choose(data)
    with pytest.raises(PrivateRowsAsPopulation, match="chosen by a population"):
        hs.release(middle, data, chosen, ledger, budget="x")
    assert ledger.log == []
    assert hs.release(middle, data.copy(), chosen).certificate  # no value is compared
    assert hs.release(middle, data, choose(FRESH)).certificate
    assert chosen == pickle.loads(pickle.dumps(chosen))
    assert chosen == choose(data.copy())  # of rows as they are, not of whose they are
    assert data.tobytes() not in pickle.dumps(chosen)


@pytest.mark.slow
def test_a_centre_is_no_private_row():
    """Means of vectors are moved towards it, and what is released lies near it."""
    rows = np.random.default_rng(8).random((60, 2))

    def average(part):
        return part.mean(axis=0)

    settings = {"aggregate": "vector", "radius": 1.0, "delta": 0.01, "beta": 0.9, "blocks": 3}
    blocks = hs.Blocks(epsilon=9.0, centre=rows[7], **settings)
    with pytest.raises(PrivateRowsAsPopulation, match="centre is one of the private rows"):
        hs.release(average, rows, blocks)
    assert blocks.centre == tuple(rows[7].tolist())
    assert hs.release(average, rows.copy(), blocks).value.shape == (2,)  # no value is compared


def test_weights_are_not_the_private_rows():
    """Candidates would be drawn by what the rows are, and epsilon would not count that."""
    middle = hs.statistics.median(rows=60, low=0, high=1)
    even = np.linspace(0, 1, 60)
    for asked, mechanism in (
        (middle, hs.InverseSensitivity(middle, epsilon=1.0, candidates=even, prior=INCOMES)),
        (np.median, hs.Blocks(even, epsilon=1.0, beta=0.9, prior=INCOMES)),
    ):
        with pytest.raises(PrivateRowsAsPopulation, match="prior was made from the private rows"):
            hs.release(asked, INCOMES, mechanism)


@pytest.mark.slow_cases("given0")
@pytest.mark.parametrize("given", [INCOMES, INCOMES[3:9]])
def test_given_rows_are_not_the_private_ones(given):
    """The certificate shows them, cell by cell."""
    settings = {"rows": 60, "protect": "table", "gamma": 0.4, "workers": 1}
    s = hs.sample_sensitivity(
        np.mean, hs.populations.Uniform(low=0, high=1), values=given, **settings
    )
    with pytest.raises(PrivateRowsAsPopulation, match="given values"):
        hs.release(np.mean, INCOMES, hs.Laplace(s, epsilon=1.0))


class Hiding:
    """Tells pickle nothing of what it holds."""

    def __init__(self):
        self.kept = HELD

    def __reduce__(self):
        return int, ()


def queued():
    line = queue.SimpleQueue()
    line.put(HELD)
    return line


async def waiting(held):
    await asyncio.sleep(0)


async def summing():
    return HELD.sum()


@functools.lru_cache
def load():
    """What is loaded once is kept in a cache alone."""
    return LOADED.pop()


LOADED = [HELD]
load()


KEEPER = Hiding()
WAITING = waiting(HELD)


LABELLED = random.Random(0)
LABELLED.held = HELD


def annotated(rows: HELD):
    """Say of its argument what it may hold."""


class Fields:
    rows: HELD


class Record(ctypes.Structure):
    _fields_: ClassVar = [("held", ctypes.py_object)]


def _within(held):
    """Have begun to hand on what is not named any more."""
    begun = (lambda given: (yield from given.pop()))(held)
    next(begun)
    return begun


HIDDEN = {
    "a proxy": weakref.proxy(KEEPER),
    "what is called at the end of an object": weakref.finalize(KEEPER, HELD.sum),
    "a buffer for pickle": pickle.PickleBuffer(HELD),
    "an object of C": ctypes.py_object(HELD),
    "a record of C": Record(HELD),
    "a callback of C": ctypes.CFUNCTYPE(None)(HELD.sum),
    "an iterator of NumPy": np.nditer(HELD),
    "a flat iterator": HELD.flat,
    "two of them": np.broadcast(HELD, 1),
    "numbered places": np.ndenumerate(HELD),
    "objects of Polars": pl.Series([HELD[3:9], None], dtype=pl.Object),
    "a frame of objects": pl.DataFrame({"x": pl.Series([{"kept": HELD}], dtype=pl.Object)}),
    "an object that hides it": KEEPER,
    "a weak reference": weakref.ref(KEEPER),
    "a queue": queued(),
    "values of a dict": {"rows": HELD}.values(),
    "memory of C": (ctypes.c_double * len(HELD)).from_buffer(HELD),
    "a coroutine": WAITING,
    "a coroutine that names them": summing(),
    "a generator that was not started": (HELD[each] for each in range(3)),
    "an attribute that pickle leaves out": LABELLED,
    "what a type of numbers says": np.zeros(1, dtype=np.dtype("f8", metadata={"held": HELD})),
    "what the type of a field says": np.zeros(
        1, dtype=[("a", np.dtype("f8", metadata={"held": HELD}))]
    ),
    "what a property says of itself": property(lambda value: value, doc=HELD),
    "an annotation": annotated,
    "an annotation of a field": Fields,
    "a generator that is within another one": _within([HELD]),
    "a cache": load,
    "a default of a context": contextvars.ContextVar("held", default=HELD),
}


@pytest.mark.parametrize("way", HIDDEN)
def test_what_python_knows_an_object_to_hold_is_looked_at(way):
    """Whatever pickle, its class or its attributes say."""
    assert carries_rows(beside(HIDDEN[way]), HELD)
    assert not carries_rows(beside(HIDDEN[way]), HELD.copy())
    WAITING.close() if way == "a coroutine" else None


WORDED = pl.DataFrame({"x": HELD, "name": list(map(str, HELD))})
BELOW = {
    "an accessor": WORDED["name"].str,
    "another one": WORDED["x"].list,
    "the frame below": WORDED._df,
    "the column below": WORDED["x"]._s,
}


@pytest.mark.parametrize("way", BELOW)
def test_what_lies_below_frames_of_polars_is_their_rows(way):
    """Accessors hold it, and not the frame."""
    assert carries_rows(beside(BELOW[way]), WORDED)
    assert not carries_rows(
        beside(BELOW[way]), WORDED.with_columns(pl.col("x") + 1, name=pl.lit(""))
    )


MODULE = types.ModuleType("carrying")
MODULE.TABLE, MODULE.other = HELD, len
KIND = type("Kind", (types.ModuleType,), {"TABLE": HELD})
BOUND = {
    "the class of it": (lambda held: lambda rows: held.TABLE.mean() + rows)(KIND("carrying")),
    "the class of it, as an attribute": types.SimpleNamespace(held=KIND("carrying")),
    "a closure": (lambda held: lambda rows: held.TABLE.mean() + rows)(MODULE),
    "a default": lambda rows, held=MODULE: held.TABLE.mean() + rows,
    "a named default": lambda rows, *, held=MODULE: held.TABLE.mean() + rows,
    "an argument": functools.partial(lambda held, rows: held.TABLE.mean() + rows, MODULE),
    "an attribute": types.SimpleNamespace(held=MODULE),
    "the attribute of a class": type("Keeping", (), {"held": MODULE}),
}


@pytest.mark.parametrize("way", BOUND)
def test_rows_in_a_module_that_is_bound_are_recognised(way):
    """A module that was imported where the function was made is no global of the function."""
    assert carries_rows(beside(BOUND[way]), HELD)
    assert not carries_rows(beside(BOUND[way]), HELD.copy())


def test_of_a_module_in_a_closure_what_the_code_names_counts():
    """As of one that is a global: the rest of it belongs to somebody else."""
    assert not carries_rows((lambda held: lambda rows: held.other(rows) + 1)(MODULE), HELD)


FOUND = pd.DataFrame({"x": HELD}, copy=False)
BY_TEXT = {
    "pandas": lambda rows: rows.query("x > @FOUND.x.mean()"),
    "DuckDB": lambda rows: duckdb.sql("select avg(x) from FOUND"),
    "Polars": lambda rows: pl.sql("SELECT x FROM rows JOIN FOUND USING (x)"),
}


@pytest.mark.parametrize("library", BY_TEXT)
def test_tables_that_a_query_finds_by_their_names_are_recognised(library):
    """Libraries look variables up that stand in a text alone; a local one is another."""
    assert carries_rows(BY_TEXT[library], FOUND)

    def local(rows, FOUND):
        return duckdb.sql("select avg(x) from FOUND"), rows.query("x > @FOUND")

    assert not carries_rows(local, FOUND)


QUERIES = {"average": "select avg(x) from FOUND"}
LARGE = "x > @FOUND.x.mean()"


def _ask(rows, query="select x from rows join FOUND using (x)"):
    return duckdb.sql(query)


def _close_over(query):
    return lambda rows: rows.query(query)


IN_TEXTS = {
    "global": lambda rows: rows.query(LARGE),
    "dict": lambda rows: duckdb.sql(QUERIES["average"]),
    "default": _ask,
    "closure": _close_over(LARGE),
    "quoted": lambda rows: duckdb.sql('select avg(x) from "FOUND"'),
}


@pytest.mark.parametrize("place", IN_TEXTS)
def test_tables_of_a_query_that_stands_elsewhere_are_recognised(place):
    """The text of a query may be a global, a default or a closure; any word of it may name them."""
    assert carries_rows(IN_TEXTS[place], FOUND)
    assert not carries_rows(lambda rows: duckdb.sql("select r.x from rows as r"), FOUND)


def test_memory_that_processes_share_is_the_rows():
    """As an array that lies there."""
    shared = shared_memory.SharedMemory(create=True, size=HELD.nbytes)
    try:
        rows = np.ndarray(HELD.shape, buffer=shared.buf)
        assert carries_rows(beside(shared), rows)
        assert not carries_rows(beside(shared), HELD)
        del rows
    finally:
        shared.close()
        shared.unlink()


def test_cells_that_are_objects_are_the_rows():
    """In every container that holds objects; equal ones are not."""
    cells = [[each] for each in range(5)]
    for rows in (
        pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)}),
        pd.DataFrame({"x": cells}),
        [(each, 1) for each in cells],
    ):
        assert carries_rows(beside(cells[2]), rows)
        assert not carries_rows(beside([2]), rows)


def test_arrays_that_are_rows_of_a_list_are_memory():
    """A list of views holds the table that they are views of, and parts of each row are rows."""
    table = np.random.default_rng(3).random((200, 3))
    for rows in (
        [*table],
        [(row, 1) for row in table],
        [pd.Series(row, copy=False) for row in table],
    ):
        for held in (table, table[7], table[7, 1:], table[:, 2], memoryview(table[5])):
            assert carries_rows(beside(held), rows)
        assert not carries_rows(beside(table.copy()), rows)
    halves = [*table[:100]], table[100:]
    assert not carries_rows(beside(halves[1]), halves[0])  # other rows of the same source
    columns = [*table.T[:2]]
    assert not carries_rows(beside(table[:, 2]), columns)  # between them, and not shared


class Tensor:
    """Numbers of another library, of which nothing but their address is known to Python."""

    def __init__(self, held):
        self.address, self.size = held.ctypes.data, held.size

    def __dlpack__(self, **how):
        """Hand the memory over."""
        memory = (ctypes.c_double * self.size).from_address(self.address)
        return np.frombuffer(memory).__dlpack__(**how)

    def __dlpack_device__(self):
        """Say that it is that of the processor."""
        return 1, 0


def test_a_tensor_that_shares_memory_is_the_rows():
    """Whatever library it is of: it says where its numbers lie."""
    assert carries_rows(beside(Tensor(HELD)), HELD)
    assert not carries_rows(beside(Tensor(HELD)), HELD.copy())


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_private_cell_is_not_asked_for_its_memory(error):
    """What it does then would be told by a refusal; only classes of libraries are asked."""

    class Cell(float):
        def __dlpack__(self, **how):
            raise error("31337.125")

    middle = hs.statistics.median(rows=20, low=0, high=30)
    released = hs.release(middle, [Cell(3.0), *[2.0] * 19], hs.Smooth(middle, epsilon=1.0))
    assert 0 <= released.value <= 30


FRAME = pl.DataFrame({"x": HELD})
COLUMN, CHUNK = FRAME["x"], FRAME.to_arrow()["x"].chunk(0)
CELLS = pl.DataFrame({"x": pl.Series([(each, "a") for each in range(50)], dtype=pl.Object)})

PLANS = {
    "a frame": FRAME.lazy(),
    "steps": FRAME.lazy().filter(pl.col("x") > 1).group_by("x").agg(pl.len()).sort("x"),
    "a join": pl.LazyFrame({"x": [1.0]}).join(FRAME[3:].lazy(), on="x"),
    "a column": pl.LazyFrame({"y": [1.0]}).with_columns(pl.lit(COLUMN)),
    "an expression": (pl.col("x") - pl.lit(COLUMN)).sum(),
    "a source in Python": pl.defer(lambda: FRAME, schema=FRAME.schema),
    "a list": pl.Series([0, 1]).to_frame("i").select(pl.lit(COLUMN.implode())),
    "a map of Arrow": pa.MapArray.from_arrays(
        [0, 100], [*range(100)], FRAME.to_arrow()["x"].chunk(0)
    ),
    "a cell": pa.ListArray.from_arrays([0, 50], CHUNK)[0],
}


@pytest.mark.parametrize("way", PLANS)
def test_plans_and_lists_that_hold_the_rows_are_recognised(way):
    """A plan of Polars is read, and never run; a list in a cell is a column, too."""
    assert carries_rows(beside(PLANS[way]), FRAME)
    assert not carries_rows(beside(PLANS[way]), pl.DataFrame({"x": HELD.copy()}))


def test_plans_that_are_seen_whole_are_not_named():
    """Others are: where a function of the user's stands between, or a column is copied."""
    far = FRAME.lazy().filter(pl.col("x") > 1).join(FRAME.lazy(), on="x").select(pl.col("x").sum())
    assert list_unsearched(beside(far, pl.col("x").sum().over("y"))) == ()
    ran: list[int] = []
    called = FRAME.lazy().map_batches(lambda table: (ran.append(1), table)[1])
    for plan in (called, FRAME.lazy().filter(pl.col("x").is_in(COLUMN))):
        assert list_unsearched(beside(plan)) == ("polars.LazyFrame",)
    assert ran == []
    assert list_unsearched(beside(pl.lit(COLUMN).cast(pl.Int8))) == ("polars.Expr",)
    assert list_unsearched(beside(pl.when(pl.lit(COLUMN) > 1))) == ("polars.When",)


def test_what_holds_no_rows_is_not_named():
    """Locks, which generators of random numbers have, and thread locals, which are looked into."""
    held = (threading.Lock(), threading.RLock(), threading.local(), np.random.default_rng(0))
    assert list_unsearched(beside(held)) == ()


def test_parts_of_objects_are_named():
    """Texts and tuples are of many tables, and Polars does not tell where its objects lie."""
    assert not carries_rows(beside(CELLS[3:9]), CELLS)
    assert list_unsearched(beside(CELLS[3:9])) == ("polars.Object",)
    assert list_unsearched(beside(pl.Series([[1], [2]], dtype=pl.Object))) == ()  # recognised


def test_a_class_in_python_around_one_in_c_is_looked_into():
    """What pickle gets of it is a copy, and so are its attributes."""
    table = np.random.default_rng(3).random((50, 2))
    tree = scipy.spatial.KDTree(table)
    assert np.shares_memory(tree.data, table)
    assert carries_rows(beside(tree), table)
    assert not carries_rows(beside(tree), table.copy())


UNSEEN = {
    "builtins.PyCapsule": HELD.__array_struct__,
    "polars.LazyFrame": pl.DataFrame({"x": PRIVATE}).lazy().map_batches(lambda table: table),
    "polars.Expr": pl.lit(pl.Series(PRIVATE)).cast(pl.Float32),
    "sqlite3.Connection": sqlite3.connect(":memory:"),
    "pyarrow.RecordBatchReader": pa.table({"x": PRIVATE}).to_reader(),
}


@pytest.mark.parametrize("kind", UNSEEN)
def test_what_was_not_searched_is_named(kind):
    """On the certificate, where it is of the function or of the population."""
    held = UNSEEN[kind]

    def draw(rng, count):
        return (held, rng.random(count))[1]

    for f, population in ((beside(held), UNIT), (mean, hs.populations.Simulator(draw))):
        certificate = hs.release(f, PRIVATE, calibrated(population, f)).certificate
        assert certificate.sampling.unsearched == (kind,)
        assert f"cannot be looked into: {kind}. If" in certificate.explain()
        assert hs.Certificate.from_json(certificate.to_json()) == certificate
    assert hs.sample_sensitivity(mean, UNIT, rows=9, gamma=0.5, workers=1).sampling.unsearched == ()


@pytest.mark.slow
def test_what_blocks_and_posteriors_did_not_search_is_named(by_value):
    """They hold for functions with the rows from nowhere else. Reasons leave it out."""
    plan = UNSEEN["polars.LazyFrame"]
    drawn = hs.Posterior(
        lambda row, points: (plan, likelihood(row, points))[1], GRID, epsilon=9.0, clip=1.0
    )
    by_blocks = hs.release(beside(plan), PRIVATE, hs.Blocks(GRID, epsilon=9.0, blocks=3))
    for found in (hs.release(drawn.log_likelihood, PRIVATE, drawn), by_blocks):
        assert found.certificate.unsearched == ("polars.LazyFrame",)
        assert "cannot be looked into: polars.LazyFrame. If" in found.certificate.explain()
        text = found.certificate.to_json()
        assert hs.Certificate.from_json(text) == found.certificate
        assert "unsearched" in hs.verify(text).unchecked
    proven = hs.Sensitivity(value=1.0, norm="l1", argument="it counts")
    plain = hs.release(lambda rows: 1.0, PRIVATE, hs.Laplace(proven, epsilon=1.0)).certificate
    assert "covers no private rows that a function holds beside those" in plain.explain()
    with pytest.raises(hs.errors.ParameterError, match="unsearched"):
        dataclasses.replace(plain, unsearched=("a.B",))


def test_what_was_not_searched_is_named_at_any_depth():
    """As the rows are found there."""
    deep = UNSEEN["polars.LazyFrame"]
    for _ in range(5000):
        deep = [deep]
    assert list_unsearched(beside(deep)) == ("polars.LazyFrame",)


def test_the_shell_of_a_notebook_is_not_what_a_function_carries():
    """It keeps all that was ever shown, and much of what is called from a cell leads to it."""
    shell = type("InteractiveShell", (), {"__module__": "IPython.core.interactiveshell"})()
    shell.user_ns = {"Out": {1: HELD}}
    assert not carries_rows(beside(shell), HELD)
    assert carries_rows(beside(shell, shell.user_ns["Out"]), HELD)


def test_bytes_that_are_no_text_blind_no_search(monkeypatch):
    """On Windows they cannot be decoded, and the whole function was passed over."""
    monkeypatch.setattr("os.fsdecode", lambda held: held.decode("utf-8", "surrogatepass"))
    assert carries_rows(lambda rows: rows.mean() + len(b"\xff") + HELD[0], HELD)
    assert not carries_rows(lambda rows: rows.mean() + len(b"\xff"), HELD)
