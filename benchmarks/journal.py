"""What keeping a run costs, and whether it outlives kills: append, sync and reading of records.

Predicted: an append costs a few plain writes of as many bytes, a sync what the disk makes of it,
and reading a fifth of a second for two million trials, for each record is checked.

With ``--kills N`` a run is killed by signal 9 at N random times and begun again each time; at the
end it must have found what a run in one go finds, bit for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hushed as hs
from hushed.runs._folders import Folder
from hushed.runs._records import read_records, write_record

_RUN = """
import hashlib
import sys
import hushed as hs

def mean(rows):
    return rows.mean()

keep = sys.argv[1] or None
unit = hs.populations.Uniform(low=0, high=1)
s = hs.sample_sensitivity(
    mean,
    unit,
    rows=2000,
    pairs=int(sys.argv[2]),
    symmetric=True,
    workers=int(sys.argv[3]),
    keep=keep,
)
print(hashlib.sha256(s.sampling.draws.tobytes()).hexdigest())
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=0, help="Kill a run so many times.")


def best(work, times):
    """Shortest time of several."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def costs(records):
    """Seconds for each record: appended, plain, synced; and for reading all of them."""
    values = np.random.default_rng(0).random((100, 2))
    content = write_record(0, values)
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name) / "kept")
        folder.prepare(private=False)
        folder.write_facts("ab" * 32, "{}")
        writer = folder.writer("ab" * 32)
        written = best(lambda: write_record(0, values), records)
        begun = time.perf_counter()
        for i in range(records):  # the syncs among them, too
            writer.append(write_record(100 * i, values), 100)
        kept = (time.perf_counter() - begun) / records
        plain = os.open(Path(name) / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        bare = best(lambda: os.write(plain, content), records)

        def write_and_sync():
            os.write(plain, content)
            os.fsync(plain)

        synced = best(write_and_sync, 20)
        os.close(plain)
        writer.close()
    whole = b"".join(write_record(100 * i, values) for i in range(records))
    read = best(lambda: read_records(whole, ""), 3)
    copied = best(lambda: bytes(bytearray(whole)), 3)
    return written, kept, bare, synced, read, copied, len(whole)


def start(keep, pairs, workers):
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, keep, str(pairs), str(workers)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def list_parts(keep):
    return list(Path(keep).glob("*/*/*.part"))


def count_bytes(keep):
    return sum(each.stat().st_size for each in list_parts(keep))


def live(process, keep, share, pause):
    """Wait until a process has kept so many bytes more, and a moment; or has ended before that.

    It is counted and not timed, so that a busy machine, or two processes that take longer to begin,
    get as far as a fast one; the moment falls anywhere between two records, or into one.
    """
    before, parts = count_bytes(keep), len(list_parts(keep))
    while process.poll() is None:
        if len(list_parts(keep)) > parts and count_bytes(keep) >= before + share:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=pause)
            return
        time.sleep(0.01)


def soak(kills, *, seed=0, pairs=60_000):
    """Kill runs at random moments; whether each found what one go finds, and some went on."""
    rng, killed, whole, went_on = random.Random(seed), 0, 0, 0
    expected = start("", pairs, 1).communicate()[0]
    with tempfile.TemporaryDirectory() as name:
        while killed < kills:
            keep = f"{name}/{whole}"
            workers = 1 + whole % 2
            while True:
                process = start(keep, pairs, workers)
                if killed < kills:
                    live(process, keep, rng.uniform(0, 16 * pairs / 4), rng.uniform(0, 0.1))
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                found = process.communicate()[0]
                if process.returncode != -signal.SIGKILL:
                    break
                killed += 1
                went_on += any(0 < run.kept < pairs for run in hs.runs.list_runs(keep))
            (run,) = hs.runs.list_runs(keep)
            if not found or found != expected or not run.done:
                print(f"run {whole} was not what it should be after {killed} kills")
                return False
            whole += 1
            writers = len(list_parts(keep))
            print(
                f"{killed} kills, {whole} runs complete, the last by {writers} writers; after "
                f"{went_on} kills a part was kept",
                flush=True,
            )
    return went_on > 0


def main(*, quick: bool, kills: int) -> None:
    """Print what a record costs; or kill a run."""
    if kills:
        sys.exit(0 if soak(kills) else 1)
    records = 2000 if quick else 20_000
    written, kept, bare, synced, read, copied, size = costs(records)
    print(f"{records} records of 100 trials, {size / 1e6:.1f} MB")
    print(f"a record is made in    {1e6 * written:8.1f} us")
    print(f"and appended in        {1e6 * kept:8.1f} us, {kept / bare:.1f} times a plain write")
    print(f"a plain write takes    {1e6 * bare:8.1f} us")
    print(f"one that is synced     {1e6 * synced:8.1f} us")
    print(f"all are read in        {1e3 * read:8.1f} ms, {read / copied:.0f} times a copy")
