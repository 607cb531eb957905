"""What worker processes and a Dask cluster lose, and a simulation of a thousand cores.

Efficiency is the time that the trials would take if two workers did nothing else, divided by the
time they took, the start of the cluster left out. Trials sleep, so that what else runs matters
little. The simulation takes the rule by which spans are cut, workers of which trials take 10 % more
or less, and a scheduler that handles so many tasks in a second. Predicted: 0.95 at 20 ms and more.
"""

from __future__ import annotations

import argparse
import heapq
import os
import resource
import time

import numpy as np

from hushed._functions._spans import Spans
from hushed._functions._trials import run_trials
from hushed.engines import Dask, run_span


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=10**7, help="of the measure of memory")


def sleeper(seconds):
    def draw(generators):
        found = []
        for g in generators:
            time.sleep(seconds)
            found.append(g.random())
        return np.array(found)

    return draw


def efficiency(workers, seconds, trials):
    run_trials(sleeper(0.02), 100, seed=1, workers=workers)  # fewer would run here, and start none
    begun = time.perf_counter()
    run_trials(sleeper(seconds), trials, seed=1, workers=workers)
    each = seconds + 0.00008  # what a sleep takes longer
    return trials * each / 2 / (time.perf_counter() - begun)


class Here:
    """An engine in this process."""

    name = "this process"

    def slots(self):
        return 8

    def map_spans(self, task, spans):
        for span in spans:
            yield span, run_span(task.payload, task.digest, task.seed, *span)


def simulate(slots, seconds, work, rate):
    """Share of the ideal speed on so many slots, with so much work in seconds for each."""
    trials = int(work * slots / seconds)
    rng = np.random.default_rng(0)
    spans = Spans([(0, trials)], lambda: slots)
    scheduler, end, sent = 0.0, 0.0, 0
    free = [(0.0, number, None, 0.0) for number in range(slots)]
    heapq.heapify(free)
    while free:
        now, number, back, taken = heapq.heappop(free)
        if back is not None:
            spans.take_back(back, taken)
            end = max(end, now)
        span = next(spans, None)
        if span is None:
            continue
        scheduler = max(scheduler, now) + 1 / rate
        sent += 1
        taken = (span[1] - span[0]) * seconds * rng.uniform(0.9, 1.1)
        heapq.heappush(free, (max(now, scheduler) + taken, number, span, taken))
    return trials * seconds / slots / end, sent / end


def main(*, quick: bool, trials: int) -> None:
    from distributed import LocalCluster  # the extra dask

    part = 10 if quick else 1
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as cluster:
        dask = Dask(cluster.scheduler_address)
        for seconds, count in ((0.001, 8000), (0.02, 800), (0.2, 80)):
            for name, workers in (("loky", 2), ("Dask", dask)):
                found = efficiency(workers, seconds, max(8, count // part))
                load = os.getloadavg()[0] / (os.cpu_count() or 1)
                print(
                    f"{name:6}{1000 * seconds:6.0f} ms: {found:.2f} of two workers, "
                    f"{load:.1f} processes for each core"
                )
        dask.close()
    slots = 50 if quick else 1000
    for seconds in (1.0, 60.0):
        for work in (100.0, 1000.0):
            if work > seconds:
                found, load = simulate(slots, seconds, work, 500)
                print(
                    f"{slots} cores, trials of {seconds:.0f} s, {work:.0f} s of work for each: "
                    f"{found:.2f} of the ideal, {load:.0f} tasks/s"
                )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun, trials = time.perf_counter(), trials // (1000 if quick else 1)
    run_trials(lambda gs: np.array([g.random() for g in gs]), trials, seed=1, workers=Here())
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{trials:,} trials: {more:.0f} MB more, {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(quick=True, trials=10**6)
