"""Verbs with `workers`, in Python and as commands, answer on a cluster as they do here."""

import re
import shutil
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest
from tests.clusters import SOURCE, Cluster, needs_dask
from tests.commands import ended

import hushed as hs
from hushed._functions._trials import run_trials
from hushed.errors import EngineUnavailable

pytestmark = [needs_dask, pytest.mark.slow]
UNIT = hs.populations.Uniform(low=0, high=1)
FUNCTION = """
import os
import numpy as np

def spread(rows):
    with open({path!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    return float(np.max(rows) - np.mean(rows))
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("dask"), workers=3)
    yield found
    found.close()


def spread(rows):
    return rows.max() - rows.mean()


def draws(generators):
    return np.array([g.random(2) for g in generators])


def test_verify_repeats_a_sampling_on_three_workers(three, tmp_path):
    """What one process sampled is reproduced there, bit for bit."""

    def middle(rows):
        return np.median(rows)

    s = hs.sample_sensitivity(middle, UNIT, rows=15, gamma=0.2, workers=1)
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("rows", hs.Guarantee(epsilon=1.5, gamma=0.3))
        given = {"ledger": ledger, "budget": "rows"}
        mechanism = hs.Laplace(s, epsilon=1.0)
        certificate = hs.release(middle, np.linspace(0, 1, 15), mechanism, **given).certificate
    assert hs.verify(certificate, middle, workers=three.address).reproduced
    assert not hs.verify(certificate, spread, workers=three.address).reproduced


def test_compare_finds_the_same_on_three_workers(three):
    """All routes, promises and errors."""
    asked = {"rows": 20, "epsilon": 1.0, "gamma": 0.2, "trials": 20}
    here = hs.compare(spread, UNIT, workers=1, **asked)
    assert str(hs.compare(spread, UNIT, workers=three.address, **asked)) == str(here)


def test_likelihood_ranges_are_the_same_on_three_workers(three):
    """Value and all draws."""

    def likelihood(rows, candidates):
        return -((np.ravel(rows)[:, None] - np.ravel(candidates)[None, :]) ** 2).sum(axis=0)

    asked = {"rows": 5, "pairs": 200}
    grid = np.linspace(0, 1, 4)
    here = hs.sample_likelihood_range(likelihood, grid, UNIT, workers=1, **asked)
    there = hs.sample_likelihood_range(likelihood, grid, UNIT, workers=three.address, **asked)
    assert np.array_equal(there.draws, here.draws)
    assert there.value == here.value


def test_the_zoo_is_judged_the_same_on_three_workers(three, tmp_path):
    """The command prints the table of one process, but for the seconds."""
    words = ("audit", "zoo", "--samples", 33_000, "--workers")
    here, there = (ended(*words, workers, cwd=tmp_path) for workers in (1, three.address))
    assert here.returncode == there.returncode == 0, there.stderr
    assert "certified" in here.stdout
    tables = [re.sub(r" +[\d.]+ s$", "", each.stdout, flags=re.M) for each in (here, there)]
    assert tables[0] == tables[1]


def test_a_command_with_an_address_runs_on_its_workers(three, tmp_path):
    """The same words as with one process, and functions are called in processes of the cluster."""
    (tmp_path / "f.py").write_text(FUNCTION.format(path=str(tmp_path / "calls")))
    (tmp_path / "p.csv").write_text("x\n" + "\n".join(str(k / 1000) for k in range(1000)))
    said = []
    for workers in (1, three.address):
        words = ("sensitivity", "f.py:spread", "--population", "p.csv", "--rows", 5, "--pairs", 99)
        done = ended(*words, "--workers", workers, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert len(set((tmp_path / "calls").read_text().split())) >= 2


def test_a_worker_with_other_source_code_is_refused(tmp_path):
    """A copy of hushed in which one comment was changed; the worker lives on."""
    copy = tmp_path / "other" / "hushed"
    shutil.copytree(Path(SOURCE) / "hushed", copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "_types.py").open("a") as file:
        file.write("# changed\n")
    cluster = Cluster(tmp_path, workers=0)
    try:
        worker = cluster.add(nanny=False, PYTHONPATH=str(copy.parent))
        with pytest.raises(EngineUnavailable, match=r"worker tcp://.*has other source code"):
            run_trials(draws, 20, seed=3, workers=cluster.address)
        assert worker.poll() is None
    finally:
        cluster.close()


def _find_other_python():
    """Another minor version of Python on this machine, or None."""
    minor = sys.version_info.minor
    names = [f"python3.{each}" for each in (12, 13, 14) if each != minor]
    roots = [None, *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    found = [shutil.which(name, path=root) for root in roots for name in names]
    return next((each for each in found if each and ".pyenv/shims" not in each), None)


@pytest.mark.filterwarnings("ignore:Mismatched versions")  # a table of Dask's
@pytest.mark.skipif(_find_other_python() is None, reason="no other Python on this machine")
def test_a_worker_with_another_python_is_refused(tmp_path):
    """A real one, which borrows the packages of this one; no work is sent, and it lives on."""
    cluster = Cluster(tmp_path, workers=0)
    try:
        path = sysconfig.get_path("purelib")
        worker = cluster.add(nanny=False, python=_find_other_python(), PYTHONPATH=path)
        end = time.monotonic() + 30
        while "Registered to" not in cluster.logs() and time.monotonic() < end:
            time.sleep(0.1)
        with pytest.raises(
            EngineUnavailable, match=r"another Python than this process.*\(3\.\d+\)"
        ):
            run_trials(draws, 20, seed=3, workers=cluster.address)
        assert worker.poll() is None
    finally:
        cluster.close()
