"""Numbers of every kind and size through risk, cost and compositions: read alike, or refused."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import hushed as hs
from hushed import cost, risk
from hushed._ground.printing import format_down, format_up
from hushed.cli._composing import read_release
from hushed.errors import HushedError, ParameterError

MODEL = cost.CostModel(per_person=100, people=3)
DOORS = {
    "assess": lambda x: risk.assess(x, 1.0).delta,
    "assess at": lambda x: risk.assess(0.05, x).delta,
    "belief": risk.belief,
    "belief from": lambda x: risk.belief(1.0, x),
    "crossing": lambda x: risk.crossing(x) or 0.0,
    "delta": lambda x: risk.delta(x, 1.0),
    "loss exceeds": lambda x: risk.loss_exceeds(x, 1.0),
    "published": lambda x: risk.published_epsilon(x, 1.0),
    "data": lambda x: risk.data_confidence(x, rho=x, samples=9000),
    "error": lambda x: cost.plan([cost.Need(error=x, beta=0.05)]).epsilon,
    "beta": lambda x: cost.plan([cost.Need(error=1, beta=x)]).epsilon,
    "joint": lambda x: cost.plan([cost.Need(error=1, beta=0.05)], delta=x).epsilon,
    "budget": lambda x: cost.plan([cost.Need(error=1)], budget=x, model=MODEL).remedies,
    "price": lambda x: MODEL.optimum(x).epsilon,
    "cost": MODEL.cost,
    "within": MODEL.epsilon_within,
    "compensation": lambda x: cost.CostModel(per_person=x).cost(1.0),
    "slack": lambda x: hs.compose([hs.Guarantee(epsilon=0.1)] * 2, delta=x).epsilon,
    "sum": lambda x: hs.compose([hs.Guarantee(epsilon=x)] * 2).epsilon,
}
SAME = [Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.float16(0.5), np.longdouble(0.5)]
ODD = [
    *(1e-320, 5e-324, 1e15, 1e17, 1e300, math.inf, -0.0, math.nan, True, "0.5", None, 1 + 0j),
    *(10**400, Fraction(1, 10**400), Decimal("NaN"), Decimal("sNaN"), Decimal("1e-400")),
    np.array([0.5]),
    *(np.complex64(0.5), np.complex128(0.5 + 2j)),
    *(np.timedelta64(5), np.timedelta64(5, "D"), np.timedelta64("NaT")),
]


@pytest.mark.parametrize("door", list(DOORS))
def test_the_same_number_gives_the_same(door):
    """Whatever type it has."""
    right = DOORS[door](0.5)
    assert all(DOORS[door](one) == right for one in SAME)


@pytest.mark.parametrize("door", list(DOORS))
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_odd_numbers_are_taken_or_refused(door, odd):
    """In words of this package, and without a warning of another."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            DOORS[door](odd)
        except HushedError:
            return
    assert not isinstance(
        odd, bool | str | complex | np.complexfloating | np.ndarray | np.timedelta64
    )


@pytest.mark.parametrize("odd", [np.timedelta64(5), np.timedelta64(5, "D"), np.timedelta64("NaT")])
def test_a_duration_of_numpy_is_no_whole_number(odd):
    """NumPy counts it among them; of most Python's own conversion fails."""
    for door in (
        lambda: hs.Guarantee(epsilon=1.0, distance=odd),
        lambda: cost.Need(error=1.0, dims=odd, beta=0.5),
        lambda: hs.statistics.quantile(0.5, rows=odd, low=0, high=1),
    ):
        with pytest.raises(ParameterError):
            door()


@pytest.mark.parametrize("level", [1e-320, 5e-324, 1e-310, 0.1, 1.0000004, 123456789.123, 1e300])
def test_what_is_printed_is_on_its_side(level):
    """As decimals; of tiny ones many are one double."""
    meant = Decimal(repr(level))
    assert Decimal(format_up(level)) >= meant >= Decimal(format_down(level))


@pytest.mark.parametrize("slack", [5e-324, 1e-320, 1e-310, 1e-20])
def test_a_sum_of_promises_is_never_called_no_guarantee(slack):
    """However small its deltas are."""
    found = hs.compose([hs.Guarantee(epsilon=0.1, delta=slack)] * 10, method="basic")
    assert not found.warnings
    assert found.epsilon == 1.0
    assert found.exact.low <= found.exact.high <= 1.0
    assert found.relative_gap >= 0


@pytest.mark.parametrize(
    "one",
    [
        hs.Guarantee(epsilon=1e17),
        hs.Guarantee(epsilon=1e100),
        hs.Guarantee(epsilon=1e-320),
        hs.privacy_loss.discrete_gaussian(1e-10, 1),
    ],
    ids=str,
)
def test_losses_beyond_doubles_are_refused(one):
    """And neither crash, nor warn, nor run for ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ParameterError, match="cannot be composed"):
            hs.compose([one] * 2)


@pytest.mark.parametrize(
    "text",
    [
        "discrete-laplace:2,1.9",
        "discrete-laplace:2,nan",
        "discrete-gaussian:2,1.5",
        "response:1,2.7",
        "response:1,0",
        "response:1,inf",
    ],
)
def test_no_typed_number_is_cut_off(text):
    """A sensitivity of 1.9 is not one of 1, on the command line as elsewhere."""
    with pytest.raises(ParameterError):
        read_release(text)
