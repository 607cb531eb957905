"""The command line: what it prints, what it refuses, and with which exit code."""

import json

import pytest
from typer.testing import CliRunner

from hushed.cli import app

CANARY = "987654.321"

FUNCTIONS = """
import numpy as np

def center(rows):
    return np.median(rows[:, 0])

def line(rows):
    return np.array([rows[:, 0].mean(), rows[:, 1].mean()])

def by_name(frame):
    return float(frame["age"].mean())

def fails_on_outliers(rows):
    if rows.max() > 900_000:
        raise ValueError(f"cannot handle {rows.max()}")
    return rows.mean()

def simulate(rng, count):
    return rng.uniform(20, 80, size=(count, 2))

def counts(rows):
    return np.histogram(rows[:, 0], bins=[0, 40, 60, 100])[0].astype(float)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FUNCTIONS)
    rows = [f"{20 + (i * 37) % 60},{1000 + (i * 91) % 500}" for i in range(120)]
    (tmp_path / "private.csv").write_text("age,income\n" + "\n".join(rows) + "\n")
    public = [f"{20 + (i * 41) % 60}.5,{1000 + (i * 83) % 500}" for i in range(90)]
    (tmp_path / "public.csv").write_text("age,income\n" + "\n".join(public) + "\n")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def refused(*arguments, code):
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    return done.stderr


RELEASE = ("release", "private.csv", "f.py:line", "--population", "public.csv", "--epsilon", 1)


class TestSensitivity:
    def test_json_is_one_object_and_nothing_else(self, folder):
        """Standard output holds one JSON object with the sensitivity and its ranks."""
        done = run(
            "sensitivity", "f.py:center", "--population", "uniform:0,100", "--rows", 50, "--json"
        )
        found = json.loads(done.stdout)
        assert (found["pairs"], found["rank"], found["gamma"]) == (112, 112, 0.05)
        assert 0 < found["sensitivity"] < 100

    @pytest.mark.parametrize(
        "population",
        ["uniform:0,1:5,6", "normal:0,1:2,3", "exponential:1:2", "public.csv", "f.py:simulate"],
    )
    def test_every_kind_of_population(self, folder, population):
        """Ranges, laws, files and simulators can be named; each yields two columns here."""
        done = run("sensitivity", "f.py:line", "--population", population, "--rows", 20)
        assert done.exit_code == 0, done.stderr
        assert "movement 112 of 112" in done.stdout

    def test_missing_function_lists_what_is_there(self, folder):
        """A wrong name is answered with the names that exist."""
        message = refused(
            "sensitivity", "f.py:nope", "--population", "uniform:0,1", "--rows", 9, code=2
        )
        assert "'nope'" in message
        assert "center" in message
        assert "np" not in message.split("defines")[-1].split(", ")

    def test_missing_file_lists_python_files(self, folder):
        """A wrong file is answered with the Python files beside it."""
        message = refused(
            "sensitivity", "g.py:center", "--population", "uniform:0,1", "--rows", 9, code=2
        )
        assert "f.py" in message

    @pytest.mark.parametrize(
        ("population", "word"),
        [
            ("uniform:0", "2 number"),
            ("uniform:1,x", "no number"),
            ("uniform:3,1", "low must not exceed"),
            ("nowhere.csv", "no such file"),
        ],
    )
    def test_bad_population(self, folder, population, word):
        """What is wrong with a population is said, with exit code 2."""
        message = refused(
            "sensitivity", "f.py:center", "--population", population, "--rows", 9, code=2
        )
        assert word in message

    def test_too_few_pairs_says_how_many(self, folder):
        """The number of pairs that suffices is in the message."""
        message = refused(
            *("sensitivity", "f.py:center", "--population", "uniform:0,1", "--rows", 9),
            *("--gamma", 0.05, "--pairs", 100),
            code=2,
        )
        assert "112" in message


class TestRelease:
    def test_value_certificate_and_page(self, folder):
        """The answer, its certificate and a page without outside references are written."""
        done = run(*RELEASE, "--out", "c.json", "--html", "c.html", "--json")
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(found["value"]) == 2
        assert json.loads((folder / "c.json").read_text()) == found["certificate"]
        page = (folder / "c.html").read_text()
        assert "<svg" in page
        assert "src=" not in page
        assert "<link" not in page
        assert "kept: number 112 of 112" in page

    def test_verify_reproduces(self, folder):
        """The certificate reproduces with the same function and not with another."""
        run(*RELEASE, "--out", "c.json")
        same = run("verify", "c.json", "f.py:line", "--population", "public.csv")
        assert same.exit_code == 0
        assert "bit for bit" in same.stdout
        other = run("verify", "c.json", "f.py:center", "--population", "public.csv", "--json")
        assert other.exit_code == 1
        assert json.loads(other.stdout)["reproduced"] is False
        assert "--population" in refused("verify", "c.json", "f.py:line", code=2)

    def test_gaussian_needs_delta_before_any_sampling(self, folder):
        """A missing delta is found at once."""
        message = refused(*RELEASE, "--mechanism", "gaussian", code=2)
        assert "delta" in message

    def test_exponential_releases_an_index(self, folder):
        """A choice is released as the index of the candidate."""
        done = run(
            *("release", "private.csv", "f.py:counts", "--population", "f.py:simulate"),
            *("--epsilon", 5, "--mechanism", "exponential", "--json"),
        )
        assert json.loads(done.stdout)["value"] in (0, 1, 2)

    @pytest.mark.parametrize("frame", ["pandas", "polars"])
    def test_frames(self, folder, frame):
        """A function of named columns gets a frame."""
        done = run(
            *("release", "private.csv", "f.py:by_name", "--population", "public.csv"),
            *("--epsilon", 1, "--frame", frame),
        )
        assert done.exit_code == 0, done.stderr

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--epsilon", 0), ("--epsilon", "nan"), ("--gamma", 1.5), ("--gamma", "nan")],
    )
    def test_numbers_out_of_range(self, folder, option, value):
        """Numbers outside their range are bad use."""
        assert "must" in refused(*RELEASE, option, value, code=2)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("age,income\n30,1\n31,\n", ["'income'", "row 2", "missing"]),
            ("age,income\n30,1\n31,Alice\n", ["'income'", "row 2", "text"]),
            ("age,income\n30,1\n31,nan\n", ["'income'", "row 2", "NaN"]),
            ("age,income\n30,1\n31\n", ["row 2", "1 cells"]),
            ("age,income\n", ["no rows"]),
            ("age,age\n1,2\n", ["twice"]),
        ],
    )
    def test_bad_cells_are_named_without_their_value(self, folder, text, words):
        """Column and row number are named, the value is not."""
        (folder / "private.csv").write_text(text)
        message = refused(*RELEASE, code=2)
        assert all(word in message for word in words)
        assert "Alice" not in message

    def test_other_columns_are_refused(self, folder):
        """Public and private tables must have the same columns in the same order."""
        text = (folder / "public.csv").read_text().replace("age,income", "income,age")
        (folder / "public.csv").write_text(text)
        assert "columns income, age" in refused(*RELEASE, code=2)

    def test_private_rows_as_population(self, folder):
        """The private file as public table is refused unless admitted, and then marked."""
        arguments = [a if a != "public.csv" else "private.csv" for a in RELEASE]
        assert "leaks" in refused(*arguments, code=1)
        done = run(*arguments, "--data-dependent")
        assert done.exit_code == 0
        assert "NOT A PRIVACY GUARANTEE" in done.stdout

    def test_failure_on_private_rows_shows_no_value(self, folder):
        """A function that fails on the private rows is reported by type alone."""
        rows = (folder / "private.csv").read_text().splitlines()
        rows[5] = f"30,{CANARY}"
        (folder / "private.csv").write_text("\n".join(rows))
        arguments = [a if a != "f.py:line" else "f.py:fails_on_outliers" for a in RELEASE]
        done = run(*arguments, "--json")
        assert done.exit_code == 1
        assert "ValueError" in done.stderr
        assert CANARY not in done.output
        assert json.loads(done.stdout)["error"]["type"] == "BadFunction"


def test_released_numbers_are_not_the_exact_ones(folder):
    """Two releases of the same answer differ: there is noise, and it is fresh."""
    values = [json.loads(run(*RELEASE, "--json").stdout)["value"] for _ in range(2)]
    assert values[0] != values[1]
