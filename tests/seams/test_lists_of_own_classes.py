"""A list of a class of the caller's is not asked: its own code could say or raise its rows."""

import numpy as np
import pytest

import hushed as hs
from hushed import transformations as t
from hushed.errors import BadRows

SECRET = "31337"
MEAN = hs.statistics.mean(rows=40, low=0, high=1)
MEDIAN = hs.statistics.median(rows=40, low=0, high=1)
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


def mean(rows):
    return float(np.mean(rows))


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


DOORS = [
    release_statistic,
    release_smooth,
    release_sampled,
    release_blocks,
    check_movement,
    check_population,
    run_chain,
    MEDIAN.value,
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("kind", [Saying, Failing])
def test_no_code_of_such_a_list_is_heard(kind, door, capsys):
    """Most of these doors asked how long it is before the rows were at the gate."""
    told = ""
    try:
        door(kind([0.25, 0.75] * 20))
    except BadRows as refused:
        told = str(refused)
    heard = capsys.readouterr()
    assert SECRET not in told + heard.out + heard.err


class Asked(list):
    """A list that says its rows when it is asked for what it has not."""

    def __getattr__(self, name):
        raise ValueError(SECRET)


@pytest.mark.parametrize("kind", [Saying, Failing, Asked])
def test_nor_is_it_where_an_estimator_is_fitted(kind, capsys):
    """It was asked for columns, a type and its labels outside of a private call."""
    linear = pytest.importorskip("sklearn.linear_model")
    from hushed.sklearn import PrivateEstimator

    rows, labels = np.linspace(0, 1, 80).reshape(40, 2).tolist(), [0.5] * 40
    for given in ((kind(rows), labels), (rows, kind(labels))):
        private = PrivateEstimator(
            linear.Ridge(),
            route="blocks",
            bounds=(0, 1),
            epsilon=9.0,
            delta=1e-3,
            centre=[0, 0, 0],
            radius=5.0,
            blocks=10,
        )
        told = ""
        try:
            private.fit(*given)
        except BadRows as refused:
            told = str(refused)
        heard = capsys.readouterr()
        assert SECRET not in told + heard.out + heard.err
