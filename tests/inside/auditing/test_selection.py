"""The choice of an event: the luckiest of many scores does not win."""

from dataclasses import dataclass

import numpy as np
import pytest

from hushed.auditing._goal import Goal, adapt_claim
from hushed.auditing._outputs import Encoder
from hushed.auditing._scores import Family, fit_scores
from hushed.auditing._search import Search, find_outdone
from hushed.auditing._selection import select_event
from hushed.guarantee import Guarantee


@dataclass(frozen=True)
class Column:
    """One column as the score."""

    place: int

    def evaluate(self, encoded):
        return encoded[:, self.place]

    def describe(self, threshold, *, first):
        return f"column {self.place} at {threshold}, {first}"


def wrong_choices(*, last: bool, tables: int = 20) -> int:
    """Count tables on which a column of noise is chosen before the one that tells."""
    wrong = 0
    goal = Goal(claim=adapt_claim(Guarantee(epsilon=0.01)), final=200_000, alpha=0.05)
    for seed in range(tables):
        one, other = np.random.default_rng(seed).normal(size=(2, 20_000, 13))
        one[:, 0] += 0.05
        found = select_event(
            [Family(name="columns", scores=[Column(place) for place in range(13)])],
            one,
            other,
            goal,
            last=last,
        )
        wrong += found.event.score.place != 0
    return wrong


@pytest.mark.slow
def test_luck_on_one_half_is_none_on_the_other():
    """Twelve columns of noise beside one that tells: cross-checked, it is found far more often."""
    assert wrong_choices(last=True) <= 0.6 * wrong_choices(last=False)


def searches(*reach):
    """Searches on pairs on which families reached these bounds."""
    return [Search(pair=None, reach=each) for each in reach]


def test_a_family_that_comes_near_the_best_on_any_pair_is_kept():
    """Less than half of the best on all pairs that are left is outdone; of nothing nothing is."""
    one, other = {"values": 0.1, "increments": 0.4}, {"values": 0.3, "increments": 0.5}
    assert find_outdone(searches(one)) == {"values"}
    assert find_outdone(searches(one, other)) == set()
    assert find_outdone(searches(one, {"values": 0.0, "increments": 0.0})) == set()
    assert find_outdone([]) == set()


def test_some_family_is_always_tried():
    """Whatever was left out: what did best before may not be there with more runs."""
    rng = np.random.default_rng(1)
    sides, encoder = rng.normal(size=(2, 500, 3)), Encoder(width=3, objects=False)
    names = {"values", "increments", "summaries"}
    asked = {"effort": "bins", "bits": False}
    assert {each.name for each in fit_scores(encoder, *sides, **asked)} == names
    kept = fit_scores(encoder, *sides, **asked, without={"values", "summaries"})
    assert [each.name for each in kept] == ["increments"]
    assert {each.name for each in fit_scores(encoder, *sides, **asked, without=names)} == names
