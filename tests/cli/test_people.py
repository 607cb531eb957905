"""People with several rows, from the command line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from hushed.cli import app

SCRIPT = """
import numpy as np
import hushed as hs

people = hs.populations.Users(hs.populations.Uniform(low=0, high=1), sizes={1: 0.6, 5: 0.4})


def capped(rows):
    totals = np.bincount(rows[:, 0].astype(int), weights=rows[:, 1])
    return np.minimum(totals, 2).mean()

"""


def write_visits(path, count, start):
    """A table of visits of so many patients, who have texts for names."""
    rng = np.random.default_rng(start)
    sizes = rng.choice([1, 5], size=count)
    owners = rng.permutation(np.repeat(np.arange(count), sizes))
    cells = [
        f"nr {start + each},{cost!r}"
        for each, cost in zip(owners, rng.random(len(owners)).tolist(), strict=True)
    ]
    path.write_text("\n".join(["patient,cost", *cells]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the script and two tables of people."""
    (tmp_path / "f.py").write_text(SCRIPT)
    write_visits(tmp_path / "private.csv", 12, 5000)
    write_visits(tmp_path / "public.csv", 19 * 13, 0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    """Exit code and JSON of a command."""
    done = CliRunner().invoke(app, [*arguments, "--json"])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize("population", ["public.csv", "f.py:people"])
def test_people_of_a_file_are_released_and_verified(folder, population):
    """Texts name people in an array, too; the certificate is for users, and is reproduced."""
    given = ["f.py:capped", "--population", population, "--user", "patient"]
    given += ["--gamma", "0.05", "--calibration", "marginal"]
    code, released = run("release", "private.csv", *given, "--epsilon", "1", "--out", "c.json")
    assert (code, released["certificate"]["guarantee"]["unit"]) == (0, "user")
    assert released["certificate"]["sampling"]["rows"] == 12
    assert released["certificate"]["sampling"]["user"] == 0
    code, found = run("verify", "c.json", "f.py:capped", "--population", population)
    assert (code, found["agreement"]) == (0, "bits")


def test_a_sensitivity_for_people_counts_people(folder):
    """--rows are people with --user; a column that is not there is refused by name."""
    given = ["sensitivity", "f.py:capped", "--population", "public.csv", "--rows", "12"]
    code, found = run(*given, "--user", "patient", "--pairs", "19")
    assert (code, found["unit"], found["rows"]) == (0, "user", 12)
    code, _ = run(*given, "--pairs", "19")
    assert code == 2  # texts are no numbers, where nobody said that they are names
    code, found = run(*given, "--pairs", "19", "--user", "doctor")
    assert code == 2
    assert "'doctor'" in found["error"]["message"]


def test_a_law_of_people_without_a_column_is_refused(folder):
    """It says which option is missing."""
    code, found = run("sensitivity", "f.py:capped", "--population", "f.py:people", "--rows", "12")
    assert code == 2
    assert "--user" in found["error"]["message"]
    given = ["private.csv", "f.py:capped", "--population", "f.py:people", "--epsilon", "1"]
    code, found = run("release", *given)
    assert code == 2
    assert "name their column by --user" in found["error"]["message"]


def test_a_budget_of_people_takes_releases_of_people_as_it_says(folder):
    """What the command that opens it says of releases is what a release then meets."""
    words = ["ledger", "open", "sqlite:///b.db", "b", "--epsilon", "2", "--gamma", "0.1"]
    opened = CliRunner().invoke(app, [*words, "--unit", "user"])
    assert opened.exit_code == 0
    assert "takes releases with --user, and no charge of hushed query" in opened.stderr
    given = ["f.py:capped", "--population", "f.py:people", "--calibration", "marginal"]
    given += ["--user", "patient", "--ledger", "sqlite:///b.db", "--budget", "b", "--epsilon", "1"]
    code, released = run("release", "private.csv", *given)
    assert (code, released["certificate"]["guarantee"]["unit"]) == (0, "user")


def test_places_of_people_are_counted_from_one_in_messages_too(folder):
    """Another column than the law of people writes is refused in the words of the option."""
    given = ["sensitivity", "f.py:capped", "--population", "f.py:people", "--rows", "12"]
    code, found = run(*given, "--user", "3")
    assert (code, found["error"]["message"]) == (
        2,
        "--user '3' is column 3, and the population gives people in column 1",
    )


def test_a_law_of_people_that_is_missing_is_named_as_it_has_no_name(folder):
    """Verifying without it says which kind it is, and no name None."""
    own = "people = hs.populations.Users(lambda rng: rng.random(rng.integers(1, 5)))"
    (folder / "f.py").write_text(SCRIPT + own)
    given = ["f.py:capped", "--population", "f.py:people", "--user", "patient", "--gamma", "0.5"]
    code, _ = run("release", "private.csv", *given, "--epsilon", "1", "--out", "c.json")
    assert code == 0
    code, found = run("verify", "c.json", "f.py:capped")
    assert code == 2
    assert "names its population (users) but does not" in found["error"]["message"]


def test_whether_a_population_of_people_fits(folder):
    """The column by its name; without it a law of people is refused in the words of the option."""
    given = ["check-population", "private.csv", "--population", "f.py:people", "--epsilon", "5"]
    code, found = run(*given, "--tables", "19", "--user", "patient")
    assert code == (found["verdict"] == "contradicted")
    assert (found["user"], found["rows"]) == (0, 12)
    assert found["certificate"]["guarantee"]["unit"] == "user"
    code, found = run(*given, "--tables", "19")
    assert code == 2
    assert "name their column by --user" in found["error"]["message"]


def test_routes_for_people_are_compared(folder):
    """The column by its place for a law; a statistic has one row for each unit."""
    given = ["--population", "f.py:people", "--rows", "12", "--user", "1", "--gamma", "0.3"]
    code, found = run("compare", "f.py:capped", *given, "--trials", "2")
    assert code == 0
    assert {each["guarantee"]["unit"] for each in found["comparison"]["routes"]} == {"user"}
    code, found = run("compare", "median", *given, "--low", "0", "--high", "1")
    assert (code, found["error"]["kind"]) == (2, "bad-use")


@pytest.mark.parametrize("verb", ["release", "check-population"])
def test_a_column_that_no_public_name_has_is_asked_for_by_place(folder, verb):
    """It was said to have "1 to 2"; the names of a private file without a public header are not."""
    words = ["private.csv", "f.py:capped"][: 1 + (verb == "release")]
    given = ["--population", "f.py:people", "--user", "patent", "--epsilon", "1"]
    code, told = run(verb, *words, *given)
    assert code == 2
    said = told["error"]["message"]
    assert "has no column 'patent'; say it by its place, 1 to 2, or by the name" in said
    assert "cost" not in said
