"""Charges per second against raw SQLite inserts that are just as durable.

Run with ``python -m benchmarks ledger [FOLDER]``. Each ledger lies in FOLDER (a temporary one by
default). The peer is one INSERT of a row of the same size per transaction, with the same settings
(write-ahead log, full synchronisation), in the same run, in turns with the ledger so that a
noisy disk hits both. Predicted before the first run: 1,000 charges a second, or a third of the
peer's rate where the disk is slower than that; the same rate after 10,000 entries as after 10;
50 ms to fold 1,000 entries anew. A folder in memory (/dev/shm) shows the work apart from the disk;
the microseconds of processor time leave out the waiting for it.

Got at first: 850 to 1,280 charges a second where the peer did 2,100 to 4,300, and 600 to 1,400 in
memory on a busy machine. More than half of a charge went into passing four statements through
SQLAlchemy, and another part into fractions. Predicted for charges that speak to the driver: half
the work, hence twice the rate in memory, and 1,000 a second wherever the peer does 2,000.

Got, old and new in turns in one run on two busy cores: 1,570 to 3,110 charges a second in memory
where the old ones made 600 to 1,410 (2.2 to 2.9 times as many, for 310 to 360 microseconds of
processor time after 660 to 900). On a disk that other jobs kept busy, over two runs, in the moments
when the peer did 1,500 or more (2,500 to 4,300 at the median): 910 to 1,550 after 460 to 920, so
that two rows of twelve missed 1,000 (910 and 976); processor time was twice that in memory.
While the same disk let the peer do 200 to 600 only, waiting was nearly all, and nothing came near
1,000: 230 to 380 after 150 to 330, 1.0 to 1.6 times as many. On the quiet machine (peer 2,100 to
3,900): 1,092 to 1,572 after 1,000 and after 10,000 entries on every row; three of the six first
windows of 200 charges, on fresh files, had 656 to 922.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import hushed as hs

CHUNK = 200
LIMIT = hs.Guarantee(epsilon=2.0, delta=1e-6)
LAWS = {
    "one Laplace law": lambda i: hs.privacy_loss.laplace(1e-3),  # noqa: ARG005
    "every law different": lambda i: hs.privacy_loss.laplace(1e-3 / (1 + i * 1e-4)),
}


def raw(folder: Path) -> Callable[[int], None]:
    peer = sqlite3.connect(folder / "raw.db", isolation_level=None)
    peer.execute("PRAGMA journal_mode = WAL")
    peer.execute("PRAGMA synchronous = FULL")
    peer.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT, digest TEXT)")

    def insert(i: int) -> None:
        peer.execute("BEGIN IMMEDIATE")
        peer.execute("INSERT INTO rows VALUES (?, ?, ?)", (i, "x" * 420, "y" * 64))
        peer.execute("COMMIT")

    return insert


def charging(folder: Path, method: str, law: str) -> tuple[hs.Ledger, Callable[[int], None]]:
    book = hs.Ledger(f"sqlite:///{folder}/{method}-{len(law)}.db")
    book.open_budget("b", LIMIT, method=method)  # type: ignore[arg-type]
    loss_of = LAWS[law]

    def charge(i: int) -> None:
        loss = loss_of(i)
        book.charge("b", hs.Guarantee(epsilon=loss.supremum), loss=loss)

    return book, charge


def seconds(job: Callable[[int], None], start: int, chunk: int) -> float:
    begun = time.perf_counter()
    for i in range(start, start + chunk):
        job(i)
    return (time.perf_counter() - begun) / chunk


def work(job: Callable[[int], None], start: int, chunk: int) -> float:
    """Processor time of a charge in microseconds: what the disk is waited for is left out."""
    begun = time.process_time()
    for i in range(start, start + chunk):
        job(i)
    return 1e6 * (time.process_time() - begun) / chunk


def measure(
    folder: Path, method: str, law: str, insert: Callable[[int], None], most: int, chunk: int
) -> None:
    book, charge = charging(folder, method, law)
    marks = [mark for mark in (10, 1_000, 10_000) if mark <= most]
    done, told = 0, []
    for mark in marks:
        while done < mark:
            charge(done)
            done += 1
        ours, theirs = [], []
        for _ in range(3):
            theirs.append(seconds(insert, insert.count, chunk))  # type: ignore[attr-defined]
            insert.count += chunk  # type: ignore[attr-defined]
            ours.append(seconds(charge, done, chunk))
            done += chunk
        one, peer = statistics.median(ours), statistics.median(theirs)
        told.append(f"{1 / one:7.0f}/s ({peer / one:4.2f} of raw)")
    busy = work(charge, done, chunk)
    done += chunk
    begun = time.perf_counter()
    with hs.Ledger(book._store.url) as fresh:
        fresh.charge("b", hs.Guarantee(epsilon=1e-6))
    folded = time.perf_counter() - begun
    book.close()
    print(
        f"{method:18} {law:20} {'  '.join(told)}   {busy:4.0f} us of work   {1e3 * folded:6.0f} ms "
        f"anew after {done}"
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, help="a temporary one by default")


def main(*, quick: bool, folder: Path | None) -> None:
    """Print one line for each method and each kind of law."""
    if folder is not None and not folder.is_dir():
        raise SystemExit(f"{folder} is no folder: the ledgers are made in one that is there.")
    chunk, most_of_all = (10, 10) if quick else (CHUNK, 10_000)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        insert = raw(place)
        insert.count = 0  # type: ignore[attr-defined]
        print("charges per second after 10, 1,000 and 10,000 entries; share of the raw rate")
        for method, most in (("adaptive", 10_000), ("basic", 1_000), ("pld", 10_000)):
            for law in LAWS:
                measure(place, method, law, insert, min(most, most_of_all), chunk)
