"""The command audit: what it prints, and with which exit code."""

import json

import pytest
from typer.testing import CliRunner

from hushed.cli import app

MECHANISMS = """
import numpy as np

def responses(rows, rng, size):
    return np.where(rng.random(size) < 0.75, rows[0], 1 - rows[0])

def single(rows, rng):
    return bool(rng.random() < 0.5)
"""

PROGRAM = """
import json, sys
for line in sys.stdin:
    print(json.loads(line)["seed"] % 2, flush=True)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pairs.json").write_text("[[[1, 5], [0, 5]]]")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "--workers", "1"])


COMMON = ("m.py:responses", "--batch", "--pairs", "one below", "--answers", 1, "--samples", 9000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.py:responses", "--claim-epsilon", 1), "say batch=True"),
        ((*COMMON, "--claim-epsilon", 1, "--html", "none/page.html"), "there is no folder"),
        ((*COMMON, "--claim-epsilon", 1, "--html", "m.py"), "an input of this command"),
        (("zoo", "--claim-delta", 0.1, "--html", "p.html"), "leave out --claim-delta, --html"),
    ],
)
def test_what_keeps_an_audit_from_running_is_no_violation(folder, arguments, message):
    """Exit 1 is a verdict; bad use is 2, told before anything runs."""
    done = run(*arguments)
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert "bound expected" not in done.stderr
    assert (folder / "m.py").read_text() == MECHANISMS


def test_verdict_exit_code_and_page(folder):
    """A violation exits 1, with progress on standard error and a page on request."""
    done = run(*COMMON, "--claim-epsilon", 0.5, "--html", "page.html")
    assert done.exit_code == 1, done.stderr
    assert done.stdout.startswith("VIOLATED")
    assert "bound expected" in done.stderr
    page = (folder / "page.html").read_text()
    assert "Audit: violated" in page
    assert "<svg" in page
    assert "http" not in page
    fine = run(*COMMON, "--claim-epsilon", 1.2)
    assert fine.exit_code == 0
    assert fine.stdout.startswith("NOT REFUTED")


@pytest.mark.parametrize("extra", [(), ("--sequential",)])
def test_json_is_one_object(folder, extra):
    """Standard output holds the record and nothing else."""
    done = run(*COMMON, "--claim-epsilon", 0.5, "--json", *extra)
    found = json.loads(done.stdout)
    assert found["verdict"] == "violated"
    assert 0.5 <= found["certified"]["epsilon_low"] <= 1.0987


def test_pairs_from_a_file_and_other_claims(folder):
    """Pairs come from JSON; rho and Renyi claims are understood."""
    shared = ("m.py:responses", "--batch", "--pairs", "pairs.json", "--samples", 5000)
    assert run(*shared, "--claim-rho", 0.1).exit_code == 1
    assert run(*shared, "--claim-epsilon", 5, "--claim-order", 2).exit_code == 0


def test_a_program(folder):
    """A program is run as it is."""
    import sys

    done = run(
        f"{sys.executable} program.py",
        *("--command", "--pairs", "one below", "--samples", 400, "--claim-epsilon", 1),
    )
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("m.py:single",), "one of them"),
        (("m.py:single", "--claim-epsilon", 1, "--pairs", "none.json"), "no file none.json"),
        (("m.py:single", "--claim-epsilon", 1, "--samples", 10), "give at least"),
        (("m.py:none", "--claim-epsilon", 1), "defines no 'none'"),
    ],
)
def test_bad_use(folder, arguments, message):
    """Bad use exits 2 and says what to do."""
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
