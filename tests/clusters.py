"""Real Dask clusters of processes of this machine, for tests; each is killed as a whole."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
        end = time.monotonic() + 30
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
            client.wait_for_workers(count, timeout=60)

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
    time.sleep(0 if os.path.exists({hurry!r}) else 0.2)
    return float(np.mean(rows))
"""
HEEDS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


def stop_command(folder, engine, number, pairs=400):
    """Stop a command that keeps its run on an engine, as a terminal does; its code, words, runs."""
    hurry, kept = folder / "hurry", folder / "kept"
    (folder / "f.py").write_text(STOPPED.format(hurry=str(hurry)))
    words = f"sensitivity f.py:slow --population uniform:0,1 --rows 5 --pairs {pairs}"
    call = [sys.executable, "-c", HEEDS + "from hushed.cli import main; main()", *words.split()]
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
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            if kept.exists() and any(each.kept > 10 for each in hs.runs.list_runs(kept)):
                break
            time.sleep(0.05)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=60)[1]
    finally:
        kill(process)
    hurry.touch()
    return process.returncode, said, [each.kept for each in hs.runs.list_runs(kept)]
