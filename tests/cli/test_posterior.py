"""The command posterior: a draw, its certificate, a budget, refusals."""

import json

import pytest
from tests.commands import ended

import hushed as hs

LIKELIHOOD = """
import numpy as np

def coin(row, p):
    return np.where(row[0] == 1, np.log(p), np.log1p(-p))
"""


@pytest.fixture
def run(tmp_path):
    """Run a command in a folder with 400 coins, 300 of them ones."""
    (tmp_path / "coins.csv").write_text("up\n" + "1\n" * 300 + "0\n" * 100)
    (tmp_path / "f.py").write_text(LIKELIHOOD)
    return lambda *words: ended(
        "posterior", "coins.csv", "f.py:coin", "--header", *words, cwd=tmp_path
    )


def test_a_draw_is_released_with_its_certificate(run, tmp_path):
    """At a large epsilon it is near 3/4; the certificate says the promise, and is verified."""
    done = run(
        "--grid", "0.05:0.95:19", "--clip", "3", "--epsilon", "50", "--out", "c.json", "--json"
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["value"] in [0.7, 0.75, 0.8]
    known = hs.Certificate.from_json((tmp_path / "c.json").read_text())
    assert known.guarantee == hs.Guarantee(epsilon=50.0)
    assert known.sensitivity == pytest.approx(6.0)
    assert hs.verify(known).reproduced


@pytest.mark.parametrize("frame", ["numpy", "pandas"])
@pytest.mark.parametrize("cell", ["secret", "nan", "inf", " "])
def test_no_cell_keeps_a_draw_from_ending(run, tmp_path, frame, cell):
    """It says nothing: that a row is refused would tell what it holds."""
    lines = ["1,1"] * 30 + [f"1,{cell}"]
    (tmp_path / "coins.csv").write_text("other,up\n" + "\n".join(lines) + "\n")
    (tmp_path / "f.py").write_text(LIKELIHOOD.replace("row[0]", "np.asarray(row)[0, 1]"))
    done = run("--grid", "0.1:0.9:5", "--clip", "3", "--epsilon", "1", "--frame", frame)
    told = "no budget is charged: name one by --ledger and --budget\n"
    assert (done.returncode, done.stderr) == (0, told)
    assert "secret" not in done.stdout


@pytest.mark.parametrize(
    ("grid", "clip"),
    [
        ("0.1:0.9", "3"),
        ("-1e308:1e308:3", "3"),
        ("0.9:0.1:5", "3"),
        ("0.1:0.9:1", "3"),
        ("0.1:0.9:5", "0"),
    ],
)
def test_bad_grids_and_clips_are_refused(run, grid, clip):
    """Before a row is read."""
    done = run("--grid", grid, "--clip", clip, "--epsilon", "1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr


def test_a_function_that_fails_on_every_row_costs_nothing(run, tmp_path):
    """It is tried on rows that are made up, or on public ones, before the budget is charged."""
    ended("ledger", "open", "sqlite:///l.db", "b", "--epsilon", "3", cwd=tmp_path)
    words = ["--grid", "0.1:0.9:5", "--clip", "3", "--epsilon", "1"]
    words += ["--ledger", "sqlite:///l.db", "--budget", "b"]
    (tmp_path / "f.py").write_text(LIKELIHOOD.replace("np.log(p)", "np.lok(p)"))
    done = run(*words)
    assert (done.returncode, "fails on every row" in done.stderr) == (1, True), done.stderr
    (tmp_path / "public.csv").write_text("up\n1\n0\n")
    (tmp_path / "f.py").write_text(LIKELIHOOD.replace("row[0]", "[1][int(row[0])]"))
    done = run(*words, "--population", "public.csv")
    assert (done.returncode, "public rows" in done.stderr) == (1, True), done.stderr
    done = run(*words, "--population", "coins.csv")
    assert (done.returncode, "holds the private rows" in done.stderr) == (1, True), done.stderr
    shown = ended("ledger", "show", "sqlite:///l.db", "b", cwd=tmp_path)
    assert "0 charges so far" in shown.stdout


@pytest.mark.slow
def test_a_user_s_rows_are_promised_together(run, tmp_path):
    """However many there are: their log likelihoods are added, and then clipped."""
    rows = "".join(f"p{i // 3},{i % 3 > 0:d}\n" for i in range(300))
    (tmp_path / "coins.csv").write_text("who,up\n" + rows)
    (tmp_path / "f.py").write_text(LIKELIHOOD.replace("row[0]", "np.asarray(row)[0, -1]"))
    for frame in ("numpy", "pandas"):
        done = run(
            *("--grid", "0.05:0.95:19", "--clip", "3", "--epsilon", "40", "--user", "who"),
            *("--frame", frame, "--out", f"{frame}.json", "--json"),
        )
        assert done.returncode == 0, done.stderr
        assert 0.4 <= json.loads(done.stdout)["value"] <= 0.9
        known = hs.Certificate.from_json((tmp_path / f"{frame}.json").read_text())
        assert known.guarantee.unit == "user"
    done = run("--grid", "0.1:0.9:5", "--clip", "3", "--epsilon", "1", "--user", "nobody")
    assert (done.returncode, "no column 'nobody'" in done.stderr) == (2, True), done.stderr


def test_a_certificate_is_not_written_over_the_public_rows(run, tmp_path):
    """They are an input as the private ones are, whatever is said with --force."""
    (tmp_path / "public.csv").write_text("up\n1\n0\n")
    words = ["--grid", "0.1:0.9:5", "--clip", "3", "--epsilon", "1", "--population", "public.csv"]
    done = run(*words, "--out", "public.csv", "--force")
    assert (done.returncode, "is an input of this command" in done.stderr) == (2, True)
    assert (tmp_path / "public.csv").read_text() == "up\n1\n0\n"
