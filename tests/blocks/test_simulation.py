"""What the error would be on public rows, and a public guess of the answer."""

from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest

import hushed as hs
from hushed.blocks._tried import was_tried
from hushed.errors import BadFunction, BadRows, ParameterError

PEOPLE = hs.populations.Normal(mean=5.0, std=2.0)
VALUES = np.linspace(0, 10, 101)
MADE = hs.Blocks(VALUES, epsilon=2.0)


def label(rows):
    """Side of 5 on which most rows lie."""
    return "above" if np.median(rows) > 5.2 else "below"


@pytest.mark.slow
def test_errors_are_those_of_drawing_again_and_again():
    """Against a hundred releases of fresh tables, drawn by the noise of a release."""
    tried = MADE.simulate(np.mean, PEOPLE, 400, trials=100, isolated=False)
    assert (tried.calls, tried.trials, tried.blocks) == (100 * (MADE.blocks + 1), 100, MADE.blocks)
    rng, errors = np.random.default_rng(1), []
    for _ in range(400):
        table = rng.normal(5.0, 2.0, 400)
        answers = np.array([part.mean() for part in MADE.split(table)])
        errors.append(abs(MADE.aggregation.draw(answers) - table.mean()))
    assert tried.error_50 == pytest.approx(np.quantile(errors, 0.5), rel=0.4)
    assert tried.error_95 == pytest.approx(np.quantile(errors, 0.95), rel=0.4)
    assert tried.error_of_blocks < tried.error_50 < tried.error_95
    assert tried.failed == 0


def test_the_same_seed_gives_the_same_errors():
    """Tables, splits and noise follow from it."""
    ask = {"trials": 3, "isolated": False}
    first = MADE.simulate(np.mean, PEOPLE, 200, seed=4, **ask)
    assert first == MADE.simulate(np.mean, PEOPLE, 200, seed=4, **ask)
    assert first != MADE.simulate(np.mean, PEOPLE, 200, seed=5, **ask)
    assert "in one process" in str(first)


def test_no_table_holds_the_rows_of_a_guess_with_the_same_seed():
    """The guess would be made of the tables that it is tried on, and seem better than it is."""
    drawn: list[set[float]] = []

    def people(rng, count):
        rows = rng.normal(5.0, 2.0, count)
        drawn.append(set(rows.tolist()))
        return rows

    public = hs.populations.Simulator(people)
    asked = {"rows": 200, "seed": 3}
    guess = hs.public_prior(np.mean, public, blocks=10, candidates=VALUES, draws=20, **asked)
    guessed = set().union(*drawn)
    drawn.clear()
    made = hs.Blocks(VALUES, epsilon=2.0, prior=guess)
    made.simulate(np.mean, public, trials=20, isolated=False, **asked)
    assert len(guessed) >= 20 * 20
    assert not guessed & set().union(*drawn)


def test_a_function_that_fails_at_every_call_is_told_of_early():
    """After 64 blocks of the first of many tables, with what it raises on them."""
    asked = []

    def wants_many(rows):
        asked.append(len(rows))
        if len(rows) < 300:
            raise ValueError("too few")
        return rows.mean()

    with pytest.raises(BadFunction, match=r"first 64 blocks.*ValueError.*too few"):
        MADE.simulate(wants_many, PEOPLE, 400, trials=1000, isolated=False)
    assert len(asked) == 66  # the table, 64 blocks, and the first of them for its words


def test_a_function_that_fails_on_the_first_blocks_and_not_on_others_is_simulated():
    """One that fails on 60 % of the blocks fails on the first 8 once in 60 times."""
    asked = []

    def fails_at_first(rows):
        asked.append(len(rows))
        if 1 < len(asked) < 40:
            raise ValueError("too few")
        return rows.mean()

    tried = MADE.simulate(fails_at_first, PEOPLE, 400, trials=2, isolated=False)
    assert 8 / tried.calls < tried.failed < 1


def test_a_function_that_fails_in_processes_of_its_own_is_told_of_early(tmp_path, monkeypatch):
    """In this process it answers, and what differs there is said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.txt").write_text("1")

    def reads(rows):
        with open("weights.txt") as file:
            return rows.mean() * float(file.read())

    with pytest.raises(BadFunction, match=r"In this process the function answers.*empty folder"):
        MADE.simulate(reads, PEOPLE, 400, trials=1000)


@pytest.mark.slow
def test_the_first_table_is_asked_as_the_others(monkeypatch):
    """The blocks that are asked early are asked once, each with its own seed."""
    whole = MADE.simulate(np.mean, PEOPLE, 400, trials=2, seed=3)
    monkeypatch.setattr("hushed.blocks._simulation._FEW", MADE.blocks)
    assert MADE.simulate(np.mean, PEOPLE, 400, trials=2, seed=3) == whole


def test_failed_calls_are_counted():
    """A release says nothing of them, so this is where they are seen."""

    def sometimes(rows):
        if len(rows) < 300 and rows[0] < 5:
            raise ValueError
        return rows.mean()

    tried = MADE.simulate(sometimes, PEOPLE, 400, trials=20, isolated=False)
    assert 0.35 < tried.failed < 0.65
    with pytest.raises(BadFunction, match="raised ZeroDivisionError on public rows"):
        MADE.simulate(lambda rows: 1 / 0, PEOPLE, 400, isolated=False)
    with pytest.raises(BadFunction, match=r"shape \(2,\), where one number is asked for"):
        MADE.simulate(lambda rows: rows[:2], PEOPLE, 400, isolated=False)


def test_labels_and_vectors_are_tried_too():
    """The error of a label is the chance of another one."""
    vote = hs.Blocks(["above", "below"], aggregate="votes", epsilon=5.0)
    tried = vote.simulate(label, PEOPLE, 2000, trials=20, isolated=False)
    assert tried.error_50 == 0
    assert 0 <= tried.error_95 <= 1
    with pytest.raises(BadFunction, match="none of the candidates"):
        vote.simulate(lambda rows: "?", PEOPLE, 2000, isolated=False)
    ball = hs.Blocks(
        aggregate="vector", centre=[5, 2], radius=2, epsilon=2.0, delta=1e-6, blocks=200
    )
    tried = ball.simulate(lambda x: [x.mean(), x.std()], PEOPLE, 2000, trials=5, isolated=False)
    assert 0.02 < tried.error_50 < 0.3
    mean = hs.Blocks(low=0, high=10, aggregate="mean", epsilon=2.0)
    tried = mean.simulate(np.mean, PEOPLE, 2000, trials=5, isolated=False)
    assert tried.error_95 == pytest.approx(mean.accuracy(0.05), rel=0.3)


@pytest.mark.slow
def test_isolated_calls_give_the_same_errors():
    """Of a function that keeps nothing; one that does is told apart."""
    few = hs.Blocks([0.0, 5.0, 10.0], epsilon=20.0, blocks=2)
    asked = [few.simulate(np.mean, PEOPLE, 50, trials=3, isolated=x) for x in (True, False)]
    assert asked[0].error_95 == asked[1].error_95
    assert [each.isolated for each in asked] == [True, False]
    seen = []

    def remembers(rows):
        seen.append(1)
        return 5.0 * (len(seen) - 1)

    here = few.simulate(remembers, PEOPLE, 50, trials=1, isolated=False)
    seen.clear()
    apart = few.simulate(remembers, PEOPLE, 50, trials=1)
    assert here.error_of_blocks != apart.error_of_blocks


def test_a_prior_is_the_histogram_of_public_blocks():
    """Nine tenths of it, and a tenth spread evenly."""
    prior = hs.public_prior(np.mean, PEOPLE, rows=1000, blocks=10, candidates=VALUES, draws=300)
    assert sum(prior) == pytest.approx(1.0)
    assert min(prior) == pytest.approx(0.1 / 101)
    near = np.abs(VALUES - 5) < 1.25
    assert sum(np.array(prior)[near]) > 0.9  # the mean of 100 rows is 5 +- 0.2
    assert np.array(prior)[~near] == pytest.approx(0.1 / 101)
    even = hs.public_prior(
        np.mean, PEOPLE, rows=1000, blocks=10, candidates=VALUES, floor=1, draws=5
    )
    assert even == pytest.approx([1 / 101] * 101)
    votes = hs.public_prior(
        label, PEOPLE, rows=1000, blocks=10, candidates=["above", "below"], draws=100
    )
    assert 0.5 < votes[1] < 0.95
    codes = hs.public_prior(
        lambda rows: 3 if rows.mean() > 0 else 1, PEOPLE, rows=1000, blocks=10, candidates=[3, 1, 2]
    )
    assert codes[0] == pytest.approx(0.9 + 0.1 / 3)
    guided = hs.Blocks(VALUES, epsilon=1.0, prior=prior)
    assert guided.blocks < hs.Blocks(VALUES, epsilon=1.0).blocks


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"f": 5}, ParameterError, "must be a function"),
        ({"population": [1, 2]}, ParameterError, "must be a public source of rows"),
        ({"rows": 0}, ParameterError, "rows must be"),
        ({"floor": 2}, ParameterError, "floor must lie"),
        ({"draws": 0}, ParameterError, "draws must be"),
        ({"candidates": [3, 3]}, ParameterError, "must all differ"),
        ({"candidates": ["a", "a"]}, ParameterError, "must all differ"),
        ({"f": lambda rows: 1 / 0}, BadFunction, "no answer on 200 public blocks of 100 rows"),
        ({"f": lambda rows: "?", "candidates": ["a", "b"]}, BadFunction, "no answer"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_a_prior_of_nothing_is_refused(options, error, words):
    """In words."""
    usual = {"f": np.mean, "population": PEOPLE, "rows": 1000, "blocks": 10, "candidates": VALUES}
    given = usual | options
    with pytest.raises(error, match=words):
        hs.public_prior(given.pop("f"), given.pop("population"), **given)


def test_a_simulation_of_nothing_is_refused():
    """In words."""
    with pytest.raises(ParameterError, match="must be a function"):
        MADE.simulate(5, PEOPLE, 100)
    with pytest.raises(ParameterError, match="must be a public source of rows"):
        MADE.simulate(np.mean, np.zeros(5), 100)
    with pytest.raises(ParameterError, match="trials must be"):
        MADE.simulate(np.mean, PEOPLE, 100, trials=0)
    with pytest.raises(BadRows, match="need as many rows"):
        MADE.simulate(np.mean, PEOPLE, 3, isolated=False)


@pytest.mark.parametrize(("terminal", "wanted"), [(True, True), (False, False), (True, False)])
def test_a_bar_is_shown_where_it_was_asked_for(monkeypatch, capsys, terminal, wanted):
    """On standard error, if that is a terminal; it changes nothing of what is found."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    usual = {"trials": 2, "isolated": False}
    found = MADE.simulate(np.mean, PEOPLE, 200, progress=wanted, **usual)
    assert ("asking about public tables" in capsys.readouterr().err) == (terminal and wanted)
    assert found == MADE.simulate(np.mean, PEOPLE, 200, **usual)


def rows_each(table):
    """Count the rows of a person in the mean; wrong where people were cut apart."""
    return len(table) / table["patient"].nunique()


def stays(rng, count):
    """Give four rows of each of so many people."""
    who = np.repeat(np.arange(count), 4)
    return pandas.DataFrame({"patient": who, "cost": rng.random(4 * count)})


LAW = hs.populations.Users(lambda rng: pandas.DataFrame({"cost": rng.random(4)}), user="patient")
WHOLE = {
    "a table": hs.populations.PublicTable(stays(np.random.default_rng(0), 300)),
    "a simulator": hs.populations.Simulator(stays),
    "a law": LAW,
}


@pytest.mark.parametrize("source", WHOLE)
def test_people_are_dealt_with_all_their_rows(source):
    """As a release deals them, and as hs.compare tries it."""
    made = hs.Blocks(low=0, high=10, epsilon=4.0, blocks=12, user="patient")
    tried = made.simulate(rows_each, WHOLE[source], 60, trials=3, isolated=False)
    assert (tried.rows, tried.unit, tried.failed) == (60, "user", 0)
    assert tried.error_of_blocks < 0.1  # candidates are a tenth apart
    assert "3 public tables of 60 users" in str(tried)
    prior = hs.public_prior(
        rows_each, WHOLE[source], rows=60, blocks=5, candidates=range(10), user="patient", draws=3
    )
    assert prior[4] > 0.9


def test_people_without_their_column_are_refused():
    """Whoever reads the message has one thing to do."""
    made = hs.Blocks(low=0, high=10, epsilon=4.0, blocks=12)
    with pytest.raises(ParameterError, match="say user='patient'"):
        made.simulate(rows_each, LAW, 60, isolated=False)
    with pytest.raises(BadRows, match="name the column of people, with user="):
        made.simulate(rows_each, WHOLE["a simulator"], 60, isolated=False)


def test_a_function_that_nobody_tried_is_told_before_the_charge(monkeypatch, capsys, by_value):
    """A sure failure costs as much as an answer, and nobody is told of it afterwards."""
    monkeypatch.setattr("hushed._ground.progress._is_terminal", lambda: True)
    ball = hs.Blocks(aggregate="vector", centre=[5], radius=5.0, epsilon=1e3, delta=1e-6, blocks=4)
    rows = np.random.default_rng(0).normal(5.0, 2.0, 40)
    hs.release(several, rows, ball)
    told = capsys.readouterr().err
    assert "was not tried on public rows" in told
    assert "anything but an array of 1, counts as the centre" in told
    with pytest.raises(BadFunction, match="shape"):
        ball.simulate(several, PEOPLE, 40, trials=1, isolated=False)
    hs.release(several, rows, ball)
    assert "not tried" in capsys.readouterr().err  # nor has it passed
    two = hs.Blocks(aggregate="vector", centre=[5, 5], radius=5.0, epsilon=9, delta=1e-6, blocks=4)
    two.simulate(several, PEOPLE, 40, trials=1, isolated=False)
    hs.release(several, rows, two)
    assert "not tried" not in capsys.readouterr().err


class Kept:
    """An object whose method is the function."""

    def answer(self, rows):
        """Answer with the mean."""
        return float(np.mean(rows))


def test_a_trial_is_remembered_of_methods_and_of_workers():
    """A method is another object each time it is named; a comparison asks in other processes."""
    made, kept = hs.Blocks(low=0, high=10, epsilon=9.0, blocks=4), Kept()
    made.simulate(kept.answer, PEOPLE, 40, trials=1, isolated=False)
    assert was_tried(kept.answer)
    assert not was_tried(Kept().answer)
    hs.compare(first, PEOPLE, rows=40, epsilon=4.0, low=0, high=10, blocks=4, trials=8, workers=2)
    assert was_tried(first)


def first(rows):
    """Answer with the smallest number."""
    return float(np.min(rows))


def several(rows):
    """Answer with two numbers."""
    return np.array([np.mean(rows), np.median(rows)])
