"""Public files with missing cells: what becomes of their rows is chosen, and said."""

import json

import pytest
from typer.testing import CliRunner

from hushed.cli import app

FUNCTIONS = """
import numpy as np

def mean(rows):
    return np.nan_to_num(np.nanmean(rows[:, 1]))

def by_city(frame):
    return float((frame["city"] == "Rome").mean())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(FUNCTIONS)
    rows = [f"{20 + (i * 37) % 60},{(i * 91) % 500}" for i in range(40)]
    (tmp_path / "private.csv").write_text("age,income\n" + "\n".join([*rows, "31,"]) + "\n")
    public = [f"{20 + (i * 41) % 60},{(i * 83) % 500}" for i in range(3000)]
    public[3::50] = ["44,"] * 30 + ["44,NA"] * 30
    (tmp_path / "public.csv").write_text("age,income\n" + "\n".join(public) + "\n")
    return tmp_path


RELEASE = ("release", "private.csv", "f.py:mean", "--population", "public.csv", "--gamma", 0.2)


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_the_refusal_names_the_choices(folder):
    """Without a choice nothing is guessed."""
    done = run(*RELEASE, "--epsilon", 1)
    assert done.exit_code == 2
    assert "row 4" in done.stderr
    assert "--missing drop" in done.stderr
    assert "--missing keep" in done.stderr


def test_rows_that_miss_a_cell_are_left_out_and_the_certificate_says_so(folder):
    """The promise is about tables without missing cells, and verify reads the same rows."""
    done = run(*RELEASE, "--epsilon", 1, "--missing", "drop", "--out", "c.json")
    assert done.exit_code == 0, done.stderr
    assert "60 of 3000 rows" in done.stderr
    text = (folder / "c.json").read_text()
    assert "public.csv without rows that miss a cell" in text
    again = ("verify", "c.json", "f.py:mean", "--population", "public.csv")
    assert run(*again, "--missing", "drop").exit_code == 0
    assert run(*again, "--missing", "keep").exit_code == 1


def test_missing_cells_are_kept_for_a_function_that_takes_them(folder):
    """They are NaN to it, as those of private rows are, and all rows are there."""
    done = run(*RELEASE, "--epsilon", 1, "--missing", "keep", "--out", "c.json")
    assert done.exit_code == 0, done.stderr
    assert json.loads((folder / "c.json").read_text())["sampling"]["public_rows"] == 3000


@pytest.mark.slow_cases("pandas")
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_texts_are_dropped_or_none(folder, frame):
    """In a column of texts an empty cell is missing, and NA may be a name."""
    rows = [f"{i},{('Rome', '', 'NA')[i % 3]}" for i in range(300)]
    (folder / "public.csv").write_text("age,city\n" + "\n".join(rows) + "\n")
    words = ("compare", "f.py:by_city", "--population", "public.csv", "--rows", 40)
    words += ("--epsilon", 1, "--frame", frame, "--low", 0, "--high", 1, "--header")
    dropped = run(*words, "--missing", "drop")
    assert dropped.exit_code == 0, dropped.stderr
    assert "100 of 300 rows" in dropped.stderr
    kept = run(*words, "--missing", "keep")
    assert kept.exit_code == 0, kept.stderr


def test_a_statistic_takes_the_rows_that_are_there(folder):
    """Of one column only its own cells count."""
    words = ("compare", "median", "--population", "public.csv", "--column", "income")
    words += ("--rows", 50, "--low", 0, "--high", 500, "--epsilon", 1)
    assert run(*words).exit_code == 2
    done = run(*words, "--missing", "drop")
    assert done.exit_code == 0, done.stderr
    assert "60 of 3000 rows" in done.stderr


@pytest.mark.parametrize("command", ["blocks", "posterior"])
def test_the_choice_is_about_public_rows(folder, command):
    """Private cells that are missing have one way, so a choice without a public file is refused."""
    more = ("--low", 0, "--high", 1) if command == "blocks" else ("--grid", "0:1:5", "--clip", 1)
    done = run(command, "private.csv", "f.py:mean", "--epsilon", 1, *more, "--missing", "drop")
    assert done.exit_code == 2
    assert "--missing is about public rows" in done.stderr


def test_nothing_left_is_refused(folder):
    """A file of rows that all miss a cell has none to draw."""
    (folder / "public.csv").write_text("age,income\n1,\n2,\n")
    done = run(*RELEASE, "--epsilon", 1, "--missing", "drop")
    assert done.exit_code == 2
    assert "leaves none" in done.stderr


def test_a_header_is_seen_above_words_for_missing_numbers(folder):
    """A column of numbers is one where some are missing, however that is written."""
    (folder / "public.csv").write_text("city,age\nRome,NA\nOslo,12\nOslo,\n" + "Rome,13\n" * 60)
    words = ("compare", "median", "--population", "public.csv", "--column", "age", "--rows", 9)
    done = run(*words, "--low", 0, "--high", 50, "--epsilon", 1, "--missing", "drop")
    assert done.exit_code == 0, done.stderr
    assert "2 of 63 rows" in done.stderr


def test_a_choice_without_public_rows_is_refused_by_verify(folder):
    """It would be read by nobody, and seem to have been followed."""
    (folder / "c.json").write_text("{}")
    done = run("verify", "c.json", "f.py:mean", "--missing", "drop")
    assert done.exit_code == 2
    assert "--missing is about public rows and goes with --population" in done.stderr


@pytest.mark.parametrize("first", ["a;b", "1,5;2,5"])
def test_a_public_file_with_semicolons_says_what_separates_cells(folder, first):
    """As spreadsheets write it where numbers have a decimal comma; it told of a number of cells."""
    (folder / "german.csv").write_text(f"{first}\n" + "1,5;2,5\n" * 300)
    done = run("sensitivity", "f.py:mean", "--population", "german.csv", "--rows", 50)
    assert done.exit_code == 2
    assert "separated by semicolons" in done.stderr
    assert "decimal=','" in done.stderr


def test_a_semicolon_in_a_name_separates_nothing(folder):
    rows = (folder / "public.csv").read_text().replace("age,income", "age; in years,income", 1)
    (folder / "named.csv").write_text(rows)
    options = ("--gamma", 0.2, "--missing", "drop")
    done = run("sensitivity", "f.py:mean", "--population", "named.csv", "--rows", 41, *options)
    assert "semicolons" not in done.stderr
    assert done.exit_code == 0, done.stderr
