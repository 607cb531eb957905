"""The command find-bound: bounds of rows and of users, budgets, refusals."""

from __future__ import annotations

import json

import pytest
from tests.commands import ended

import hushed as hs

SURE = ("--epsilon", 100, "--above", 50)
COST = ("find-bound", "costs.csv", "--column", "cost")


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder: 400 costs, 200 of them -900 and 200 of one patient 700."""
    rows = [f"p{i},-900" for i in range(200)] + ["rich,700"] * 200
    (tmp_path / "costs.csv").write_text("patient,cost\n" + "\n".join(rows) + "\n")
    return lambda *words: ended(*words, cwd=tmp_path)


def record_of(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_the_bound_of_rows_and_its_certificate(run, tmp_path):
    """The first power of 2 with few rows beyond it, on either side; verified."""
    record = record_of(run(*COST, *SURE, "--out", "b.json", "--json"))
    assert record["value"] == 1024.0
    known = hs.Certificate.from_json((tmp_path / "b.json").read_text())
    assert known.guarantee == hs.Guarantee(epsilon=100.0)
    assert run("verify", "b.json").returncode == 0
    assert record_of(run(*COST, *SURE, "--side", "low", "--json"))["value"] == -1024.0
    asked = ("--growth", 10, "--smallest", 1, "--private-count", "--json")
    other = record_of(run(*COST, *SURE, *asked))
    assert other["value"] == 1000.0
    assert other["certificate"]["guarantee"]["neighbours"] == "add-remove"


@pytest.mark.parametrize("column", ["patient", "1"])
def test_users_are_counted_and_not_their_rows(run, column):
    """One patient with 200 high costs is one: the bound stays at its start."""
    record = record_of(run(*COST, *SURE, "--user", column, "--json"))
    assert record["value"] == 2.0**-20
    assert record["certificate"]["guarantee"]["unit"] == "user"


def test_rows_of_nobody_are_users_of_their_own(run, tmp_path):
    """An empty cell names nobody: 80 such rows are 80 users."""
    (tmp_path / "costs.csv").write_text("patient,cost\n" + ",9\n" * 40 + " ,9\n" * 40)
    assert record_of(run(*COST, *SURE, "--user", "patient", "--json"))["value"] == 16.0


def test_rows_of_nobody_in_parquet(run, tmp_path):
    """Missing and not a number name nobody, too."""
    pytest.importorskip("polars").DataFrame(
        {"id": [None, float("nan")] * 40, "cost": [9.0] * 80}
    ).write_parquet(tmp_path / "c.parquet")
    words = ("find-bound", "c.parquet", "--column", "cost", "--user", "id", *SURE, "--json")
    assert record_of(run(*words))["value"] == 16.0


def test_a_budget_is_charged_and_an_answer_kept(run, tmp_path):
    """A key asks once; what does not fit is refused and costs nothing."""
    book = f"sqlite:///{tmp_path}/budget.db"
    with hs.Ledger(book) as ledger:
        ledger.open_budget("costs", hs.Guarantee(epsilon=150.0))
    words = (*COST, *SURE, "--ledger", book, "--budget", "costs", "--json")
    first, again = (record_of(run(*words, "--key", "top")) for _ in range(2))
    assert first == again
    assert run(*words).returncode == 1
    with hs.Ledger(book) as ledger:
        assert ledger.balance("costs").spent.epsilon == 100.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--column", "bed"), "no column 'bed'"),
        (("--user", "bed"), "no column 'bed'"),
        (("--growth", 1), "--growth must be"),
        (("--smallest", 0), "--smallest must be"),
        (("--above", -1), "--above must be"),
        (("--user", "patient", "--unit", "person"), "--unit"),
        (("--key", "k"), "--ledger"),
        (("--out", "costs.csv"), "an input"),
    ],
)
def test_bad_use_ends_with_2(run, words, said):
    """Nothing is released."""
    usual = COST[:2] if "--column" in words else COST
    result = run(*usual, "--epsilon", 1, *words, "--json")
    assert result.returncode == 2
    assert said in json.loads(result.stdout)["error"]["message"]
