"""The option ``--keep``, and the commands that show what is kept."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import _keeping, app

SOURCE = str(Path(hs.__file__).parents[1])
SENSITIVITY = "sensitivity f.py:mean --population uniform:0,1 --rows 5 --pairs 100 --workers 1"
FUNCTIONS = """
import os
import time

def mean(rows):
    return rows.mean()

def slow(rows):
    time.sleep(0.01 if os.path.exists("hurry") else 0.5)
    return rows.mean()

def noisy(rows, rng):
    return sum(rows) + rng.laplace()
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a folder with functions in it."""
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text(FUNCTIONS)
    return tmp_path


def run(words, code=0):
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == code, done.output
    return done.output


def listed():
    return json.loads(run("runs list kept --json"))["runs"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (999_499, "999 kB"), (999_500, "1 MB"), (2.5e12, "2.5e+03 GB")],
)
def test_sizes_have_three_digits(size, shown):
    """And none of them a power of ten, short of a thousand gigabytes."""
    assert _keeping._size(size) == shown


def test_what_is_kept_is_listed_and_removed():
    """Key, name, share done and size; nothing is left of what was removed."""
    alone = run(SENSITIVITY)
    assert run(f"{SENSITIVITY} --keep kept") == alone
    (found,) = listed()
    assert (found["name"], found["kept"], found["trials"]) == ("sensitivity of mean", 100, 100)
    assert found["done"]
    shown = run("runs list kept")
    assert found["key"][:8] in shown
    assert "all 100" in shown
    assert shown.startswith("1 run, ")
    assert run(f"{SENSITIVITY} --keep kept") == alone
    assert run(f"runs remove kept {found['key'][:8]}") == "removed 1 run\n"
    assert run("runs list kept") == "no run is kept there\n"


def test_a_release_and_its_verification_keep_apart():
    """Both take the option, and neither takes the trials of the other."""
    Path("rows.csv").write_text("x\n" + "".join(f"0.{i}\n" for i in range(10, 30)))
    release = "release rows.csv f.py:mean --header --population uniform:0,1 --epsilon 1 --pairs 100"
    run(f"{release} --out c.json --keep kept")
    for _ in range(2):
        run("verify c.json f.py:mean --keep kept")
    assert [each["kept"] for each in listed()] == [100, 100]


@pytest.mark.slow
def test_an_audit_and_an_estimate_keep_their_runs():
    """Each stage is a run of its own."""
    pairs = "--pairs extremes --low 0 --high 1 --workers 1"
    run(f"audit f.py:noisy --claim-epsilon 1 --samples 2000 {pairs} --no-bits --keep kept")
    many = len(listed())
    assert many > 1
    run(f"estimate f.py:noisy --epsilon 1 --samples 500 {pairs} --keep kept")
    assert len(listed()) > many


def test_what_is_private_needs_its_own_word():
    """The option says so; alone it means nothing."""
    assert "--keep-private" in run("release --help")
    Path("rows.csv").write_text("x\n0.1\n0.2\n0.3\n")
    release = "release rows.csv f.py:mean --header --population uniform:0,1 --epsilon 1"
    release += " --keep-private"
    assert "says how --keep is meant" in run(release, 2)


def test_a_folder_that_is_none_is_bad_use():
    """The option is named as it was typed."""
    Path("file").touch()
    said = run(f"{SENSITIVITY} --keep file", 2)
    assert "is no folder" in said


@pytest.mark.slow
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_a_command_that_is_stopped_says_what_is_kept(number, workers):
    """It ends with 130 and says how to go on; the same command then runs the rest alone."""
    words = SENSITIVITY.replace("mean", "slow").replace("workers 1", f"workers {workers}").split()
    process = subprocess.Popen(
        [sys.executable, "-m", "hushed", *words, "--keep", "kept"],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not any(
        each.kept for each in (hs.runs.list_runs("kept") if Path("kept").exists() else ())
    ):
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=240)
    Path("hurry").touch()
    assert process.returncode == 130, said
    assert "of 100 trials are kept in" in said
    assert "the same call goes on from there" in said
    (found,) = listed()
    assert 0 < found["kept"] < 100
    run(f"{' '.join(words)} --keep kept")
    assert listed()[0]["done"]


@pytest.mark.slow
def test_a_stop_within_a_string_that_python_runs_ends_with_the_same_code():
    """As while a module makes its dataclasses; the process ended by the signal, for `python -m`."""
    Path("g.py").write_text(
        "def stuck(rows):\n"
        "    exec('import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)')\n"
    )
    words = SENSITIVITY.replace("f.py:mean", "g.py:stuck").split()
    done = subprocess.run(
        [sys.executable, "-m", "hushed", *words],
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (130, "stopped; nothing was released\n")
