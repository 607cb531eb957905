"""A parameter of another type is refused in words, before a charge: not by an error of Python."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import hushed as hs
from hushed.errors import ParameterError
from hushed.sklearn import PrivateEstimator

ROWS = np.linspace(0, 1, 40)
PROVEN = hs.proven_sensitivity(1.0, argument="any")
UNIFORM = hs.populations.Uniform(low=0, high=1)
BALL = {"aggregate": "vector", "centre": [0.0], "radius": 1.0, "epsilon": 40.0, "blocks": 2}
ASKED = {
    "note": lambda odd: hs.release(np.mean, ROWS, hs.Laplace(PROVEN, epsilon=1), note=odd),
    "note of a search": lambda odd: hs.find_bound(ROWS, epsilon=1, note=odd),
    "note of a check": lambda odd: hs.check_population(
        ROWS, UNIFORM, epsilon=1, tables=20, note=odd
    ),
    "unit": lambda odd: hs.sample_sensitivity(np.mean, UNIFORM, rows=9, unit=odd),
    "unit of a proof": lambda odd: hs.proven_sensitivity(1.0, argument="any", unit=odd),
    "unit of a check": lambda odd: hs.check_population(ROWS, UNIFORM, epsilon=1, unit=odd),
    "neighbours": lambda odd: hs.sample_sensitivity(np.mean, UNIFORM, rows=9, neighbours=odd),
    "delta": lambda odd: hs.Blocks(delta=odd, **BALL),
    "delta of a fit": lambda odd: PrivateEstimator(
        Ridge(), route="objective", bounds=([0], [1]), labels=(0, 1), delta=odd
    ).fit([[1.0]], [1.0]),
    "delta of a fit by blocks": lambda odd: PrivateEstimator(
        Ridge(), route="blocks", radius=1.0, delta=odd
    ).fit([[1.0]], [1.0]),
    "categories": lambda odd: hs.statistics.mode(["a", odd], rows=9),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    "odd", [np.array([1, 2]), b"x", object(), 1j], ids=lambda odd: type(odd).__name__
)
def test_it_is_refused_by_its_name(name, odd):
    """An array is neither equal to a word nor true, and says so by an error of its own."""
    with pytest.raises(
        ParameterError, match="categor" if name == "categories" else name.split()[0]
    ):
        ASKED[name](odd)


def test_a_budget_is_a_name(tmp_path):
    """An array among them."""
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    with pytest.raises(ParameterError, match="no budget was named"):
        hs.release(np.mean, ROWS, hs.Laplace(PROVEN, epsilon=1), ledger, budget=np.array([1, 2]))
