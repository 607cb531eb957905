"""What a function does to its rows, or to objects in them, it does to a copy."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed import transformations as t
from hushed.errors import BadFunction
from hushed.spaces import ABSOLUTE, CHANGE_ONE, SYMMETRIC, Numbers, Opaque, Space

PROVEN = hs.Laplace(hs.proven_sensitivity(1.0, argument="a constant"), epsilon=1.0)


def cells():
    """Three rows of a list with something in it that can be changed."""
    return [[1.0, 2.0], [3.0], []]


def held(values):
    """An array of objects."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


CONTAINERS = {
    "pandas": lambda: pd.DataFrame({"x": held(cells())}),
    "polars": lambda: pl.DataFrame({"x": pl.Series("x", cells(), dtype=pl.Object)}),
    "array": lambda: held(cells()),
    "columns": lambda: np.stack([held(cells()), held(cells())], axis=1),
    "fields": lambda: np.array(
        [(1, [1.0]), (2, [2.0, 3.0]), (3, [])], dtype=[("n", "i8"), ("x", "O")]
    ),
    "list": cells,
    "dicts": lambda: [{"x": x} for x in cells()],
    "a subclass": lambda: np.arange(9.0).reshape(3, 3).view(np.matrix),
}


def clear(thing):
    """Empty whatever can be emptied, however deep it lies."""
    if isinstance(thing, pd.DataFrame | pl.DataFrame):
        for name in thing.columns:
            clear(list(thing[name]))
    elif isinstance(thing, np.ndarray) and thing.dtype.hasobject:
        clear(thing.tolist())
        clear([x for row in thing.ravel().tolist() if isinstance(row, tuple) for x in row])
    elif isinstance(thing, np.ndarray):
        thing[...] = 0
    elif isinstance(thing, dict):
        clear(list(thing.values()))
        thing.clear()
    elif isinstance(thing, list):
        for each in list(thing):
            clear(each)
        thing.clear()


def vandal(rows):
    clear(rows)
    return 0.0


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_release(name):
    """Objects in cells are the caller's own afterwards."""
    data = CONTAINERS[name]()
    before = copy.deepcopy(data)
    hs.release(vandal, data, PROVEN)
    assert str(data) == str(before)


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("step", ["declared", "proven"])
def test_a_chain(name, step):
    """Steps of the caller's own get a copy, too, whatever container the chain lets in."""
    data = CONTAINERS[name]()
    before = copy.deepcopy(data)
    space = Space(domain=Opaque(), metric=CHANGE_ONE)
    if step == "proven":
        chain = t.from_sensitivity(vandal, PROVEN.sensitivity, source=space)
    else:
        chain = t.declared(
            vandal,
            source=space,
            target=Space(domain=Numbers(), metric=ABSOLUTE),
            stability=1,
            argument="a constant",
        )
    chain(data)
    assert str(data) == str(before)


class Bag:
    """What is no table."""

    def __init__(self):
        self.rows = [1.0, 2.0]

    def __len__(self):
        return len(self.rows)


def test_a_chain_of_something_else():
    """Rows in a container that nobody knows are copied as well."""
    chain = t.declared(
        lambda bag: bag.rows.clear() or 0.0,
        source=Space(domain=Opaque(), metric=SYMMETRIC),
        target=Space(domain=Numbers(), metric=ABSOLUTE),
        stability=1,
        argument="a constant",
    )
    bag = Bag()
    chain(bag)
    assert bag.rows == [1.0, 2.0]


class Stubborn:
    """Cannot be copied, and says why with a value."""

    def __init__(self, error=RuntimeError):
        self.error = error

    def __deepcopy__(self, memo):
        print("Wilhelmina-Quux")
        raise self.error("Wilhelmina-Quux")


@pytest.mark.parametrize(
    "make",
    [lambda x: [x, x], held, lambda x: pd.DataFrame({"x": held(x)})],
)
@pytest.mark.parametrize("error", [RuntimeError, SystemExit, BadFunction])
def test_what_cannot_be_copied_is_shown_as_it_is_and_in_silence(make, error, ledger, capsys):
    """A refusal before the charge would tell of a row; what the object says is not heard."""
    data = make([Stubborn(error), Stubborn(error)])
    hs.release(lambda rows: float(len(rows)), data, PROVEN, ledger, budget="x")
    assert len(ledger.log) == 1
    assert "Wilhelmina" not in capsys.readouterr().out


def test_a_kept_reference_is_no_way_back():
    """What the function keeps is the copy: changing it later changes nothing."""
    kept = []
    data = np.arange(5.0)
    hs.release(lambda rows: kept.append(rows) or 0.0, data, PROVEN)
    kept[0][:] = -1
    assert data.tolist() == [0, 1, 2, 3, 4]
    assert not np.shares_memory(kept[0], data)


def test_a_function_that_fails_after_changing_its_rows():
    """The copy is the one that was changed."""
    data = cells()

    def f(rows):
        clear(rows)
        raise ValueError("Wilhelmina-Quux")

    with pytest.raises(BadFunction):
        hs.release(f, data, PROVEN)
    assert data == cells()


NAMED = np.array([(20.0, 1.0), (40.0, 2.0)] * 10, dtype=[("age", "f8"), ("n", "f8")])
USERS = {"record array": "n", "matrix": 0}
KINDS = {
    "record array": (NAMED.view(np.recarray), lambda rows: float(rows.age.mean())),
    "matrix": (np.array([[20.0], [40.0]] * 10).view(np.matrix), lambda rows: float(rows.A1.mean())),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_array_that_was_not_sampled_is_shown_as_the_kind_that_it_is(kind):
    """A record array has columns by name, in a release, in each block, and in a chain."""
    data, f = KINDS[kind]
    exact = f(data)
    assert abs(hs.release(f, data, hs.Laplace(PROVEN.sensitivity, epsilon=1e6)).value - exact) < 1
    chain = t.from_sensitivity(f, PROVEN.sensitivity)
    assert chain(data) == exact
    blocks = hs.Blocks(low=0, high=1000, epsilon=1e4, blocks=2, aggregate="mean")
    public = hs.populations.PublicTable(data)
    assert blocks.simulate(f, public, 20, trials=2, isolated=False).failed == 0
    whose = hs.Blocks(low=0, high=1, epsilon=9.0, blocks=2, aggregate="mean", user=USERS[kind])
    assert sum(map(len, whose.split(data))) == 20
    assert hs.release(f, data, blocks).value > 15
