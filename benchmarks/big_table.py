"""A table larger than memory: count and sum by 1,000 groups from one Parquet file, on DuckDB.

The file is written in pieces of 10 million rows (user, group, amount; about 9 bytes a row). A
child process opens it with `hs.table`, holds DuckDB to a limit of memory, releases the answer at
epsilon = 1, and says its time and the most memory it ever had. Each row is a unit first; then a
user with 4 rows at most, for which all rows are sorted by user, so that DuckDB writes to the disk.

``python -m benchmarks big_table 1000000000 --users 100000000`` takes 10 GB of disk, and minutes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import hushed as hs

GROUPS, PIECE = 1000, 10_000_000
ROWS_EACH = 20  # rows of a user, on average


def write(path: Path, rows: int) -> None:
    """Write a table of so many rows, never holding more than a piece of it."""
    kinds = pa.schema([("who", pa.int32()), ("g", pa.int16()), ("x", pa.int32())])
    rng = np.random.default_rng(0)
    with parquet.ParquetWriter(path, kinds, use_dictionary=["g"]) as file:
        for start in range(0, rows, PIECE):
            count = min(PIECE, rows - start)
            columns = [
                rng.integers(0, max(rows // ROWS_EACH, 1), count, dtype=np.int32),
                rng.integers(0, GROUPS, count, dtype=np.int16),
                rng.integers(0, 150_00, count, dtype=np.int32),
            ]
            file.write_table(pa.table(columns, schema=kinds), row_group_size=1_000_000)


def answer(path: str, memory: str, folder: str, *, users: bool) -> None:
    """Release once, in a process of its own; print seconds and the most memory."""
    table = hs.table(path, user="who") if users else hs.table(path)
    engine = table.connection.rows.get_backend().con
    engine.execute(f"SET memory_limit = '{memory}'")
    engine.execute(f"SET temp_directory = '{folder}'")
    asked = table.bound_contributions(max_rows_per_user=4) if users else table
    query = asked.group_by("g", keys=list(range(GROUPS))).count().sum("x", low=0, high=100_00)
    begun = time.perf_counter()
    released = query.release(epsilon=1.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps([time.perf_counter() - begun, peak, len(released.rows())]))


def measure(rows: int, memory: str, folder: str, *, users: bool) -> None:
    """Write the table, ask a process about it, print one line, delete the table."""
    path = Path(folder) / f"{rows}.parquet"
    begun = time.perf_counter()
    write(path, rows)
    written, size = time.perf_counter() - begun, path.stat().st_size / 1e9
    call = f"answer({str(path)!r}, {memory!r}, {folder!r}, users={users})"
    done = subprocess.run(
        [sys.executable, "-c", f"from benchmarks.big_table import *; {call}"],
        capture_output=True,
        text=True,
        check=False,
    )
    path.unlink()
    unit = "a user, 4 rows" if users else "a row as the unit"
    told = f"{rows:,} rows, {size:.1f} GB (written in {written:.0f} s), {unit}:"
    if done.returncode:
        print(told, "no answer:", done.stderr.strip().splitlines()[-1])
        return
    seconds, peak, groups = json.loads(done.stdout)
    print(
        f"{told} {groups} groups in {seconds:.1f} s, at most {peak:.2f} GB of memory "
        f"(DuckDB held to {memory})",
        flush=True,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rows", nargs="?", type=int, default=0, help="rows (100000000)")
    parser.add_argument("--users", type=int, default=0, help="rows of the table of users (1e8)")
    parser.add_argument("--memory", default="2GB", help="limit for DuckDB (2GB)")
    parser.add_argument("--folder", help="where the table is written (a temporary folder)")


def main(*, quick: bool, rows: int, users: int, memory: str, folder: str | None) -> None:
    """Print one line with a row as the unit, and one with a user."""
    usual = 100_000 if quick else 100_000_000
    with tempfile.TemporaryDirectory(dir=folder) as place:
        measure(rows or usual, memory, place, users=False)
        measure(users or usual, memory, place, users=True)
