"""What holds the private rows is refused, and no refusal tells what values they have."""

import functools
import pickle
import sys
import threading
import types

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed._functions._carried import carries_rows
from hushed.errors import BadFunction, PrivateRowsAsPopulation

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


def test_what_was_said_to_depend_on_the_rows_may_carry_them():
    """The certificate then promises nothing."""
    chosen = calibrated(hs.populations.PublicTable(HELD, promise="table"), data_dependent=True)
    assert hs.release(mean, HELD, chosen).certificate.guarantee.data_dependent


def test_the_certificate_says_what_was_compared():
    """And that nothing was where a law was named instead of a table."""
    public = hs.populations.PublicTable(FRESH)
    for population, words in (
        (public, "no values were compared, so that a copy"),
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
