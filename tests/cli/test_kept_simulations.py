"""Commands that simulate on public rows keep what they find, and say where they do not."""

import pytest
from tests.commands import ended

import hushed as hs

FUNCTION = "import numpy as np\ndef middle(rows): return float(np.median(rows))\n"


@pytest.mark.slow
def test_commands_keep_simulations(tmp_path):
    """The comparison, the test of a bound and the simulation of blocks; twice the same output."""
    (tmp_path / "f.py").write_text(FUNCTION)
    (tmp_path / "rows.csv").write_text("\n".join(str(k / 40) for k in range(40)) + "\n")
    public = ("--population", "uniform:0,1")
    blocks = (
        "blocks",
        "rows.csv",
        "f.py:middle",
        "--epsilon",
        5,
        "--low",
        0,
        "--high",
        1,
        "--no-header",
        "--columns",
        1,
    )
    commands = (
        ("compare", "f.py:middle", *public, "--rows", 20, "--trials", 4, "--gamma", 0.4),
        ("test-sensitivity", "f.py:middle", *public, "--rows", 5, "--bound", 1, "--pairs", 60),
        (*blocks, "--simulate", "uniform:0,1", "--trials", 3, "--in-process"),
    )
    for number, words in enumerate(commands):
        kept = tmp_path / str(number)
        found = [ended(*words, *more, cwd=tmp_path) for more in ([], *[["--keep", kept]] * 2)]
        assert {each.returncode for each in found} == {0}, found[0].stderr
        assert len({each.stdout for each in found}) == 1
        assert sum(run.kept for run in hs.runs.list_runs(kept)) >= 3


def test_a_release_from_blocks_keeps_nothing(tmp_path):
    """Private rows stay where they are, and what is found on them is not written down."""
    (tmp_path / "f.py").write_text(FUNCTION)
    (tmp_path / "rows.csv").write_text("1\n2\n3\n")
    words = ("blocks", "rows.csv", "f.py:middle", "--epsilon", 5, "--low", 0, "--high", 1)
    for more in (("--keep", "kept"), ("--workers", "dask://127.0.0.1:1")):
        refused = ended(*words, *more, cwd=tmp_path)
        assert refused.returncode == 2
        assert "--workers and --keep go with --simulate" in refused.stderr
    assert not (tmp_path / "kept").exists()


def test_the_zoo_is_kept_on_this_machine_alone(tmp_path):
    """On a cluster a mechanism is one piece of work."""
    refused = ended("audit", "zoo", "--keep", "k", "--workers", "dask://127.0.0.1:1", cwd=tmp_path)
    assert refused.returncode == 2
    assert "worker processes of this machine" in refused.stderr
