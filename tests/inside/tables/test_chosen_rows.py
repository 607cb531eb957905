"""Which rows contribution bounds keep: the same, whichever hashes are ranked first."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import duckdb
import ibis
import pyarrow as pa
import pytest
from scipy.stats import chi2

import hushed as hs
from hushed.tables._engine import execution, operations
from hushed.tables._engine.clock import Clock
from hushed.tables._scan import prepare
from hushed.tables._scan_rows import bound_rows, select_rows

LIMIT = 3
SHAPES = {1: 2, 2: LIMIT - 1, 3: LIMIT, 4: LIMIT + 1, 5: 40, 6: 300}  # rows of each user
CELLS = [math.nan, None, 0.0, -0.0, 1.0, 1e308, 5e-324]
ROWS = [
    (user, "ab"[row % 2] if user % 2 else f"k{row}", CELLS[row % 7] if user < 6 else float(row))
    for user, count in SHAPES.items()
    for row in range(count)
]
ROWS += [(None, "a", 1.0)] * 20 + [(7, "a", 1.0)] * 50 + [(8, None, 2.0)] * 9  # nobody, equal rows


def opened(rows, limit=LIMIT):
    """A query of the sum of values, of which groups are selected."""
    users, keys, values = zip(*rows, strict=True)
    columns = {"u": pa.array(users, pa.int64()), "k": pa.array(keys, pa.string())}
    frame = pa.table({**columns, "x": pa.array(values, pa.float64(), from_pandas=False)})
    query = hs.table(frame, user="u").bound_contributions(max_rows_per_user=limit)
    return query.group_by("k", select_partitions=True).sum("x", low=0, high=9).count_users()


def kept(query, secret=5, *, small_first=True):
    """Rows that the bounds keep: user, key and value, as often as they are there.

    The two zeros are one value to the engine, whichever of equal rows it keeps.
    """
    dialect = replace(query.connection.engine, ranks_small_first=small_first)
    connection = replace(query.connection, engine=dialect)
    rows = bound_rows(prepare(connection, query.query, secret).scan, secret, ["x"])
    found = execution.fetch(connection, execution.compile_query(rows), Clock())
    values = [None if value is None else value + 0.0 for value in found["w0"]]
    return Counter(zip(found["user"], found["k0"], values, strict=True))


@pytest.mark.parametrize(
    "small", [2**63, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 2**61, 2**64 - 1))]
)
def test_whatever_counts_as_small_the_same_rows_are_kept(small, monkeypatch):
    """Users below, at and above the bound, equal rows, missing users, keys and values."""
    wanted = kept(opened(ROWS), small_first=False)
    monkeypatch.setattr(operations, "small_hash", lambda *_: ibis.literal(small, "uint64"))
    found = kept(opened(ROWS))
    assert found == wanted
    each = Counter(user for user, _, _ in found.elements())
    assert each == {7: LIMIT, **{user: min(count, LIMIT) for user, count in SHAPES.items()}}


@pytest.mark.slow
def test_one_user_more_moves_what_is_small_and_no_row_of_others():
    """For each secret: with a user of very many rows other hashes are small."""
    more = ROWS + [(9, "a", float(row)) for row in range(3000)]
    for secret in (0, 3):
        without, with_user = kept(opened(ROWS), secret), kept(opened(more), secret)
        added = with_user - without
        assert without - with_user == Counter()
        assert Counter(user for user, _, _ in added.elements()) == {9: LIMIT}


def test_each_row_is_kept_as_often():
    """400 users of the same 12 rows, 3 of which are kept; a false alarm in a million runs."""
    users, cells, limit = 400, 12, 3
    rows = [(user, "a", float(cell)) for user in range(users) for cell in range(cells)]
    found = kept(opened(rows, limit), 2**40 + 1)
    counts = Counter(value for *_, value in found.elements())
    mean = users * limit / cells
    # Of 12 rows of a user 3 are drawn without putting back: the statistic is 9/11 of chi-square.
    statistic = sum((count - mean) ** 2 for count in counts.values()) / mean
    assert len(counts) == cells
    assert statistic * (cells - 1) / (cells - limit) < chi2.isf(1e-6, cells - 1)


@pytest.mark.parametrize(("each", "least", "most"), [(100, 0.04, 0.12), (20, 0.2, 0.6), (4, 0, 0)])
def test_hashes_are_small_where_users_have_many_more_rows_than_are_kept(each, least, most):
    """The share of hashes below what counts as small, and none where it would be most of them."""
    query = opened([(row % 200, "a", float(row)) for row in range(200 * each)])
    rows = select_rows(prepare(query.connection, query.query, 5).scan, 5, ["x"])
    small = operations.small_hash(rows, "user", LIMIT).as_table()
    told = execution.fetch(query.connection, execution.compile_query(small), Clock())
    ((found,),) = told.values()
    assert least * 2**64 <= found <= most * 2**64


@pytest.mark.slow
def test_of_no_rows_none_is_kept():
    """An empty table, of which no share can be told."""
    assert kept(opened([(None, "a", 1.0)])) == Counter()


@pytest.mark.slow
def test_columns_of_another_table_are_those_of_one_of_the_rows_of_a_user(tmp_path):
    """A join by users keeps one row of each, the same one, whether small hashes come first."""
    more = [(user, float(row)) for user in range(20) for row in range(50)]
    users, values = zip(*more, strict=True)
    path = tmp_path / "two.db"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE own AS SELECT range AS u, 'a' AS k FROM range(30)")
        made.execute(
            "CREATE TABLE more AS SELECT unnest($1) AS v, unnest($2) AS x", [users, values]
        )
    own = hs.table(f"duckdb:///{path}", "own", user="u")
    query = own.bound_contributions(max_rows_per_user=1).join_users("more", user="v", columns=["x"])
    query = query.group_by("k", select_partitions=True).sum("x", low=0, high=50)
    found = kept(query)
    assert found == kept(query, small_first=False)
    assert sorted(user for user, _, _ in found.elements()) == list(range(20))
