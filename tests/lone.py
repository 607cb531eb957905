"""Programs with Ray, in tests: each in a network that has loopback alone.

Ray listens on the addresses of the machine.
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


needs_ray = [
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
    def in_this_network():
        found = {}
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{process}/ns/net") == os.readlink("/proc/self/ns/net"):
                    found[int(process)] = open(f"/proc/{process}/comm").read().strip()
            except OSError:
                pass
        return {process: name for process, name in found.items() if process != PARENT}
"""


def alone(words, home, **environment):
    """Run a program with Ray in a network of its own; what it prints."""
    folder = Path(__file__).parents[1]
    found = subprocess.run(
        [*LONE, sys.executable, "-c", textwrap.dedent(BEFORE) + textwrap.dedent(words)],
        env=os.environ
        | {"PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore", "HOME": str(home)}
        | environment,
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return [each[5:] for each in found.stdout.split("\n") if each.startswith("said ")]
