"""Certified bounds exceed the truth no more often than they may.

100 repeats at 95 %, with fixed seeds: more than 10 wrong ones would come by chance with probability
1.1 % if every bound were wrong exactly 5 times in 100; exact tests are wrong less often. Bounds
wrong 25 times in 100 are seen with .9998 in each case, and 10 times in 100 with .96 in one of
the six. The arithmetic is summed exactly elsewhere.
"""

import math

import numpy as np
import pytest

from hushed.auditing import audit
from hushed.guarantee import Guarantee

pytestmark = pytest.mark.slow

REPEATS, ALLOWED = 100, 10


def laplace(rows, rng, size):
    """Exactly epsilon 1 on the grid of 1/64."""
    steps = rng.geometric(-math.expm1(-1 / 64), (2, size))
    return rows[0] + (steps[0] - steps[1]) / 64


def responses(rows, rng, size):
    """Exactly epsilon log 3."""
    return np.where(rng.random(size) < 0.75, rows[0], 1 - rows[0])


def geometric(rows, rng, size):
    """Two-sided geometric noise of ratio exp(-1), clipped to 0..3: exactly epsilon 1."""
    steps = rng.geometric(-math.expm1(-1), (2, size))
    return np.clip(rows[0] + steps[0] - steps[1], 0, 3)


TRUTHS = [(laplace, 1.0), (responses, math.log(3)), (geometric, 1.0)]


@pytest.mark.parametrize(
    ("mechanism", "truth", "delta"), [*((*each, 0.0) for each in TRUTHS), (laplace, 1.0, 0.02)]
)
def test_bounds_from_fixed_samples(mechanism, truth, delta):
    """Neither epsilon nor delta is overstated, nor a true claim refuted, too often."""
    wrong = powerful = 0
    for seed in range(REPEATS):
        found = audit(
            mechanism,
            "one below",
            claim=Guarantee(epsilon=truth, delta=delta),
            answers=1,
            samples=3000,
            batch=True,
            workers=1,
            seed=seed,
        )
        wrong += found.epsilon_low > truth or found.delta_low > delta
        powerful += found.epsilon_low > 0.5 * truth
        assert (found.verdict == "violated") <= (found.epsilon_low >= truth)
    assert wrong <= ALLOWED
    assert powerful > REPEATS / 2  # a bound of 0 would be valid, too


@pytest.mark.parametrize(("mechanism", "truth"), TRUTHS[:2])
def test_bounds_while_peeking_at_every_round(mechanism, truth):
    """The sequential mode looks after every round, and stops as soon as it may accuse."""
    wrong = powerful = 0
    for seed in range(REPEATS):
        found = audit(
            mechanism,
            "one below",
            claim=Guarantee(epsilon=truth),
            answers=1,
            samples=8000,
            batch=True,
            workers=1,
            seed=seed,
            sequential=True,
        )
        wrong += found.verdict == "violated" or found.epsilon_low > truth
        powerful += found.epsilon_low > 0.3 * truth
    assert wrong <= ALLOWED
    assert powerful > REPEATS / 2


def test_detectable_violations_are_caught():
    """Randomised response that loses what is called detectable is caught 19 times in 20."""
    claim = Guarantee(epsilon=0.8)

    def judged(mechanism, seed):
        return audit(
            mechanism,
            "one below",
            claim=claim,
            answers=1,
            samples=4000,
            batch=True,
            workers=1,
            seed=seed,
        )

    bar = judged(responses, 0).minimum_detectable

    def leaky(rows, rng, size):
        keep = 1 / (1 + math.exp(-bar))
        return np.where(rng.random(size) < keep, rows[0], 1 - rows[0])

    caught = sum(judged(leaky, seed).verdict == "violated" for seed in range(40))
    assert caught >= 34  # fewer at a true 0.95: probability 0.3 %
