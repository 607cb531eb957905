"""Blocks: the exact law on small answers, its loss on every pair, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats
from tests.frequencies import pvalue_of_counts

import hushed as hs
from hushed import noise
from hushed._ground import progress
from hushed.errors import BadRows, ParameterError

FALSE_ALARM = 1e-9
PRIORS = {"even": None, "first": [1e6, 1, 1, 1, 1], "second": [1, 1e6, 1, 1, 1]}


def drawn_from(values, kind, epsilon=1.0, prior=None):
    """Give what draws from answers, of whatever number."""
    return hs.Blocks(values, epsilon=epsilon, aggregate=kind, prior=prior).aggregation


def scores_of(answers, count, kind):
    """Scores by the definition, one candidate at a time; answers and candidates are places."""
    if kind == "votes":
        return [sum(a == v for a in answers) for v in range(count)]
    middle, scores = len(answers) / 2, []
    for v in range(count):
        above, reached = sum(a > v for a in answers), sum(a >= v for a in answers)
        scores.append(-max(above - middle, middle - reached, 0))
    return scores


def law_of(answers, count, kind, rate, prior=None):
    """Probabilities by the definition."""
    scores = scores_of(answers, count, kind)
    weights = [math.exp(rate * s / 2) * (prior[v] if prior else 1) for v, s in enumerate(scores)]
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize("kind", ["exponential", "votes"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_changed_block_loses_more_than_epsilon(kind, prior, epsilon):
    """All answers of up to 5 blocks among 5 candidates, one of them changed to anything."""
    rate, weights = 2 / noise.selection_scale(width=2.0, epsilon=epsilon)[0], PRIORS[prior]
    drawn, worst = drawn_from(range(5), kind), 0.0
    for blocks in range(1, 6):
        laws = {}
        for each in combinations_with_replacement(range(5), blocks):
            odds = np.exp(rate * drawn.scores(np.array(each, dtype=float)) / 2)
            odds = odds * (1 if weights is None else np.array(weights))
            laws[each] = np.log(odds / odds.sum())
        for one, place, new in product(laws, range(blocks), range(5)):
            other = tuple(sorted((*one[:place], new, *one[place + 1 :])))
            worst = max(worst, float(np.abs(laws[one] - laws[other]).max()))
    assert worst <= epsilon * (1 + 1e-12)
    assert worst > (0.5 if prior == "even" else 0.9999) * epsilon


@pytest.mark.parametrize("kind", ["exponential", "votes"])
def test_scores_are_those_of_the_definition(kind):
    """For all answers; one changed block moves no score by more than 1, some candidate has 0."""
    drawn = drawn_from(range(5), kind, epsilon=50.0)
    for blocks in range(1, 5):
        for answers in combinations_with_replacement(range(5), blocks):
            found = drawn.scores(np.array(answers, dtype=float))
            assert found.tolist() == scores_of(answers, 5, kind)
            assert kind == "votes" or found.max() == 0
            for new in range(5):
                moved = drawn.scores(np.array([*answers[1:], new], dtype=float)) - found
                assert np.abs(moved).max() <= 1


def test_reference_values():
    """Numbers that were derived independently: blocks by the rule, and scores of five answers."""
    wanted = {(1.0, 50): 28, (1.0, 200): 34, (2.0, 50): 14, (2.0, 200): 17}
    for (epsilon, count), blocks in wanted.items():
        assert hs.Blocks(np.arange(float(count)), epsilon=epsilon).blocks == blocks
    drawn = hs.Blocks(np.arange(11.0), epsilon=50.0).aggregation
    scores = drawn.scores(np.array([2.0, 4.0, 5.0, 7.0, 9.0]))
    assert scores.tolist() == [-2.5, -2.5, -1.5, -1.5, -0.5, 0, -0.5, -0.5, -1.5, -1.5, -2.5]


def hitting_scores(answers, blocks, together, candidates):
    """Score candidates by the fewest blocks that meet every union with a larger answer."""
    chosen = [set(c) for k in range(blocks + 1) for c in combinations(range(blocks), k)]

    def fewest(large):
        return min(len(c) for c in chosen if all(c & set(union) for union in large))

    middle, found = (blocks - together + 1) / 2, []
    for v in candidates:
        above = fewest([u for u, answer in answers.items() if answer > v])
        reached = fewest([u for u, answer in answers.items() if answer >= v])
        found.append(-max(above - middle, middle - reached, 0))
    return found


def test_unions_of_blocks_are_private_too():
    """The decision not to ask them is one of accuracy: no block moves a score by more than 1.

    By hitting sets, which are tried one after another; of single blocks they give the scores here.
    """
    pairs = list(combinations(range(4), 2))
    answers = dict(zip(pairs, (5, 2, 7, 1, 4, 6), strict=True))
    known = [-1.5, -0.5, -0.5, -0.5, -0.5, 0, -0.5, -0.5, -1.5]
    assert hitting_scores(answers, 4, 2, range(9)) == known
    # As many blocks as levels above: smallest maximum that is left without j of the blocks.
    levels = [
        min(
            max((a for u, a in answers.items() if set(u) <= set(kept)), default=-math.inf)
            for kept in combinations(range(4), 4 - j)
        )
        for j in range(4)
    ]
    assert levels == [7, 5, 1, -math.inf]
    single = {(i,): answer for i, answer in enumerate((2, 4, 5, 7, 9))}
    drawn = hs.Blocks(np.arange(11.0), epsilon=50.0).aggregation
    by_ranks = drawn.scores(np.array([2.0, 4.0, 5.0, 7.0, 9.0])).tolist()
    assert hitting_scores(single, 5, 1, range(11)) == by_ranks
    rng, moved = np.random.default_rng(7), []
    for together in (1, 2, 3):
        unions = list(combinations(range(5), together))
        for _ in range(20):
            one = {u: int(rng.integers(6)) for u in unions}
            other = {u: int(rng.integers(6)) if 2 in u else a for u, a in one.items()}
            both = [hitting_scores(each, 5, together, range(6)) for each in (one, other)]
            moved.append(max(abs(a - b) for a, b in zip(*both, strict=True)))
    assert max(moved) == 1


@pytest.mark.slow
@pytest.mark.parametrize("prior", [None, [1, 2, 0, 4]], ids=["even", "prior"])
@pytest.mark.parametrize("kind", ["exponential", "votes"])
def test_draws_have_the_exact_law(kind, prior):
    """Exact law; a candidate without weight is never drawn. False alarm 1e-9."""
    answers = (0, 1, 1, 3, 3, 0)
    drawn = drawn_from(range(4), kind, epsilon=3.0, prior=prior)
    kept = [v for v in range(4) if prior is None or prior[v]]
    nearest = {a: min(kept, key=lambda v: (abs(v - a), v)) for a in range(4)}
    seen = answers if kind == "votes" else tuple(kept.index(nearest[a]) for a in answers)
    if kind == "votes":
        law = law_of(seen, 4, kind, 3.0, prior)[kept]
    else:
        law = law_of(seen, len(kept), kind, 3.0, [(prior or [1] * 4)[v] for v in kept])
    law = law / law.sum()
    found = [drawn.draw(np.array(answers, dtype=float)) for _ in range(3000)]
    assert set(found) <= set(kept)
    counts = [found.count(v) for v in kept]
    assert pvalue_of_counts(counts, 3000 * law) > FALSE_ALARM


def test_answers_between_two_candidates_are_moved_to_the_nearest():
    """Without it no candidate would be better than another, and the draw would say nothing."""
    drawn = drawn_from([0.0, 1.0, 10.0, 11.0], "exponential")
    scores = drawn.scores(np.full(20, 9.0))
    assert scores.tolist() == [-10.0, -10.0, 0.0, -10.0]
    assert drawn.scores(np.array([np.nan] * 3 + [np.inf] * 3)).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert drawn.scores(np.array([0.5, 0.4999, 0.5001])).tolist() == [0.0, -0.5, -1.5, -1.5]


@pytest.mark.slow
def test_a_wrong_prior_costs_accuracy_alone():
    """The right one helps where blocks are few; the promise is the same."""
    values, answers = np.arange(21.0), np.full(13, 5.0)
    near, far = (0.9 * (values == v) + 0.1 / 21 for v in (5, 15))
    laws = []
    for prior in (None, near, far):
        made = hs.Blocks(values, epsilon=1.0, prior=prior, beta=0.9, blocks=13)
        assert made.guarantee == hs.Guarantee(epsilon=1.0)
        laws.append([made.aggregation.draw(answers) for _ in range(400)].count(5.0))
    plain, right, wrong = laws
    assert right > plain + 60
    assert plain > wrong + 60


def test_the_number_of_blocks_follows_the_rule():
    """(4 / epsilon) log(candidates / beta), and with a prior the surprise in place of the log."""
    for epsilon, count in ((1.0, 50), (1.0, 200), (2.0, 50), (2.0, 200)):
        made = hs.Blocks(np.arange(float(count)), epsilon=epsilon)
        assert made.blocks == math.ceil(4 / epsilon * math.log(count / 0.05))
        with pytest.raises(ParameterError, match=f"takes {made.blocks} blocks"):
            hs.Blocks(np.arange(float(count)), epsilon=epsilon, blocks=made.blocks - 1)
    peaked = hs.Blocks(np.arange(100.0), prior=[1e9] + [1.0] * 99)
    assert peaked.blocks == math.ceil(4 * math.log(20))
    even = hs.Blocks(np.arange(100.0), prior=[3.0] * 100)
    assert even.blocks == hs.Blocks(np.arange(100.0)).blocks


@pytest.mark.slow
def test_the_accuracy_is_kept():
    """The drawn candidate lies between the answers of those ranks, but with probability beta."""
    made = hs.Blocks(np.linspace(0, 1, 200), epsilon=1.0, blocks=60)
    answers = np.linspace(0.1, 0.9, 60)
    reach = made.accuracy(0.3)
    assert reach == pytest.approx(2 * math.log(200 / 0.3), rel=1e-6)
    low, high = np.sort(answers)[[math.ceil(30 - reach) - 1, math.floor(30 + reach)]]
    astray = sum(
        not low - 0.003 <= made.aggregation.draw(answers) <= high + 0.003 for _ in range(1000)
    )
    assert stats.binomtest(astray, 1000, 0.3, alternative="greater").pvalue > FALSE_ALARM


def test_a_mean_moves_by_its_part_of_the_range():
    """Noise of a scale that covers the exact means of any two tables, rounding included."""
    from fractions import Fraction

    low, high = 1e15, 1e15 + 1
    made = hs.Blocks(low=low, high=high, aggregate="mean", epsilon=1.0, blocks=30)
    assert made.accuracy(0.05) == pytest.approx(math.log(20) / 30, rel=1e-9)
    moved = made.aggregation.movement
    rounded = Fraction(4, 1 << 53)  # a sum and a quotient on each of two tables
    assert Fraction(1, 30) + rounded <= Fraction(moved) < Fraction(1, 30) + 2 * rounded
    found = [made.aggregation.draw(np.full(30, low + 0.5)) - low for _ in range(300)]
    assert all(0 <= x <= 1 for x in found)
    assert abs(np.median(found) - 0.5) < 0.125  # the step of doubles there
    ends = np.array([-np.inf, np.inf, np.nan] * 10)
    drawn = hs.Blocks(low=-1, high=1, aggregate="mean", epsilon=1e6, blocks=30).aggregation
    assert drawn.draw(ends) == pytest.approx(-1 / 3, abs=1e-3)


def test_vectors_are_moved_into_a_ball():
    """Sensitivity is 2 C / B in the Euclidean norm, and the noise is Gaussian for it."""
    options = {"aggregate": "vector", "centre": [1.0, 2.0], "radius": 3.0, "delta": 1e-6}
    made = hs.Blocks(**options, epsilon=1.0, blocks=200)
    other = hs.Gaussian(
        hs.proven_sensitivity(6.0 / 200, "l2", argument="by hand"), epsilon=1.0, delta=1e-6
    )
    assert made.accuracy(0.05) == pytest.approx(other.accuracy(0.05, 2), rel=1e-9)
    assert made.guarantee == hs.Guarantee(epsilon=1.0, delta=1e-6)
    answers = np.array([[1e300, 2.0], [np.nan, 0.0], [1.0, -1e5], [2.0, 2.0]] * 50)
    sharp = hs.Blocks(**options, epsilon=1e5, blocks=200).aggregation
    expected = [1 + (3 + 0 + 0 + 1) / 4, 2 + (0 + 0 - 3 + 0) / 4]
    assert sharp.draw(answers) == pytest.approx(expected, abs=1e-2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give candidates, or low and high"),
        ({"low": 0}, "give candidates, or low and high"),
        ({"candidates": [1, 2], "low": 0, "high": 1}, "not both"),
        ({"candidates": [2, 1]}, "must ascend"),
        ({"candidates": [1, 1, 2]}, "must ascend"),
        ({"candidates": ["a", "b"]}, "aggregate='votes'"),
        ({"candidates": [True, False]}, "numbers"),
        ({"candidates": [1.0]}, "2 finite numbers"),
        ({"candidates": [0, np.nan]}, "2 finite numbers"),
        ({"candidates": 5}, "2 finite numbers"),
        ({"candidates": ["a"], "aggregate": "votes"}, "candidates must be 2"),
        ({"aggregate": "votes"}, "give them as candidates"),
        ({"candidates": [1, 2], "aggregate": "median"}, "aggregate must be one of"),
        ({"low": 0, "high": 1, "aggregate": "mean", "prior": [1, 2]}, "leave prior out"),
        ({"low": 0, "high": 1, "delta": 1e-6}, "leave delta out"),
        ({"low": 1, "high": 0}, "high must be above the low end of the range, which is 1; got 0"),
        ({"aggregate": "vector", "centre": [0]}, "needs radius, delta"),
        ({"low": 0, "high": 1, "prior": [1, 2]}, "a list of 101 numbers"),
        ({"low": 0, "high": 1, "prior": [-1] * 101}, "0 or more"),
        ({"candidates": [0, 1], "prior": [1, 5e-324]}, "1e-290 of the largest"),
        ({"low": 0, "high": 1, "epsilon": 0}, "epsilon must be"),
        ({"low": 0, "high": 1, "epsilon": 1e-7}, "larger epsilon"),
        ({"low": 0, "high": 1, "epsilon": 5e-324}, "larger epsilon"),
        ({"candidates": ["a", "b"], "aggregate": "votes", "epsilon": 5e-324}, "larger epsilon"),
        ({"low": 0, "high": 1, "blocks": 2.5}, "blocks must be an integer"),
        ({"low": 0, "high": 1, "blocks": 1}, "too few"),
        ({"low": 0, "high": 1, "aggregate": "mean", "blocks": 3}, "too few"),
        ({"low": 0, "high": 1, "beta": 1}, "beta must lie"),
        ({"low": 0, "high": 1, "user": 1.5}, "name of a column"),
        ({"low": 0, "high": 1, "user": "id", "unit": "person"}, "not both"),
        ({"low": 0, "high": 1, "limits": 5}, "hs.blocks.Limits"),
        ({"low": 0, "high": 1, "neighbours": "swap"}, "neighbours must be one of"),
    ],
    ids=lambda x: str(x)[:40],
)
def test_wrong_parameters_are_refused_in_words(options, words):
    """Each says what is met and what to do."""
    with pytest.raises(ParameterError, match=words):
        hs.Blocks(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"low": -1, "high": 1, "blocks": 20},
        {"low": -1, "high": 1, "blocks": 9, "prior": [1] * 100 + [20]},
        {"candidates": ["a", "b", "c"], "aggregate": "votes", "blocks": 6},
        {"candidates": ["a", "b"], "aggregate": "stable", "delta": 1e-6, "blocks": 29},
        {"low": 0, "high": 1, "aggregate": "mean", "blocks": 3},
        {"aggregate": "vector", "centre": [0], "radius": 1, "delta": 1e-6, "blocks": 5},
    ],
    ids=lambda options: options.get("aggregate", "prior" if "prior" in options else "candidates"),
)
def test_a_refusal_names_the_least_beta_that_takes_so_many_blocks(options):
    """It is enough, and one hundredth less is not; a prior is not advised where there is one."""
    with pytest.raises(ParameterError, match="with beta=") as refused:
        hs.Blocks(**options)
    beta = float(re.search(r"beta=([0-9.]+)", str(refused.value))[1])
    assert hs.Blocks(**options, beta=beta).blocks == options["blocks"]
    with pytest.raises(ParameterError, match="too few"):
        hs.Blocks(**options, beta=beta - 0.01)
    assert ("a prior that is surer" in str(refused.value)) == ("prior" in options)


def test_no_beta_is_named_where_none_is_enough():
    """A single block says nothing, however often that is accepted."""
    with pytest.raises(ParameterError, match=r"fewer candidates, or a prior$"):
        hs.Blocks(low=0, high=1, blocks=1)


@pytest.mark.slow_cases("9-0.065", "17-0.0082")
@pytest.mark.parametrize(("blocks", "outside"), [(9, 0.065), (10, 0.048), (17, 0.0082)])
def test_a_right_guess_leaves_few_answers_outside_of_all_blocks(blocks, outside):
    """Answers drawn from the guess itself: how often the draw says nothing (docs/blocks.md)."""
    rng, size = np.random.default_rng(3), 2000
    law = rng.dirichlet(np.full(size, 5.0))
    made = hs.Blocks(list(range(size)), prior=law.tolist(), blocks=blocks, beta=0.07)
    found = []
    for _ in range(800):
        answers = rng.choice(size, blocks, p=law).astype(float)
        chances, places = made.aggregation.chances(answers), np.arange(size)
        found.append(chances[(places < answers.min()) | (places > answers.max())].sum())
    off = 4 * np.std(found) / len(found) ** 0.5
    assert np.mean(found) == pytest.approx(outside, abs=off + 0.0005)


@pytest.mark.parametrize("size", [101, 2001])
@pytest.mark.parametrize("skew", [0.05, 5.0])
def test_how_finely_candidates_lie_does_not_decide_how_many_blocks_a_guess_needs(size, skew):
    """10 blocks at epsilon = 1, whether few candidates have all the weight or many a little."""
    law = np.random.default_rng(4).dirichlet(np.full(size, skew)) + 1e-9
    assert hs.Blocks(list(range(size)), prior=law.tolist(), blocks=10).blocks == 10
    with pytest.raises(ParameterError, match="which takes 10 blocks"):
        hs.Blocks(list(range(size)), prior=law.tolist(), blocks=9)
    assert hs.Blocks(list(range(size)), prior=law.tolist()).blocks > 10  # for a usual candidate


def test_fewer_rows_than_blocks_are_refused_if_their_number_is_public():
    """A private number is never looked at."""
    made = hs.Blocks(low=0, high=1)
    with pytest.raises(BadRows, match="31 blocks need as many rows, the table has 30"):
        made.check(np.zeros(30))
    for private in ({"neighbours": "add-remove"}, {"user": 0}):
        hs.Blocks(low=0, high=1, **private).check(np.zeros((3, 2)))


def test_a_range_gives_even_candidates_unless_it_is_above_0():
    """Only a low end above 0 says of what size the answer may be; `spacing` says it outright."""
    for low in (-1, 0):
        even = hs.Blocks(low=low, high=1)
        assert even.parameters["spacing"] == "even"
        assert np.allclose(even.values, np.linspace(low, 1, 101))
    geometric = hs.Blocks(low=1, high=1e4)
    assert geometric.parameters["spacing"] == "geometric"
    assert np.allclose(geometric.values, np.geomspace(1, 1e4, 101))
    assert hs.Blocks(low=1, high=101, spacing="even").values == tuple(range(1, 102))
    from_0 = hs.Blocks(low=0, high=1e6, spacing="geometric").values
    assert np.allclose(from_0, [0.0, *np.geomspace(1, 1e6, 100)])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"low": -1, "high": 1, "spacing": "geometric"}, "from 0 or more on, low is -1"),
        ({"low": 0, "high": 1, "spacing": "wide"}, "spacing must be"),
        ({"candidates": [1, 2], "spacing": "even"}, "for low and high, not for candidates"),
        ({"low": 0, "high": 1, "aggregate": "mean", "spacing": "even"}, "leave spacing out"),
    ],
)
def test_a_spacing_that_cannot_be_is_refused(options, words):
    """It belongs to a range of candidates."""
    with pytest.raises(ParameterError, match=words) as refused:
        hs.Blocks(**options)
    assert refused.value.parameter == "spacing"


@pytest.mark.parametrize("spacing", ["even", "geometric"])
@pytest.mark.parametrize("low", [0, 2])
def test_a_prior_weighs_the_candidates_of_its_spacing(low, spacing):
    """What wins is one of those that are shown."""
    shown = hs.Blocks(low=low, high=9, spacing=spacing)
    prior = [float(value == shown.values[40]) for value in shown.values]
    made = dataclasses.replace(shown, prior=prior, blocks=None, epsilon=9.0)
    assert made.aggregation.draw(np.array([5.0] * made.blocks)) == shown.values[40]


@pytest.mark.slow
@pytest.mark.parametrize(("terminal", "long"), [(True, True), (False, True), (True, False)])
def test_a_long_wait_is_told_beforehand(monkeypatch, capsys, terminal, long):
    """In a terminal alone: how many calls there are, and how long their processes take to start."""
    monkeypatch.setattr(progress, "_LONG", 0.0 if long else 1e6)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    mechanism = hs.Blocks([0, 1], epsilon=20.0, blocks=3)
    hs.release(np.mean, np.ones(30), mechanism)
    told = capsys.readouterr().err
    assert ("asks about 3 blocks" in told) == (terminal and long)
    assert ("To start these takes some " in told) == (terminal and long)


def test_the_time_that_passes_is_shown_while_blocks_are_asked(monkeypatch, capsys):
    """In a terminal alone: 101 blocks that import a library take minutes, as a hang does."""
    mechanism = hs.Blocks([0, 1], epsilon=20.0, blocks=3)
    hs.release(np.mean, np.ones(30), mechanism)
    assert "asking about 3 blocks" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    hs.release(np.mean, np.ones(30), mechanism)
    assert "asking about 3 blocks" in capsys.readouterr().err


def test_a_wait_that_cannot_be_told_stops_nothing(monkeypatch):
    """It was paid for: a terminal that was closed is no reason to fail."""

    class Closed:
        def isatty(self):
            return True

        def write(self, text):
            raise BrokenPipeError

        flush = write

    monkeypatch.setattr(sys, "stderr", Closed())
    progress.tell_wait("soon", 60.0)


def test_a_public_guess_shows_how_far_it_is(monkeypatch, capsys):
    """On standard error, if that is a terminal and it was asked for."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    people = hs.populations.Uniform(low=0, high=1)
    asked = {"rows": 100, "blocks": 10, "candidates": [0.0, 0.5, 1.0], "draws": 5}
    silent = hs.public_prior(np.mean, people, **asked)
    assert "public blocks" not in capsys.readouterr().err
    assert hs.public_prior(np.mean, people, **asked, progress=True) == silent
    assert "asking about public blocks" in capsys.readouterr().err


class OnlyWrites:
    """What programs put in the place of standard error: it has no isatty."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


@pytest.mark.parametrize("stream", [None, OnlyWrites()], ids=["none", "one that only writes"])
def test_a_word_on_waiting_needs_no_terminal(stream, monkeypatch, ledger):
    """It comes after the charge, so that what fails there would lose it; bars need none, too."""
    monkeypatch.setattr(progress, "_LONG", 0.0)
    monkeypatch.setattr("sys.stderr", stream)
    made = hs.Blocks(low=0, high=1, epsilon=20.0, blocks=4)
    assert hs.release(np.mean, np.full(64, 0.5), made, ledger, budget="b").value is not None
    assert len(ledger.log) == 1
    with progress.show_progress("public work", 3, shown=True) as report:
        assert report is None


def two_named(rows):
    return {"mean": float(np.mean(rows)), "largest": float(np.max(rows))}


def one_listed(rows):
    return [float(np.mean(rows))]


def test_answers_with_names_and_a_list_of_one_number_are_read(by_value):
    """In calls of their own as on public rows: they failed in each, which no release tells."""
    rows = np.full(600, 5.0)
    ball = hs.Blocks(
        aggregate="vector", centre=[4, 4], radius=3, epsilon=800.0, delta=1e-6, blocks=3
    )
    assert hs.release(two_named, rows, ball).value == pytest.approx([5, 5], abs=0.5)
    public = hs.populations.PublicTable(rows)
    assert ball.simulate(two_named, public, 300, trials=1, isolated=False).failed == 0
    middle = hs.Blocks(low=0, high=10, epsilon=50.0)
    assert hs.release(one_listed, rows, middle).value == pytest.approx(5, abs=0.2)
    assert middle.simulate(one_listed, public, 300, trials=1, isolated=False).failed == 0
