"""Other neighbours than one replaced row, on the command line."""

import json

import pytest
from typer.testing import CliRunner

from hushed.cli import app

FUNCTIONS = """
def mean(rows):
    return rows.mean()

def first(rows):
    return float(rows[0, 0])

def rare(rows):
    return 50.0 * (rows.max() > 0.999) + rows.mean()

def draw(rng, count):
    return rng.random((count, 1))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Functions, a simulator, and tables of 3 and of 23 private rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FUNCTIONS)
    for rows in (3, 23):
        cells = "\n".join(str(i / 23) for i in range(rows))
        (tmp_path / f"{rows}.csv").write_text(f"age\n{cells}\n")


def run(*words):
    return CliRunner().invoke(app, [*words, "--workers", "1"])


MEASURE = ["sensitivity", "f.py:mean", "--population", "uniform:0,1"]
RELEASE = ["f.py:mean", "--population", "f.py:draw", "--epsilon", "1", "--gamma", "0.2"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        (["--neighbours", "add-remove"], 0.01, 0.04),
        (["--rows", "21", "--neighbours", "add-remove"], 0.01, 0.04),
        (["--distance", "3"], 0.05, 0.15),
        (["--position", "worst"], 0.02, 0.05),
        (["--protect", "table", "--monotone"], 0.04, 0.05),
        (["--protect", "table", "--values", "0", "--values", "0.9"], 0.03, 0.05),
    ],
)
def test_sensitivities(options, least, most):
    """A mean of twenty rows moves about as far as each kind of neighbour allows."""
    done = run(*MEASURE, "--rows", "20", "--gamma", "0.2", "--json", *options)
    assert done.exit_code == 0, done.stderr
    assert least < json.loads(done.stdout)["sensitivity"] < most


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("rows", [3, 23])
def test_a_release_under_add_remove_tells_no_number_of_rows(rows):
    """Tables of 3 and of 23 rows are released under the same certificate, which is verified."""
    options = ["--neighbours", "add-remove", "--rows", "9", "--rows", "10", "--symmetric"]
    done = run(
        "release", f"{rows}.csv", "--header", *RELEASE, *options, "--out", "c.json", "--json"
    )
    assert done.exit_code == 0, done.stderr
    certificate = json.loads(done.stdout)["certificate"]
    assert certificate["sampling"]["sizes"] == [9, 10]
    assert certificate["sampling"]["rows"] == 10
    assert str(rows) not in json.dumps(certificate["sampling"]["sizes"])
    again = run("verify", "c.json", "f.py:mean", "--population", "f.py:draw")
    assert again.exit_code == 0, again.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--neighbours", "add-remove"], "the number of rows is private: give public numbers"),
        (["--rows", "22"], "the table has 23 rows, and --rows says 22"),
        (["--distance", "30"], "--distance must be a whole number from 1 to rows - 1 = 22"),
        (["--protect", "table"], "give values, the public rows"),
    ],
)
def test_what_does_not_go_together_is_refused(words, told):
    """Before anything is drawn, with what to give instead."""
    done = run("release", "23.csv", "--header", *RELEASE, *words)
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.usefixtures("folder")
def test_remarks_are_printed():
    """Little moves, a jump that is not covered, and places left out; none where all is well."""
    rare = ["sensitivity", "f.py:rare", "--population", "uniform:0,1", "--rows", "30"]
    done = run(*rare, "--pairs", "300", "--gamma", "0.1")
    assert "Little moves" in done.stderr
    assert "A jump was seen" in done.stderr
    assert "leaves room for 3 whole places among 30" in done.stderr
    assert json.loads(run(*rare, "--pairs", "300", "--gamma", "0.1", "--json").stdout)["remarks"]
    assert not run(*MEASURE, "--rows", "30", "--symmetric").stderr


@pytest.mark.usefixtures("folder")
def test_budgets_for_several_rows_at_once():
    """A budget says how many rows at once it is for, and takes charges for so many."""
    CliRunner().invoke(
        app, ["ledger", "open", "sqlite:///l.db", "b", "--epsilon", "5", "--distance", "3"]
    )
    charge = ["ledger", "charge", "sqlite:///l.db", "b", "--epsilon", "1"]
    done = CliRunner().invoke(app, charge)
    assert done.exit_code == 0, done.stderr
    assert "unit 3 rows at once" in done.stdout
    refused = CliRunner().invoke(app, [*charge, "--distance", "1"])
    assert refused.exit_code == 2
    assert "replaced at once" in refused.stderr
