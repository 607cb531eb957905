"""Private queries against the same queries without privacy on the same engine.

Count and sum by 1,000 groups on DuckDB, each user limited to 4 rows, on 1e6 rows (and on 1e8 with
``python -m benchmarks tables 100000000``, generated inside DuckDB). Predicted before the first
run on 2 cores: plain 0.012 s for 1e6 rows (0.7 s for 1e8); without limits 3 times that, for the
clipping to a grid; with limits 0.3 s for 1e6 rows (35 s for 1e8), because the rows of every user
are sorted, hence 25 to 50 times the plain query: the aim of 3 times was set before it was known
that the plain one takes 12 milliseconds, and no order by user is that cheap. Noise for 2,000
numbers: below 2 milliseconds. Compiling the query (0.1 s) is in what is timed.

Got: 1e6 rows: plain 0.010 s, a row as the unit 0.067 s (7 times: half of it goes into compiling), a
user with 4 rows 0.189 s (20 times); 1e7: 0.068 s, 0.213 s (3.1), 1.59 s (23); 1e8: 1.31 s, 2.55 s
(2.0), 25.5 s (19.5). Before public keys were picked among the groups, rows took 0.126 s and, for
1e8, 8.0 s. So 0.3 s is kept for 1e6 rows, and 3 times with rows as the unit from 1e7 rows on; with
users it cannot be: counting the rows of every user alone takes 6 times the plain query.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import hushed as hs

GROUPS = 1000
USERS_A_ROW = 0.05


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Best time of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def measure(rows: int, folder: str, repeats: int) -> None:
    """Print one line for each query."""
    path = Path(folder) / f"{rows}.db"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE visits AS SELECT "
            f"CAST(random() * {int(rows * USERS_A_ROW)} AS INTEGER) AS who, "
            f"CAST(floor(random() * {GROUPS}) AS INTEGER) AS g, random() * 150 AS x "
            f"FROM range({rows})"
        )
    source = f"duckdb:///{path}"
    by_row = hs.table(source, "visits").group_by("g", keys=list(range(GROUPS)))
    by_user = hs.table(source, "visits", user="who").bound_contributions(max_rows_per_user=4)
    by_user = by_user.group_by("g", keys=list(range(GROUPS)))
    engine = by_row.connection.rows.get_backend().con
    plain = seconds(
        lambda: engine.execute("SELECT g, count(*), sum(x) FROM visits GROUP BY g").fetchall(),
        repeats,
    )
    apart = seconds(
        lambda: engine.execute(
            "SELECT sum(n) FROM (SELECT count(*) AS n, sum(x) FROM visits GROUP BY who)"
        ).fetchall(),
        repeats,
    )
    print(
        f"{rows:,} rows; plain query {plain:.3f} s; "
        f"rows counted by user {apart:.3f} s, {apart / plain:.1f} times that"
    )
    for name, query in (("a row as the unit", by_row), ("a user, 4 rows", by_user)):
        asked = query.count().sum("x", low=0, high=100)
        taken = seconds(lambda q=asked: q.release(epsilon=1.0), repeats)
        print(f"  {name}: {taken:.3f} s, {taken / plain:.1f} times the plain query")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rows", nargs="*", type=int, help="numbers of rows (1000000)")


def main(*, quick: bool, rows: list[int]) -> None:
    """Measure 1e6 rows, or as many as asked."""
    with tempfile.TemporaryDirectory() as folder:
        for count in rows or [10_000 if quick else 1_000_000]:
            measure(count, folder, 1 if quick or count > 10_000_000 else 5)
