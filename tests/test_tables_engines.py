"""One query, several engines: exact cells agree bit for bit, and with plain Python."""

import math
from collections import defaultdict
from datetime import date
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from tests.nasty_tables import clipped, nasty, to_postgres

import hushed as hs
from hushed.tables.releases import planned
from hushed.tables.scan import name_keys, scan

SECRET = 1234567890123456789


def cells(query, secret=SECRET, delta=0.0):
    """The exact cells of a query: what a release adds noise to."""
    _, what = planned(query, epsilon=1.0, delta=delta, noise_name="laplace")
    return scan(what, secret)


def full(table):
    """A query that uses every aggregate on every kind of column."""
    return (
        table.filter("is_null(well) or not (city == 'rome' and x > 2) or n in [1, 5, -7]")
        .derive("part", "floor(n / 100)")
        .derive("odd", "abs(x - 3 * n) / (n - 5)")
        .group_by("city", keys=["Rome", "Oslo", "", "Zürich", "O'Hara", 'say "hi"', "absent"])
        .per_user(rows=1000)
        .count()
        .count_users()
        .sum("x", low=-10, high=100)
        .sum("n", low=-20, high=50)
        .sum("well", low=0, high=1)
        .mean("x", low=0, high=100.1)
        .mean("odd", low=-3, high=1e5)
        .variance("n", low=-50, high=160)
        .sum("part", low=-5, high=5)
        .histogram("x", low=0, high=100, bins=7)
        .quantiles("n", [0.25, 0.5], low=-50, high=160)
    )


def short(table):
    """A query that is quick to compile."""
    query = table.filter("x < 90").group_by("well", keys=[True, False]).per_user(rows=7, groups=1)
    return query.count().sum("n", low=-20, high=50)


@pytest.fixture(scope="module")
def frame():
    return nasty()


@pytest.fixture(scope="module")
def on_duckdb(frame):
    return cells(full(hs.table(frame, user="who")))


class TestEngines:
    def test_postgres_and_duckdb_agree_bit_for_bit(self, frame, on_duckdb, postgres_url):
        """Every exact cell of a query on nasty values is the same on both engines."""
        to_postgres(frame, postgres_url)
        there = cells(full(hs.table(postgres_url, "visits", user="who")))
        assert there == on_duckdb
        assert sum(map(sum, (c for c in there.values if isinstance(c[0], int)))) != 0

    @pytest.mark.filterwarnings("ignore")  # pyspark and pandas are not of one age
    def test_spark_agrees(self, frame, on_duckdb, tmp_path):
        """The same on Spark, where it is installed."""
        pytest.importorskip("pyspark", reason="pyspark is not installed: pip install hushed[spark]")
        from pyspark.sql import SparkSession

        parquet.write_table(frame, tmp_path / "visits.parquet")
        session = SparkSession.builder.master("local[1]").getOrCreate()
        session.read.parquet(str(tmp_path / "visits.parquet")).createOrReplaceTempView("visits")
        assert cells(full(hs.table("spark://local[1]", "visits", user="who"))) == on_duckdb

    @pytest.mark.parametrize("engine", ["duckdb", "postgres"])
    def test_public_keys_of_every_kind(self, engine, request):
        """Keys find exactly their own rows, whatever marks a text holds, alone or among others."""
        columns = {
            "text": ["", "\x01", "a\x02b", "a", "O'Hara", 'say "hi"', "\\x41", "\n", "a,b", None],
            "whole": [0, -1, 2**63 - 1, -(2**63) + 1, 10, 1, 12, 123, 99, None],
            "truth": [True, False, None, True, False, True, True, True, None, None],
            "day": [date(2020, 2, 29), date(1, 1, 1), date(9999, 12, 31), *[None] * 7],
        }
        table = pa.table(columns)
        source, name = table, "rows"
        if engine == "postgres":
            source, name = request.getfixturevalue("postgres_url"), "keyed"
            to_postgres(table, source, name)
        for column, held in columns.items():
            all_keys = list(dict.fromkeys(v for v in held if v is not None))
            for keys in (all_keys, all_keys[:1], all_keys[1:]):
                query = hs.table(source, name).group_by(column, keys=keys).count()
                assert cells(query).values[0] == [held.count(key) for key in keys]

    def test_plain_python_agrees(self, frame, on_duckdb):
        """Counts are those of a loop over the rows; sums are within a step for each row."""
        rows = [r for r in frame.to_pylist() if r["who"] is not None and kept(r)]
        by_city = defaultdict(list)
        for row in rows:
            by_city[row["city"]].append(row)
        for i, (city,) in enumerate(on_duckdb.keys):
            found = [column[i] for column in on_duckdb.values]
            own = by_city.get(city, [])
            assert found[0] == len(own)
            assert found[1] == len({r["who"] for r in own})
            assert_sum(found[2], own, "x", -10, 100)
            assert found[3] == sum(int(clipped(r["n"], -20, 50) or 0) for r in own)
            assert found[4] == sum(bool(r["well"]) for r in own)

    def test_frames_and_files_hold_the_same(self, frame, tmp_path):
        """Polars frames, Parquet, Arrow and DuckDB files give the cells of the Arrow frame."""
        import polars as pl

        parquet.write_table(frame, tmp_path / "t.parquet")
        feather.write_feather(frame, tmp_path / "t.arrow")
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            made.register("seen", frame)
            made.execute("CREATE TABLE visits AS SELECT * FROM seen")
        expected = cells(short(hs.table(frame, user="who")))
        sources = [
            (pl.from_arrow(frame), "rows"),
            (tmp_path / "t.parquet", "rows"),
            (str(tmp_path / "t.arrow"), "rows"),
            (f"duckdb:///{tmp_path / 't.db'}", "visits"),
        ]
        for source, name in sources:
            assert cells(short(hs.table(source, name, user="who"))) == expected

    def test_pandas_frames_and_csv_files_are_read(self, tmp_path):
        """A frame whose missing cells are NaN, and a CSV file, give the counts of their rows."""
        import pandas as pd

        frame = pd.DataFrame({"who": [1, 1, 2], "x": [1.0, None, 3.0], "city": ["a", None, "b"]})
        csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "t.csv")
        for source, types in ((frame, None), (tmp_path / "t.csv", {"x": "real"})):
            query = hs.table(source, user="who", types=types).per_user(rows=5)
            found = cells(query.filter("x < 2.5 or is_null(x)").count().count_users())
            assert [column[0] for column in found.values] == [2, 1]


def kept(row):
    """The filter of `full` in three-valued logic: None where a value is missing."""

    def both(a, b):
        if a is False or b is False:
            return False
        return None if a is None or b is None else True

    def either(a, b):
        if a is True or b is True:
            return True
        return None if a is None or b is None else False

    def no(a):
        return None if a is None else not a

    x = None if row["x"] is None or math.isnan(row["x"]) else row["x"]
    is_rome = None if row["city"] is None else row["city"] == "rome"
    above = None if x is None else x > 2
    among = None if row["n"] is None else row["n"] in (1, 5, -7)
    return either(either(row["well"] is None, no(both(is_rome, above))), among) is True


def assert_sum(steps, rows, column, low, high):
    """A sum of steps is the sum of the clipped values, up to half a step for each."""
    step = Fraction(2) ** -15  # 1000 rows of a user leave 22 bits below 128
    exact = sum((clipped(r[column], low, high) or 0 for r in rows), Fraction(0))
    assert abs(steps * step - exact) <= len(rows) * step / 2


class TestLimits:
    @pytest.mark.parametrize("engine", ["duckdb", "postgres"])
    def test_no_user_exceeds_the_limits(self, engine, request):
        """With rows=3 and groups=2 every user keeps 3 rows at most, in 2 groups at most."""
        users, copies, groups = 40, 12, 6
        table = pa.table(
            {
                "who": [u for u in range(users) for _ in range(copies)],
                "g": [(u + i) % groups for u in range(users) for i in range(copies)],
                "x": [float(i) for _ in range(users) for i in range(copies)],
            }
        )
        source, name = table, "rows"
        if engine == "postgres":
            source, name = request.getfixturevalue("postgres_url"), "visits"
            to_postgres(table, source)
        query = hs.table(source, name, user="who").per_user(rows=3, groups=2)
        grouped = query.group_by("g", keys=list(range(groups)))
        found = cells(grouped.count().count_users().sum("x", low=0, high=11))
        assert sum(found.values[0]) == 3 * users
        assert users <= sum(found.values[1]) <= 2 * users
        other = cells(grouped.count().count_users().sum("x", low=0, high=11), secret=SECRET // 3)
        assert other.values[2] != found.values[2]  # another key keeps other rows
        assert cells(query.count()).values[0][0] == 3 * users

    @pytest.mark.parametrize("engine", ["duckdb", "postgres"])
    @pytest.mark.parametrize("limits", [{"rows": 1}, {"groups": 1, "rows": 3}])
    def test_which_rows_are_kept_is_fair(self, engine, limits, request):
        """Of 800 users with the same 8 rows each row is kept by about 100 (5.5 sigma)."""
        users = 800
        table = pa.table(
            {"who": [u for u in range(users) for _ in range(8)], "g": list(range(8)) * users}
        )
        source, name = table, "rows"
        if engine == "postgres":
            source, name = request.getfixturevalue("postgres_url"), "visits"
            to_postgres(table, source)
        query = hs.table(source, name, user="who").per_user(**limits)
        found = cells(query.group_by("g", keys=list(range(8))).count()).values[0]
        assert sum(found) == users
        assert all(abs(n - 100) < 5.5 * math.sqrt(100 * 7 / 8) for n in found), found


class TestPrivateKeys:
    def test_only_opaque_names_cross_before_the_selection(self, frame):
        """Private keys are 32 hexadecimal digits; those chosen can be named, and no others."""
        query = hs.table(frame, user="who").per_user(groups=2).group_by("city", private_keys=True)
        query = query.count_users()
        _, what = planned(query, epsilon=1.0, delta=1e-6, noise_name="laplace")
        found = scan(what, SECRET)
        assert all(len(key[0]) == 32 and int(key[0], 16) > 0 for key in found.keys)
        assert 2 <= len(found.keys) <= 9
        chosen = [key[0] for key in found.keys[:2]]
        assert set(name_keys(what, SECRET, chosen)) == set(chosen)
        with pytest.raises(hs.errors.QueryFailed):
            name_keys(what, SECRET, [chosen[0], "0" * 32])

    def test_engines_name_the_same_keys(self, frame, postgres_url):
        """Private groups of both engines hold the same users, by key, where limits do not bind."""
        to_postgres(frame, postgres_url)
        answers = []
        for source, name in ((frame, "rows"), (postgres_url, "visits")):
            query = hs.table(source, name, user="who").per_user(groups=50, rows=500)
            query = query.group_by("city", "well", private_keys=True).count()
            _, what = planned(query, epsilon=1.0, delta=1e-6, noise_name="laplace")
            found = scan(what, SECRET)
            names = name_keys(what, SECRET, [key[0] for key in found.keys])
            keys = [names[key[0]] for key in found.keys]
            answers.append(
                dict(zip(keys, zip(found.users, found.values[0], strict=True), strict=True))
            )
        assert answers[0] == answers[1]
        assert len(answers[0]) > 9
