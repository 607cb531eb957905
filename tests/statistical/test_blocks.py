"""Audits of blocks with a nasty function, and of broken twins.

The function is asked in this process, through the split and the draw of a release: tens of
thousands of processes would take hours.
"""

import numpy as np
import pytest
from scipy import stats

import hushed as hs

pytestmark = pytest.mark.slow

ROWS = np.array([9.0, *np.zeros(11)])
PAIRS = [(ROWS, np.zeros(12))]
VALUES = [0.0, 1.0, 2.0]
EVEN = hs.Blocks(VALUES, epsilon=1.0, beta=0.4, blocks=9)
PRIVATE = hs.Blocks(VALUES, epsilon=1.0, beta=0.4, blocks=9, neighbours="add-remove")
VOTES = hs.Blocks(VALUES, epsilon=1.0, beta=0.4, blocks=9, aggregate="votes")
STABLE = hs.Blocks(VALUES, epsilon=1.0, delta=0.05, beta=0.4, blocks=9, aggregate="stable")
MEAN = hs.Blocks(low=0, high=2, epsilon=1.0, blocks=9, aggregate="mean")
VECTOR = hs.Blocks(
    centre=[1.0, 2.0], radius=1.0, epsilon=1.0, delta=0.05, beta=0.4, blocks=9, aggregate="vector"
)


def nasty(part):
    """Answer with the end of the range as soon as the row is seen; also of an empty part."""
    return 2.0 * bool((part == 9).any())


def audited(draw, neighbours="replace-one", pairs=PAIRS, delta=0.0, samples=6_000):
    """Run an audit on the values; the false alarm is 1e-6.

    A mean with half of its noise is seen with .999 from 1,500 runs on, a memory from fewer.
    """
    claim = hs.Guarantee(epsilon=1.0, delta=delta, neighbours=neighbours)
    return hs.audit(draw, pairs, claim=claim, samples=samples, workers=1, confidence=0.999999)


def released(mechanism, function, rows):
    """Split, ask and draw as a release does; a refusal is coded as -1."""
    answers = np.array([function(part) for part in mechanism.split(rows)])
    found = mechanism.aggregation.draw(answers)
    return -1.0 if found is None else found


@pytest.mark.parametrize(
    "mechanism",
    [EVEN, PRIVATE, VOTES, STABLE, MEAN],
    ids=["exponential", "add-remove", "votes", "stable", "mean"],
)
def test_no_audit_refutes_blocks(mechanism):
    """Whatever the function does with the one row."""
    private = mechanism.neighbours == "add-remove"
    pairs = [(ROWS, ROWS[1:])] if private else PAIRS
    report = audited(
        lambda rows: released(mechanism, nasty, rows),
        mechanism.neighbours,
        pairs,
        mechanism.guarantee.delta,
        # Votes move 18 of 1,000 answers: 6,000 runs miss that one time in seven, these never.
        samples=20_000 if mechanism is VOTES else 6_000,
    )
    assert report.verdict == "not refuted", report.explain()
    # It tells the tables apart at all, with a power above .9999: the bound on epsilon may be 0.
    assert stats.chi2_contingency(told_apart(report)).pvalue < 1e-6


def told_apart(report):
    """How often each event was met on either table, without those that never were."""
    seen = np.array(report.outcomes)
    return seen[:, seen.any(axis=0)]


def with_memory(rows):
    """One function for all calls, which keeps what it has seen."""
    seen = []

    def remembers(part):
        seen.append(part)
        return nasty(np.concatenate(seen))

    return released(VOTES, remembers, rows)


def with_half_of_the_noise(rows):
    """A mean with half of the noise."""
    answers = np.array([nasty(part) for part in MEAN.split(rows)])
    return float(answers.mean() + np.random.default_rng().laplace(scale=2 / 9 / 2))


@pytest.mark.parametrize("draw", [with_memory, with_half_of_the_noise])
def test_an_audit_refutes_a_broken_twin(draw):
    """With the same pairs, samples and confidence."""
    report = audited(draw)
    assert report.verdict == "violated", report.explain()


def far_off(part):
    """A vector far outside of the ball, on the other side of it if the row is seen."""
    return np.array([1.0, 2.0]) + (30.0 if (part == 9).any() else -30.0) * np.array([0.6, -0.8])


def vectors(rows):
    """Split and ask as a release does."""
    return np.array([far_off(part) for part in VECTOR.split(rows)])


def as_released(rows):
    return VECTOR.aggregation.draw(vectors(rows))


def with_vectors_as_they_are(rows):
    """The right noise on the mean of vectors that nobody moved into the ball."""
    scale, *_ = VECTOR.aggregation.describe_draw()
    return vectors(rows).mean(axis=0) + np.random.default_rng().normal(scale=scale, size=2)


def with_a_third_of_the_noise(rows):
    """Clipped vectors, with a third of the noise."""
    apart = vectors(rows) - VECTOR.centre
    clipped = apart / np.maximum(1.0, np.linalg.norm(apart, axis=1))[:, None]
    scale, *_ = VECTOR.aggregation.describe_draw()
    return clipped.mean(axis=0) + np.random.default_rng().normal(scale=scale / 3, size=2)


@pytest.mark.parametrize(
    ("draw", "verdict"),
    [
        (as_released, "not refuted"),
        (with_vectors_as_they_are, "violated"),
        (with_a_third_of_the_noise, "violated"),
    ],
)
def test_an_audit_tells_vectors_from_their_broken_twins(draw, verdict):
    """The ball's ends are 2 C apart, and one block goes from the one to the other."""
    report = audited(draw, delta=0.05)
    assert report.verdict == verdict, report.explain()
    assert stats.chi2_contingency(told_apart(report)).pvalue < 1e-6


def test_without_rounding_the_answer_says_nothing():
    """All answers between two candidates: the nearest is found, and by plain ranks none."""
    answers, values = np.full(31, 0.51), np.array([0.0, 1.0, 2.0])
    middle = answers.size / 2
    above = [(answers > v).sum() for v in values]
    reached = [(answers >= v).sum() for v in values]
    plain = [-max(a - middle, middle - r, 0) for a, r in zip(above, reached, strict=True)]
    assert plain == [-15.5, -15.5, -15.5]
    drawn = hs.Blocks(values, epsilon=1.0, blocks=31).aggregation
    assert sum(drawn.draw(answers) == 1.0 for _ in range(300)) > 280
