"""A table larger than memory: count and sum by 1,000 groups from one Parquet file, on DuckDB.

The file is written in pieces of 10 million rows (user, group, amount; about 9 bytes a row). A
child process opens it with `hs.table`, holds DuckDB to a limit of memory, releases the answer at
epsilon = 1, and says its time and the most memory it ever had. Each row is a unit first; then a
user with 4 rows at most, for which all rows are sorted by user, so that DuckDB writes to the disk.

``python -m benchmarks big_table 1000000000 --users 100000000`` takes 10 GB of disk, and minutes.
``--spark`` asks a Spark of two processes instead, with the row as the unit alone, in the
environment of `make spark`; the memory is then that of all its processes together.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import hushed as hs

GROUPS, PIECE = 1000, 10_000_000
SPARK = "local-cluster[2,1,1024]"  # executors take 1,024 MB if they are not told otherwise
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


def count_memory(session: int) -> float:
    """Memory of all processes of a session, in GiB; shared pages count in part."""
    kilobytes = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == session:
                lines = (stat.parent / "smaps_rollup").read_text().splitlines()
                kilobytes += sum(int(each.split()[1]) for each in lines if each.startswith("Pss:"))
        except OSError:  # it has ended
            continue
    return kilobytes / 2**20


def answer_on_spark(path: str, folder: str) -> None:
    """Release once on Spark, a row as the unit; print seconds and the most memory."""
    sql = importlib.import_module("pyspark.sql")
    builder = sql.SparkSession.builder.master(SPARK)
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": folder,
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.read.parquet(path).createOrReplaceTempView("rows")
    peak, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(2.0):
            peak[0] = max(peak[0], count_memory(os.getsid(0)))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    table = hs.table(f"spark://{SPARK}", "rows")
    query = table.group_by("g", keys=list(range(GROUPS))).count().sum("x", low=0, high=100_00)
    begun = time.perf_counter()
    released = query.release(epsilon=1.0)
    seconds = time.perf_counter() - begun
    over.set()
    watcher.join()
    session.stop()
    print(json.dumps([seconds, peak[0], len(released.rows())]))


def measure(rows: int, memory: str, folder: str, *, users: bool, spark: bool = False) -> None:
    """Write the table, ask a process about it, print one line, delete the table."""
    path = Path(folder) / f"{rows}.parquet"
    begun = time.perf_counter()
    write(path, rows)
    written, size = time.perf_counter() - begun, path.stat().st_size / 1e9
    call = f"answer({str(path)!r}, {memory!r}, {folder!r}, users={users})"
    if spark:
        call = f"answer_on_spark({str(path)!r}, {folder!r})"
    done = subprocess.run(
        [sys.executable, "-c", f"from benchmarks.big_table import *; {call}"],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    path.unlink()
    unit = "a user, 4 rows" if users else "a row as the unit"
    told = f"{rows:,} rows, {size:.1f} GB (written in {written:.0f} s), {unit}:"
    if done.returncode:
        print(told, "no answer:", done.stderr.strip()[-2000:])
        return
    seconds, peak, groups = json.loads(done.stdout.splitlines()[-1])
    engine = f"Spark, {SPARK}" if spark else f"DuckDB held to {memory}"
    print(
        f"{told} {groups} groups in {seconds:.1f} s, at most {peak:.2f} GB of memory ({engine})",
        flush=True,
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rows", nargs="?", type=int, default=0, help="rows (100000000)")
    parser.add_argument("--users", type=int, default=0, help="rows of the table of users (1e8)")
    parser.add_argument("--memory", default="2GB", help="limit for DuckDB (2GB)")
    parser.add_argument("--spark", action="store_true", help="ask Spark in place of DuckDB")
    parser.add_argument("--folder", help="where the table is written (a temporary folder)")


def main(
    *, quick: bool, rows: int, users: int, memory: str, spark: bool, folder: str | None
) -> None:
    """Print one line with a row as the unit, and one with a user."""
    usual = 100_000 if quick else 100_000_000
    with tempfile.TemporaryDirectory(dir=folder) as place:
        measure(rows or usual, memory, place, users=False, spark=spark)
        if not spark:
            measure(users or usual, memory, place, users=True)
