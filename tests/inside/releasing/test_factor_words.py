"""A certificate says by how much probabilities may change, and calls a weak promise weak."""

import pytest

from hushed.guarantee import Guarantee
from hushed.releasing._factor_words import describe_factor


@pytest.mark.parametrize(
    ("epsilon", "factor", "weak"),
    [(0.5, "1.649", False), (4.5, "90.02", False), (5.0, "148.5", True), (1e4, "10^4344", True)],
)
def test_the_factor_is_rounded_up_and_a_large_one_is_weak(epsilon, factor, weak):
    """Even odds become 98.9 % at epsilon 4.5; e^10000 has 4343 digits and is no double."""
    said = describe_factor(Guarantee(epsilon=epsilon, delta=0.0), "it", "with one row replaced")
    assert f"a factor e^epsilon = {factor}." in said
    assert ("weak promise" in said) == weak
    assert "nearly the same" not in said


@pytest.mark.parametrize(
    ("delta", "weak"), [(1e-6, False), (0.9, False), (0.99, True), (1.0, True)]
)
def test_a_promise_is_weak_by_its_delta_as_well(delta, weak):
    """At epsilon = 0.1 even odds become 95.3 % with a delta of 0.9, and 99.5 % with 0.99."""
    said = describe_factor(Guarantee(epsilon=0.1, delta=delta), "it", "with one row replaced")
    assert ("weak promise" in said) == weak
