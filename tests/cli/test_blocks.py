"""The command blocks: releases, guesses, simulations, budgets, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.commands import ended

import hushed as hs

FUNCTIONS = """
import numpy as np
def spread(rows): return rows[:, 1].max() - rows[:, 1].min()
def stay(rows): return rows[:, 1].mean()
def who(rows): return float(len(set(rows[:, 0])))
def busiest(rows): return "long" if rows[:, 1].mean() > 30 else "short"
def both(rows): return rows.mean(axis=0)
def of_frame(rows): return float(rows["stay"].mean())
"""
RANGE = ("--low", 0, "--high", 100)
STAYS = ("blocks", "stays.csv", "f.py:stay", "--header", *RANGE)
SURE = ("--epsilon", 40)
VECTOR = (*("f.py:both", "--aggregate", "vector", "--radius", 9), *("--centre", 10, "--centre", 50))
UNIFORM = "uniform:0,9:40,60"


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder with stays of 20 patients, about 50 days long."""
    rng = np.random.default_rng(1)
    stays = [f"{i % 20},{value:.3f}" for i, value in enumerate(rng.uniform(45, 55, 80))]
    (tmp_path / "stays.csv").write_text("patient,stay\n" + "\n".join(stays) + "\n")
    (tmp_path / "f.py").write_text(FUNCTIONS)
    return lambda *words: ended(*words, cwd=tmp_path)


def record_of(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def parameters_of(result):
    return record_of(result)["certificate"]["mechanism"]["parameters"]


def error_of(result):
    return json.loads(result.stdout)["error"]["message"]


@pytest.mark.slow
def test_a_release_is_that_of_python_and_its_certificate_is_verified(run, tmp_path):
    """The mechanism is the one of the same parameters; a page is written, too."""
    words = (*STAYS, *SURE, "--blocks", 3, "--cpu-seconds", 7, "--memory", 10**9)
    record = record_of(run(*words, "--out", "c.json", "--html", "c.html", "--json"))
    assert record["value"] == pytest.approx(50, abs=5)
    limits = hs.blocks.Limits(cpu_seconds=7, memory=10**9)
    made = hs.Blocks(low=0, high=100, epsilon=40.0, blocks=3, limits=limits)
    known = hs.Certificate.from_json((tmp_path / "c.json").read_text())
    assert known.mechanism.parameters == made.parameters | {"function": "stay"}
    assert known.guarantee == made.guarantee
    assert "<title>Certificate" in (tmp_path / "c.html").read_text()
    assert run("verify", "c.json").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("f.py:stay", *[w for v in (20, 50, 80) for w in ("--candidate", v)]), 50.0),
        pytest.param(
            ("f.py:stay", *RANGE, "--aggregate", "mean"),
            pytest.approx(50, abs=5),
            marks=pytest.mark.slow,
        ),
        (
            ("f.py:busiest", "--aggregate", "votes", "--candidate", "long", "--candidate", "short"),
            "long",
        ),
        (
            (
                *("f.py:busiest", "--aggregate", "stable", "--delta", 0.01),
                *("--candidate", "long", "--candidate", "short"),
            ),
            "long",
        ),
        pytest.param(
            (*VECTOR, "--delta", 1e-6), pytest.approx([9.5, 50], abs=9), marks=pytest.mark.slow
        ),
    ],
    ids=["candidates", "mean", "votes", "stable", "vector"],
)
def test_every_way_of_putting_answers_together(run, words, value):
    """Each answer of so sure a release is that of the function."""
    record = record_of(
        run("blocks", "stays.csv", "--header", *words, *SURE, "--blocks", 4, "--json")
    )
    assert record["value"] == value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "column"),
    [
        ("numpy", "patient"),
        ("numpy", "1"),
        *(pytest.param("pandas", name, marks=pytest.mark.slow) for name in ("patient", "1")),
    ],
)
def test_users_by_name_and_by_place(run, frame, column):
    """All rows of one patient are in one block, and the promise is for users."""
    words = ("--user", column, "--frame", frame, "--blocks", 2, "--json")
    function = "f.py:stay" if frame == "numpy" else "f.py:of_frame"
    record = record_of(run("blocks", "stays.csv", function, "--header", *RANGE, *SURE, *words))
    assert record["certificate"]["guarantee"]["unit"] == "user"
    stated = record["certificate"]["mechanism"]["parameters"]["user"]
    assert stated == ("0" if frame == "numpy" else "patient")
    error = record["stated_error"]
    assert error["value"] == record["certificate"]["mechanism"]["accuracy"]
    assert error["level"] == 0.95
    assert "blocks" in error["unit"]


@pytest.mark.slow
def test_a_private_number_of_rows(run):
    """Neighbours have one row more or less."""
    record = record_of(run(*STAYS, *SURE, "--private-count", "--blocks", 2, "--json"))
    assert record["certificate"]["guarantee"]["neighbours"] == "add-remove"


@pytest.mark.slow
def test_spacing_is_as_asked(run):
    """Even from 0 on by default."""
    even = parameters_of(run(*STAYS, *SURE, "--json"))
    asked = parameters_of(run(*STAYS, *SURE, "--spacing", "geometric", "--json"))
    assert (even["spacing"], asked["spacing"]) == ("even", "geometric")


@pytest.mark.slow
def test_a_guess_makes_fewer_blocks_enough(run):
    """It is that of `hs.public_prior` for the number of private rows."""
    words = (*STAYS, "--epsilon", 6, "--prior-population", UNIFORM, "--seed", 3, "--json")
    stated = parameters_of(run(*words))
    plain = hs.Blocks(low=0, high=100, epsilon=6.0)
    source = hs.populations.Uniform(low=[0, 40], high=[9, 60])
    prior = hs.public_prior(
        lambda rows: rows[:, 1].mean(),
        source,
        rows=80,
        blocks=plain.blocks,
        candidates=plain.values,
        seed=3,
    )
    made = hs.Blocks(low=0, high=100, epsilon=6.0, prior=prior)
    assert made.blocks < plain.blocks
    assert {**stated, "function": ""} == {**made.parameters, "function": ""}


def test_a_simulation_is_that_of_python_and_costs_nothing(run, tmp_path):
    """Errors are printed; with a guess of the number of rows the file is not even read."""
    words = (*STAYS, "--epsilon", 2, "--simulate", UNIFORM, "--trials", 2, "--in-process")
    record = record_of(run(*words, "--json"))
    made = hs.Blocks(low=0, high=100, epsilon=2.0)
    source = hs.populations.Uniform(low=[0, 40], high=[9, 60])
    wanted = made.simulate(
        lambda rows: rows[:, 1].mean(), source, rows=80, trials=2, isolated=False
    )
    assert set(record) == {"simulation"}
    assert record["simulation"]["error_95"] == wanted.error_95
    shown = run(*words).stdout
    assert f"{wanted.error_95:.3g}" in shown
    assert "in one process" in shown
    (tmp_path / "stays.csv").unlink()
    assert record_of(run(*words, "--rows", 80, "--json")) == record


@pytest.mark.slow
def test_a_simulation_in_processes_of_their_own(run, tmp_path):
    """As a release does; users are found in the public rows."""
    lines = (tmp_path / "stays.csv").read_text().replace(".", ".1")  # other rows
    (tmp_path / "public.csv").write_text(lines)
    words = ("--simulate", "public.csv", "--promise", "table", "--trials", 1, "--blocks", 4)
    record = record_of(run(*STAYS, *SURE, *words, "--rows", 40, "--user", "patient", "--json"))
    assert record["simulation"]["isolated"]
    assert record["simulation"]["failed"] == 0


@pytest.mark.slow
def test_a_budget_is_charged_and_an_answer_kept(run, tmp_path):
    """A key asks once; what does not fit is refused and costs nothing."""
    book = f"sqlite:///{tmp_path}/budget.db"
    with hs.Ledger(book) as ledger:
        ledger.open_budget("stays", hs.Guarantee(epsilon=50.0))
    words = (*STAYS, *SURE, "--blocks", 3, "--ledger", book, "--budget", "stays", "--json")
    first, again = (record_of(run(*words, "--key", "mean stay")) for _ in range(2))
    assert first == again
    assert run(*words).returncode == 1
    with hs.Ledger(book) as ledger:
        assert ledger.balance("stays").spent.epsilon == 40.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give candidates, or low and high"),
        (("--low", 0), "give candidates, or low and high"),
        ((*RANGE, "--candidate", 1, "--candidate", 2), "not both"),
        (("--candidate", "long", "--candidate", "short"), "--candidate must be a number"),
        (("--candidate", 1, "--candidate", 2, "--spacing", "even"), "--spacing is for low"),
        (("--low", -1, "--high", 1, "--spacing", "geometric"), "--spacing 'geometric'"),
        ((*RANGE, "--blocks", 0), "--blocks must be"),
        ((*RANGE, "--blocks", 90, "--beta", 0.5), "90 blocks need as many rows"),
        ((*RANGE, "--memory", 0), "--memory must be"),
        ((*RANGE, "--radius", 1), "--radius"),
        ((*RANGE, "--user", "bed"), "no column 'bed'"),
        ((*RANGE, "--user", "patient", "--unit", "person"), "not both"),
        ((*RANGE, "--key", "k"), "--ledger"),
        ((*RANGE, "--out", "no/c.json"), "no folder"),
        ((*RANGE, "--out", "stays.csv"), "an input"),
        ((*RANGE, "--rows", 9), "--rows goes with --simulate"),
        ((*RANGE, "--rows", 0, "--simulate", UNIFORM), "--rows must be"),
        ((*RANGE, "--private-count", "--simulate", UNIFORM), "give --rows"),
        ((*RANGE, "--user", "patient", "--prior-population", UNIFORM), "give --rows"),
        ((*RANGE, "--simulate", UNIFORM, "--out", "c.json"), "leave --out out"),
        ((*RANGE, "--aggregate", "mean", "--prior-population", UNIFORM), "is for candidates"),
        ((*RANGE, "--prior-population", "wards.csv"), "the first row of the private one"),
    ],
)
def test_bad_use_ends_with_2_before_anything_is_charged(run, tmp_path, words, said):
    """What is wrong is named in the words of the command line."""
    (tmp_path / "wards.csv").write_text("ward,stay\n1,2\n")
    book = f"sqlite:///{tmp_path}/budget.db"
    with hs.Ledger(book) as ledger:
        ledger.open_budget("stays", hs.Guarantee(epsilon=50.0))
    free = "--key" in words or "--simulate" in words
    charged = () if free else ("--ledger", book, "--budget", "stays")
    result = run("blocks", "stays.csv", "f.py:stay", "--header", *words, *SURE, *charged, "--json")
    assert result.returncode == 2, result.stdout
    assert said in error_of(result)
    with hs.Ledger(book) as ledger:
        assert ledger.balance("stays").spent.epsilon == 0.0


@pytest.mark.parametrize("option", ["--simulate", "--prior-population"])
@pytest.mark.parametrize("more", [(), ("--rows", 40)])
@pytest.mark.parametrize("source", ["stays.csv", "link.csv", "hard.csv"])
def test_private_rows_are_no_public_population(run, tmp_path, option, more, source):
    """Errors and guesses from them would tell of them: it is the same file, under any name."""
    (tmp_path / "link.csv").symlink_to(tmp_path / "stays.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "stays.csv")
    result = run(*STAYS, *SURE, option, source, "--promise", "table", *more, "--json")
    assert result.returncode == 1
    assert "holds the private rows" in error_of(result)


def test_a_simulation_refuses_a_ledger(run):
    """So that nobody thinks that it was charged."""
    result = run(*STAYS, *SURE, "--simulate", UNIFORM, "--ledger", "sqlite:///b.db", "--json")
    assert result.returncode == 2
    assert "leave --ledger out" in error_of(result)


@pytest.mark.parametrize("command", ["blocks", "compare", "release"])
def test_a_simulator_that_leaves_is_told_as_such(tmp_path, command):
    """Code of the user's that ends the program is refused, and is no failure of ours."""
    (tmp_path / "f.py").write_text(
        "import sys\n\ndef leave(rng, count): sys.exit(0)\n\ndef mean(rows): return 0.0\n"
    )
    (tmp_path / "rows.csv").write_text("x\n" + "0.5\n" * 60)
    rows, leave, mean = (f"{tmp_path}/{name}" for name in ("rows.csv", "f.py:leave", "f.py:mean"))
    words = {
        "blocks": [rows, mean, "--header", "--simulate", leave, "--in-process"],
        "compare": ["median", "--population", leave, "--rows", "9", "--trials", "5"],
        "release": [rows, mean, "--header", "--population", leave, "--frame", "pandas"],
    }[command]
    ends = [] if command == "release" else ["--low", "0", "--high", "1"]
    done = ended(command, *words, *ends, "--epsilon", "9", cwd=tmp_path)
    assert done.returncode == 2
    assert "the population raised SystemExit" in done.stderr


def test_a_simulation_deals_whole_people(run, tmp_path):
    """As the release does: rows of one person that are apart would be another question."""
    lines = [f"Q{person},{person + visit}" for person in range(300) for visit in range(4)]
    (tmp_path / "people.csv").write_text("\n".join(["person,cost", *lines]) + "\n")
    (tmp_path / "each.py").write_text(
        "def each(rows):\n    return float(len(rows) / rows['person'].nunique())\n"
    )
    words = ("blocks", "people.csv", "each.py:each", "--frame", "pandas", "--low", 0, "--high", 10)
    (tmp_path / "public.csv").write_text((tmp_path / "people.csv").read_text().replace("Q", "P"))
    asked = ("--user", "person", "--rows", 60, "--epsilon", 4, "--trials", 1, "--in-process")
    record = record_of(run(*words, *asked, "--simulate", "public.csv", "--json"))["simulation"]
    assert (record["unit"], record["rows"]) == ("user", 60)
    assert record["error_of_blocks"] < 0.1  # candidates are a tenth apart
