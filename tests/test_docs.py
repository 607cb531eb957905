"""Every snippet and command in README and docs runs."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path):
    """The Python blocks of a page run one after the other, in a process of their own."""
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=lambda p: p.name)
def test_console_blocks_run(page, tmp_path):
    """The commands of a page run one after the other in a folder with the example files."""
    for example in (ROOT / "examples").iterdir():
        if example.is_file():
            shutil.copy(example, tmp_path)
    commands = [line[2:] for block in blocks(page, "console") for line in block.splitlines()]
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "hushed"
        done = subprocess.run(
            [sys.executable, "-c", "from hushed.cli import main; main()", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


def test_readme_measures_what_it_releases():
    """The sensitivity and release commands of README sample in the same way."""
    lines = [x for block in blocks(ROOT / "README.md", "console") for x in block.splitlines()]
    measured, released = (
        next(shlex.split(line) for line in lines if line.startswith(f"$ hushed {name} "))
        for name in ("sensitivity", "release")
    )
    for option in ("--population", "--gamma", "--seed", "--pairs", "--protect", "--calibration"):
        assert value_of(option, measured) == value_of(option, released)
    assert ("--symmetric" in measured) == ("--symmetric" in released)
    rows = (ROOT / "examples" / "clinic-private.csv").read_text().splitlines()
    assert int(value_of("--rows", measured)) == len(rows) - 1


def value_of(option, words):
    return words[words.index(option) + 1] if option in words else None


def test_links_lead_somewhere():
    """Every link of README to a file of the project is to one that exists."""
    targets = re.findall(r"\]\(([^):]+)\)", (ROOT / "README.md").read_text())
    assert {"docs/pricing.md", "docs/estimators.md", "docs/noise/README.md"} <= set(targets)
    assert all((ROOT / target).is_file() for target in targets)


def test_every_command_is_documented():
    """Each command of the command line appears in README or docs, and has a help text."""
    from hushed.cli import app

    text = "\n".join(page.read_text() for page in PAGES)
    commands = [("", each) for each in app.registered_commands]
    for group in app.registered_groups:
        commands += [(f"{group.name} ", each) for each in group.typer_instance.registered_commands]
    for group, command in commands:
        name = command.name or command.callback.__name__
        assert f"hushed {group}{name}" in text
        assert command.callback.__doc__


def test_readme_names_every_make_target_it_uses():
    """The two commands for a fresh machine exist."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.slow
def test_demo_runs(tmp_path):
    """The demo writes its certificate, its page and its pictures."""
    folder = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {p.name for p in folder.iterdir()} == {
        "certificate.json",
        "certificate.html",
        "movements.svg",
        "movements.png",
    }
