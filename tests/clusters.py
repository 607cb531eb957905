"""Real Dask clusters of processes of this machine, for tests; each is killed as a whole."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from tests.commands import ended

import hushed as hs

SOURCE = str(Path(hs.__file__).parents[1])
needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="needs the extra dask"
)


class Cluster:
    """A scheduler and workers, each a process group of its own."""

    def __init__(self, folder, workers=2):
        self.folder, self.parts = folder, []
        file = folder / "scheduler.json"
        self.scheduler = self.start("scheduler", "--port", "0", "--scheduler-file", str(file))
        end = time.monotonic() + 120
        while not (file.exists() and file.stat().st_size) and time.monotonic() < end:
            time.sleep(0.02)
        self.address = json.loads(file.read_text())["address"].replace("tcp://", "dask://")
        self.workers = [self.add() for _ in range(workers)]

    def replace(self):
        """Start a worker in place of one that was killed."""
        self.workers.append(self.add())

    def await_workers(self, count):
        """Wait until so many workers have come to the scheduler."""
        from distributed import Client

        with Client(self.address.replace("dask", "tcp"), set_as_default=False) as client:
            client.wait_for_workers(count, timeout=120)

    @contextlib.contextmanager
    def joined(self, *options, **named):
        """Add a worker that has come to the scheduler, and that is gone from there at the end."""
        from distributed import Client

        name = f"guest-{len(self.parts)}"
        with warnings.catch_warnings():  # of a guest with other packages
            warnings.simplefilter("ignore")
            client = Client(self.address.replace("dask", "tcp"), set_as_default=False)

        def find():
            told = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
            return any(each["name"] == name for each in told.values())

        def wait(there):
            end = time.monotonic() + 120
            while find() is not there and time.monotonic() < end:
                time.sleep(0.05)
            assert find() is there, f"{name} has not {'come' if there else 'gone'}"

        with client:
            process = self.add("--name", name, *options, **named)
            try:
                wait(there=True)
                yield process
            finally:
                kill(process)
                wait(there=False)

    def add(self, *options, nanny=True, python=sys.executable, at=None, host=True, **environment):
        """Start a worker, which knows the scheduler by its address or another one."""
        options = (*options, "--nthreads", "1", "--memory-limit", "0")
        options += ("--nanny" if nanny else "--no-nanny", "--local-directory", str(self.folder))
        at = at or self.address.replace("dask://", "tcp://")
        return self.start("worker", at, *options, python=python, host=host, **environment)

    def start(self, kind, *options, python=sys.executable, host=True, **environment):
        """Start a process of Dask."""
        log = (self.folder / f"{kind}-{len(self.parts)}.log").open("w")
        words = [python, "-m", "distributed.cli.dask_" + kind, *options, "--no-dashboard"]
        process = subprocess.Popen(
            [*words, *(["--host", "127.0.0.1"] if host else [])],
            stderr=log,
            stdout=log,
            env=os.environ | {"PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"} | environment,
            start_new_session=True,
            cwd=Path(__file__).parents[1],
        )
        log.close()
        self.parts.append(process)
        return process

    def logs(self):
        """All that the processes have said."""
        return "".join(each.read_text() for each in self.folder.glob("*.log"))

    def close(self):
        """Kill what is left."""
        for each in self.parts:
            kill(each)


def kill(process):
    """Kill a process, and those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


STOPPED = """
import os, time
import numpy as np

def slow(rows):
    if os.path.exists({hurry!r}):
        with open({hurry!r}, "a") as file:
            file.write(f"{{os.getpid()}} ")
    else:
        time.sleep(0.2)
    return float(np.mean(rows))
"""
HEEDS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
_SLOW = "sensitivity f.py:slow --population uniform:0,1 --rows 5 --pairs {pairs}"


def stop_command(folder, engine, number, pairs=400):
    """Stop a command that keeps its run on an engine, as a terminal does; its code, words, runs."""
    hurry, kept = folder / "hurry", folder / "kept"
    (folder / "f.py").write_text(STOPPED.format(hurry=str(hurry)))
    words = _SLOW.format(pairs=pairs).split()
    call = [sys.executable, "-c", HEEDS + "from hushed.cli import main; main()", *words]
    process = subprocess.Popen(
        [*call, "--workers", engine, "--keep", "kept"],
        env=os.environ | {"PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < end:
            if kept.exists() and any(each.kept > 10 for each in hs.runs.list_runs(kept)):
                break
            time.sleep(0.05)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=120)[1]
    finally:
        kill(process)
    return process.returncode, said, [each.kept for each in hs.runs.list_runs(kept)]


def resume_command(folder, pairs=400):
    """Go on, in this process, with what was stopped; how many calls of the function that saves.

    The answer is that of a run that nothing stopped. What workers were calling when it was
    stopped, they call to its end, and into the same file: their calls are not counted.
    """
    words, answers, called = _SLOW.format(pairs=pairs).split(), [], []
    for kept in (["--keep", "kept"], []):
        (folder / "hurry").write_text("")
        with warnings.catch_warnings():
            warnings.resetwarnings()  # pytest makes errors of them; with that a run is another one
            done = ended(*words, "--workers", 1, *kept, cwd=folder)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
        called.append((folder / "hurry").read_text().split().count(str(os.getpid())))
    assert answers[0] == answers[1] != ""
    return called[1] - called[0]


LATE = {"rows": 5, "pairs": 99, "seed": 12}  # one call of the sampling, in a late trial, fails


def make_picky(folder, words="too small"):
    """Make a function that fails in one late trial of `LATE`, and notes in which process."""

    def picky(rows, note=str(folder / "failed")):
        if rows[0] < 0.004:
            with open(note, "a") as file:
                file.write(f"{os.getpid()}\n")
            raise ValueError(words)
        return rows.mean()

    return picky


def failed_elsewhere(folder):
    """Whether a function of `make_picky` failed last in another process."""
    return (folder / "failed").read_text().split()[-1] != str(os.getpid())
