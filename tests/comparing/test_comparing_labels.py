"""Comparisons of functions that answer with labels: the error is how often another one comes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import hushed as hs
from hushed.comparing._recommending import recommend
from hushed.errors import BadFunction, ParameterError

UNIT = hs.populations.Uniform(low=0, high=1)
LABELS = ["no", "yes"]


def winner(rows):
    """Say which of two answers has most votes: close, so that small blocks often err."""
    return "yes" if np.mean(rows) > 0.48 else "no"


def always(_):
    """Answer the same on every table."""
    return "yes"


def compared(f, **known):
    return hs.compare(f, UNIT, candidates=LABELS, workers=1, **{"rows": 400, **known})


def route_of(found, name):
    (route,) = [each for each in found.routes if each.name == name]
    return route


def test_the_error_is_the_chance_of_another_label():
    """All 15 blocks say "yes": 15 votes to 0 are odds of e^(15 / 2), a vote counting 1 / 2."""
    found = compared(always, trials=3, epsilon=1.0)
    route = route_of(found, "blocks, votes")
    wrong = 1 / (1 + math.exp(15 / 2))
    assert route.calls == 15
    assert (route.error_50, route.error_95) == pytest.approx((wrong, wrong), rel=1e-9)
    assert route.spread < 1e-12
    assert found.labels
    assert found.spread_95 == 0


def test_a_guess_of_the_label_makes_it_likelier():
    """The population always says "yes": a weight of 0.95 to 0.05 is as much as 19 to 1 in odds."""
    route = route_of(compared(always, trials=2), "blocks, votes, public guess")
    blocks = route.calls - 200
    assert route.error_95 == pytest.approx(1 / (1 + 19 * math.exp(blocks / 2)), rel=1e-4)


def test_a_stable_label_is_right_where_it_is_told():
    """Its error is the chance of a refusal, which no vote draws near; it needs a delta."""
    found = compared(always, trials=2)
    (left,) = [each for each in found.left_out if each.name == "blocks, stable label"]
    assert "delta" in left.reason
    found = compared(always, trials=2, delta=1e-6)
    route = route_of(found, "blocks, stable label")
    made = hs.Blocks(LABELS, epsilon=1.0, delta=1e-6, aggregate="stable")
    free = math.ceil(made.blocks / 2) - 1  # blocks that may answer otherwise
    assert route.error_95 == pytest.approx(1 - made.aggregation.test.chance(free), rel=1e-9)
    assert route.guarantee.delta == 1e-6


def test_it_is_the_share_that_blocks_simulate():
    """`hs.Blocks.simulate` draws noise, 200 times on each table; here its law is summed.

    The share is 0.2, and tables differ by 0.2 or so: 300 of them leave 0.012, of which 5 are
    allowed, and as much again for the 50 of the comparison.
    """
    found = compared(winner, trials=50)
    made = hs.Blocks(LABELS, epsilon=1.0, aggregate="votes")
    seen = []
    for seed in range(300):
        rng = np.random.default_rng([7, seed])
        rows = rng.random(400)
        parts = [winner(each) for each in np.array_split(rows, made.blocks)]
        lead = sum(1 if each == winner(rows) else -1 for each in parts)
        seen.append(1 / (1 + math.exp(lead / 2)))
    assert 0.05 < np.mean(seen) < 0.5
    assert route_of(found, "blocks, votes").error_95 == pytest.approx(np.mean(seen), abs=0.09)


def test_an_error_is_a_share_and_gives_the_smallest_level():
    """At the level found the share is kept to; a step less, it is not."""
    found = compared(winner, error=0.1, trials=10)
    route = route_of(found, "blocks, votes")
    assert route.error_95 <= 0.1
    level = route.guarantee.epsilon
    step = 10.0 ** (math.floor(math.log10(level)) - 2)
    less = compared(winner, epsilon=round(level - step, 6), trials=10)
    assert route_of(less, "blocks, votes").error_95 > 0.1
    assert "other label in 10 % of releases or less" in found.title.replace("another", "other")


def test_it_says_what_its_error_is():
    """In the table, the title, the advice, the card of a route and the record."""
    found = compared(winner, trials=5)
    text = str(found)
    assert "share of releases with another label than that of the whole table" in " ".join(
        text.split()
    )
    assert "other label" in text
    assert "50 %" not in text
    assert "have another label than most" in " ".join(found.advice.split())
    assert "another label" in str(found.routes[0])
    assert hs.Comparison.from_json(found.to_json()) == found
    assert max(map(len, text.splitlines())) <= 100


def test_what_is_written_makes_the_blocks():
    """With the labels and the guess in place it can be copied."""
    for each in compared(winner, trials=2, delta=1e-6).routes:
        made = eval(each.how.replace("prior=...", "prior=[0.5, 0.5]"), {"hs": hs, "labels": LABELS})
        assert made.guarantee == each.guarantee


def test_a_weaker_promise_gains_nothing_where_other_labels_are_rare():
    """Where votes err once in 10,000 no slack is taken for less; where they err in 20 %, it is."""
    found = compared(always, trials=2, delta=1e-6)
    assert found.routes[0].name == "blocks, stable label"
    assert found.recommended == "blocks, votes, public guess"
    assert "the recommended one gave another label in more than 5 % of" in " ".join(
        found.advice.split()
    )
    stable, *votes = found.routes
    often = tuple(replace(each, error_95=0.2) for each in votes)
    assert recommend(replace(found, routes=(stable, *often)))[0] == "blocks, stable label"


@pytest.mark.parametrize("labels", [None, ["a", "b"], [0.0, 1.0]])
def test_labels_that_are_not_named_are_refused(labels):
    """All that the function may answer with has to be public."""
    with pytest.raises(BadFunction, match="candidates"):
        hs.compare(winner, UNIT, rows=20, trials=2, candidates=labels)


@pytest.mark.parametrize("given", [5, iter(LABELS)])
def test_what_is_no_list_of_candidates_is_refused(given):
    """An iterator would be used up by the first look at it."""
    with pytest.raises(ParameterError, match="candidates must be"):
        hs.compare(winner, UNIT, rows=20, trials=2, candidates=given)


def test_labels_have_no_range():
    """Nor have they a mix of kinds that votes would not take."""
    with pytest.raises(ParameterError, match="no range"):
        compared(winner, low=0, high=1)


def test_truth_values_are_labels():
    """A yes or no is one of two."""
    found = hs.compare(
        lambda rows: bool(np.mean(rows) > 0.2),
        UNIT,
        rows=400,
        trials=2,
        candidates=[False, True],
        workers=1,
    )
    assert found.labels
    assert found.recommended.startswith("blocks, votes")


def test_fewer_rows_than_blocks_are_a_reason():
    """Two labels take 15 blocks at epsilon 1."""
    found = compared(winner, rows=10, trials=2)
    assert not found.routes
    assert all("fewer rows" in each.reason for each in found.left_out[:2])


def test_users_are_protected_with_all_their_rows():
    """The blocks then deal users, and a guess is not made for them."""
    people = hs.populations.Users(UNIT, sizes=3)
    found = hs.compare(
        lambda rows: "yes" if rows[:, 1].mean() > 0.2 else "no",
        people,
        rows=60,
        user=0,
        candidates=LABELS,
        trials=2,
        workers=1,
    )
    (route,) = found.routes
    assert route.guarantee.unit == "user"
    assert "user=0" in route.how


def numbered(rows):
    """Say which of three numbered options wins, none of which is nearer to another."""
    return 3 if np.mean(rows) > 0.48 else 1


def test_numbers_are_labels_where_that_is_said():
    """The same as of texts that stand for them: shares of other labels, and votes of blocks."""

    def spelt(rows):
        return {1: "one", 3: "three"}[numbered(rows)]

    given = {"rows": 400, "workers": 1, "trials": 10, "delta": 1e-6}
    found = hs.compare(numbered, UNIT, candidates=[1, 2, 3], labels=True, **given)
    other = hs.compare(spelt, UNIT, candidates=["one", "two", "three"], **given)
    assert found.labels
    assert [each.name for each in found.routes] == [each.name for each in other.routes]
    assert [each.error_95 for each in found.routes] == [each.error_95 for each in other.routes]
    assert found.recommended == other.recommended
    assert "share of releases with another label" in str(found)
    plain = hs.compare(numbered, UNIT, candidates=[1, 2, 3], **given)
    assert not plain.labels  # numbers are numbers where nothing else is said
    assert {each.name for each in plain.routes} & {"blocks", "blocks, public guess"}


@pytest.mark.parametrize(
    ("asked", "given", "text"),
    [
        (numbered, {"candidates": [1, 2, 3], "labels": 1}, "must be True or False"),
        (numbered, {"labels": True}, "all of its labels as candidates"),
        (
            hs.statistics.mode([1, 2, 3], rows=400),
            {"labels": True},
            "hs.statistics.mode, which has its categories",
        ),
        (numbered, {"candidates": ["a", "b"], "labels": False}, "is a label"),
        (numbered, {"candidates": [1, 2], "labels": True, "low": 0, "high": 1}, "have no range"),
        (numbered, {"candidates": [1, 1.0], "labels": True}, "must all differ"),
    ],
)
def test_labels_that_are_none_are_refused(asked, given, text):
    """At once, with what to give."""
    with pytest.raises(ParameterError, match=text):
        hs.compare(asked, UNIT, rows=400, trials=2, workers=1, **given)
