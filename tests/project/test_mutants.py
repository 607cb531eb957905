"""Mutants are put into a copy one at a time, and what no test sees is listed."""

import importlib.util
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CODE = """from time import sleep


def least(values, most):
    found = min(values)
    return found if found < most else most


def wait():
    while False:
        sleep(1)
"""
TESTS = """from code_here import least, wait


def test_least():
    wait()
    assert least([3, 1, 2], 9) == 1
"""


@pytest.fixture
def mutants(monkeypatch):
    """Give the module of the tool, which is not installed."""
    spec = importlib.util.spec_from_file_location("mutants_tool", ROOT / "tools" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants_tool", module)
    spec.loader.exec_module(module)
    area = module.Area(files="src/*.py", near=("tests/test_*.py",))
    monkeypatch.setattr(module, "AREAS", {"here": area})
    return module


@pytest.fixture
def checkout(tmp_path):
    """A small project under git, with a file that git ignores."""
    for name, text in {
        "src/code_here.py": CODE,
        "tests/test_here.py": TESTS,
        ".gitignore": "secret\n__pycache__\n",
        "secret": "x",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


@dataclass(frozen=True)
class Changed:
    """One line turned into another."""

    old: str
    new: str
    kind: str = "comparison"
    file: str = "src/code_here.py"
    line: int = 1

    def mutated(self, source):
        return source.replace(self.old, self.new) if self.old in source else None


def sample(mutants, *changes):
    rng = random.Random(0)
    return mutants.draw_sample(changes, {"src/code_here.py": CODE}, "here", 9, rng)


@pytest.mark.slow
def test_seen_faults_are_killed_and_the_others_survive(mutants, checkout):
    """A test that fails and one that never ends kill; a fault that no test asks about survives."""
    before = {p: p.read_bytes() for p in checkout.glob("[!.]*/*.py")}
    changes = {
        "seen": Changed("min(values)", "max(values)", "other side"),
        "endless": Changed("while False", "while True", "logic"),
        "unseen": Changed("found < most", "found <= most"),
    }
    with mutants.copied(checkout) as copy:
        assert not (copy / "secret").exists()
        found = list(mutants.judge(sample(mutants, *changes.values()), copy, sys.executable, 15))
        assert (copy / "src/code_here.py").read_text() == CODE
    seen_by = {each.mutant.kind: each.seen_by for each in found}
    assert seen_by["other side"] == "tests/test_here.py::test_least"
    assert seen_by["logic"].startswith("the limit of")
    assert seen_by["comparison"] == ""
    assert not copy.exists()
    assert {p: p.read_bytes() for p in before} == before
    told = mutants.report(found, seed=4)
    assert "| here | 3 | 2 | 1 |" in told
    assert "-    return found if found < most else most\n+    return found if found <= most" in told
    assert "max(values)" not in told


@pytest.mark.slow
def test_tests_that_fail_anyway_are_no_judges(mutants, checkout):
    """Without a mutant the tests must pass, else every mutant would count as seen."""
    (checkout / "tests" / "test_here.py").write_text("def test_broken():\n    assert False\n")
    with mutants.copied(checkout) as copy:
        judged = mutants.judge(sample(mutants, Changed("min", "max")), copy, sys.executable, 15)
        with pytest.raises(SystemExit, match=r"fail without a mutant.*test_broken"):
            list(judged)


def test_a_sample_is_even_over_kinds_and_repeats(mutants):
    """Equal seeds draw equal mutants, from each kind alike; what changes nothing is left out."""
    many = [Changed("min", f"max{i}", "number", line=i) for i in range(50)]
    few = [Changed("found", "lost", "left out", line=99), Changed("absent", "x", "flow")]
    drawn = [
        mutants.draw_sample([*many, *few], {"src/code_here.py": CODE}, "here", 4, random.Random(s))
        for s in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(each) for each in drawn] == [4, 4, 4]
    assert all([m.kind for m in each].count("left out") == 1 for each in drawn)
    assert all(m.kind != "flow" for each in drawn for m in each)


def test_every_area_has_files_and_tests(mutants):
    """Patterns of the areas find something in this checkout, of both kinds of tests."""
    spec = importlib.util.spec_from_file_location("fresh_tool", ROOT / "tools" / "mutants.py")
    fresh = importlib.util.module_from_spec(spec)
    sys.modules["fresh_tool"] = fresh
    try:
        spec.loader.exec_module(fresh)
    finally:
        del sys.modules["fresh_tool"]
    for name, area in fresh.AREAS.items():
        for pattern in (area.files, *area.near, *area.far):
            assert list(ROOT.glob(pattern)), (name, pattern)
    assert all((ROOT / each).is_file() for each in fresh.LEFT_ALONE)


def test_an_unknown_area_is_refused(mutants):
    """The refusal names the areas that there are."""
    with pytest.raises(SystemExit, match="no area 'ledgers'; there are here"):
        mutants.main(["ledgers"])
