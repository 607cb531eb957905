"""A parameter that is refused deep in the library is called by its option on the command line."""

import pytest
from typer.testing import CliRunner

from hushed.cli import app

SENSITIVITY = ["sensitivity", "f.py:f", "--population", "uniform:0,1"]
COST = ["cost", "--beta", "0.05", "--budget", "300000"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a function."""
    (tmp_path / "f.py").write_text("def f(rows):\n    return rows.mean()\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*SENSITIVITY, "--rows", "9", "--gamma", "2"], "--gamma must be a number in (0, 1)"),
        ([*SENSITIVITY, "--rows", "1"], "--rows must be an integer of 2 or more"),
        ([*SENSITIVITY, "--rows", "9", "--pairs", "0"], "--pairs must be 1 or more"),
        ([*SENSITIVITY, "--rows", "9", "--seed", "-1"], "--seed must be an integer of 0 or more"),
        ([*COST, "--error", "-2", "--per-person", "5500", "--people", "100"], "--error must be"),
        ([*COST, "--error", "2", "--per-person", "5500", "--people", "0"], "--people must be"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_option_is_named(arguments, told):
    """The message begins with the option as it is typed."""
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert told in done.stderr
