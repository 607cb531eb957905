"""The commands check-population and check-movement: exit codes, figures, budgets, public files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.commands import ended

import hushed as hs

CHECK = ("check-population", "private.csv", "--epsilon", "5", "--tables", "19", "--population")


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder: 150 private rows, and two files of 7,200 public ones."""
    rng = np.random.default_rng(8)

    def write(name, ages, wards):
        lines = [f"{age:.3f},{ward}" for age, ward in zip(ages, wards, strict=True)]
        (tmp_path / name).write_text("age,ward\n" + "\n".join(lines) + "\n")

    write("private.csv", rng.uniform(0, 90, 150), rng.choice(["a", "b"], 150))
    write("like.csv", rng.uniform(0, 90, 7200), rng.choice(["a", "b"], 7200))
    write("unlike.csv", rng.uniform(30, 90, 7200), rng.choice(["a", "b"], 7200))
    return lambda *words: ended(*words, cwd=tmp_path)


@pytest.mark.slow
def test_the_verdict_is_the_exit_code(run, tmp_path):
    """1 for a contradiction, with the words of the report; a figure and the noise's certificate."""
    off = run(*CHECK, "unlike.csv", "--frame", "pandas", "--plot", "fit.svg")
    assert off.returncode == 1
    assert off.stdout.startswith("contradicted (p = ")
    assert "share no row" in off.stdout
    assert "private table" in (tmp_path / "fit.svg").read_text(encoding="utf-8")
    told = run(*CHECK, "unlike.csv", "--frame", "pandas", "--json")
    record = json.loads(told.stdout)
    assert (told.returncode, record["verdict"], record["null"]) == (1, "contradicted", "disjoint")
    assert hs.verify(hs.Certificate.from_json(json.dumps(record["certificate"]))).reproduced


@pytest.mark.slow
def test_a_check_is_charged_and_read_again(run):
    """Under its key it is told again, by the ledger, too, in words."""
    book = ("sqlite:///b.db", "clinic")
    assert run("ledger", "open", *book, "--epsilon", "5").returncode == 0
    paid = ("--frame", "pandas", "--ledger", book[0], "--budget", book[1], "--key", "fit")
    first = run(*CHECK, "like.csv", *paid)
    assert first.stdout == run(*CHECK, "like.csv", *paid).stdout
    assert first.stdout.partition("\n")[2].strip()
    again = run("ledger", "answer", *book, "fit")
    assert again.stdout == first.stdout
    refused = run(*CHECK, "like.csv", *paid[:-2])
    assert (refused.returncode, refused.stdout) == (2, "")


def test_the_private_file_is_no_population_of_its_own_check(run):
    """Thresholds and public shares would be private ones; refused under any spelling, unpaid."""
    book = ("sqlite:///b.db", "clinic")
    assert run("ledger", "open", *book, "--epsilon", "5").returncode == 0
    for spelled in ("private.csv", "./private.csv"):
        paid = ("--frame", "pandas", "--ledger", book[0], "--budget", book[1], "--json")
        refused = run(*CHECK, spelled, *paid)
        assert refused.returncode == 2
        assert "holds the private rows" in json.loads(refused.stdout)["error"]["message"]
    assert "0 charges" in run("ledger", "show", *book).stdout


MOVEMENT = ("check-movement", "private.csv", "f.py:oldest", "--rows", "2", "--gamma", "0.2")


@pytest.mark.slow
def test_how_often_private_tables_move_further_is_the_exit_code(run, tmp_path):
    """1 where far more pairs move than gamma allows; a figure, and an answer in the ledger."""
    (tmp_path / "f.py").write_text("def oldest(rows):\n    return float(rows['age'].max())\n")
    (tmp_path / "calm.py").write_text(
        "import pandas as pd\n\ndef calm(rng, count):\n"
        "    return pd.DataFrame({'age': rng.uniform(40, 41, count), 'ward': 'a'})\n"
    )
    book = ("sqlite:///b.db", "clinic")
    assert run("ledger", "open", *book, "--epsilon", "20").returncode == 0
    paid = ("--ledger", book[0], "--budget", book[1], "--key", "moves", "--epsilon", "9")
    paid += ("--frame", "pandas", "--symmetric")
    off = run(*MOVEMENT, "--population", "calm.py:calm", "--header", *paid, "--plot", "m.svg")
    assert off.returncode == 1, off.stderr
    assert off.stdout.startswith("contradicted (p = ")
    assert "gamma = 0.2" in (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert run("ledger", "answer", *book, "moves").stdout == off.stdout
    like = ("--population", "like.csv", "--frame", "pandas", "--epsilon", "9", "--json")
    fits = run(*MOVEMENT, *like)
    record = json.loads(fits.stdout)
    assert (fits.returncode, record["verdict"], record["pairs"]) == (0, "not contradicted", 50)
    own = run(*MOVEMENT, *like[2:], "--population", "private.csv")
    assert own.returncode == 2
    assert "holds the private rows" in json.loads(own.stdout)["error"]["message"]
