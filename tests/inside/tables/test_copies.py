"""Queries with the same contribution bounds share one copy of the rows."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import EngineUnavailable, QueryFailed
from hushed.tables._engine.copies import MOST_COPIES
from hushed.tables._scan import prepare, run_scan, run_searches

ROWS = [(u, "abc"[(u * r) % 3], float(r)) for u in range(40) for r in range(u % 7)]


def frame(rows=ROWS):
    """An Arrow table of users, keys and values."""
    users, keys, values = zip(*rows, strict=True)
    return pa.table({"u": users, "k": keys, "x": pa.array(values, pa.float64()), "y": values})


def bounded(source, **bounds):
    """A query of every user's rows, a few of each."""
    opened = hs.table(source, user="u").bound_contributions(**bounds or {"max_rows_per_user": 2})
    return opened.group_by("k", keys=["a", "b"])


def session(query):
    """The engine's own connection."""
    return query.connection.rows.get_backend().con


def copies(query):
    """Names and sizes of the copies that the engine holds."""
    names = session(query).execute(
        "SELECT table_name FROM duckdb_tables() WHERE temporary ORDER BY 1"
    )
    return {
        name: session(query).execute(f"SELECT count(*) FROM temp.main.{name}").fetchone()[0]
        for (name,) in names.fetchall()
    }


def everything(query):
    """The query with every kind of measurement."""
    query = query.count().count_users().sum("x", low=0, high="search").mean("y", low=0, high=4)
    query = query.variance("x", low=0, high=6).histogram("y", low=0, high=6, bins=3)
    return query.quantiles("x", [0.5], low=0, high=6, candidates=7)


@pytest.mark.parametrize(
    "bounds",
    [
        {"max_groups_per_user": 1},
        pytest.param({"max_rows_per_user": 3, "max_groups_per_user": 1}, marks=pytest.mark.slow),
    ],
)
def test_the_copy_gives_what_the_rows_give(bounds):
    """Every number of every kind of measurement, for the same secret; with and without a copy."""
    query = bounded(frame(), **bounds)
    query = query.filter("x < 5").derive("z", "x + 1")
    rows = "max_rows_per_user" in bounds
    query = everything(query.sum("z", low=0, high=6)) if rows else query.count_users()
    filled = query.query.with_smallest_bounds()
    secret = 2**40 + 5
    connection = bounded(frame()).connection
    searched = prepare(connection, query.query, secret, copied=True)
    run_searches(searched)
    copied = prepare(connection, filled, secret, copied=True)
    assert copied.scan.copy == searched.scan.copy
    found, wanted = run_scan(copied), run_scan(prepare(connection, filled, secret))
    assert found.keys == wanted.keys
    assert [list(each) for each in found.values] == [list(each) for each in wanted.values]


@pytest.mark.slow
def test_a_search_counts_the_rows_of_the_copy():
    """With a bound that keeps every row, it counts what it counts without a copy."""
    query = bounded(frame(), max_rows_per_user=9).sum("x", low="search", high="search")
    copied = prepare(query.connection, query.query, 5, copied=True)
    assert run_searches(copied) == run_searches(prepare(query.connection, query.query, 6))


def test_a_query_with_the_same_bounds_reads_the_copy():
    """The rows of the users are chosen once, also for other statistics of the same columns."""
    query = bounded(frame())
    query.count().sum("x", low=0, high=4).release(epsilon=1.0)
    first = copies(query)
    assert len(first) == 1
    said = []
    dialect = query.connection.engine
    fetch = dialect.fetch

    def listening(backend, planned):
        said.append(planned.sql)
        return fetch(backend, planned)

    listened = replace(query.connection, engine=replace(dialect, fetch=listening))
    later = replace(query, connection=listened)
    later.mean("x", low=0, high=9).histogram("x", low=0, high=6, bins=3).release(epsilon=1.0)
    assert said
    assert not any("ROW_NUMBER" in sql or "CREATE" in sql for sql in said)
    assert copies(query) == first


def test_a_column_more_makes_one_copy_that_serves_both():
    """The copy with fewer columns goes, and a query of either column reads the new one."""
    query = bounded(frame())
    query.sum("x", low=0, high=4).release(epsilon=1.0)
    (before,) = copies(query)
    query.sum("y", low=0, high=4).release(epsilon=1.0)
    (after,) = copies(query)
    assert after != before
    query.sum("x", low=0, high=4).sum("y", low=0, high=4).release(epsilon=1.0)
    assert list(copies(query)) == [after]


@pytest.mark.slow
def test_other_filters_keys_and_bounds_have_copies_of_their_own():
    """A bound holds among the rows that are left: no copy of other rows is read for it."""
    small = hs.table(frame([*ROWS, (99, "c", 1.0), (99, "a", 1.0)]), user="u")
    asked = [
        small.bound_contributions(max_rows_per_user=1).filter("k == 'a'").count(),
        small.bound_contributions(max_rows_per_user=1).filter("k == 'c'").count(),
        small.bound_contributions(max_rows_per_user=1).count(),
        small.bound_contributions(max_rows_per_user=2).count(),
    ]
    wanted = [
        len({u for u, k, _ in ROWS if k == "a"}) + 1,
        len({u for u, k, _ in ROWS if k == "c"}) + 1,
        len({u for u, _, _ in ROWS}) + 1,
        sum(min(n, 2) for n in Counter(u for u, _, _ in ROWS).values()) + 2,
    ]
    for _ in range(2):
        found = [each.release(epsilon=100.0).rows()[0]["count"] for each in asked]
        assert found == pytest.approx(wanted, abs=2)
        assert len(copies(small)) <= MOST_COPIES


@pytest.mark.slow_cases("3")
@pytest.mark.parametrize("secret", [0, 3])
def test_one_user_more_changes_no_row_of_the_others_in_a_copy(secret):
    """For every secret: the copy with a user is the copy without, and at most the bound more."""
    extra = [(77, k, x) for k in "abc" for x in (0.0, 1.0, 6.0)]
    held = []
    for rows in (ROWS, ROWS + extra):
        query = bounded(frame(rows)).derive("z", "x * 2").sum("x", low=0, high=6)
        held.append(stored(query, secret))
    more = held[1] - held[0]
    assert held[0] - held[1] == Counter()
    assert sum(more.values()) == 2
    assert {user for *_, user, _ in more} == {77}


def stored(query, secret):
    """Rows of the copy that a query fills."""
    ready = prepare(query.connection, query.query, secret, copied=True)
    run_scan(ready)
    (name,) = copies(query)
    found = session(query).execute(f'SELECT k0, "user", w0 FROM temp.main.{name}').fetchall()
    return Counter((k, u, w) for k, u, w in found)


def test_no_row_is_in_a_copy_before_the_query_is_charged():
    """A prepared query has an empty table; the answer fills it."""
    query = bounded(frame()).count()
    prepared = query.prepare(epsilon=1.0)
    assert set(copies(query).values()) == {0}
    assert query.connection.copies == []
    prepared.answer(charged=prepared.digest, keep=str)
    assert min(copies(query).values()) > 0


@pytest.mark.slow
def test_a_prepared_query_is_answered_after_its_copy_made_room():
    """Copies that others needed the place of are made again."""
    query = bounded(frame()).count()
    query.release(epsilon=1.0)
    prepared = query.prepare(epsilon=100.0)
    for limit in range(3, 5 + MOST_COPIES):
        bounded_by = replace(bounded(frame(), max_rows_per_user=limit), connection=query.connection)
        bounded_by.count().release(epsilon=1.0)
    assert len(copies(query)) == MOST_COPIES
    kept = Counter(u for u, k, _ in ROWS if k in "ab")
    found = prepared.answer(charged=prepared.digest, keep=str)
    total = sum(row["count"] for row in found.rows())
    assert total == pytest.approx(sum(min(2, n) for n in kept.values()), abs=3)


def test_a_copy_that_failed_is_made_again():
    """An engine that fails while it copies costs this answer; the next one is whole."""
    query = bounded(frame()).count()
    dialect = query.connection.engine

    def failing(backend, planned):
        if "CREATE OR REPLACE" in planned.sql:
            raise duckdb.OutOfMemoryException("full")
        return dialect.fetch(backend, planned)

    broken = replace(query.connection, engine=replace(dialect, fetch=failing))
    with pytest.raises(QueryFailed, match="did not finish the query"):
        replace(query, connection=broken).release(epsilon=1.0)
    assert query.connection.copies == []
    found = query.release(epsilon=100.0)
    kept = Counter(u for u, k, _ in ROWS if k in "ab")
    total = sum(row["count"] for row in found.rows())
    assert total == pytest.approx(sum(min(2, n) for n in kept.values()), abs=3)


def test_a_file_that_changed_is_not_answered_from_its_copy(tmp_path):
    """The refusal comes first, and says to open the file again."""
    path = tmp_path / "t.csv"
    path.write_text("u,k,x\n1,a,1\n2,b,2\n")
    query = bounded(path).count()
    query.release(epsilon=1.0)
    path.write_text("u,k,x\n1,a,1\n2,b,2\n3,a,1\n")
    with pytest.raises(EngineUnavailable, match="open it again"):
        query.release(epsilon=1.0)


def test_no_copy_is_kept_of_a_view_which_may_read_other_files(tmp_path):
    """A view of a file outside the database: what is written there is in the next answer."""
    outside, path = tmp_path / "t.csv", tmp_path / "t.db"
    outside.write_text("u,k\n1,a\n")
    with duckdb.connect(str(path)) as made:
        made.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{outside}')")
    with pytest.warns(UserWarning, match="a view"):
        opened = hs.table(f"duckdb:///{path}", "v", user="u")
    query = opened.bound_contributions(max_rows_per_user=1).count()
    assert query.release(epsilon=100.0).rows()[0]["count"] == pytest.approx(1, abs=1)
    outside.write_text("u,k\n" + "".join(f"{u},a\n" for u in range(50)))
    assert query.release(epsilon=100.0).rows()[0]["count"] == pytest.approx(50, abs=1)
    assert copies(query) == {}


def test_a_table_of_a_read_only_database_is_copied_into_the_session(tmp_path):
    """The file of the database stays as it is, byte by byte."""
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE v AS SELECT range % 5 AS u, 1.5 AS x FROM range(50)")
    before = path.read_bytes()
    query = hs.table(f"duckdb:///{path}", "v", user="u").bound_contributions(max_rows_per_user=2)
    for _ in range(2):
        found = query.count().release(epsilon=100.0).rows()[0]["count"]
        assert found == pytest.approx(10, abs=1)
    assert list(copies(query).values()) == [10]
    assert path.read_bytes() == before


def test_what_does_not_fit_into_the_memory_lies_in_a_folder_of_this_user_alone():
    """Made for nobody else, and removed with the table."""
    query = bounded(frame()).count()
    folder = Path(session(query).execute("SELECT current_setting('temp_directory')").fetchone()[0])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    query.release(epsilon=1.0)
    del query
    gc.collect()
    assert not folder.exists()


SPILLED = """
import os, pathlib, hushed as hs, duckdb, sys
query = hs.table("duckdb:///" + sys.argv[1], "v", user="u").bound_contributions(max_rows_per_user=3)
con = query.connection.rows.get_backend().con
con.execute("SET memory_limit = '40MB'")
folder = con.execute("SELECT current_setting('temp_directory')").fetchone()[0]
query.sum("x", low=0, high=1).release(epsilon=1.0)
print(folder)
print(sum(each.stat().st_size for each in pathlib.Path(folder).iterdir()))
"""


@pytest.mark.slow
def test_rows_on_the_disk_are_gone_when_the_process_has_ended(tmp_path):
    """A copy larger than the memory is written to the folder, and leaves nothing behind."""
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE v AS SELECT range // 4 AS u, random() AS x FROM range(4_000_000)"
        )
    call = [sys.executable, "-c", SPILLED, str(path)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    said = subprocess.run(call, capture_output=True, text=True, check=True, env=environment)
    folder, size = said.stdout.split()
    assert Path(folder).parent == tmp_path
    assert int(size) > 10_000_000
    assert not Path(folder).exists()


def order_kept(connection):
    """Whether an engine keeps rows in order, for which one processor alone has to work."""
    return connection.execute("SELECT current_setting('preserve_insertion_order')").fetchone()[0]


def test_rows_come_in_any_order_while_a_query_runs_and_others_have_theirs_back(
    tmp_path, monkeypatch
):
    """A connection of the same file in this process shares the setting: also after a failure."""
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE v AS SELECT 1.0 AS x FROM range(10)")
    query = hs.table(f"duckdb:///{path}", "v").count()
    with duckdb.connect(str(path), read_only=True) as other:
        seen = []

        def watched(connection, sql):
            if not sql.startswith("EXPLAIN"):
                seen.append((order_kept(connection), order_kept(other)))
            if len(seen) > 1:
                raise duckdb.Error("it fails")
            return connection.execute(sql).fetchall()

        monkeypatch.setattr("hushed.tables._engine.duckdb.run_sql", watched)
        query.release(epsilon=1.0)
        assert order_kept(other)
        with pytest.raises(QueryFailed):
            query.release(epsilon=1.0)
        assert order_kept(other)
        monkeypatch.undo()
        other.execute("SET lock_configuration = true")
        assert query.release(epsilon=1.0).rows()  # slower, and right
    assert seen == [(False, False)] * 2
    assert not order_kept(session(hs.table(frame())))  # which nobody shares
