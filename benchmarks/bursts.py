"""What one request costs a team server when many ask at the same moment: processor time, by kind.

On a machine that others use, too, wall times say little. Here the processor time of the process
that answers over HTTP is counted for each request, and apart from it that of the processes it has
started and of the client. ``--other FOLDER`` names the `src` of another version of this library:
both serve at once, and are asked in turns, so that what others do meets both.

A question is counted twice: until all were told that they are charged, and until all are answered,
for runs begin before the last one is told.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.serving import Analyst, children, high, make_folder, start, together

KINDS = ("livez", "stored", "price", "told")
NAMES = {
    "livez": "/livez",
    "stored": "stored answer",
    "price": "price",
    "told": "told that it is charged",
}
STILL = 0.01  # seconds of a processor in a while in which nothing is answered


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--analysts", type=int, default=200, help="How many ask at once.")
    parser.add_argument("--rounds", type=int, default=3, help="How often each kind is asked.")
    parser.add_argument("--other", help="Folder src of another version, which is asked in turns.")


def spent(pid):
    """Seconds of a processor of a process, in nanoseconds' steps; 0 if it is gone."""
    try:
        return time.clock_gettime((~pid) << 3 | 2)
    except OSError:
        return 0.0


class Server:
    """One version, served, with its analysts and what their requests have cost."""

    def __init__(self, place, name, analysts, source=None):
        place.mkdir()
        folder, port, tokens = make_folder(place, analysts)
        self.name, self.turn, self.costs = name, 0, {kind: [] for kind in KINDS}
        self.process, _ = start(folder, port, source=source)
        self.analysts = [Analyst(port, token, i) for i, token in enumerate(tokens)]
        together(self.analysts, lambda one: one.release(0))

    def ask(self, kind):
        """Let each analyst ask once; milliseconds of a processor for each of them."""
        self.turn += 1
        work = {
            "livez": lambda one: one.send("GET", "/livez"),
            "stored": lambda one: one.ask("stored", "GET", f"/v1/requests/{one.made[0]}/answer"),
            "price": Analyst.quote,
            "told": lambda one: one.charge(self.turn),
        }
        waits = []

        def wait(one):
            begun = time.perf_counter()
            work[kind](one)
            waits.append(time.perf_counter() - begun)

        together(self.analysts, work["livez"])  # an idle connection was closed meanwhile
        before, own = self.spent(), time.process_time()
        together(self.analysts, wait)
        own, until = time.process_time() - own, self.spent()
        if kind == "told":
            self.rest()
        after = self.spent()
        costs = (until[0] - before[0], after[0] - before[0], after[1] - before[1], own)
        per = [1e3 * each / len(self.analysts) for each in costs]
        self.costs[kind].append([*per, 1e3 * high(waits, 0.95)])

    def spent(self):
        return spent(self.process.pid), sum(map(spent, children(self.process)))

    def rest(self):
        """Wait until all that was charged is answered."""
        while True:
            before = self.spent()[0]
            time.sleep(1.5)
            if self.spent()[0] - before < STILL:
                return

    def tell(self, kind):
        """Print the medians of all rounds."""
        until, after, others, own, wait = map(
            statistics.median, zip(*self.costs[kind], strict=True)
        )
        told = f"{NAMES[kind]:24} {self.name:6} {until:6.2f} ms of a processor each"
        if kind == "told":
            told += f", {after:.2f} ms until it is answered"
        print(f"{told}; others {others:.2f} ms, client {own:.2f} ms; 95th of 100 {wait:.0f} ms")


def main(*, quick: bool, analysts: int, rounds: int, other: str | None = None) -> None:
    """Serve, and ask in turns."""
    if quick:
        analysts, rounds = min(analysts, 4), 1
    servers = []
    with tempfile.TemporaryDirectory() as name:
        try:
            servers.append(Server(Path(name) / "this", "this", analysts))
            if other is not None:
                servers.append(Server(Path(name) / "other", "other", analysts, other))
            for _ in range(rounds):
                for kind in KINDS:
                    for each in servers:
                        each.ask(kind)
            for kind in KINDS:
                for each in servers:
                    each.tell(kind)
            faults = sum(one.faults for each in servers for one in each.analysts)
        finally:
            for each in servers:
                each.process.kill()
                each.process.wait()
    print(f"faults {faults}")
