"""Audits of the mechanisms that hold for every table, and of twins that are broken on purpose."""

import numpy as np
import pytest

import hushed as hs
from hushed import noise

pytestmark = pytest.mark.slow

MEDIAN = hs.statistics.median(rows=5, low=0, high=9)
PAIRS = [([0, 0, 2, 3, 9], [0, 2, 2, 3, 9]), ([2, 2, 2, 2, 9], [2, 2, 2, 9, 9])]
PAIRS += [([0, 0, 0, 9, 9], [0, 0, 9, 9, 9])]
CLAIM = hs.Guarantee(epsilon=1.0)
KEPT = {
    "inverse": hs.InverseSensitivity(MEDIAN, epsilon=1.0, candidates=[0, 9]),
    "lomax": hs.Smooth(MEDIAN, epsilon=1.0),
    "t2": hs.Smooth(MEDIAN, epsilon=1.0, noise="t2"),
}


def audited(draw):
    """Run an audit on the values; the false alarm is 1e-6."""
    pairs = [tuple(np.array(each, dtype=float) for each in pair) for pair in PAIRS]
    return hs.audit(draw, pairs, claim=CLAIM, samples=10_000, workers=1, confidence=0.999999)


@pytest.mark.parametrize("name", KEPT)
def test_no_audit_refutes_a_right_mechanism(name):
    """Bits of the doubles may be looked at, too."""
    report = audited(KEPT[name].draw)
    assert report.verdict == "not refuted", report.explain()
    assert report.epsilon_low > 0.2  # it tells the tables apart at all


def too_little(rows):
    """Noise of a third of the scale."""
    right = KEPT["lomax"]
    scale = right.factor * MEDIAN.smooth_sensitivity(rows, right.beta) / 3
    return noise.add_lomax(MEDIAN.value(rows), scale=scale, tail=5, low=0, high=9)


def local_scale(rows):
    """Noise in proportion to the local sensitivity, as if it did not leak."""
    scale = KEPT["t2"].factor * MEDIAN.local_sensitivity(rows) or 1e-300
    return noise.add_student(MEDIAN.value(rows), scale=scale, low=0, high=9)


def without_the_factor_2(rows):
    """An exponential mechanism that forgets that some lengths rise while others fall."""
    lengths = MEDIAN.lengths(rows, [0, 2, 3, 5, 9])
    return noise.select(-3.0 * lengths, width=2.0, epsilon=1.0)


@pytest.mark.parametrize("draw", [too_little, local_scale, without_the_factor_2])
def test_an_audit_refutes_a_broken_twin(draw):
    """With the same pairs, samples and confidence."""
    report = audited(draw)
    assert report.verdict == "violated", report.explain()
