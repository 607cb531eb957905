"""What a range of losses covers: mixtures of laws that keep it; and what it does not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from hushed import privacy_loss

LEVELS = np.linspace(-2.0, 2.0, 41)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def range_of(p, q):
    losses = np.log(p / q)
    return float(losses.max() - losses.min())


def moved(q, scores, epsilon):
    """Law of the exponential mechanism where it was q and scores have moved by up to 1."""
    p = q * np.exp(epsilon * np.asarray(scores))
    return p / p.sum()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_mixture_may_have_twice_the_range_and_stays_below_the_curve(epsilon):
    """Two splits of the rows with rare outcomes: one loses epsilon there, one gains as much."""
    rare, rarer = 1e-4, 1e-8
    one, other = (np.array([*pair, 1 - rare - rarer]) for pair in ((rare, rarer), (rarer, rare)))
    laws = [(moved(one, [1, 0, 0], epsilon), one), (moved(other, [1, 0, 1], epsilon), other)]
    for p, q in laws:
        assert range_of(p, q) <= epsilon * (1 + 1e-9)
    p, q = (np.mean(each, axis=0) for each in zip(*laws, strict=True))
    assert range_of(p, q) > 1.9 * epsilon
    curve = privacy_loss.bounded_range(epsilon)
    for level in LEVELS:
        assert hockey_stick(p, q, level) <= curve.delta(level) + 1e-15


def test_mixtures_stay_below_the_curve():
    """A hundred of five laws each, over four outcomes, in both directions."""
    rng, curve = np.random.default_rng(1), privacy_loss.bounded_range(1.0)
    most = [curve.delta(level) for level in LEVELS]
    widest = 0.0
    for _ in range(100):
        laws = [rng.dirichlet(np.full(4, 0.3)) + 1e-12 for _ in range(5)]
        pairs = [(moved(q, rng.random(4).round(), 1.0), q / q.sum()) for q in laws]
        p, q = (np.mean(each, axis=0) for each in zip(*pairs, strict=True))
        widest = max(widest, range_of(p, q))
        for level, bound in zip(LEVELS, most, strict=True):
            assert hockey_stick(p, q, level) <= bound + 1e-12
            assert hockey_stick(q, p, level) <= bound + 1e-12
    assert widest > 1.0


def permute_and_flip(scores, epsilon):
    """Candidates in random order, each taken with probability exp(epsilon (score - best)/2)."""
    taken = np.exp(epsilon / 2 * (np.asarray(scores) - max(scores)))
    found = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for place in order:
            found[place] += left * taken[place] / len(orders)
            left *= 1 - taken[place]
    return found


def test_permute_and_flip_has_no_range_of_epsilon():
    """Losses span 1.489 at epsilon = 1: the curve of a range is exceeded, that of pure is not."""
    p, q = (permute_and_flip(each, 1.0) for each in ((0, 0, -9), (1, -1, -9)))
    assert range_of(p, q) == pytest.approx(1.489, abs=5e-4)
    ranged, pure = privacy_loss.bounded_range(1.0), privacy_loss.randomised_response(1.0)
    over = 0.0
    for level in LEVELS:
        found = max(hockey_stick(p, q, level), hockey_stick(q, p, level))
        assert found <= pure.delta(level) + 1e-12
        over = max(over, found - ranged.delta(level))
    assert over > 0.1
