"""Verbs with `workers`, in Python and as commands, answer on a cluster as they do here."""

import os
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
from typer.testing import CliRunner

import hushed as hs
from hushed import zoo
from hushed._functions._trials import run_trials
from hushed.cli import app
from hushed.cli._audit_zoo import judge_all
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


def spread(rows):
    return rows.max() - rows.mean()


def draws(generators):
    return np.array([g.random(2) for g in generators])


def test_verify_repeats_a_sampling_on_three_workers(shared, tmp_path):
    """What one process sampled is reproduced there, bit for bit."""

    def middle(rows):
        return np.median(rows)

    s = hs.sample_sensitivity(middle, UNIT, rows=15, gamma=0.2, workers=1)
    with hs.Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("rows", hs.Guarantee(epsilon=1.5, gamma=0.3))
        given = {"ledger": ledger, "budget": "rows"}
        mechanism = hs.Laplace(s, epsilon=1.0)
        certificate = hs.release(middle, np.linspace(0, 1, 15), mechanism, **given).certificate
    assert hs.verify(certificate, middle, workers=shared.address).reproduced
    assert not hs.verify(certificate, spread, workers=shared.address).reproduced


def test_compare_finds_the_same_on_three_workers(shared):
    """All routes, promises and errors."""
    asked = {"rows": 20, "epsilon": 1.0, "gamma": 0.2, "trials": 20}
    here = hs.compare(spread, UNIT, workers=1, **asked)
    assert str(hs.compare(spread, UNIT, workers=shared.address, **asked)) == str(here)


def test_likelihood_ranges_are_the_same_on_three_workers(shared):
    """Value and all draws."""

    def likelihood(rows, candidates):
        return -((np.ravel(rows)[:, None] - np.ravel(candidates)[None, :]) ** 2).sum(axis=0)

    asked = {"rows": 5, "pairs": 200}
    grid = np.linspace(0, 1, 4)
    here = hs.sample_likelihood_range(likelihood, grid, UNIT, workers=1, **asked)
    there = hs.sample_likelihood_range(likelihood, grid, UNIT, workers=shared.address, **asked)
    assert np.array_equal(there.draws, here.draws)
    assert there.value == here.value


@pytest.fixture
def noted(tmp_path):
    """Give a function that notes in which processes it is called."""
    folder = tmp_path / "processes"
    folder.mkdir()

    def spread(rows, folder=str(folder)):
        open(f"{folder}/{os.getpid()}", "w").close()
        return rows.max() - rows.mean()

    return spread, lambda: {int(each.name) for each in folder.iterdir()}


def test_a_simulation_of_blocks_is_the_same_on_three_workers(shared, noted):
    """Each table is one piece of work, and the function is called in processes of the cluster."""
    function, processes = noted
    made = hs.Blocks(low=0, high=10, epsilon=2.0, blocks=3, aggregate="mean")
    people = hs.populations.Normal(mean=5.0, std=2.0)
    asked = {"trials": 20, "isolated": False}
    here = made.simulate(function, people, 12, workers=1, **asked)
    assert processes() == {os.getpid()}
    assert made.simulate(function, people, 12, workers=shared.address, **asked) == here
    assert len(processes()) > 1
    assert made.simulate(function, people, 12, workers=1, seed=1, **asked) != here


def test_a_declared_bound_is_tested_the_same_on_three_workers(shared, noted):
    """The whole result; and the function is called in processes of the cluster."""
    function, processes = noted
    asked = {"bound": 0.9, "pairs": 300}
    here = hs.test_sensitivity(function, UNIT, 5, workers=1, **asked)
    assert processes() == {os.getpid()}
    there = hs.test_sensitivity(function, UNIT, 5, workers=shared.address, **asked)
    assert there.to_dict() == here.to_dict()
    assert len(processes()) > 1


def test_the_zoo_is_judged_the_same_on_three_workers(shared):
    """Each of the first mechanisms is one piece of work; all but the seconds is that of here."""
    specimens = zoo.specimens(0.1)[:7]
    effort = {"samples": 3000, "confidence": 0.95, "seed": 0, "sequential": False, "keep": None}
    here, there = (
        [
            {key: value for key, value in row.items() if key != "seconds"}
            for row in judge_all(specimens, None, effort | {"workers": workers})
        ]
        for workers in (1, shared.address)
    )
    assert here == there
    assert len(here) == 7
    assert len({row["epsilon_low"] for row in here}) > 1


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


PUBLIC = "--population uniform:0,1"
PAIRS = "--pairs extremes --low 0 --high 1"
COMMANDS = {
    "verify": "verify c.json f.py:spread",
    "compare": f"compare f.py:spread {PUBLIC} --rows 20 --trials 20 --gamma 0.4",
    "test-sensitivity": f"test-sensitivity f.py:spread {PUBLIC} --rows 5 --bound 1 --pairs 60",
    "blocks": "blocks p.csv f.py:spread --epsilon 5 --low 0 --high 1 --header --blocks 3 "
    "--aggregate mean --simulate uniform:0,1 --trials 20 --in-process",
    "audit": f"audit f.py:noisy --batch --claim-epsilon 1 --samples 1000000 {PAIRS} --no-bits",
    "estimate": f"estimate f.py:noisy --batch --epsilon 1 --samples 400000 {PAIRS}",
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_each_command_says_the_same_on_a_cluster(words, shared, tmp_path, monkeypatch):
    """All but the seconds; and functions are called in processes of the cluster."""
    monkeypatch.chdir(tmp_path)
    calls = tmp_path / "calls"
    text = FUNCTION.format(path=str(calls))
    text += "\ndef noisy(rows, rng, size):\n    spread(rows)\n"
    text += "    return sum(rows) + rng.laplace(size=size)\n"
    (tmp_path / "f.py").write_text(text)
    (tmp_path / "p.csv").write_text("x\n" + "".join(f"0.{i}\n" for i in range(10, 30)))
    release = f"release p.csv f.py:spread --header {PUBLIC} --epsilon 1 --pairs 60"
    assert CliRunner().invoke(app, [*release.split(), "--out", "c.json"]).exit_code == 0
    said = []
    for workers in ("1", shared.address):
        calls.write_text("")
        done = CliRunner().invoke(app, [*words.split(), "--workers", workers])
        assert done.exit_code in (0, 1), done.output
        said.append(re.sub(r"[0-9.]+ s(econds)?\b", "seconds", done.stdout))
    assert said[0] == said[1] != ""
    assert set(calls.read_text().split()) - {str(os.getpid())}


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
