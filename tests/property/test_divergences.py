"""What holds for every pair of count vectors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushed.divergences import estimate_delta
from hushed.divergences._counts import Tuples

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=25).filter(
    lambda rows: all(sum(side) > 0 for side in zip(*rows, strict=True))
)
EPSILONS = st.floats(0, 3)
METHODS = st.sampled_from(["plug-in", "minimax", "empirical-bayes"])


@given(PAIRS, EPSILONS)
@settings(deadline=None)
def test_plug_in_is_the_sum(rows, epsilon):
    """The plug-in equals the sum of positive parts in rational arithmetic."""
    p, q = zip(*rows, strict=True)
    weight = Fraction(math.exp(epsilon))
    exact = sum(
        max(Fraction(b, sum(q)) - weight * Fraction(a, sum(p)), Fraction(0)) for a, b in rows
    )
    estimate = estimate_delta(p, q, epsilon, method="plug-in")
    assert float(estimate) == pytest.approx(float(exact), abs=1e-12)


@given(PAIRS, EPSILONS, METHODS, st.randoms(use_true_random=False), st.integers(0, 5))
def test_order_and_unseen_symbols_do_not_matter(rows, epsilon, method, random, unseen):
    """Estimates depend on the bag of count pairs, and symbols never seen add nothing."""
    shuffled = rows + [(0, 0)] * unseen
    random.shuffle(shuffled)
    first = estimate_delta(*zip(*rows, strict=True), epsilon, method=method)
    second = estimate_delta(*zip(*shuffled, strict=True), epsilon, method=method)
    assert float(first.unclipped) == pytest.approx(float(second.unclipped), abs=1e-9)
    errors = float(first.standard_error), float(second.standard_error)
    assert errors[0] == pytest.approx(errors[1], abs=1e-9, nan_ok=True)


@given(PAIRS, EPSILONS, METHODS)
def test_values_are_probabilities(rows, epsilon, method):
    """Estimates lie in [0, 1] with finite standard errors above 0, or with none that is known."""
    estimate = estimate_delta(*zip(*rows, strict=True), epsilon, method=method)
    assert 0 <= float(estimate) <= 1
    error = float(estimate.standard_error)
    assert math.isnan(error) or 0 < error < math.inf


@given(PAIRS, st.lists(EPSILONS, min_size=2, max_size=5), METHODS)
def test_every_curve_falls(rows, epsilons, method):
    """No curve rises with epsilon, in whatever order it was asked for; as the truth does not."""
    curve = estimate_delta(*zip(*rows, strict=True), epsilons, method=method)
    assert np.all(np.diff(curve.values[np.argsort(epsilons, kind="stable")]) <= 0)
    assert np.mean(curve.values) == pytest.approx(np.mean(np.clip(curve.unclipped, 0, 1)))
    if method == "plug-in":
        assert curve.values == pytest.approx(np.clip(curve.unclipped, 0, 1), abs=1e-12)


@pytest.mark.parametrize("method", ["plug-in", "minimax", "empirical-bayes"])
@pytest.mark.parametrize("bootstrap", [0, 20])
@pytest.mark.parametrize("counts", [([7, 0], [0, 7]), ([7], [7]), ([1, 0], [0, 1])], ids=str)
def test_no_error_of_zero_is_stated(method, bootstrap, counts):
    """A few draws that are all alike do not show that there is no error."""
    found = estimate_delta(*counts, [0.0, 3.0], method=method, bootstrap=bootstrap)
    assert not np.any(found.standard_error == 0)
    plug_in = estimate_delta(*counts, 3.0, method="plug-in", bootstrap=bootstrap)
    assert math.isnan(float(plug_in.standard_error))
    assert "not known" in str(plug_in)


@given(st.lists(st.lists(st.integers(0, 2**53), min_size=7, max_size=7), min_size=1, max_size=4))
def test_grouping_keeps_every_symbol(columns):
    """Distinct tuples with their multiplicities are the symbols, however large the counts."""
    arrays = tuple(np.array(column, dtype=np.int64) for column in columns)
    tuples = Tuples.group(arrays)
    found = sorted(
        row
        for row, times in zip(zip(*tuples.columns, strict=True), tuples.multiplicity, strict=True)
        for _ in range(times)
    )
    assert found == sorted(row for row in zip(*columns, strict=True) if any(row))


def test_grouping_does_not_overflow():
    """Pairs whose plain key would wrap to the same 64-bit number stay apart."""
    columns = np.array([2**11, 0, 2**53]), np.array([5, 5, 2**53 - 1])
    assert len(Tuples.group(columns).multiplicity) == 3
