"""Ray gives the bits of one process, survives a killed worker, or says why not.

Ray listens on the addresses of the machine: each test runs in a network that has loopback alone.
"""

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.clusters import SOURCE

LONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def _can_be_alone():
    try:
        return subprocess.run([*LONE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray"),
    pytest.mark.skipif(not _can_be_alone(), reason="no network of its own (needs root and ip)"),
]

BEFORE = """
    import os, signal, sys, threading, time
    import numpy as np, ray
    import hushed as hs
    from hushed._functions._trials import run_trials
    from hushed.errors import BadFunction, WorkerLost
    PARENT = os.getpid()
    def say(*words):
        print("said", *words, flush=True)  # Ray prints lines, too
    UNIT = hs.populations.Uniform(low=0, high=1)
    def draws(generators):
        return np.array([g.random(2) for g in generators])
"""


def alone(words, home, **environment):
    """Run a program with Ray in a network of its own; what it prints."""
    folder = Path(__file__).parents[2]
    found = subprocess.run(
        [*LONE, sys.executable, "-c", textwrap.dedent(BEFORE) + textwrap.dedent(words)],
        env=os.environ
        | {"PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore", "HOME": str(home)}
        | environment,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return [each[5:] for each in found.stdout.split("\n") if each.startswith("said ")]


def test_ray_gives_the_bits_of_one_process(tmp_path):
    """Value and all draws, on a cluster that the word starts and ends, and nothing is reported."""
    said = alone(
        """
        def spread(rows):
            return rows.max() - rows.mean()
        asked = dict(rows=20, calibration="marginal", pairs=300)
        here = hs.sample_sensitivity(spread, UNIT, workers=1, **asked)
        there = hs.sample_sensitivity(spread, UNIT, workers="ray", **asked)
        say(np.array_equal(there.draws, here.draws), there.value == here.value)
        say(ray.is_initialized(), os.environ["RAY_USAGE_STATS_ENABLED"])
        """,
        tmp_path,
    )
    assert said == ["True True", "False 0"]


def test_errors_and_deaths_on_a_cluster_of_the_caller(tmp_path):
    """The function's error is itself; one death is made up for; a deadly function is given up."""
    said = alone(
        """
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        def picky(rows):
            if rows[0] < 0.2:
                raise ValueError("too small")
            return rows.mean()
        found = []
        for workers in (1, "ray"):
            try:
                hs.sample_sensitivity(picky, UNIT, rows=5, pairs=99, workers=workers, seed=8)
            except BadFunction as error:
                found.append((str(error), repr(error.__cause__)))
        say(len(found), found[0] == found[1])

        import tempfile
        mark = os.path.join(tempfile.mkdtemp(dir=os.environ['HOME']), "struck")
        def dying_once(generators):
            if os.getpid() != PARENT and not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.01)
            return draws(generators)
        got = run_trials(dying_once, 60, seed=3, workers="ray")
        say(os.path.exists(mark), np.array_equal(got, run_trials(draws, 60, seed=3, workers=1)))

        def deadly(generators):
            if os.getpid() != PARENT:
                os._exit(1)
            return draws(generators)
        try:
            run_trials(deadly, 100, seed=3, workers="ray")
        except WorkerLost as error:
            say(error)
        got = run_trials(draws, 20, seed=3, workers="ray")
        say(np.array_equal(got, run_trials(draws, 20, seed=3, workers=1)), ray.is_initialized())
        """,
        tmp_path,
        RAY_USAGE_STATS_ENABLED="0",
    )
    assert said[0] == "2 True"
    assert said[1] == "True True"
    assert "died again and again at trials 5 to 5 (WorkerCrashedError)" in said[2]
    assert said[3] == "True True"
