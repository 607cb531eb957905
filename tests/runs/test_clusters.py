"""A run on a cluster is kept where it was started, and goes on when the cluster is gone."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import hushed as hs

pytest.importorskip("distributed")
UNIT = hs.populations.Uniform(low=0, high=1)
WHERE = str(Path(hs.__file__).parents[1]), str(Path(__file__).parents[2])


def sample(workers, keep=None):
    def slow(rows):  # here, so that it travels by value
        time.sleep(0.02)
        return rows.mean()

    return hs.sample_sensitivity(slow, UNIT, rows=5, pairs=150, workers=workers, keep=keep)


@pytest.fixture
def cluster(tmp_path):
    """Give the address of a scheduler with one worker, and its processes."""
    file, env = tmp_path / "scheduler.json", {**os.environ, "PYTHONPATH": os.pathsep.join(WHERE)}
    dask = [sys.executable, "-m", "dask"]
    near = ["--scheduler-file", str(file)]
    started = [
        subprocess.Popen(
            [*dask, *words, *near],
            env=env,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in (
            ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
            ["worker", "--nthreads", "1", "--no-dashboard"],
        )
    ]
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    address = file.read_text().partition('"address": "')[2].partition('"')[0]
    yield f"dask://{address.removeprefix('tcp://')}", started
    for each in started:
        each.kill()
        each.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_lost_scheduler_costs_what_was_on_its_way(cluster, tmp_path):
    """The error says what is kept, and the same call on this machine runs the rest alone."""
    address, (scheduler, _) = cluster
    kept = tmp_path / "kept"

    def stop_once_something_is_kept():
        while sum(run.kept for run in hs.runs.list_runs(kept)) < 20:
            time.sleep(0.1)
        scheduler.send_signal(signal.SIGKILL)

    watching = threading.Thread(target=stop_once_something_is_kept, daemon=True)
    watching.start()
    with pytest.raises((hs.errors.EngineUnavailable, hs.errors.WorkerLost)) as lost:
        sample(address, kept)
    watching.join(timeout=10)
    assert any("of 150 trials are kept in" in note for note in lost.value.__notes__)
    (run,) = hs.runs.list_runs(kept)
    assert 20 <= run.kept < 150
    found = sample(1, kept)
    assert found.sampling.draws.tobytes() == sample(1).sampling.draws.tobytes()
