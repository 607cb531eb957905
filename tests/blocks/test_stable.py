"""The label with most votes as it is, or a refusal where few blocks could change it."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import hushed as hs
from hushed.errors import ParameterError

LABELS = ["a", "b", "c"]
NONE = np.nan


def winner(votes, labels):
    """Label with most votes, the first of equals; the first if nobody votes."""
    return max(range(labels), key=lambda at: (sum(vote == at for vote in votes), -at))


def all_votes(blocks, labels):
    """All answers of so many blocks: a label, or none."""
    return list(itertools.product([*range(labels), None], repeat=blocks))


def free_blocks(votes, others, labels):
    """Count the blocks that can answer otherwise and the same label wins; by looking at all."""
    won = winner(votes, labels)
    return (
        min(
            sum(x != y for x, y in zip(votes, other, strict=True))
            for other in others
            if winner(other, labels) != won
        )
        - 1
    )


def as_answers(votes):
    """Give votes as the calls give them."""
    return np.array([NONE if vote is None else float(vote) for vote in votes])


@pytest.mark.slow_cases("4-3")
@pytest.mark.parametrize(("blocks", "labels"), [(4, 3), (5, 2)])
def test_a_label_is_told_if_enough_blocks_could_answer_otherwise(monkeypatch, blocks, labels):
    """On all votes: with noise that leaves the free blocks at the threshold None, above it told."""
    made = hs.Blocks(LABELS[:labels], aggregate="stable", epsilon=9.0, delta=0.001, blocks=blocks)
    threshold, others = made.aggregation.test.threshold, all_votes(blocks, labels)
    for votes in others:
        free = free_blocks(votes, others, labels)
        for drawn, told in (
            (threshold - free, None),
            (threshold - free + 1, winner(votes, labels)),
        ):
            monkeypatch.setattr(
                "hushed.mechanisms._stability.noise.discrete_laplace", lambda scale, k=drawn: k
            )
            expected = None if told is None else LABELS[told]
            assert made.aggregation.draw(as_answers(votes)) == expected, votes


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (3.0, 1e-3)])
def test_one_changed_block_keeps_epsilon_and_reaches_delta(epsilon, delta):
    """On all neighbouring votes of five blocks, with the law of the noise summed by hand."""
    made = hs.Blocks(["a", "b"], aggregate="stable", epsilon=epsilon, delta=delta, beta=0.99)
    threshold, others = made.aggregation.test.threshold, all_votes(5, 2)

    def chance(free):  # that free + K > threshold
        weights = {k: math.exp(-epsilon * abs(k)) for k in range(-400, 401)}
        return sum(w for k, w in weights.items() if free + k > threshold) / sum(weights.values())

    free = {votes: free_blocks(votes, others, 2) for votes in others}
    told = {votes: chance(free[votes]) for votes in others}
    worst = 0.0
    for votes, other in itertools.product(others, repeat=2):
        if sum(x != y for x, y in zip(votes, other, strict=True)) != 1:
            continue
        same = winner(votes, 2) == winner(other, 2)
        beside = told[other] if same else 0.0
        loss = max(told[votes] - math.exp(epsilon) * beside, 0.0)
        loss += max((1 - told[votes]) - math.exp(epsilon) * (1 - told[other]), 0.0)
        worst = max(worst, loss)
    assert worst <= delta * (1 + 1e-12)
    assert worst == pytest.approx(chance(0), rel=1e-9)
    assert made.guarantee.epsilon == epsilon
    assert made.guarantee.delta == delta
    assert made.loss.delta(epsilon) >= worst


def test_the_number_of_labels_costs_no_blocks():
    """A thousand labels take as many as two; votes drawn by chance take more for each."""
    few, many = (
        hs.Blocks([f"model {at}" for at in range(count)], aggregate="stable", delta=1e-6).blocks
        for count in (2, 1000)
    )
    drawn = [hs.Blocks(list(range(count)), aggregate="votes").blocks for count in (2, 1000)]
    assert few == many == 65
    assert drawn[0] < drawn[1]


def test_the_accuracy_is_kept():
    """With as many free blocks as it says, None is drawn with probability beta at most."""
    made = hs.Blocks(LABELS, aggregate="stable", epsilon=0.5, delta=1e-4, blocks=200)
    free = int(made.accuracy(0.01))
    surely, less = (made.aggregation.test.chance(each) for each in (free, free - 1))
    assert surely >= 0.99 > less
    votes = as_answers([1] * (101 + free) + [0] * (99 - free))  # a lead of 2 free + 2
    found = made.aggregation.imitate(votes, np.random.default_rng(1), 4000)
    assert set(found) <= {"b", None}
    assert found.count("b") / 4000 == pytest.approx(surely, abs=0.01)


@pytest.mark.slow
def test_a_release_tells_the_label_with_its_certificate():
    """All blocks agree: told, and what the certificate says follows and is checked."""
    made = hs.Blocks(LABELS, aggregate="stable", epsilon=20.0, delta=0.01, blocks=3)
    released = hs.release(lambda rows: "b", np.arange(30.0), made)
    known = released.certificate
    assert released.value == "b"
    assert known.guarantee == hs.Guarantee(epsilon=20.0, delta=0.01)
    assert "which of 3 public labels had most votes, or None" in known.explain()
    assert hs.verify(known).reproduced
    stated = json.loads(known.to_json())
    assert hs.Certificate.from_json(json.dumps(stated)) == known
    for change in ({"delta": 0.001}, {"candidates": 4}, {"aggregate": "votes"}, {"blocks": 1}):
        forged = json.loads(json.dumps(stated))
        forged["mechanism"]["parameters"] |= change
        with pytest.raises(ParameterError):
            hs.Certificate.from_json(json.dumps(forged))


def test_a_trial_counts_a_refusal_as_an_error():
    """Labels that are numbers, too; where all blocks agree there is no error."""
    made = hs.Blocks([1, 2], aggregate="stable", epsilon=1.0, delta=1e-6)
    public = hs.populations.Simulator(lambda rng, count: rng.uniform(size=count))
    torn = made.simulate(lambda rows: 1 + (rows[0] > 0.5), public, 200, trials=3, isolated=False)
    sure = made.simulate(lambda rows: 2, public, 200, trials=3, isolated=False)
    assert torn.error_50 == 1.0
    assert (sure.error_95, sure.error_of_blocks) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs delta"),
        ({"delta": 0.0}, "delta must lie in"),
        ({"delta": Fraction(3, 2)}, "delta must lie in"),
        ({"delta": 1e-6, "prior": [1, 1, 1]}, "takes candidates, delta: leave prior out"),
        ({"delta": 1e-6, "blocks": 32}, "which takes 33 blocks.*a larger delta"),
        ({"delta": 1e-6, "candidates": None}, "public labels"),
    ],
)
def test_what_it_does_not_take_is_refused_in_words(options, words):
    """Before anything is asked."""
    with pytest.raises(ParameterError, match=words):
        hs.Blocks(**{"candidates": LABELS, "aggregate": "stable", "epsilon": 1.0} | options)
