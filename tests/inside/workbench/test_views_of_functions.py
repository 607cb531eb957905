"""Functions, audits, checks, comparisons: from what was typed to a command, and back to words."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.runs import list_runs
from hushed.workbench._jobs import KEPT, JobState, new_job
from hushed.workbench._views.audits import describe_verdict, list_zoo, read_audit, read_stand
from hushed.workbench._views.comparisons import list_cells, read_compared, read_comparison
from hushed.workbench._views.functions import (
    price_release,
    read_sampling,
    watch_sampling,
    write_release,
)
from hushed.workbench._views.populations import describe_check, read_check, write_check
from hushed.workbench._views.samples import (
    draw_event,
    draw_histogram,
    draw_movements,
    draw_outcomes,
)
from hushed.workbench._views.sources import list_functions

CODE = '''
import numpy as np
raise_if_run = 1 / 0


def mean(rows):
    """Mean of the first column."""
    return rows.mean()


def _hidden(rows):
    return 0
'''
RANGE = {"population": "range", "low": "0", "high": "100"}
SAMPLED = {**RANGE, "function": "f.py:mean", "rows": "20", "one_in": "20"}
FOUND = {
    "sensitivity": 5.0,
    "norm": "l1",
    "gamma": 0.05,
    "neighbours": "replace-one",
    "protect": "record",
    "shape": [],
    "estimates": [["a.b", 0.05]],
    "unit": "row",
    "block_rows": None,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A workspace with a file of code that can be run, and one that cannot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(CODE.replace("raise_if_run = 1 / 0", ""))
    (tmp_path / "not_run.py").write_text(CODE)
    (tmp_path / "odd.py").write_text("def (")
    return tmp_path


@pytest.fixture
def functions(folder):
    """The functions of the one file that runs."""
    return list_functions(folder, ["f.py"])[0]


def run(words, *more):
    """What a command prints, run as a job runs it."""
    done = CliRunner().invoke(app, [*("kept" if w == KEPT else w for w in words), *more])
    return json.loads(done.stdout)


def state_of(words, status="done"):
    """A job as it would stand."""
    job = new_job("sensitivity", "d", words)
    return JobState(job=job, status=status, seconds=10.0, result={}, problem="", notes=())


def test_functions_are_listed_without_running_a_file(folder):
    """Names, parameters and first lines; a file that cannot be read says why."""
    found, problems = list_functions(folder, ["not_run.py", "odd.py"])
    assert [(each.spec, each.takes, each.says) for each in found] == [
        ("not_run.py:mean", "rows", "Mean of the first column.")
    ]
    assert list(problems) == ["odd.py"]


def test_what_was_typed_becomes_a_command_that_samples(folder, functions):
    """The command runs, and what it keeps is watched: all pairs, and the movement that is kept."""
    words, problems = read_sampling(SAMPLED, [], functions)
    assert not problems
    found = run(words)
    watched = watch_sampling(state_of(words), folder / "kept")
    assert (watched.done, watched.total, watched.percent) == (112, 112, 100)
    assert watched.movements[watched.place - 1] == found["sensitivity"]
    assert list(watched.movements) == sorted(watched.movements, reverse=True)
    picture = draw_movements(watched)
    assert "112 of 112 pairs" in picture.sentence
    assert watched.kept in picture.sentence


def test_half_a_sampling_says_that_the_movement_can_only_grow(folder, functions):
    """The kept place is counted among all pairs, so that more of them never make it smaller."""
    words, _ = read_sampling({**SAMPLED, "one_in": "100"}, [], functions)
    hs.sample_sensitivity(
        np.mean, hs.populations.Uniform(low=0, high=100), rows=20, pairs=40, workers=1, keep="half"
    )
    watched = watch_sampling(state_of(words, "running"), folder / "half")
    assert (watched.done, watched.total) == (40, list_runs("half")[0].trials + 720)
    assert "it can only grow" in draw_movements(watched).sentence
    assert watched.left.endswith("min")


@pytest.mark.parametrize(
    ("typed", "field", "told"),
    [
        ({"function": "f.py:none"}, "function", "none of those there are"),
        ({"function": ""}, "function", "Choose the function."),
        ({"rows": "1"}, "rows", "from 2 to"),
        ({"rows": "ten"}, "rows", "got 'ten'"),
        ({"block_rows": "0"}, "block_rows", "from 1 to"),
        ({"one_in": "1"}, "one_in", "from 2 to 10,000"),
        ({"high": "-1"}, "high", "above the lowest"),
        ({"low": "inf"}, "low", "must be a number"),
        ({"frame": "--json"}, "frame", "none of those"),
        ({"population": "file", "population_file": "../x.csv"}, "population_file", "none of those"),
        (
            {"population": "file", "population_file": "a.csv", "data": "a.csv"},
            "population_file",
            "these are the private rows",
        ),
    ],
)
def test_what_is_wrong_stands_at_its_field(functions, typed, field, told):
    """Every problem names one field, and says what is allowed."""
    _, problems = read_sampling({**SAMPLED, **typed}, ["a.csv"], functions)
    assert told in problems[field]


@pytest.mark.slow_cases("gaussian")
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_epsilon_and_error_of_a_sampled_function_hold_each_other(mechanism):
    """The error of an epsilon is that of the mechanism; its smallest epsilon comes back."""
    moves = hs.proven_sensitivity(5.0, argument="given")
    known = hs.Laplace(moves, epsilon=0.5)
    if mechanism == "gaussian":
        moves = hs.proven_sensitivity(5.0, "l2", argument="given")
        known = hs.Gaussian(moves, epsilon=0.5, delta=1e-6)
    found = {**FOUND, "norm": moves.norm}
    typed = {"moved": "epsilon", "epsilon": "0.5", "delta": "1e-6"}
    by_epsilon, _ = price_release(found, typed, mechanism=mechanism)
    assert float(by_epsilon.error) == pytest.approx(known.accuracy(0.05), rel=1e-5)
    assert float(by_epsilon.error) >= known.accuracy(0.05)
    typed |= {"moved": "error", "error": by_epsilon.error}
    by_error, _ = price_release(found, typed, mechanism=mechanism)
    assert float(by_error.epsilon) == pytest.approx(0.5, rel=1e-4)
    assert by_error.guarantee.gamma == 0.05
    place = {"moved": "error-slider", "error-slider": str(by_epsilon.places[1])}
    by_slider, _ = price_release(found, typed | place, mechanism=mechanism)
    assert float(by_slider.epsilon) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"moved": "error", "error": ""}, "error"),
        ({"moved": "error", "error": "0"}, "error"),
    ],
)
def test_a_price_that_is_none_stands_at_its_field(typed, field):
    """So does a missing delta of Gaussian noise."""
    assert set(price_release(FOUND, typed)[1]) == {field}
    assert set(price_release(FOUND, typed, mechanism="gaussian")[1]) == {"delta"}


def test_people_with_several_rows_are_protected_with_all_of_them(folder, functions):
    """Blocks of people, from the form to the charge: of a budget that protects people alone."""
    draw = np.random.default_rng(5)
    for name, people in (("public.csv", 2000), ("rows.csv", 20)):
        whose = draw.permutation(np.repeat(np.arange(people), 2))
        lines = (f"{who},{draw.random():.3f}" for who in whose)
        (folder / name).write_text("who,fee\n" + "\n".join(lines))
    source = {"population": "file", "population_file": "public.csv", "one_in": "5"}
    typed = {**SAMPLED, **source, "user": "who", "block_rows": "5"}
    words, problems = read_sampling(typed, ["public.csv"], functions)
    assert not problems
    found = run(words)
    assert (found["unit"], found["block_rows"], found["rows"]) == ("user", 5, 20)
    priced, _ = price_release(found, {"epsilon": "0.5"})
    assert "every person, whose rows may all be replaced together" in priced.promise
    assert "blocks of 5 people" in priced.exactness
    with hs.Ledger("sqlite:///l.db") as book:
        limit = hs.Guarantee(epsilon=1.0, gamma=0.3, unit="user")
        book.open_budget("people", limit)
        book.open_budget("rows", hs.Guarantee(epsilon=1.0, gamma=0.3))
    charge = ("sqlite:///l.db", "people", "a note", "one")
    given = {"data": "rows.csv", "mechanism": "laplace"}
    answer = run(write_release(tuple(words), priced, charge=charge, **given))
    with hs.Ledger("sqlite:///l.db") as book:
        (entry,) = book.entries("people")
    assert entry.guarantee == priced.guarantee
    assert answer["certificate"]["guarantee"]["unit"] == "user"


def test_a_release_pays_for_what_was_sampled_and_shown(folder, functions):
    """The command finds all trials kept, charges epsilon and gamma as quoted, and pays once."""
    (folder / "rows.csv").write_text("fee\n" + "\n".join(map(str, range(20))))
    with hs.Ledger("sqlite:///l.db") as book:
        book.open_budget("fees", hs.Guarantee(epsilon=1.0, gamma=0.1))
    words, _ = read_sampling(SAMPLED, [], functions)
    found = run(words)
    priced, _ = price_release(found, {"moved": "epsilon", "epsilon": "0.5"})
    charge = ("sqlite:///l.db", "fees", "for the report", "request-1")
    command = write_release(
        tuple(words), priced, data="rows.csv", mechanism="laplace", charge=charge
    )
    first, again = run(command), run(command)
    assert first["certificate"]["guarantee"]["epsilon"] == 0.5
    assert first["value"] == again["value"]
    with hs.Ledger("sqlite:///l.db") as book:
        (entry,) = book.entries("fees")
    assert entry.guarantee == priced.guarantee
    (folder / "rows.csv").write_text("fee\n1\n2\n")
    other = run([each.replace("request-1", "request-2") for each in command])
    assert "the table has 2 rows, and --rows says 20" in other["error"]["message"]


@pytest.mark.slow
def test_the_zoo_is_audited_by_name(folder):
    """A broken mechanism is caught; its witness, its picture and its words are there."""
    broken = next(each for each in list_zoo() if each.name == "histogram, wrong scale")
    words, problems = read_audit({"specimen": broken.name, "effort": "quick"}, [])
    assert broken.broken
    assert not problems
    judged = describe_verdict(run(words))
    assert judged.verdict == "violated"
    assert judged.headline.startswith("Violated")
    (_, hits, _), (_, other_hits, _) = judged.sides
    assert hits > other_hits
    assert f"{hits:,} times" in draw_event(judged).sentence
    _, *groups = draw_outcomes(judged).table
    event = [(likelier, other) for _, likelier, other, inside in groups if inside == "yes"]
    assert [
        sum(int(each.replace(",", "")) for each in side) for side in zip(*event, strict=True)
    ] == [
        hits,
        other_hits,
    ]
    assert 0 < len(event) < len(groups)


@pytest.mark.slow
def test_what_is_not_refuted_is_never_called_private(folder):
    """The headline says so, and what would have been caught."""
    words, _ = read_audit({"specimen": "Laplace", "effort": "quick"}, [])
    judged = describe_verdict(run(words))
    assert judged.headline.startswith("Not refuted, which is not private: a violation of at least")
    likelier, other = zip(*judged.outcomes, strict=True)
    assert [sum(likelier), sum(other)] == [runs for _, _, runs in judged.sides]
    assert max(abs(a - b) for a, b in judged.outcomes) < 0.1 * sum(likelier)  # alike, as claimed


def test_own_mechanisms_are_audited_on_pairs_at_the_ends(functions):
    """The command has the claim and the tables; a missing claim stands at its field."""
    typed = {"of": "file", "mechanism": "f.py:mean", "claim_epsilon": "1", "low": "-5", "high": "5"}
    words, problems = read_audit(typed, functions)
    assert not problems
    assert "--low=-5" in words
    _, problems = read_audit({**typed, "claim_epsilon": ""}, functions)
    assert set(problems) == {"claim_epsilon"}


def test_remarks_of_an_audit_tell_how_far_it_is():
    """Share of runs and certified bound are read out of the words of the library."""
    words = "round 3: 900 runs, epsilon is at least 0.31; 45 % of the runs made, about 3 s left"
    stand = read_stand(("something else", words))
    assert (stand.percent, stand.bound) == (45, "0.31")
    assert read_stand(()).percent is None


def test_a_check_of_a_population_pays_and_is_shown(folder, functions):
    """Rows from elsewhere are contradicted; the picture marks them among public tables."""
    (folder / "rows.csv").write_text("fee\n" + "\n".join(str(90 + i / 100) for i in range(400)))
    with hs.Ledger("sqlite:///l.db") as book:
        book.open_budget("fees", hs.Guarantee(epsilon=1.0))
    words, problems = read_check({**RANGE, "data": "rows.csv", "epsilon": "1"}, ["rows.csv"], [])
    assert not problems
    paid = write_check(words, ledger="sqlite:///l.db", budget="fees", note="", key="request-1")
    shown = describe_check(run(paid))
    assert shown.verdict == "contradicted"
    picture = draw_histogram(
        shown.deviations, shown.statistic, title="difference", marked="private", sentence="x"
    )
    assert sum(int(row[2]) for row in picture.table[1:-1]) == len(shown.deviations)
    with hs.Ledger("sqlite:///l.db") as book:
        assert len(book.entries("fees")) == 1


@pytest.mark.slow
def test_ways_to_release_a_statistic_are_compared(folder):
    """The table is the one of the library, and a missing range stands at its field."""
    typed = {**RANGE, "rows": "50", "epsilon": "1", "least": "0", "most": "100", "trials": "5"}
    words, problems = read_comparison(typed, [], [])
    assert not problems
    compared = read_compared(run(words))
    assert list_cells(compared)[0][0] == "route"
    assert compared.recommended in {each.name for each in compared.routes}
    words, problems = read_comparison({**typed, "statistic": "mean"}, [], [])
    assert not problems
    assert "--trim" not in words
    assert read_compared(run(words)).asked.startswith("mean of 50 rows")
    _, problems = read_comparison({**typed, "least": ""}, [], [])
    assert set(problems) == {"least"}
