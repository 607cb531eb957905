"""The choice of an event: the luckiest of many scores does not win."""

from dataclasses import dataclass

import numpy as np
import pytest

from hushed.auditing._goal import Goal, adapt_claim
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
            [Column(place) for place in range(13)],
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
