"""A statistic at an extreme epsilon is answered, or refused before anything is charged."""

import pytest

import hushed as hs
from hushed import statistics as st
from hushed.errors import ParameterError

NUMBERS = [float(i % 11) for i in range(50)]
MODE, MEDIAN = st.mode(["a", "b"]), st.median(low=0, high=10)
MADE = {
    "stable mode": (MODE, lambda e: hs.StableMode(MODE, epsilon=e, delta=1e-6)),
    "inverse of a mode": (MODE, lambda e: hs.InverseSensitivity(MODE, epsilon=e)),
    "propose-test": (MEDIAN, lambda e: hs.ProposeTest(MEDIAN, bound=3.0, epsilon=e, delta=1e-6)),
    "inverse of a median": (MEDIAN, lambda e: hs.InverseSensitivity(MEDIAN, epsilon=e)),
    "smooth": (MEDIAN, lambda e: hs.Smooth(MEDIAN, epsilon=e)),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("epsilon", [1e-300, 1e-80, 1e-59, 1e-15, 1e290, 1e302, 1.79e308])
def test_no_charge_is_left_without_an_answer(name, epsilon, ledger):
    """What the noise cannot be drawn with is said before the charge; all else is drawn."""
    statistic, make = MADE[name]
    rows = ["a"] * 50 if statistic is MODE else NUMBERS
    try:
        hs.release(statistic, rows, make(epsilon), ledger=ledger, budget="b")
    except ParameterError:
        assert not ledger.log
    else:
        assert len(ledger.log) == 1
