"""A table of a class of the caller's is not asked: its own code could say or raise its rows."""

import functools

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed import measurements as m
from hushed import transformations as t
from hushed.errors import HushedError
from hushed.spaces import ABSOLUTE, CHANGE_ONE, SYMMETRIC, Cell, Column, Numbers, Opaque, Space

SECRET = "31337"
MEAN = hs.statistics.mean(rows=40, low=0, high=1)
MEDIAN = hs.statistics.median(rows=40, low=0, high=1)
NUMBER = Space(domain=Numbers(), metric=ABSOLUTE)
NUMBERS = hs.populations.Simulator(lambda rng, count: rng.random(count).tolist())


class Saying(list):
    """A list that says its rows when it is asked how many there are."""

    def __len__(self):
        print(SECRET)
        return list.__len__(self)


class Failing(list):
    """A list that fails with them."""

    def __len__(self):
        raise ValueError(SECRET)

    __iter__ = __len__


def of_class(kind, spoken):
    """Make a kind of array, tuple or frame that says its rows, or fails with them."""

    def tell(self):
        return (print(SECRET), kind.__len__(self))[1]

    def fail(self):
        raise ValueError(SECRET)

    return type(kind.__name__.title(), (kind,), {"__len__": tell if spoken else fail})


KINDS = [
    Saying,
    Failing,
    *(lambda rows, s=s: np.array(rows).view(of_class(np.ndarray, s)) for s in (True, False)),
    *(of_class(tuple, s) for s in (True, False)),
    *(lambda rows, s=s: of_class(pd.DataFrame, s)({"x": rows}) for s in (True, False)),
]


def mean(rows):
    return float(np.mean(rows))


@functools.cache
def sampled(rows):
    return hs.sample_sensitivity(
        mean, NUMBERS, rows=rows, pairs=300, gamma=0.1, symmetric=True, calibration="dkw"
    )


def release_statistic(rows):
    return hs.release(MEAN, rows, hs.Laplace(hs.global_sensitivity(MEAN), epsilon=1.0))


def release_smooth(rows):
    return hs.release(MEDIAN, rows, hs.Smooth(MEDIAN, epsilon=1.0))


def release_sampled(rows):
    return hs.release(mean, rows, hs.Laplace(sampled(40), epsilon=1.0))


def release_blocks(rows):
    return hs.release(len, rows, hs.Blocks(low=0, high=10, epsilon=4.0))


def check_movement(rows):
    return hs.check_movement(mean, rows, sampled(4), epsilon=1.0)


def check_population(rows):
    return hs.check_population(rows, NUMBERS, epsilon=1.0)


def run_chain(rows):
    return t.from_sensitivity(mean, sampled(40))(rows)


def run_declared(rows):
    source, target = Space(domain=Opaque(size=40), metric=CHANGE_ONE), NUMBER
    return t.declared(lambda _: 1.0, source=source, target=target, stability=1, argument="a")(rows)


DOORS = [
    release_statistic,
    release_smooth,
    release_sampled,
    release_blocks,
    check_movement,
    check_population,
    run_chain,
    run_declared,
    MEDIAN.value,
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_no_code_of_such_a_table_is_heard(kind, door, capsys):
    """Most of these doors asked how long it is before the rows were at the gate."""
    assert SECRET not in listen(lambda: door(kind([0.25, 0.75] * 20)), capsys)


def listen(call, capsys):
    """Give all that a call says, or is refused with."""
    told = ""
    try:
        call()
    except HushedError as refused:
        told = str(refused)
    heard = capsys.readouterr()
    return told + heard.out + heard.err


class Cellular:
    """A cell that says, or raises, what it is."""

    def __init__(self, spoken):
        self.spoken = spoken

    def __array__(self, *asked, **named):
        if not self.spoken:
            raise ValueError(SECRET)
        print(SECRET)
        return np.array(0.5)


@pytest.mark.parametrize("spoken", [True, False])
def test_no_code_of_a_cell_is_heard_where_a_chain_begins(spoken, capsys):
    """As the first step reads rows, in a transformation and in a measurement."""
    counted = Space(domain=Column(cell=Cell()), metric=SYMMETRIC) >> t.count()
    for chain in (counted, counted >> m.laplace(1.0)):
        assert SECRET not in listen(lambda chain=chain: chain([0.5, Cellular(spoken)]), capsys)


class Asked(list):
    """A list that says its rows when it is asked for what it has not."""

    def __getattr__(self, name):
        raise ValueError(SECRET)


@pytest.mark.slow_cases("Saying")
@pytest.mark.parametrize("kind", [Saying, Failing, Asked])
def test_nor_is_it_where_an_estimator_is_fitted(kind, capsys, by_value):
    """It was asked for columns, a type and its labels outside of a private call."""
    linear = pytest.importorskip("sklearn.linear_model")
    from hushed.sklearn import PrivateEstimator

    rows, labels = np.linspace(0, 1, 80).reshape(40, 2).tolist(), [0.5] * 40
    for given in ((kind(rows), labels), (rows, kind(labels))):
        private = PrivateEstimator(
            linear.Ridge(),
            route="blocks",
            bounds=(0, 1),
            epsilon=90.0,
            delta=1e-3,
            centre=[0, 0, 0],
            radius=5.0,
            blocks=2,
        )
        told = ""
        try:
            private.fit(*given)
        except HushedError as refused:
            told = str(refused)
        heard = capsys.readouterr()
        assert SECRET not in told + heard.out + heard.err
