"""Validators refuse what is none, name the parameter, and hand back plain values."""

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import hushed as hs
from hushed._ground import checks
from hushed.errors import ParameterError, SpaceMismatch
from hushed.noise._grid import _laplace_grid
from hushed.noise._scales import single_scale
from hushed.transformations import summation_error
from hushed.transformations._aggregates import count_sensitivity, histogram_sensitivity

NO_NUMBERS = [None, "1", b"1", True, False, np.True_, [1], np.array([1.0, 2.0]), 1j]
OUTSIDE = [float("nan"), float("inf"), -1, 0]
PLAIN = {
    "positive": (checks.require_positive, [0.5, 2, np.float64(0.5), np.int64(2)], float),
    "probability": (checks.require_probability, [0.5, np.float64(0.5), 1e-300], float),
    "count": (checks.require_count, [1, 7, np.int64(7), np.uint8(7)], int),
}


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_allowed_comes_back_as_a_plain_number(name):
    """NumPy's numbers become Python's, of the same value."""
    require, good, kind = PLAIN[name]
    for value in good:
        found = require("x", value)
        assert type(found) is kind
        assert found == value


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("bad", [*NO_NUMBERS, *OUTSIDE], ids=repr)
def test_what_is_no_such_number_is_refused_by_its_name(name, bad):
    """The message says the name and what was met; the error carries the name."""
    require, _, _ = PLAIN[name]
    with pytest.raises(ParameterError, match=r"^size must .* got") as caught:
        require("size", bad)
    assert caught.value.parameter == "size"


def test_integers_beyond_all_doubles_are_refused_where_a_double_is_wanted():
    """They overflow nothing on the way; as counts they are beyond what NumPy has sizes for."""
    for require in (checks.require_positive, checks.require_probability):
        for far in (10**400, -(10**400)):
            with pytest.raises(ParameterError, match="x must"):
                require("x", far)
    assert checks.require_count("x", 2**63 - 1) == 2**63 - 1
    with pytest.raises(ParameterError, match="x must be 9223372036854775807 or less"):
        checks.require_count("x", 2**63)


def test_limits_are_kept_and_nan_is_not():
    """Ends belong to a closed range; NaN belongs to none."""
    for value in (0, 1, 0.5):
        checks.require_within("x", value, 0, 1)
        checks.require_least("x", value)
    assert checks.require_count("x", 0, least=0) == 0
    for bad in (-5e-324, 1 + 2**-52, float("nan")):
        with pytest.raises(ParameterError, match=r"x must lie in \[0, 1\], got"):
            checks.require_within("x", bad, 0, 1)
    for bad in (-5e-324, float("nan")):
        with pytest.raises(ParameterError, match="x must be 0 or more, got"):
            checks.require_least("x", bad)


@pytest.mark.parametrize("bad", [None, "", "L1", 1, np.array(["l1", "l2"]), ["l1"], {}])
def test_a_word_is_one_of_those_that_are_listed(bad):
    """Whatever else is given, an array too, is refused with the list."""
    checks.require_one_of("norm", "l1", ("l1", "l2"))
    with pytest.raises(ParameterError, match=r"norm must be one of \('l1', 'l2'\)") as caught:
        checks.require_one_of("norm", bad, ("l1", "l2"))
    assert caught.value.parameter == "norm"


def test_an_epsilon_that_is_asked_for_is_read_downwards():
    """Exact numbers become the decimal below; none is no epsilon."""
    assert checks.read_epsilon(Fraction(1, 3)) <= Fraction(1, 3)
    assert checks.read_epsilon(Decimal("0.1")) == 0.1
    for bad in (0, -1, float("inf"), float("nan"), True, "1"):
        with pytest.raises(ParameterError, match="epsilon must be"):
            checks.read_epsilon(bad)


def test_numbers_that_overflow_do_not_reach_exact_sums():
    """A bound that is computed in integers takes Python's only, or gives the exact answer."""
    huge = np.int64(2**62)
    for bad in (
        lambda: count_sensitivity(huge, metric="change-one"),
        lambda: histogram_sensitivity(huge, norm="l1", metric="change-one"),
        lambda: summation_error(huge, largest=1.0),
    ):
        with pytest.raises(ParameterError, match="integer"):
            bad()


def test_the_name_of_a_parameter_survives_a_trip_between_processes():
    """Pickled and read again, an error has its message and its parameter; most have none."""
    with pytest.raises(ParameterError) as caught:
        hs.Guarantee(epsilon=1.0, delta=2.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.parameter) == (str(caught.value), "delta")
    assert pickle.loads(pickle.dumps(SpaceMismatch("no"))).parameter is None


def test_a_count_of_numpy_is_counted_on_as_a_plain_one():
    """What was read is used: narrow numbers went round: 108 calls were told of 620."""
    laplace = hs.Laplace(hs.proven_sensitivity(1.0, argument="a claim"), epsilon=1.0)
    assert laplace.accuracy(0.05, np.int8(100)) == laplace.accuracy(0.05, 100)
    made = hs.Blocks(low=0, high=1, epsilon=1.0, blocks=30, aggregate="mean")
    public = hs.populations.Simulator(lambda rng, count: rng.random(count))

    def ask(number):
        sizes = {"rows": number(120), "trials": number(20), "isolated": False}
        return made.simulate(lambda rows: rows.mean(), public, **sizes)

    assert ask(np.uint8) == ask(int)
    assert type(hs.blocks.Limits(memory=np.int32(2**30)).memory) is int


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("whole", [np.int64, np.int32, np.uint8])
def test_what_numpy_counted_leaves_no_other_grid_behind(whole):
    """Grids are remembered: noise was a sixth of what epsilon wants after a look at the error."""
    ask = hs.noise.laplace_grid, hs.noise.gaussian_grid
    numbers = [{"sensitivity": 1e6, "epsilon": 0.7}, {"sensitivity": 1e-3, "sigma": 10.0}]
    for lay, number in zip(ask, numbers, strict=True):
        _laplace_grid.cache_clear(), hs.noise.gaussian_grid.cache_clear()
        good = lay(**number, dims=20)
        _laplace_grid.cache_clear(), hs.noise.gaussian_grid.cache_clear()
        assert lay(**number, dims=whole(20)) == lay(**number, dims=20) == good
    _laplace_grid.cache_clear()
    plain = hs.noise.laplace_grid(sensitivity=3, epsilon=0.7, dims=20)
    _laplace_grid.cache_clear()
    assert hs.noise.laplace_grid(sensitivity=whole(3), epsilon=0.7, dims=20) == plain
    single_scale.cache_clear()
    assert type(single_scale(whole(3)).exact.numerator) is int
