"""Curves from a bound on delta: never below the real curve, also between levels and composed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushed import privacy_loss
from hushed.errors import ParameterError

LEVELS = [-2.0, -0.3, 0.0, 1e-3, 0.1, 0.77, 1.0, 2.3, 5.0]


def normal(ratio, level):
    """Delta of the Gaussian, from the distribution function of the normal law."""
    tail = [
        0.5 * math.erfc(x / math.sqrt(2))
        for x in (level / ratio - ratio / 2, level / ratio + ratio / 2)
    ]
    return tail[0] - math.exp(level) * tail[1]


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1e-4, 0.3, 2.0])
def test_gaussian(ratio):
    """The curve of a Gaussian, followed through its values alone, and four of them composed."""
    found = privacy_loss.profile(lambda level: max(0.0, normal(ratio, level)))
    for level in np.array(LEVELS) * ratio:
        assert normal(ratio, level) <= found.delta(level) <= 1.001 * normal(ratio, level) + 1e-11
    four = privacy_loss.compose([found] * 4)
    for level in np.array([0.0, 1.0, 3.0]) * ratio:
        exact = normal(2 * ratio, level)
        assert exact <= four.delta(level) <= 1.01 * exact


def test_a_step():
    """One known level is the worst mechanism with that promise: randomised response, and delta."""
    found = privacy_loss.profile(lambda level: 1.0 if level < 0.5 else 1e-8)
    worst = privacy_loss.approximate(0.5, 1e-8)
    for level in LEVELS:
        assert worst.delta(level) <= found.delta(level) * (1 + 1e-12)
        assert found.delta(level) <= worst.delta(level) * 1.001 + 1e-15
    assert math.isinf(found.epsilon(1e-9))


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=2, max_size=6),
    st.floats(0.0, 6.0),
)
@settings(max_examples=30, deadline=None)
@pytest.mark.slow
def test_finite_pairs(counts, level):
    """Any pair of laws that is told by its deltas alone, both ways: safe at every level."""
    p, q = (np.array(side, dtype=float) for side in zip(*counts, strict=True))
    if not q.sum():
        return
    p, q = p / p.sum(), q / q.sum()

    def delta(epsilon):
        return max(
            float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
            for one, other in ((p, q), (q, p))
        )

    found = privacy_loss.profile(delta)
    for each in (level, -level):
        assert delta(each) <= found.delta(each) + 1e-14
    twice = privacy_loss.compose([found, found])
    both = [np.outer(law, law).ravel() for law in (p, q)]
    mixed = [np.outer(p, q).ravel(), np.outer(q, p).ravel()]
    for one, other in (both, both[::-1], mixed):
        exact = float(np.maximum(one - math.exp(level) * other, 0).sum())
        assert exact <= twice.delta(level) + 1e-14


@pytest.mark.parametrize(("value", "supremum"), [(0.0, 0.0), (1.0, math.inf), (0.01, math.inf)])
def test_constants(value, supremum):
    """Nothing lost, everything lost, or an infinite loss with that probability."""
    found = privacy_loss.profile(lambda _: value)
    assert found.supremum == supremum
    assert found.delta(3.0) == pytest.approx(value)
    assert found.delta(3.0) >= value


def test_nan_is_refused():
    """A bound that is not a number bounds nothing."""
    with pytest.raises(ParameterError, match="NaN"):
        privacy_loss.profile(lambda level: math.nan if level > 0.3 else 0.1)
