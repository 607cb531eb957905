"""No value of one row decides whether a query fails, or which rows are one group."""

import datetime
import decimal
import functools
import math
import random
import traceback
from collections import Counter

import duckdb
import psycopg
import pyarrow as pa
import pytest
from ibis.backends.duckdb import Backend as duckdb_backend
from pyarrow import feather, parquet
from tests.engines import ENGINES
from tests.nasty_tables import nasty

import hushed as hs
from hushed.cli._private_tables import read_private_column
from hushed.errors import BadRows, ParameterError, QueryFailed
from hushed.tables._engine import normalise_columns
from hushed.tables._engine.csv_files import lines_query
from hushed.tables._scan import fetch_keys, prepare, run_scan

SECRET = 1234567890123456789
MOMENT = datetime.datetime(2020, 1, 1)


def counts(query, secret=SECRET):
    """Exact counts of a query with public keys."""
    return run_scan(prepare(query.connection, query.query, secret)).values[0]


def private_counts(query, secret=SECRET):
    """Exact counts of a query with private keys, by key."""
    found = run_scan(prepare(query.connection, query.query, secret))
    named = fetch_keys(
        prepare(query.connection, query.query, secret), [key[0] for key in found.keys]
    )
    return {named[key[0]]: n for key, n in zip(found.keys, found.values[0], strict=True)}


def on_duckdb(path, *commands):
    """A DuckDB file made by some commands; its address."""
    with duckdb.connect(str(path)) as made:
        for command in commands:
            made.execute(command)
    return f"duckdb:///{path}"


def on_postgres(url, *commands):
    """A PostgreSQL database after some commands; its address."""
    with psycopg.connect(url) as made:
        for command in commands:
            made.execute(command)
    return url


class TestEqualTexts:
    """A text is equal to itself only, whatever the collation of its column."""

    MADE = (
        "CREATE TABLE t (u {text}, k {text})",
        "INSERT INTO t VALUES ('zero', 'rOmE')",
        "INSERT INTO t SELECT CONCAT('u', i), 'Rome' FROM {some} AS r(i)",
        "INSERT INTO t VALUES ('U1', 'Rome')",
    )

    def address(self, engine, request):
        if engine == "duckdb":
            words = {"text": "VARCHAR COLLATE NOCASE", "some": "range(1, 20)"}
            folder = request.getfixturevalue("tmp_path")
            return on_duckdb(folder / "t.db", *(each.format(**words) for each in self.MADE)), "t"
        if engine == "spark":
            session = request.getfixturevalue("spark")
            rows = "VALUES ('zero', 'rOmE'), ('U1', 'Rome') AS t(u, k)"
            more = "SELECT CONCAT('u', id), 'Rome' FROM range(1, 20)"
            text = "STRING COLLATE UTF8_LCASE"
            made = f"SELECT CAST(u AS {text}) u, CAST(k AS {text}) k"
            made += f" FROM (SELECT * FROM {rows} UNION ALL {more})"
            session.sql(f"CREATE OR REPLACE TEMP VIEW folded AS {made}")
            return "spark://local[2]", "folded"
        words = {"text": "text COLLATE folded", "some": "generate_series(1, 19)"}
        folded = "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        url = request.getfixturevalue("postgres_url")
        try:
            on_postgres(url, f"CREATE COLLATION folded {folded}")
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this PostgreSQL server was built without ICU")
        return on_postgres(url, *(each.format(**words) for each in self.MADE)), "t"

    @pytest.mark.slow_cases("duckdb")
    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_collation_that_ignores_case_merges_nothing(self, engine, request):
        """One row spelled otherwise moves no count of the 20 others, by key, user or condition."""
        source, name = self.address(engine, request)
        by_row, by_user = hs.table(source, name), hs.table(source, name, user="u")
        keyed = [by_row.group_by("k", keys=["Rome", "rome"])]
        keyed.append(
            by_user.bound_contributions(max_rows_per_user=1).group_by("k", keys=["Rome", "rome"])
        )
        for query in keyed:
            assert counts(query.count()) == [20, 0]
        assert counts(by_user.count_users()) == [21]
        assert counts(by_row.filter("k == 'rome'").count()) == [0]
        assert counts(by_row.filter("k in ['rome', 'rOmE']").count()) == [1]
        grouped = by_user.bound_contributions(max_groups_per_user=1, max_rows_per_user=1).group_by(
            "k", select_partitions=True
        )
        assert private_counts(grouped.count()) == {("Rome",): 20, ("rOmE",): 1}

    def test_postgres_compares_texts_byte_by_byte(self, postgres_url):
        """Whatever its declared collation and length, a text has the collation C from the start."""
        made = 'CREATE TABLE t (a text COLLATE "POSIX", b varchar(9), c char(9), d uuid)'
        table = hs.table(on_postgres(postgres_url, made, "INSERT INTO t VALUES ('a')"), "t")
        names = {name: f"c{i}" for i, name in enumerate(table.columns)}
        inner = table.connection.rows.get_backend().compile(
            normalise_columns(table.connection, names)
        )
        asked = ", ".join(f"pg_collation_for({name})" for name in names.values())
        with psycopg.connect(postgres_url) as connection:
            (found,) = connection.execute(f"SELECT {asked} FROM ({inner}) AS inner_").fetchall()
        assert found == ('"C"',) * 4

    def test_the_words_of_a_category_decide_nothing(self):
        """A text that no row holds is compared with a category like any other."""
        import pandas as pd

        for cities in (["Rome", "Oslo", "Bern"], ["Rome", "Oslo", None]):
            frame = pd.DataFrame({"city": pd.Categorical(cities)})
            table = hs.table(frame)
            there = cities.count("Bern")
            assert counts(table.filter("city in ['Bern', 'Paris']").count()) == [there]
            assert counts(table.group_by("city", keys=["Bern", "Oslo"]).count()) == [there, 1]


class TestNames:
    """Columns are told apart by their exact names, and never from the query's own."""

    @pytest.mark.parametrize("name", ["CONDITION", "Condition", "x part 0", "C0", "K0", "user"])
    def test_a_derived_name_collides_with_nothing(self, name):
        """A column like one of the query's own changes no answer, and fails on no row."""
        frame = pa.table({"who": [1, 2], "name": ["Ann", "Bob"], "age": [20, 30]})
        for someone, there in (("Bob", 1), ("Eve", 0)):
            query = hs.table(frame, user="who").bound_contributions(max_rows_per_user=1)
            query = query.filter(f"name == '{someone}'").derive(name, "name")
            query = query.derive("x", "abs(age)").filter("x > 0 and age > 0").count()
            assert counts(query) == [there]

    @pytest.mark.slow_cases("cells2-X part 0")
    @pytest.mark.parametrize("name", ["Condition", "X part 0", "c1", "W0", "Part0"])
    @pytest.mark.parametrize("cells", [["a", "b"], [True, False], [1, 2**62]])
    def test_a_base_column_collides_with_nothing(self, name, cells):
        """Whatever a table's own column is called and holds, other columns are what counts."""
        frame = pa.table({"age": [20.0, 30.0], name: cells})
        query = hs.table(frame).filter("age > 25").derive("x", "age * age").filter("x > 100")
        assert counts(query.sum("x", low=0, high=1000)) == [900 * 2**20]

    def test_names_that_differ_in_case_are_two_columns(self, tmp_path):
        """In a frame each is itself; a Parquet file with both is refused."""
        frame = pa.table({"u": [1, 1, 1, 2], "U": [1, 2, 3, 4], "city": ["1", "Rome", "2", "2"]})
        for user, users in (("u", 2), ("U", 4)):
            assert counts(hs.table(frame, user=user).count_users()) == [users]
        query = hs.table(frame).derive("City", "floor(U)").group_by("City", keys=[1, 4])
        assert counts(query.count()) == [1, 1]
        parquet.write_table(frame, tmp_path / "t.parquet")
        with pytest.raises(ParameterError, match="in other capitals"):
            hs.table(tmp_path / "t.parquet")

    def test_the_same_name_twice_is_refused(self):
        """Which of the two is meant cannot be said."""
        frame = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
        with pytest.raises(ParameterError, match="same name"):
            hs.table(frame)


TIMES = ("m > '2020-01-01'", "year(m) > 1", "month(m) > 0", "m == v", "m in ['2020-01-01']",
         "m < '9999-12-31'", "m != '0001-01-01'", "not (m < v)")  # fmt: skip


class TestTimes:
    """Times of every unit and with any value compare alike, as microseconds or missing."""

    @pytest.mark.slow_cases(
        "frame-ms-None",
        "frame-ns-Europe/Rome",
        "frame-ns-None",
        "frame-s-Europe/Rome",
        "frame-s-None",
        "frame-us-Europe/Rome",
        "frame-us-None",
        "parquet-ms-Europe/Rome",
        "parquet-ms-None",
        "parquet-ns-Europe/Rome",
        "parquet-ns-None",
        "parquet-us-Europe/Rome",
        "parquet-us-None",
    )
    @pytest.mark.parametrize(
        "zone", [None, pytest.param("UTC", marks=pytest.mark.slow), "Europe/Rome"]
    )
    @pytest.mark.parametrize(
        ("source", "unit"),
        [*(("frame", unit) for unit in ("s", "ms", "us", "ns")),
         *(("parquet", unit) for unit in ("ms", "us", "ns"))],
    )  # fmt: skip
    def test_one_extreme_time_fails_nothing(self, source, unit, zone, tmp_path):
        """Beside far values of 64 bits, conditions find the plain rows as they are."""
        plain = [MOMENT, datetime.datetime(2021, 5, 6, 7)]
        far = pa.array([2**62, -(2**62), 2**63 - 1], pa.int64()).cast(pa.timestamp(unit, zone))
        made = pa.array(plain, pa.timestamp("us")).cast(pa.timestamp(unit)).cast(pa.int64())
        made = made.cast(pa.timestamp(unit, zone))  # in UTC
        moments = pa.concat_arrays([made, far])
        others = pa.array([MOMENT] * len(moments), pa.timestamp("ns"))
        keep = ["a"] * 2 + ["b"] * len(far)
        opened = pa.table({"m": moments, "v": others, "k": keep})
        if source == "parquet":
            parquet.write_table(opened, tmp_path / "t.parquet")
            opened = tmp_path / "t.parquet"
        table = hs.table(opened)
        assert dict(table.columns) == {"m": "timestamp", "v": "timestamp", "k": "string"}
        found = [table.filter(t).group_by("k", keys=["a"]).count() for t in TIMES]
        assert [counts(each) for each in found] == [[1], [2], [2], [1], [1], [2], [2], [2]]

    @pytest.mark.parametrize("zone", [None, "Europe/Rome"])
    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_one_extreme_time_that_is_declared_a_text_fails_nothing(self, unit, zone):
        """DuckDB has no spelling of the farthest ones, and one row would tell that it is there."""
        numbers = pa.array([0, 0, 2**62, -(2**62), 2**63 - 1, -(2**63)], pa.int64())
        frame = pa.table({"m": numbers.cast(pa.timestamp(unit, zone))})
        table = hs.table(frame, types={"m": "string"})
        assert table.columns["m"] == "string"
        assert counts(table.filter("m == '1970-01-01 00:00:00'").count()) == [2]
        assert counts(table.filter("is_null(m) or m != ''").count()) == [6]

    @pytest.mark.parametrize("who", ["Bob", "Eve"])
    def test_a_constant_that_a_unit_cannot_hold_is_still_compared(self, who):
        """No nanosecond column reaches the year 9999: nothing matches, and nothing fails."""
        frame = pa.table({"who": ["Ann", "Bob"], "left": pa.array([1, 2], pa.timestamp("ns"))})
        query = hs.table(frame).filter(f"who == '{who}'").filter("left == '9999-12-31'").count()
        assert counts(query) == [0]

    def test_times_that_no_column_holds_are_refused_before_the_query(self):
        """A constant beyond the year 9999 in UTC is no time; one with a zone is read in UTC."""
        frame = pa.table({"m": pa.array([MOMENT], pa.timestamp("us")), "d": [MOMENT.date()]})
        table = hs.table(frame)
        for text in ("10000-01-01", "9999-12-31T23:00:00-05:00", "0001-01-01T00:00:00+02:00"):
            with pytest.raises(ParameterError, match=r"is no timestamp|in the years 1 to 9999"):
                table.filter(f"m < '{text}'")
        assert counts(table.filter("m == '2020-01-01T02:00:00+02:00'").count()) == [1]
        assert counts(table.filter("d == '20200101'").count()) == [1]
        # A date has no time of day: "before six in the evening" would be before its midnight.
        for text in ("2020-01-01 18:00:00", "2020-01-01T00:00:00+02:00"):
            with pytest.raises(ParameterError, match="has a time of day"):
                table.filter(f"d < '{text}'")
        assert counts(table.filter("d <= '2020-01-01 00:00:00'").count()) == [1]

    @pytest.mark.parametrize("declared", ["int", "float", "bool", "date", "timestamp"])
    def test_an_id_is_read_as_a_text_alone(self, declared, tmp_path):
        """A UUID that is declared another type is refused when the table is opened."""
        source = on_duckdb(tmp_path / "t.db", "CREATE TABLE t AS SELECT uuid() AS id")
        assert counts(hs.table(source, "t", types={"id": "string"}).count()) == [1]
        with pytest.raises(ParameterError, match="of type uuid and cannot be read"):
            hs.table(source, "t", types={"id": declared})

    @pytest.mark.filterwarnings("ignore:.*is a view")
    @pytest.mark.parametrize(("name", "declared"), [("t", {"z": "date"}), ("v", {})])
    def test_a_day_of_a_time_with_a_zone_is_that_of_utc(
        self, name, declared, tmp_path, monkeypatch
    ):
        """The zone of the machine decides nothing, whatever Ibis sets."""
        source = on_duckdb(
            tmp_path / "t.db",
            "CREATE TABLE t AS SELECT TIMESTAMPTZ '2020-01-01 23:30:00+00' AS z",
            "CREATE VIEW v AS SELECT CAST(z AS DATE) AS z FROM t",
        )
        prepared = duckdb_backend._post_connect

        def as_in_auckland(backend, *given):
            prepared(backend, *given)
            backend.con.execute("SET TimeZone = 'Pacific/Auckland'")

        monkeypatch.setattr(duckdb_backend, "_post_connect", as_in_auckland)
        table = hs.table(source, name, types=declared)
        assert counts(table.filter("z == '2020-01-01'").count()) == [1]

    @pytest.mark.slow
    def test_infinite_times_on_duckdb(self, tmp_path):
        """Infinite dates and times are missing; so are those before the year 1."""
        source = on_duckdb(
            tmp_path / "t.db",
            "CREATE TABLE t AS SELECT * FROM (VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01'),"
            "('infinity'::DATE, '-infinity'::TIMESTAMP), ('5000-01-01 (BC)'::DATE,"
            " '290309-12-22 (BC) 00:00:00'::TIMESTAMP)) v(d, m)",
            "ALTER TABLE t ADD COLUMN z TIMESTAMPTZ",
            "UPDATE t SET z = TIMESTAMPTZ '2020-01-01 00:00:00+00' WHERE d = '2020-01-01'",
            "UPDATE t SET z = 'infinity' WHERE d > '2020-01-01'",
            "UPDATE t SET z = '-infinity' WHERE d < '2020-01-01'",
        )
        self.check_infinite(source)

    @pytest.mark.slow
    def test_infinite_times_on_postgres(self, postgres_url):
        """The same in PostgreSQL, where extracting the year of an infinite time fails."""
        rows = ["('2020-01-01', '2020-01-01', '2020-01-01 00:00+00')"]
        rows += ["('infinity', '-infinity', 'infinity')"]
        rows += ["('4000-01-01 BC', '4000-01-01 BC', '4000-01-01 BC')"]
        source = on_postgres(
            postgres_url,
            "CREATE TABLE t (d date, m timestamp, z timestamptz)",
            f"INSERT INTO t VALUES {', '.join(rows)}",
        )
        self.check_infinite(source)

    @pytest.mark.spark
    @pytest.mark.filterwarnings("ignore")  # pyspark and pandas are not of one age
    def test_far_times_on_spark(self, spark):
        """The same on Spark."""
        rows = [
            f"(DATE'{y}-01-01', TIMESTAMP_NTZ'{y}-01-01 00:00:00', TIMESTAMP'{y}-01-01 00:00:00Z')"
            for y in ("2020", "-5000", "+200000")
        ]
        held = f"SELECT * FROM VALUES {', '.join(rows)} AS v(d, m, z)"
        spark.sql(f"CREATE OR REPLACE TEMP VIEW far AS {held}")
        self.check_infinite("spark://local[2]", "far")

    def check_infinite(self, source, name="t"):
        table = hs.table(source, name)
        for column in "dmz":
            assert counts(table.filter(f"is_null({column})").count()) == [2]
            assert counts(table.filter(f"year({column}) == 2020").count()) == [1]
            assert counts(table.filter(f"month({column}) > 0").count()) == [1]
            assert counts(table.filter(f"{column} <= '2020-01-01'").count()) == [1]
        assert counts(table.filter("m == z").count()) == [1]
        assert private_counts(table.group_by("d", select_partitions=True).count()) == {
            (MOMENT.date(),): 1
        }


class TestNumbers:
    @pytest.mark.slow
    @pytest.mark.parametrize("largest", [3, 2**63 + 5, 2**64 - 1])
    def test_whole_numbers_without_a_sign(self, largest):
        """Users, keys and cells of 64 bits are exact above 2**63, too."""
        frame = pa.table({"u": pa.array([1, 2, largest], pa.uint64()), "c": [1.0, 2.0, 3.0]})
        table = hs.table(frame, user="u").bound_contributions(max_rows_per_user=1)
        assert table.columns["u"] == "int"
        assert counts(table.count()) == [3]
        assert counts(table.count_users()) == [3]
        assert counts(table.group_by("u", keys=[1, -3]).count()) == [1, 0]
        assert counts(table.filter("u >= -1 and u not in [2, 1.5]").count()) == [2]
        assert counts(table.derive("w", "floor(u)").filter("w >= 0").count()) == [3]
        found = private_counts(table.group_by("u", select_partitions=True).count())
        assert found == {(1,): 1, (2,): 1, (largest,): 1}

    @pytest.mark.parametrize(
        ("number", "steps"),
        [("1e-400", 0), ("-1e-310", 0), ("1e400", 10), ("NaN", None), ("-Infinity", 0), ("7", 7)],
    )
    def test_decimals_of_any_size_on_postgres(self, number, steps, postgres_url):
        """What no double holds is the nearest that arithmetic can bear; NaN is missing."""
        source = on_postgres(
            postgres_url, "CREATE TABLE t (n numeric)", f"INSERT INTO t VALUES ('{number}')"
        )
        table = hs.table(source, "t")
        assert counts(table.filter("is_null(n)").count()) == [int(steps is None)]
        assert counts(table.sum("n", low=0, high=10)) == [(steps or 0) * 2**26]
        assert counts(table.filter("n * n - 1 / n == n or n > 0").count()) == [int(bool(steps))]

    @pytest.mark.parametrize(
        ("digits", "part", "number"),
        [(18, 3, "99999999999999.999"), (38, 20, "1.00000000000000000001")],
    )
    def test_a_decimal_with_a_fraction_is_no_whole_number(self, digits, part, number):
        """It would be taken for its neighbour, and two users for one."""
        near = decimal.Decimal(number).to_integral_value()
        cells = [decimal.Decimal(number), near, -near, near + 1, None]
        frame = pa.table({"who": pa.array(cells, pa.decimal128(digits, part))})
        table = hs.table(frame, types={"who": "int"})
        assert counts(table.filter("is_null(who)").count()) == [2]
        assert counts(table.filter(f"who in [{near}, {-near}, {near + 1}]").count()) == [3]

    @pytest.mark.parametrize("declared", ["int", "string", "float", None])
    @pytest.mark.parametrize("source", ["frame", "arrow"])
    def test_the_least_decimal_of_arrow_fails_nothing(self, source, declared, tmp_path):
        """It has 39 digits, and DuckDB fails to spell it: one row would tell that it is there."""
        held = b"".join(n.to_bytes(16, "little", signed=True) for n in (7, -(2**127), 2**127 - 1))
        cells = pa.Array.from_buffers(pa.decimal128(38, 0), 3, [None, pa.py_buffer(held)])
        opened = pa.table({"n": cells})
        if source == "arrow":
            feather.write_feather(opened, tmp_path / "t.arrow", compression="uncompressed")
            opened = tmp_path / "t.arrow"
        table = hs.table(opened, types={} if declared is None else {"n": declared})
        seven = "n == '7'" if declared == "string" else "n == 7"
        assert counts(table.filter(seven).count()) == [1]
        assert counts(table.filter(f"is_null(n) or not ({seven})").count()) == [2]

    @pytest.mark.parametrize("source", ["frame", "arrow", "parquet"])
    def test_a_decimal_that_is_read_as_a_double_is_no_whole_number(self, source, tmp_path):
        """Two users whose numbers agree in 53 bits would be one."""
        users = pa.array([10**17, 10**17 + 1]).cast(pa.decimal256(40, 0))
        opened = pa.table({"who": users, "x": [1, 2]})
        if source == "arrow":
            feather.write_feather(opened, tmp_path / "t.arrow", compression="uncompressed")
            opened = tmp_path / "t.arrow"
        elif source == "parquet":
            parquet.write_table(opened, tmp_path / "t.parquet")
            opened = tmp_path / "t.parquet"
        for declared in ("int", "string"):
            with pytest.raises(ParameterError, match=r"'who' is a decimal256.*decimal128\(38, 0\)"):
                hs.table(opened, types={"who": declared})
        assert hs.table(opened, types={"who": "float", "x": "int"}).columns["who"] == "float"

    @pytest.mark.parametrize("declared", ["int", "float", "bool", "date", "timestamp"])
    def test_a_uuid_spells_a_string_alone(self, declared):
        """DuckDB refused the query, and not the column that is declared wrongly."""
        rows = pa.table({"who": pa.array([b"0" * 16], pa.uuid())})
        with pytest.raises(
            ParameterError, match=f"is of type uuid and cannot be read as {declared}"
        ):
            hs.table(rows, types={"who": declared})
        whole = hs.table(rows, types={"who": "string"}).filter("not is_null(who)")
        assert counts(whole.count()) == [1]

    @pytest.mark.slow
    def test_huge_whole_numbers_on_duckdb(self, tmp_path):
        """Numbers of 128 bits are clipped like any other."""
        huge = 2**127 - 1
        source = on_duckdb(
            tmp_path / "t.db",
            f"CREATE TABLE t AS SELECT * FROM (VALUES (1::HUGEINT), ({huge}::HUGEINT)) v(n)",
        )
        table = hs.table(source, "t")
        assert counts(table.filter("n * n > 2").count()) == [1]
        assert counts(table.sum("n", low=0, high=8)) == [9 * 2**26]


class TestGroups:
    """Two texts with one number in DuckDB's own hash, under every key."""

    ONE, OTHER = "axzbolbvaaaaabae", "sjdgwulnoyevfcdz"

    @pytest.mark.slow
    def test_colliding_keys_are_two_groups(self):
        """Private keys that a fast hash takes for one are counted, and named, apart."""
        both = duckdb.execute(f"SELECT hash('{self.ONE}') = hash('{self.OTHER}')").fetchall()
        assert both == [(True,)]  # or the test shows nothing
        keys = [self.ONE] * 5 + [self.OTHER]
        frame = pa.table({"u": list(range(6)), "k": keys, "x": [1.0] * 6})
        query = (
            hs.table(frame, user="u")
            .bound_contributions(max_rows_per_user=1)
            .group_by("k", select_partitions=True)
        )
        expected = {(self.ONE,): 5, (self.OTHER,): 1}
        assert private_counts(query.count()) == expected
        binned = private_counts(query.histogram("x", low=0, high=2, bins=2))
        assert binned == {key: [0, n] for key, n in expected.items()}

    def test_colliding_keys_leave_the_limits_as_they_are(self):
        """Where the order of a user's rows ties, the keys themselves decide: one group is kept."""
        keys = [self.ONE, self.OTHER, self.OTHER]
        for order in (keys, keys[::-1]):
            frame = pa.table({"u": [1] * 3, "k": order})
            query = hs.table(frame, user="u").bound_contributions(
                max_groups_per_user=1, max_rows_per_user=9
            )
            assert sorted(counts(query.group_by("k", keys=[self.ONE, self.OTHER]).count())) in (
                [0, 1],
                [0, 2],
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ENGINES)
    def test_opaque_names_tell_pairs_of_keys_apart(self, engine, placed):
        """Keys whose texts run together alike have different names, and none without the key."""
        pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", "")]
        frame = pa.table({"g": [p[0] for p in pairs], "h": [p[1] for p in pairs]})
        source, name = placed(engine, frame)
        query = hs.table(source, name).group_by("g", "h", select_partitions=True).count()
        assert private_counts(query) == dict.fromkeys(pairs, 1)
        here, there = (
            run_scan(prepare(query.connection, query.query, SECRET)).keys,
            run_scan(prepare(query.connection, query.query, SECRET // 3)).keys,
        )
        assert not set(here) & set(there)


class TestReserve:
    def test_all_numbers_of_a_query_share_the_reserve(self):
        """Two histograms that fit one by one, and not together, are refused before the charge."""
        keys = [str(i) for i in range(60)]
        query = hs.table(pa.table({"c": [1.0], "k": ["0"]})).group_by("k", keys=keys)
        query = query.histogram("c", low=0, high=1, bins=10_000)
        query.quote(epsilon=1.0, delta=1e-6, noise="gaussian")
        double = query.histogram("c", low=0, high=2, bins=10_000, name="more")
        with pytest.raises(ParameterError, match="1048576 numbers"):
            double.quote(epsilon=1.0, delta=1e-6, noise="gaussian")
        double.quote(epsilon=1.0)

    def test_private_keys_share_it_too(self, monkeypatch):
        """Where the number of keys turns out with the selection, the answer fails."""
        from hushed.tables import _release as releases

        monkeypatch.setattr(releases, "noise_dims", lambda: 3)
        frame = pa.table({"k": ["a", "b"] * 500, "c": [1.0] * 1000})
        query = hs.table(frame).group_by("k", select_partitions=True).count()
        assert len(query.release(epsilon=9.0, delta=1e-3, noise="gaussian")) == 2
        with pytest.raises(QueryFailed, match="3 numbers"):
            query.count(name="again").release(epsilon=9.0, delta=1e-3, noise="gaussian")


def csv_file(path, cells):
    """A CSV file with a user and one more cell in each row."""
    path.write_bytes(b"u,cost\n" + b"".join(b"%d,%s\n" % (i, c) for i, c in enumerate(cells)))
    return path


def told_of_csv(path, cells, place):
    """Types, accuracy, rows but one, and the cells of a query, for a CSV file with these cells."""
    table = hs.table(csv_file(path, cells), user="u", types={"cost": "int"})
    table = table.bound_contributions(max_rows_per_user=1)
    query = table.count().sum("cost", low=0, high=1000)
    plain = counts(table.filter(f"u != '{place}'").count())
    accuracy = query.quote(epsilon=1.0).accuracy("sum_cost")
    found = run_scan(prepare(query.connection, query.query, SECRET)).values
    return [dict(table.columns), accuracy, plain, *found]


@pytest.fixture(scope="module")
def without_odd_cells(tmp_path_factory):
    """What is told of the file in which every cell is a number, asked once for each place."""
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    return functools.cache(lambda place: told_of_csv(path, TestCsv.ROWS, place))


def cut(line, between):
    """Cut a line into cells, one character after the other."""
    cells, at = [], 0
    while at <= len(line):
        end, inner = at + 1, ""
        while line[at : at + 1] == '"' and end < len(line):
            if line[end : end + 2] == '""':
                inner, end = inner + '"', end + 2
            elif line[end] == '"':
                break
            else:
                inner, end = inner + line[end], end + 1
        closed = line[at : at + 1] == '"' and end < len(line)
        stop = line.find(between, end + 1 if closed else at)
        stop = len(line) if stop < 0 else stop
        cells.append(inner if closed and stop == end + 1 else line[at:stop])
        at = stop + 1
    return cells


@pytest.mark.filterwarnings("ignore:The cells of this file are separated by semicolons")
class TestCsv:
    """A line is a row, and types are declared: no cell says anything of another."""

    ROWS = tuple(b"%d" % (i % 100) for i in range(3000))

    @pytest.mark.slow_cases("1.5-2", "abc-2", "abc-2990")
    @pytest.mark.parametrize("place", [2, 2990])
    @pytest.mark.parametrize(
        "cell",
        [b"abc", b"1.5", b"9" * 30, b'"x', b"3,4", b"", b'"', b"\xff\xfe", b"\x00", b"1e999",
         b'x"y"', b"'", b"x" * 3_000_000],
    )  # fmt: skip
    def test_one_odd_cell_is_missing_and_moves_nothing_else(
        self, place, cell, tmp_path, without_odd_cells
    ):
        """Kinds, price and all other rows are as they were, wherever the odd cell stands."""
        there = list(self.ROWS)
        there[place] = cell
        one, other = without_odd_cells(place), told_of_csv(tmp_path / "t.csv", there, place)
        assert one[:4] == other[:4]  # 3000 rows, 2999 of them as before
        lost = int(self.ROWS[place]) - (3 if cell == b"3,4" else 0)
        assert one[4][0] - other[4][0] == lost

    def test_cells_are_read_as_they_are_written(self, tmp_path):
        """Quotes, marks within them, ends of lines, blank lines, short lines, a mark of order."""
        text = '\ufeffa;"b c";d\r\n1;"x;""y""";2020-02-29\r\n\r\n ;;\n3\n4;"";true;9\n5;z"z;1.0'
        (tmp_path / "t.csv").write_bytes(text.encode())
        types = {"a": "int", "d": "date"}
        table = hs.table(tmp_path / "t.csv", types=types)
        assert dict(table.columns) == {"a": "int", "b c": "string", "d": "date"}
        wanted = [("a in [1, 3, 4, 5]", 4), ("is_null(a)", 1), ("is_null(column('b c'))", 3)]
        wanted += [("column('b c') == 'x;\"y\"'", 1), ("column('b c') == 'z\"z'", 1)]
        wanted += [("d == '2020-02-29'", 1), ("is_null(d)", 4), ("is_null(a) or a > 0", 5)]
        for condition, rows in wanted:
            assert counts(table.filter(condition).count()) == [rows], condition

    @pytest.mark.slow_cases(",")
    @pytest.mark.parametrize("between", [",", ";", "\t", "|"])
    def test_every_mark_between_cells(self, between, tmp_path):
        """Commas, semicolons, tabulators and bars; quoted cells with such a mark in them."""
        lines = [["a", "b", "c"], ["1", f'"x{between}y"', "true"], ["2.5", "z", "maybe"]]
        path = tmp_path / ("t.tsv" if between == "\t" else "t.csv")
        path.write_text("\n".join(between.join(line) for line in lines))
        table = hs.table(path, types={"a": "float", "c": "bool"})
        assert counts(table.filter("a == 2.5").count()) == [1]
        assert counts(table.filter(f"b == 'x{between}y' and c").count()) == [1]
        assert counts(table.filter("is_null(c)").count()) == [1]

    @pytest.mark.parametrize("between", [",", ";", "\t", "|"])
    def test_lines_are_split_alike_whichever_way_they_take(self, between):
        """Thousands of short lines of quotes, marks and letters, against a loop over characters."""
        rng = random.Random(7)
        marks = f'"a{between} %'
        lines = ["".join(rng.choices(marks, k=rng.randint(1, 8))) for _ in range(5000)]
        wanted = [(*(c or None for c in cut(line, between)), None, None)[:3] for line in lines]
        with duckdb.connect() as opened:
            opened.register("lines", pa.table({"line": lines}))
            found = opened.execute(lines_query("lines", between, 3)).fetchall()
        assert Counter(found) == Counter(wanted)

    def test_types_read_what_they_can(self, tmp_path):
        """Whole numbers may be written as reals, and are never rounded."""
        cells = ["3", "3.0", "1.5", "1e3", "-7", "9223372036854775807", "9223372036854775808", "x"]
        (tmp_path / "t.csv").write_text("n\n" + "\n".join(cells))
        table = hs.table(tmp_path / "t.csv", types={"n": "int"})
        for value, rows in ((3, 2), (1000, 1), (-7, 1), (2**63 - 1, 1), (2, 0)):
            assert counts(table.group_by("n", keys=[value]).count()) == [rows]
        assert counts(table.filter("is_null(n)").count()) == [3]

    @pytest.mark.parametrize(
        ("declared", "condition", "read", "missing"),
        [
            (
                "float", "a == 1000",
                ["1000", " 1e3 ", "+1.E+3", "01000.0", "\t1000"],
                ["1_000", "+-1000", "1,000", "1 000", "1000f", "0x3e8", "١٠٠٠", "\u00a01000",
                 "1\x0b", "1e3_0", "0" * 1000 + "1", "1.000,00", "null"],
            ),
            (
                "int", "a == 1000",
                ["1000", " 1000 ", "1000.", "+1e3", "1000.00"],
                ["1_000", "+-1000", "1000.5", "1e-400", "9007199254740992.5", "0x3e8", "1e1_0",
                 "0.99999999999999999999", "0.99999999999999999999e0", "NaN", "Infinity"],
            ),
            (
                "bool", "a",
                ["true", "TRUE", " t", "Yes ", "y", "1"],
                ["on", "2", "1.0", "truth", "-1", "ja"],
            ),
            (
                "date", "a == '2024-03-01'",
                ["2024-03-01", "2024-3-1 ", "2024/03/01", "2024-03-01 12:30:00",
                 "2024-02-29T23:00:00-05:00"],
                ["01.03.2024", "03/01/2024", "24-03-01", "20240301", "epoch", "infinity",
                 "2024-03-01 (BC)", "2024-02-30", "2024-03-01x"],
            ),
            (
                "timestamp", "a == '2024-03-01 12:30:00'",
                ["2024-03-01 12:30:00", "2024-03-01T12:30", " 2024-03-01 12:30:00.000",
                 "2024-03-01T12:30:00Z", "2024-03-01 14:30:00+02", "2024-03-01 07:00:00-0530"],
                ["01.03.2024 12:30", "2024-03-01 12:30:00 PM", "2024-03-01 12:30:00 Europe/Rome",
                 "2024-03-01 12:30:00,5", "24-03-01 12:30", "epoch", "2024-03-01 12:30:60"],
            ),
        ],
        ids=["float", "int", "bool", "date", "timestamp"],
    )  # fmt: skip
    @pytest.mark.parametrize("source", ["csv", "frame"])
    @pytest.mark.slow_cases("frame-float", "frame-bool", "frame-date", "frame-timestamp")
    def test_spellings_are_those_of_the_documentation(
        self, declared, condition, read, missing, source, tmp_path
    ):
        """What is listed is read, and as the same value; all else is missing, not a near value."""
        cells = [*read, *missing]
        (tmp_path / "t.csv").write_text("\n".join(["a;b", *(f'"{cell}";x' for cell in cells)]))
        opened = tmp_path / "t.csv" if source == "csv" else pa.table({"a": cells})
        table = hs.table(opened, types={"a": declared})
        assert counts(table.filter("is_null(a)").count()) == [len(missing)]
        assert counts(table.filter(condition).count()) == [len(read)]

    def test_a_file_holds_the_same_numbers_for_a_query_and_for_a_function(self, tmp_path):
        """Both readers of private files take the same spellings, and the same doubles of them."""
        rng = random.Random(11)
        marks = "00123456789...eE+-_ \tinfa"
        cells = ["".join(rng.choices(marks, k=rng.randint(1, 7))) for _ in range(3000)]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["a|b", *(f"{cell}|{i}" for i, cell in enumerate(cells))]))
        opened = hs.table(path, types={"a": "float", "b": "int"}).connection
        rows = normalise_columns(opened, {"a": "x", "b": "place"}).to_pyarrow().sort_by("place")
        found = rows["x"].to_pylist()  # an engine reads parts of a file at once, in any order
        path.write_text("\n".join(["a,b", *(f"{cell}," for cell in cells)]))
        wanted = read_private_column(path, "a", header=True).tolist()
        assert sum(map(math.isnan, wanted)) > 300
        assert found == [None if math.isnan(each) else each for each in wanted]

    def test_a_duckdb_file_without_its_scheme_is_told_its_address(self, tmp_path):
        """A path alone is a file of rows; a database is named by an address."""
        (tmp_path / "stays.duckdb").write_bytes(b"")
        with pytest.raises(ParameterError, match="named by its address, duckdb:///FILE"):
            hs.table(str(tmp_path / "stays.duckdb"))

    def test_an_empty_file_is_refused_and_one_without_rows_is_not(self, tmp_path):
        """The first line is public and has to be there."""
        for text in ("", "\n", "\ufeff", " \r\n\r\n"):
            (tmp_path / "t.csv").write_text(text)
            with pytest.raises(BadRows, match="is empty"):
                hs.table(tmp_path / "t.csv")
        for text in ("a,b", "a,b\n"):
            (tmp_path / "t.csv").write_text(text)
            assert counts(hs.table(tmp_path / "t.csv").count()) == [0]

    @pytest.mark.parametrize(
        ("first", "why"),
        [
            ("P77123;cardio;HIV positive;120077", "number or a date"),
            ("Quux;1.234,50", "number or a date"),
            ("Quux;01.03.2024", "number or a date"),
            ("Quux;2024-03-01 12:30", "number or a date"),
            ("Quux;-7e3", "number or a date"),
            ("Quux;;Rome", "empty cell"),
            ("Quux; ;Rome", "empty cell"),
            ("Quux;Rome;Rome", "same name twice"),
            ("Quux\x00;Rome", "null"),
            ("Quux" * 50_000, "empty cell"),
        ],
    )
    def test_a_first_line_that_may_be_a_record_is_refused_unseen(self, first, why, tmp_path):
        """No cell of it is told, whichever column is asked for."""
        (tmp_path / "t.csv").write_text(f"{first}\nAda;Oslo;x;3\n")
        with pytest.raises(BadRows, match=why) as caught:
            hs.table(tmp_path / "t.csv", user="patient", types={"visits": "int"})
        told = "".join(traceback.format_exception(caught.value))
        cells = [cell for cell in first.split(";") if cell.strip()]
        assert not [cell for cell in cells if cell in told]
        assert "header=" in told

    def test_names_may_hold_numbers(self, tmp_path):
        """A name with a digit, a blank, a dash or a date in it is none."""
        (tmp_path / "t.csv").write_text("x1,b c,2024-cost,no. 7,e5\n1,2,3,4,5\n")
        table = hs.table(tmp_path / "t.csv")
        assert list(table.columns) == ["x1", "b c", "2024-cost", "no. 7", "e5"]

    @pytest.mark.parametrize("between", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("before", ["", "\ufeff"])
    def test_a_given_header_makes_every_line_a_row(self, between, before, tmp_path):
        """Names, their number and the mark come from it alone, the first line counts."""
        path = tmp_path / ("t.tsv" if between == "\t" else "t.csv")
        lines = [["7", "x;y,z|w", "3"], ["8", "Oslo", "4", "more"], ["9"]]
        text = "\n".join(between.join(f'"{c}"' for c in line) for line in lines)
        path.write_text(before + text)
        header = between.join(["who", "city", "visits"])
        table = hs.table(path, types={"who": "int", "visits": "int"}, header=header)
        assert list(table.columns) == ["who", "city", "visits"]
        assert counts(table.count()) == [3]
        assert counts(table.filter("who == 7 and visits == 3").count()) == [1]
        assert counts(table.filter("is_null(visits)").count()) == [1]

    def test_a_header_that_does_not_fit_is_refused(self, tmp_path):
        """Names that are empty or twice there, and sources with names of their own."""
        path = csv_file(tmp_path / "t.csv", self.ROWS)
        for header in ("", "a,,b", "a,a", 3):
            with pytest.raises(ParameterError, match="header"):
                hs.table(path, header=header)
        (tmp_path / "t.parquet").write_text("x")
        for source in (pa.table({"a": [1]}), tmp_path / "t.parquet", "duckdb:///a.db"):
            with pytest.raises(ParameterError, match="for CSV files"):
                hs.table(source, header="a")

    def test_an_undeclared_number_is_refused_with_advice(self, tmp_path):
        """Adding up a text says how to declare it; so do comparisons and arithmetic."""
        table = hs.table(csv_file(tmp_path / "t.csv", self.ROWS))
        for ask in (
            lambda: table.sum("cost", low=0, high=1),
            lambda: table.filter("cost > 3"),
            lambda: table.derive("x", "cost / 2"),
        ):
            with pytest.raises(ParameterError, match="types="):
                ask()


class TestTypes:
    @pytest.mark.slow
    def test_bad_declarations_are_refused(self, tmp_path, postgres_url):
        """Unknown columns and types, types that cannot be, databases with types of their own."""
        frame = pa.table({"n": [1, 2], "d": [MOMENT.date()] * 2, "l": [[1], [2]]})
        for types in ({"m": "int"}, {"n": "number"}, {"n": "date"}, {"l": "string"}, ["n"]):
            with pytest.raises(ParameterError):
                hs.table(frame, types=types)
        names = "types are int, float, string, bool, date, timestamp"
        for old in ("whole", "real", "text", "truth", "day", "moment"):
            with pytest.raises(ParameterError, match=names):
                hs.table(frame, types={"n": old})
        on_postgres(postgres_url, "CREATE TABLE t (n bigint)")
        with pytest.raises(ParameterError, match="view"):
            hs.table(postgres_url, "t", types={"n": "int"})
        with pytest.raises(ParameterError, match="cannot be queried"):
            hs.table(frame).filter("is_null(l)")

    def test_a_declared_type_holds_whatever_the_cells_made_of_it(self):
        """One missing cell turns integers of a frame into floats; declared, the price stays."""
        import pandas as pd

        prices = []
        for cells in ([1, 2, 3], [1, 2, math.nan], [1, 2, 2.5]):
            table = hs.table(pd.DataFrame({"n": cells}), types={"n": "int"})
            query = table.sum("n", low=0, high=10)
            prices.append(query.quote(epsilon=1.0).accuracy("sum_n"))
            assert counts(query) == [6 if cells[2] == 3 else 3]
        assert len(set(prices)) == 1

    @pytest.mark.slow
    def test_columns_of_objects_are_text(self):
        """What a frame keeps as Python objects says nothing of its type by its cells."""
        import pandas as pd

        for odd in (1, "x", None, 2.5, b"raw", MOMENT, "\ud800"):
            frame = pd.DataFrame({"o": pd.Series(["a", "7", odd], dtype=object)})
            table = hs.table(frame)
            assert table.columns["o"] == "string"
            assert counts(table.filter("o == 'a'").count()) == [1]
            whole = hs.table(frame, types={"o": "int"})
            assert counts(whole.group_by("o", keys=[7]).count()) == [1]

    @pytest.mark.parametrize("source", ["frame", "parquet"])
    def test_bytes_that_are_no_text_fail_nothing(self, source, tmp_path):
        """A text column of a broken file is read; the broken cell is a text like any other."""
        ends = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 2, 5, 8)))
        texts = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"\xff\xfeabcabc")])
        opened = pa.table({"s": texts, "u": [1, 2, 3]})
        if source == "parquet":
            parquet.write_table(opened, tmp_path / "t.parquet")
            opened = tmp_path / "t.parquet"
        table = hs.table(opened, user="u").bound_contributions(max_rows_per_user=1)
        assert counts(table.filter("s == 'abc'").count()) == [2]
        assert counts(table.group_by("s", keys=["abc", "x"]).count()) == [2, 0]
        found = table.group_by("s", select_partitions=True).count_users()
        assert sorted(run_scan(prepare(found.connection, found.query, SECRET)).values[0]) == [1, 2]

    @pytest.mark.slow_cases("parquet")
    @pytest.mark.parametrize("source", ["csv", "arrow", "categories", "objects", "parquet"])
    def test_users_whose_names_are_no_text_stay_different(self, source, tmp_path):
        """In a file of Latin-1, three users with one row each count as three, in every query."""
        names = ["Sören", "Søren", "Sùren"]
        held = [name.encode("latin-1") for name in names]
        raw = pa.array(held, pa.binary())
        texts = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
        opened = pa.table({"u": texts, "x": [1, 2, 3]})
        if source == "csv":
            opened = tmp_path / "t.csv"
            opened.write_bytes(b"u;x\n" + b"".join(each + b";1\n" for each in held))
        elif source == "categories":
            chosen = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), texts)
            opened = pa.table({"u": chosen})
        elif source == "objects":
            import pandas as pd

            halves = [each.decode("utf-8", "surrogateescape") for each in held]
            opened = pd.DataFrame({"u": pd.Series(halves, dtype=object)})
        elif source == "parquet":
            parquet.write_table(opened, tmp_path / "t.parquet")
            opened = tmp_path / "t.parquet"
        table = hs.table(opened, user="u").bound_contributions(max_rows_per_user=1)
        assert counts(table.count()) == [3]
        assert counts(table.count_users()) == [3]

    @pytest.mark.parametrize("source", ["frame", "parquet"])
    def test_types_that_only_arrow_knows_are_read_as_their_next(self, source, tmp_path):
        """Halves of floats, decimals of 256 bits, categories and views of texts."""
        opened = pa.table(
            {
                "h": pa.array([1.0, math.nan, 2.0], pa.float16()),
                "d": pa.array([decimal.Decimal(10**60), None, decimal.Decimal(2)]).cast(
                    pa.decimal256(70, 2)
                ),
                "c": pa.array(["a", None, "b"]).dictionary_encode(),
                "v": pa.array(["a", None, "b"], pa.string_view()),
            }
        )
        if source == "parquet":
            parquet.write_table(opened, tmp_path / "t.parquet")
            opened = tmp_path / "t.parquet"
        table = hs.table(opened)
        assert list(table.columns.values()) == ["float", "float", "string", "string"]
        for condition in ("h < 3", "d > 1", "c in ['a', 'b']", "v in ['a', 'b']"):
            assert counts(table.filter(condition).count()) == [2]

    def test_a_frame_is_left_as_it_was(self):
        """Opening copies what it has to change."""
        import pandas as pd

        frame = nasty(50).to_pandas()
        before = frame.copy(deep=True)
        hs.table(frame, user="who", types={"who": "string"})
        pd.testing.assert_frame_equal(frame, before)
