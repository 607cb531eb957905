"""What calls in fresh processes cost beyond bare calls, and what starting them costs.

Run with ``python -m benchmarks isolation``. The peers are the same calls bare, in a loop of this
process, and in workers of joblib (loky), which are kept, so that calls share what these keep.
Processor time of all processes together says what is added whatever else the machine does; time on
the wall means something on an idle machine only. What is added to one call is told by pairs: each
bare call stands beside an isolated one of the same part, so that a busy minute hits both. Beside
them stands the least that a fresh process for each call can do: read rows and answer a double.
Aim: with processes that wait already, 5 % more processor time than bare calls of 10 ms.
Got, on 2 cores at a load of 1.4: 1.08 ms more (12 %) before calls did less between their part and
their answer, where the least process added 0.57 ms (6 %). Since then, at loads of 8 to 13: 0.8 ms
(7 %) where the former way added 1.0 ms and the least process 0.6 to 0.7 ms (5 to 6 %) beside it; in
one pool of 31 calls 1.06 ms where the former way added 1.25 ms. So 5 % of 10 ms is out of reach of
any process for each call. What is added hardly depends on the length of a call: 2 % of 50 ms, and
less than 1 % of 200 ms. Started when needed, a call costs 0.1 s more.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Self

import numpy as np

import hushed as hs
from hushed._functions._isolation import Isolation, call_isolated

CALLS, ROWS = 31, 31 * 161
LENGTHS = {0.01: CALLS, 0.05: 12, 0.2: 6}  # seconds of a bare call, and how many pairs
REPEATS, QUICK = 5, 1

Work = Callable[[np.ndarray], float]

# The least that a process for each call has to do: know the function, read rows, answer a double.
LEAST = """
import pickle, sys, numpy.ma, numpy.random
source, target = sys.stdin.buffer, sys.stdout.buffer
sys.path[:], packed = pickle.load(source)
function = pickle.loads(packed)
for _ in range(2):
    rows = pickle.load(source)
    target.write(numpy.float64(function(rows) if rows is not None else 0.0).tobytes())
    target.flush()
source.read(1)
"""


class Least:
    """A fresh process without limits, seeds, a place of its own, or anything to watch it."""

    def __init__(self, work: Work) -> None:
        import cloudpickle

        self.line, theirs = socket.socketpair()
        self.child = subprocess.Popen([sys.executable, "-c", LEAST], stdin=theirs, stdout=theirs)
        theirs.close()
        self.line.sendall(pickle.dumps((sys.path, cloudpickle.dumps(work))))
        self.call(None)

    def call(self, rows: np.ndarray | None) -> float:
        self.line.sendall(pickle.dumps(rows, protocol=5))
        return float(np.frombuffer(self.line.recv(8))[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()
        self.child.wait()


@dataclass
class Watch:
    """Takes the time of this process and of some others, on processors and on the wall."""

    others: Collection[int] = ()
    processor: float = 0.0
    wall: float = 0.0

    def _read(self) -> float:
        # The clock of another process, as clock_getcpuclockid of the C library numbers it.
        others = sum(time.clock_gettime((~each << 3) | 2) for each in self.others)
        return time.process_time() + others

    def take(self, call: Callable[[], object]) -> Watch:
        begun, used = time.perf_counter(), self._read()
        call()
        self.processor, self.wall = self._read() - used, time.perf_counter() - begun
        return self


def choose_work(part: np.ndarray, seconds: float) -> Work:
    """Give the median of all differences, repeated until a call takes so long, by value."""

    def work(rows: np.ndarray, repeats: int = 1) -> float:
        found = [float(np.median(np.subtract.outer(rows, rows))) for _ in range(repeats)]
        return sum(found)

    once = min(Watch().take(lambda: work(part)).processor for _ in range(20))
    repeats = max(1, round(seconds / once))
    return lambda rows: work(rows, repeats)


def take_warm(work: Work, parts: list[np.ndarray], workers: int) -> Watch:
    """Time the calls alone: the processes wait when they begin, and are removed afterwards."""
    with Isolation(work, calls=len(parts), workers=workers) as pool:
        waiting = [process._child.pid for process in pool._idle]
        return Watch(waiting).take(lambda: pool.call(parts))


def take_pairs(work: Work, parts: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Time each call bare, isolated, and in the least fresh process that there can be.

    Of the two also as the function itself sees it; in seconds of processors.
    """

    def timed(rows: np.ndarray) -> float:
        begun = time.process_time()
        work(rows)
        return time.process_time() - begun

    found: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(Isolation(timed, calls=len(parts), workers=1))
        least = [stack.enter_context(Least(timed)) for _ in parts]
        for place, (part, one) in enumerate(zip(parts, least, strict=True)):
            waiting = pool._idle[0]._child.pid
            inside: list[float] = []

            def isolated(part=part, place=place, inside=inside) -> None:
                inside.append(float(pool.call([part], seeds=[place])[0]))

            taken = {
                "bare": Watch().take(lambda part=part: work(part)),
                "isolated": Watch([waiting]).take(isolated),
                "least": Watch([one.child.pid]).take(
                    lambda part=part, one=one, inside=inside: inside.append(one.call(part))
                ),
            }
            for name, watch in taken.items():
                found.setdefault(name, []).append(watch.processor)
            for name, seen in zip(("within isolated", "within least"), inside, strict=True):
                found.setdefault(name, []).append(seen)
    return {name: np.array(seconds) for name, seconds in found.items()}


def print_pairs(pairs: dict[str, np.ndarray]) -> None:
    """Print what is added to a call, and how much of it the function itself takes longer."""
    bare = pairs["bare"]
    for name, title in (("isolated", "isolation"), ("least", "the least fresh process")):
        added, within = pairs[name] - bare, pairs[f"within {name}"] - bare
        low, middle, high = 1e3 * np.quantile(added, [0.25, 0.5, 0.75])
        print(
            f"one call of {1e3 * np.median(bare):.0f} ms beside another: {title} adds "
            f"{middle:.2f} ms of processors in the middle "
            f"({low:.2f} to {high:.2f} for half of {len(bare)} calls), "
            f"{np.median(added) / np.median(bare):.1%} of a bare call; "
            f"{1e3 * np.median(within):.2f} ms of it within the function"
        )


def take_releases(work: Work, rows: np.ndarray, blocks: int) -> dict[str, float]:
    """Time bare calls, and releases with a pool that is ready and without, on the wall in turn."""
    mechanism = hs.Blocks(low=0, high=1e6, epsilon=20.0, blocks=blocks, beta=0.5)  # so for two, too
    parts = np.array_split(rows, blocks)
    bare = Watch().take(lambda: [work(part) for part in parts]).wall
    begun = time.perf_counter()
    with hs.blocks.Pool(work, mechanism) as pool:
        opened = time.perf_counter() - begun
        ready = Watch().take(lambda: hs.release(pool, rows, mechanism)).wall
    cold = Watch().take(lambda: hs.release(work, rows, mechanism)).wall
    return {"bare": bare, "opening": opened, "ready": ready, "cold": cold}


def print_releases(taken: list[dict[str, float]]) -> None:
    """Print what a pool that is kept saves of a release."""
    best = {name: min(each[name] for each in taken) for name in taken[0]}
    saved = statistics.median(each["cold"] / each["ready"] for each in taken)
    beside = statistics.median(each["ready"] / each["bare"] for each in taken)
    print(
        f"a release on the wall, at best: {best['ready']:.2f} s with a pool that is ready, "
        f"{best['cold']:.2f} s without, bare calls one after another {best['bare']:.2f} s; in the "
        f"middle without a pool {saved:.1f} times as long, with it {beside:.2f} times bare calls; "
        f"to open the pool takes {best['opening']:.2f} s"
    )


def print_floors() -> None:
    """Print what the start of an empty interpreter takes, and bytes there and back."""
    starts = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        after = os.times()
        starts.append(after.children_user + after.children_system)
        starts[-1] -= before.children_user + before.children_system
    with Least(float) as echo:
        trips = Watch([echo.child.pid])
        taken = trips.take(lambda: echo.call(np.array(1.0))).processor
    print(
        f"an empty interpreter starts in {1e3 * statistics.median(starts):.0f} ms of processors; "
        f"a number there and back takes {1e3 * taken:.2f} ms"
    )


def take_cold(work: Work, parts: list[np.ndarray], workers: int) -> Watch:
    """Time everything, starting and removing included."""
    before = os.times()
    watch = Watch().take(lambda: call_isolated(work, parts, workers=workers))
    after = os.times()
    watch.processor += after.children_user + after.children_system
    watch.processor -= before.children_user + before.children_system
    return watch


def take_loky(work: Work, parts: list[np.ndarray], workers: int) -> Watch:
    """Time the calls in workers that are there already."""
    from joblib.externals.loky import get_reusable_executor

    executor = get_reusable_executor(max_workers=workers)
    try:
        list(executor.map(work, parts))
        return Watch(list(executor._processes)).take(lambda: list(executor.map(work, parts)))
    finally:
        executor.shutdown(wait=True)  # joblib would take it for one of its own


def main(*, quick: bool) -> None:
    """Print the ratios; a quick run has few calls, once."""
    parts = np.array_split(np.random.default_rng(1).random(ROWS), CALLS)
    lengths = {seconds: 2 if quick else count for seconds, count in LENGTHS.items()}
    works = {seconds: choose_work(parts[-1], seconds) for seconds in lengths}
    parts = parts[: lengths[0.01]]
    cores, work = len(os.sched_getaffinity(0)), works[0.01]
    kinds: dict[str, Callable[[], Watch]] = {
        "bare, one after another": lambda: Watch().take(lambda: [work(part) for part in parts]),
        "isolated, one after another": lambda: take_warm(work, parts, 1),
        f"loky, {cores} workers": lambda: take_loky(work, parts, cores),
        f"isolated, {cores} workers": lambda: take_warm(work, parts, cores),
        f"isolated, {cores} workers, started when needed": lambda: take_cold(work, parts, cores),
    }
    releases: list[dict[str, float]] = []
    taken: dict[str, list[Watch]] = {name: [] for name in kinds}
    pairs: dict[float, list[dict[str, np.ndarray]]] = {seconds: [] for seconds in lengths}
    for _ in range(QUICK if quick else REPEATS):  # in turn: a busy minute hits all of them
        for seconds, count in lengths.items():
            pairs[seconds].append(take_pairs(works[seconds], parts[:count]))
        releases.append(take_releases(work, np.concatenate(parts), len(parts)))
        for name, take in kinds.items():
            taken[name].append(take())
    bare = taken["bare, one after another"]
    print(f"{len(parts)} calls of {1e3 * min(each.processor for each in bare) / len(parts):.1f} ms")
    for found in pairs.values():
        print_pairs({name: np.concatenate([each[name] for each in found]) for name in found[0]})
    print_floors()
    print_releases(releases)
    for name, watches in taken.items():
        ratios = [
            each.processor / beside.processor for each, beside in zip(watches, bare, strict=True)
        ]
        print(
            f"{name}: {1e3 * min(each.processor for each in watches):.0f} ms of processors, "
            f"{statistics.median(ratios):.3f} times bare calls in the middle, {min(ratios):.3f} at "
            f"best; {1e3 * min(each.wall for each in watches):.0f} ms on the wall"
        )
