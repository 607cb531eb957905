"""Commands and tests work whatever the folders above them are called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hushed

ROOT = Path(__file__).resolve().parents[2]
NAME = "hushed/src/hushed/cli/it's größer 東京 $HOME; #1/hushed"
FUNCTIONS = "def total(rows): return rows.sum()\ndef breaks(rows): raise ValueError('31337')\n"
BROKEN = (
    "import hushed\n"
    "def broken(*_, **__): raise RuntimeError('31337')\n"
    "hushed.release = broken\n"
    "from hushed.cli import main\n"
    "main()\n"
)
RELEASE = (
    "release",
    "rows.csv",
    "f.py:total",
    "--population",
    "uniform:0,1",
    "--epsilon",
    "1",
    "--header",
)


@pytest.fixture
def folder(tmp_path):
    """A folder of that name with a copy of the package, and a user's files beside it."""
    folder = tmp_path / NAME
    package = Path(hushed.__file__).parent
    shutil.copytree(package, folder / "src" / "hushed")  # what is compiled has no folder in it
    (folder / "f.py").write_text(FUNCTIONS)
    (folder / "rows.csv").write_text("x\n" + "\n".join(f"0.{i}" for i in range(11, 31)) + "\n")
    (folder / "broken.py").write_text(BROKEN)
    return folder


def ran(folder, *words):
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def hushed_in(folder, *words):
    return ran(folder, "-c", "from hushed.cli import main; main()", *words)


@pytest.mark.slow
def test_a_failure_names_the_package_s_own_line(folder):
    """The last line of ours is named, not the user's, although both lie below that folder."""
    done = ran(folder, "broken.py", *RELEASE)
    assert done.returncode == 3
    assert "RuntimeError in _releasing.py, line " in done.stderr
    assert "broken.py" not in done.stderr
    assert "31337" not in done.stderr


@pytest.mark.slow
def test_the_main_commands_work(folder):
    """Release, certificate and page, ledger, verification: with paths below that folder."""
    url = f"sqlite:///{folder / 'b.db'}"
    done = hushed_in(folder, "ledger", "open", url, "b", "--epsilon", "1", "--gamma", "0.5")
    assert done.returncode == 0, done.stderr
    out = ("--out", folder / "c.json", "--html", folder / "c.html")
    paid = ("--ledger", url, "--budget", "b")
    done = hushed_in(folder, *RELEASE, *map(str, out), *paid)
    assert done.returncode == 0, done.stderr
    assert (folder / "b.db").is_file()
    done = hushed_in(folder, "verify", str(folder / "c.json"), f"{folder / 'f.py'}:total")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this copy is no clone")
def test_the_checks_run_in_a_clone_called_hushed(tmp_path):
    """.ci/run hands every step to a clone of what is committed, and leaves nothing."""
    clone, tools, scratch = tmp_path / "a copy", tmp_path / "tools", tmp_path / "scratch"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "remote", "remove", "origin"], cwd=clone, check=True)
    shutil.copy(ROOT / ".ci" / "run", clone / ".ci" / "run")
    tools.mkdir()
    scratch.mkdir()
    make = tools / "make"
    make.write_text('#!/bin/sh\nfor each; do echo "made $each $PWD $(git rev-parse HEAD)"; done\n')
    make.chmod(0o755)
    done = subprocess.run(
        [clone / ".ci" / "run"],
        env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, text=True, check=True
    ).stdout.strip()
    made = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("made ")]
    steps = [each for each in made if not each[0].startswith("--")]
    assert [step for step, _, _ in steps] == [
        ".venv/.dev",
        *("check", "environments"),
        "test",
        "slow",
        *("browser", "spark", "engines", "package"),
    ]
    assert {Path(place).name for _, place, _ in steps} == {"hushed"}
    assert {at for _, _, at in steps} == {head}
    assert not list(scratch.iterdir())
