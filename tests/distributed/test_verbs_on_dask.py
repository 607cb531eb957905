"""Verbs with `workers`, in Python and as commands, answer on a cluster as they do here."""

import shutil
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from tests.clusters import SOURCE, needs_dask
from tests.commands import ended
from tests.verbs import COMMANDS, FUNCTION, MORE_VERBS, VERBS, check_command, check_verb

from hushed._functions._trials import run_trials
from hushed.errors import EngineUnavailable

pytestmark = [needs_dask, pytest.mark.slow]


def draws(generators):
    return np.array([g.random(2) for g in generators])


@pytest.mark.parametrize("verb", VERBS | MORE_VERBS)
def test_a_verb_finds_the_same_on_three_workers(verb, shared, tmp_path):
    """All of it; and the function is called in processes of the cluster."""
    check_verb(verb, shared.address, tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_says_the_same_on_a_cluster(command, shared, tmp_path):
    """All but the seconds; and functions are called in processes of the cluster."""
    check_command(command, shared.address, tmp_path)


def test_a_command_with_an_address_runs_on_its_workers(shared, tmp_path):
    """The same words as with one process, and functions are called in processes of the cluster."""
    (tmp_path / "f.py").write_text(FUNCTION.format(path=str(tmp_path / "calls")))
    (tmp_path / "p.csv").write_text("x\n" + "\n".join(str(k / 1000) for k in range(1000)))
    said = []
    for workers in (1, shared.address):
        words = ("sensitivity", "f.py:spread", "--population", "p.csv", "--rows", 5, "--pairs", 99)
        done = ended(*words, "--workers", workers, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert len(set((tmp_path / "calls").read_text().split())) >= 2


def test_a_worker_with_other_source_code_is_refused(shared, tmp_path):
    """A copy of hushed in which one comment was changed; the worker lives on."""
    copy = tmp_path / "other" / "hushed"
    shutil.copytree(Path(SOURCE) / "hushed", copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "_ground" / "types.py").open("a") as file:
        file.write("# changed\n")
    with shared.joined(nanny=False, PYTHONPATH=str(copy.parent)) as worker:
        with pytest.raises(EngineUnavailable, match=r"worker tcp://.*has other source code"):
            run_trials(draws, 20, seed=3, workers=shared.address)
        assert worker.poll() is None


def _find_other_python():
    """Another minor version of Python on this machine, or None."""
    minor = sys.version_info.minor
    names = [f"python3.{each}" for each in (12, 13, 14) if each != minor]
    roots = [None, *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found = [shutil.which(name, path=root) for root in roots for name in names]
    return next((each for each in found if each and ".pyenv/shims" not in each), None)


@pytest.mark.skipif(_find_other_python() is None, reason="no other Python on this machine")
def test_a_worker_with_another_python_is_refused(shared):
    """A real one, which borrows the packages of this one; no work is sent, and it lives on."""
    path, words = sysconfig.get_path("purelib"), r"another Python than this process.*\(3\.\d+\)"
    with shared.joined(nanny=False, python=_find_other_python(), PYTHONPATH=path) as worker:
        with pytest.raises(EngineUnavailable, match=words):
            run_trials(draws, 20, seed=3, workers=shared.address)
        assert worker.poll() is None
