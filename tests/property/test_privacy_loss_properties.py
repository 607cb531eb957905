"""Privacy profiles behave like privacy profiles, for any mechanism."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushed import privacy_loss

sizes = st.floats(1e-3, 5.0)


@st.composite
def curves(draw):
    """Any of the mechanisms with a random parameter."""
    kind = draw(st.sampled_from(["laplace", "gaussian", "range", "response", "geometric", "pair"]))
    size = draw(sizes)
    if kind == "pair":
        cells = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3)
        p, q = np.array(draw(cells)), np.array(draw(cells))
        return privacy_loss.pair(p / p.sum(), q / q.sum())
    make = {
        "laplace": privacy_loss.laplace,
        "gaussian": privacy_loss.gaussian,
        "range": privacy_loss.bounded_range,
        "response": lambda x: privacy_loss.randomised_response(x, 3),
        "geometric": lambda x: privacy_loss.discrete_laplace(1 / x, 2),
    }
    return make[kind](size)


@given(curves(), st.floats(-3, 10), st.floats(0, 3))
def test_delta_falls_and_stays_above_its_floor(curve, epsilon, more):
    """Delta never rises with epsilon and is never below 1 - exp(epsilon)."""
    assert curve.delta(epsilon + more) <= curve.delta(epsilon) + 1e-15
    assert curve.delta(epsilon) >= max(0.0, 1 - math.exp(epsilon)) - 1e-12


@given(curves(), st.floats(1e-12, 0.5))
def test_epsilon_keeps_its_promise(curve, delta):
    """At epsilon(delta) the delta really is at most delta; a little below it is not."""
    epsilon = curve.epsilon(delta)
    assert curve.delta(epsilon) <= delta
    if epsilon > 1e-9:
        assert curve.delta(epsilon * (1 - 1e-6) - 1e-12) >= delta * (1 - 1e-9) or epsilon < 1e-6


@given(st.lists(curves(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_order_of_composition_does_not_matter(items, random):
    """Any order and any nesting give the same bracket up to round-off."""
    one = privacy_loss.compose(items).epsilon_bracket(1e-6)
    mixed = list(items)
    random.shuffle(mixed)
    nested = privacy_loss.compose(
        [privacy_loss.compose(mixed[:1]), privacy_loss.compose(mixed[1:])]
    )
    other = nested.epsilon_bracket(1e-6)
    assert math.isclose(one.high, other.high, rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(one.low, other.low, rel_tol=1e-9, abs_tol=1e-12)


@given(curves(), curves(), st.floats(1e-10, 0.1))
def test_another_release_never_helps(one, other, delta):
    """Adding a release never lowers the exact epsilon, and at most adds its own largest loss."""
    alone = one.epsilon_bracket(delta)
    both = privacy_loss.compose([one, other]).epsilon_bracket(delta)
    assert alone.low <= both.high * (1 + 1e-12)
    if math.isfinite(other.supremum):
        assert both.low <= alone.high + other.supremum + 1e-12


@given(curves(), st.floats(0.01, 0.99))
def test_tradeoff_is_a_tradeoff(curve, rate):
    """The attacker's two error rates sum to at most 1 and at least 1 minus the advantage."""
    error = curve.tradeoff(rate)
    assert 0 <= error <= 1 - rate + 1e-12
    assert error >= 1 - rate - curve.advantage() - 1e-9
