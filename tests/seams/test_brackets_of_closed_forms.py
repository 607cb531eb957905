"""Brackets hold the truth: of single laws next to their ends, of sums of very large losses."""

import random
import warnings

import mpmath
import pytest

from hushed import privacy_loss
from hushed.errors import ParameterError

DIGITS = 400
ROUNDS = 40


def decimal(value):
    return mpmath.mpf(repr(float(value)))


def hockey_stick(outcomes, level):
    """By definition, from the probabilities of all outcomes under both tables."""
    odds = mpmath.exp(level)
    return mpmath.fsum(max(mpmath.mpf(0), p - odds * q) for p, q in outcomes)


def of_response(bound, kinds):
    """Truth with odds ``exp(bound)``: the answer told, the other one's, and those of nobody."""
    total = mpmath.exp(bound) + kinds - 1
    high, low = mpmath.exp(bound) / total, 1 / total
    return [(high, low), (low, high), ((kinds - 2) * low, (kinds - 2) * low)]


def of_steps(scale, moved):
    """Two-sided geometric noise around 0 and around a whole number; both tails as one outcome."""
    fade = mpmath.exp(-1 / scale)
    mass = (1 - fade) / (1 + fade)
    inside = [(mass * fade**y, mass * fade ** (moved - y)) for y in range(1, moved)]
    near, far = 1 / (1 + fade), fade**moved / (1 + fade)
    return [(near, far), *inside, (far, near)]


def of_promise(bound, slack):
    """All or nothing with probability ``slack``, otherwise the truth with odds."""
    kept = [(p * (1 - slack), q * (1 - slack)) for p, q in of_response(bound, 2)]
    return [(slack, 0), (0, slack), *kept]


def laws(seed):
    """Curves with their outcomes and largest losses."""
    draw = random.Random(seed)
    bound, kinds, moved = 10 ** draw.uniform(-9, 2.5), draw.randrange(2, 2000), draw.randrange(1, 9)
    scale, slack = 10 ** draw.uniform(-2, 6), 10 ** draw.uniform(-200, -1)
    return [
        (privacy_loss.randomised_response(bound, kinds), of_response(decimal(bound), kinds), bound),
        (
            privacy_loss.discrete_laplace(scale, moved),
            of_steps(mpmath.mpf(scale), moved),
            moved / scale,
        ),
        (
            privacy_loss.approximate(bound, slack),
            of_promise(decimal(bound), decimal(slack)),
            bound,
        ),
    ]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_delta_lies_between(seed):
    """At levels anywhere, and within 1e-16 to 0.1 of the largest loss."""
    draw = random.Random(1000 + seed)
    with mpmath.workdps(DIGITS):
        for curve, outcomes, end in laws(seed):
            for level in (0.0, end * draw.random(), end * (1 - 10 ** draw.uniform(-16, -1)), -end):
                exact, found = hockey_stick(outcomes, decimal(level)), curve.delta_bracket(level)
                assert mpmath.mpf(found.low) <= exact <= decimal(found.high)
                assert exact <= decimal(curve.delta(level))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_epsilon_lies_between(seed):
    """At slacks from 1e-300 to as good as 1, where a last digit of delta moves epsilon far."""
    draw = random.Random(2000 + seed)
    slacks = (10 ** draw.uniform(-300, -1), draw.random(), 1 - 10 ** draw.uniform(-15.5, -1))
    with mpmath.workdps(DIGITS):
        for curve, outcomes, _ in laws(seed):
            for slack in slacks:
                found, allowed = curve.epsilon_bracket(slack), decimal(slack)
                assert found.low <= found.high == curve.epsilon(slack)
                if mpmath.isfinite(found.high):
                    assert hockey_stick(outcomes, decimal(found.high)) <= allowed
                if found.low > 0:
                    below = mpmath.mpf(min(found.low, 1e6)) * (1 - mpmath.mpf(10) ** -30)
                    assert hockey_stick(outcomes, below) > allowed


@pytest.mark.parametrize("name", ["laplace", "bounded_range"])
@pytest.mark.parametrize("count", [2, 10, 1000])
@pytest.mark.slow
def test_many_large_losses_keep_nothing(name, count):
    """Far below their sum delta is as good as 1, and the upper end is not below it."""
    for bound in (300.0, 4538.509726818561, 6717.077307459129, 9941.39712597032, 1e6, 4e10, 7e11):
        curve = getattr(privacy_loss, name)(bound).compose(count)
        for share in (0.0, 0.3) if bound == 300 else (0.3,):
            # Half of the losses or more are within 10 of the bound: no sum of them is this small.
            assert curve.delta_bracket(share * bound).high >= 1 - 2.0**-52


@pytest.mark.parametrize("level", [1e17, 1e308])
def test_losses_beyond_all_sense_are_answered_or_refused(level):
    """Neither the memory nor a warning of NumPy ends what cannot be told apart from no privacy."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for curve in (privacy_loss.bounded_range(level), privacy_loss.approximate(level)):
            several = [curve.compose(100), privacy_loss.gaussian(2.0)]
            try:
                found = privacy_loss.compose(several).epsilon_bracket(1e-6)
            except ParameterError:
                continue
            assert found.high >= 99 * level
