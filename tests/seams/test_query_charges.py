"""Nothing that no row decides is charged: the real query is planned before the ledger is asked."""

import datetime
import decimal
import os
import re
import signal
import sqlite3
import threading
import time
import tracemalloc
import warnings
from functools import partial

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from sqlalchemy import make_url
from tests.nasty_tables import to_postgres

import hushed as hs
from hushed.errors import EngineUnavailable, HushedError, NotFound, ParameterError, QueryFailed
from hushed.tables import _release
from hushed.tables._engine import duckdb as duckdb_engine
from hushed.tables._engine import postgres as postgres_engine
from hushed.tables._engine.postgres import LIMIT_OF_THIS_QUERY
from hushed.tables._whole import read_columns

POSTGRES = {
    "bigint": "1", "oid": "1", "xid": "'1'", "name": "'a'", '"char"': "'a'", "char(3)": "'a'",
    "uuid": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "json": "'{}'", "jsonb": "'{}'",
    "money": "'1'", "numeric(50,2)": "1", "bit(3)": "B'101'", "bytea": "'a'", "inet": "'1.1.1.1'",
    "point": "'(1,1)'", "circle": "'<(0,0),1>'", "time": "'10:00'", "timetz": "'10:00+01'",
    "interval": "'1 day'", "int4range": "'[1,2)'", "tsvector": "'a'", "integer[]": "'{1}'",
    "mood": "'sad'", "posint": "1", "comp": "'(1,2)'", "pg_lsn": "'0/0'", "oidvector": "'1 2'",
}  # fmt: skip
DUCKDB = {
    "HUGEINT": "1", "UBIGINT": "1", "DECIMAL(38,0)": "1", "BLOB": "'a'", "BIT": "'101'",
    "TIME": "'10:00'", "TIMESTAMP_NS": "'2020-01-01'", "INTERVAL": "'1 day'",
    "UUID": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "ENUM('sad','ok')": "'sad'",
    "INTEGER[]": "[1]", "STRUCT(a INTEGER)": "{'a': 1}", "MAP(VARCHAR, INTEGER)": "MAP {'a': 1}",
    "UNION(a INTEGER, b VARCHAR)": "1", "JSON": "'{}'",
}  # fmt: skip
ARROW = {
    "u64": pa.array([1, None], pa.uint64()),
    "half": pa.array([1.0, None], pa.float16()),
    "d32": pa.array([decimal.Decimal(1), None], pa.decimal32(5, 2)),
    "hundreds": pa.array([decimal.Decimal(100), None], pa.decimal128(5, -2)),
    "d256": pa.array([decimal.Decimal(1), None], pa.decimal256(60, 2)),
    "view": pa.array(["a", None], pa.string_view()),
    "bytes": pa.array([b"a", None], pa.binary_view()),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
    "views": pa.DictionaryArray.from_arrays(
        pa.array([0, None], pa.int8()), pa.array(["a"], pa.string_view())
    ),
    "milliseconds": pa.array([datetime.date(2020, 1, 1), None], pa.date64()),
    "time": pa.array([1000, None], pa.time64("ns")),
    "zoned": pa.array([1, None], pa.timestamp("us", "+05:30")),
    "duration": pa.array([2**62, None], pa.duration("s")),
    "nothing": pa.nulls(2),
    "list": pa.array([["a"], None], pa.list_(pa.string_view())),
    "struct": pa.array([{"a": np.float16(1)}, None], pa.struct([("a", pa.float16())])),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["a", None])),
    "union": pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()),
        pa.array([0, 0], pa.int32()),
        [pa.array([1]), pa.array(["a"])],
    ),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"1" * 16, None], pa.binary(16))),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
}


def attempts(table):
    """Every use of the column c that can be asked for; others are refused at once."""
    text = {"float": "1.5", "string": "'a'", "bool": "True", "date": "'2020-01-01'"}
    text |= {"timestamp": "'2020-01-01'"}
    key = {"string": "a", "bool": True, "date": datetime.date(2020, 1, 1)}.get(
        table.columns["c"], 1
    )
    constant = text.get(table.columns["c"], "1")
    uses = [
        table.count,
        lambda: table.filter("n > 0").count(),
        lambda: table.filter("is_null(c)").count(),
        lambda: table.filter(f"c == {constant}").count(),
        lambda: table.filter(f"c in [{constant}]").count(),
        lambda: table.filter("year(c) > 0").count(),
        lambda: table.sum("c", low=0, high=1),
        lambda: table.derive("d", "abs(c) + 1").mean("d", low=0, high=1),
        lambda: table.histogram("c", low=0, high=1, bins=2),
        lambda: table.group_by("c", keys=[key]).count(),
        lambda: table.group_by("c", select_partitions=True).count(),
    ]
    found = []
    for use in uses:
        try:
            found.append(use())
        except ParameterError:
            continue
    return found


def asked(table, ledger):
    """Ask for all of it; how many were answered, and how many charged without an answer."""
    answered = 0
    for query in attempts(table):
        delta = 1e-6 if query.keys.selected else 0.0
        try:
            query.release(epsilon=1.0, delta=delta, ledger=ledger, budget="b")
            answered += 1
        except (ParameterError, EngineUnavailable):
            continue
    return answered, len(ledger.log) - answered


class TestTypes:
    """A column of any type costs nothing unless it is answered, and breaks no other query."""

    @pytest.mark.slow
    def test_of_postgres(self, postgres_url, ledger):
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            made.execute("CREATE DOMAIN posint AS int CHECK (value > 0)")
            made.execute("CREATE TYPE comp AS (a int, b int)")
            for i, (kind, cell) in enumerate(POSTGRES.items()):
                made.execute(f"CREATE TABLE t{i} (c {kind}, n int)")
                made.execute(f"INSERT INTO t{i} VALUES ({cell}, 1), (NULL, 2)")
        for i, kind in enumerate(POSTGRES):
            ledger.log.clear()
            answered, lost = asked(hs.table(postgres_url, f"t{i}"), ledger)
            assert answered >= 2, kind  # at least what does not ask for it
            assert lost == 0, kind

    def test_a_type_that_ibis_cannot_name_is_refused_with_words(self, postgres_url):
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE TABLE t (c regclass, n int)")
        with pytest.raises(ParameterError, match="query a view without it"):
            hs.table(postgres_url, "t")

    def test_a_domain_is_no_other_type_of_its_name(self, postgres_url):
        """Ibis takes "short" for integers of 16 bits: a text that is none kept a query from ending.

        So it did where the domain is of another one, whose name is of a whole number, too. A domain
        of what its name says is read, and one whose name says nothing is left out.
        """
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE DOMAIN short AS text")
            made.execute("CREATE DOMAIN number AS numeric(9, 2)")
            made.execute("CREATE DOMAIN positive AS int CHECK (value > 0)")
            made.execute("CREATE DOMAIN tinyint AS text")
            made.execute("CREATE DOMAIN mediumint AS tinyint")
            made.execute("CREATE DOMAIN place AS regclass")
            made.execute("CREATE DOMAIN small AS number CHECK (value < 9)")
            made.execute("CREATE TABLE texts (c short, n int)")
            made.execute("CREATE TABLE twice (c mediumint, n int)")
            made.execute("CREATE TABLE places (c place, s small)")
            made.execute("CREATE TABLE numbers (c number, d positive)")
            made.execute("INSERT INTO numbers VALUES (2.5, 1), (4, 2)")
        for name in ("texts", "twice"):
            with pytest.raises(ParameterError, match="query a view without it"):
                hs.table(postgres_url, name)
        assert dict(hs.table(postgres_url, "places").columns) == {"c": "other", "s": "other"}
        found = hs.table(postgres_url, "numbers")
        assert dict(found.columns) == {"c": "float", "d": "other"}
        assert abs(found.sum("c", low=0, high=9).release(epsilon=1e4).value("sum_c") - 6.5) < 0.1

    @pytest.mark.slow
    def test_of_duckdb(self, tmp_path, ledger):
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            for i, (kind, cell) in enumerate(DUCKDB.items()):
                made.execute(f"CREATE TABLE t{i} (c {kind}, n int)")
                made.execute(f"INSERT INTO t{i} VALUES ({cell}, 1), (NULL, 2)")
        for i, kind in enumerate(DUCKDB):
            ledger.log.clear()
            table = hs.table(f"duckdb:///{tmp_path / 't.db'}", f"t{i}")
            answered, lost = asked(table, ledger)
            assert answered >= 2, kind
            assert lost == 0, kind

    @pytest.mark.slow_cases("frame-u64", "frame-views", "parquet-dictionary", "parquet-u64")
    @pytest.mark.parametrize(
        ("source", "kind"),
        [
            # A Feather file is read as a frame is: a few show that it is.
            pytest.param(source, kind, marks=[pytest.mark.slow] if source == "feather" else [])
            for source in ("frame", "parquet", "feather")
            for kind in ARROW
            if (source != "parquet" or kind not in ("views", "runs", "union", "hundreds"))
            and (source != "feather" or kind in ("u64", "views", "runs", "union"))
        ],
    )
    def test_of_arrow(self, kind, source, tmp_path, ledger):
        """All that Arrow itself can write."""
        opened = pa.table({"c": ARROW[kind], "n": [1, 2]})
        if source == "parquet":
            parquet.write_table(opened, tmp_path / "t.parquet")
            opened = tmp_path / "t.parquet"
        elif source == "feather":
            with pa.ipc.new_file(str(tmp_path / "t.arrow"), opened.schema) as stream:
                stream.write_table(opened)
            opened = tmp_path / "t.arrow"
        answered, lost = asked(hs.table(opened), ledger)
        assert answered >= 2
        assert lost == 0

    def test_a_far_duration_of_a_pandas_frame_breaks_no_count(self, ledger):
        """DuckDB reads any column to count rows, and used to stumble over this one."""
        import pandas as pd

        frame = pd.DataFrame({"c": pd.to_timedelta([1, None], unit="s"), "n": [1, 2]})
        assert asked(hs.table(frame), ledger) == (2, 0)

    def test_a_frame_without_columns_is_refused_with_words(self):
        import pandas as pd

        for frame in (pa.table({}), pd.DataFrame(), pd.DataFrame(index=range(3))):
            with pytest.raises(ParameterError, match="without columns"):
                hs.table(frame)

    @pytest.mark.parametrize("kind", ["Int128", "UInt128"])
    def test_whole_numbers_of_128_bits_are_refused_with_words(self, kind):
        import polars as pl

        frame = pl.DataFrame({"wide": pl.Series([1, 2], dtype=getattr(pl, kind))})
        with pytest.raises(ParameterError, match="'wide' of the frame is of a type"):
            hs.table(frame)


class TestRights:
    """A missing right is a public fact, and free."""

    @pytest.fixture
    def bob(self, postgres):
        """Address of a user who may read little, of a database with several tables."""
        database, who = postgres.create_database(), f"bob_{os.urandom(4).hex()}"
        postgres.run(
            f"CREATE ROLE {who} LOGIN PASSWORD 'x'",
            "CREATE TABLE hidden (u int, k text)",
            "CREATE TABLE half (u int, k text)",
            f"GRANT SELECT (u) ON half TO {who}",
            "CREATE SCHEMA closed",
            "CREATE TABLE closed.t (u int)",
            "CREATE FUNCTION own(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
            "REVOKE EXECUTE ON FUNCTION own FROM PUBLIC",
            "CREATE VIEW calls WITH (security_invoker=true) AS SELECT own(u) AS u FROM half",
            f"GRANT SELECT ON calls TO {who}",
            database=database,
        )
        return postgres.url(database).replace(f"hushed:{postgres.password}", f"{who}:x")

    @pytest.mark.parametrize(
        ("name", "condition"),
        [("hidden", "u > 0"), ("half", "k == 'a'"), ("closed.t", "u > 0"), ("calls", "u > 0")],
    )
    @pytest.mark.filterwarnings("ignore:calls is a view")
    def test_a_missing_right_is_refused_before_the_charge(self, name, condition, bob, ledger):
        """On a table, a column, a schema, or a function that a view calls."""
        query = hs.table(bob, name).filter(condition).count()
        with pytest.raises(EngineUnavailable, match=r"may not read.*nothing was charged"):
            query.release(epsilon=1.0, ledger=ledger, budget="b")
        assert ledger.log == []

    def test_only_the_columns_that_are_needed_are_read(self, bob, ledger):
        """A right on one column is enough for a query about it."""
        table = hs.table(bob, "half", user="u").bound_contributions(max_rows_per_user=1)
        table.filter("u > 0").count().release(epsilon=1.0, ledger=ledger, budget="b")
        hs.table(bob, "half").count().release(epsilon=1.0, ledger=ledger, budget="b")
        assert len(ledger.log) == 2

    def test_a_table_that_went_away_is_not_charged(self, postgres, ledger):
        """Nor is one whose column went."""
        database = postgres.create_database()
        postgres.run("CREATE TABLE t (u int)", "CREATE TABLE s (u int)", database=database)
        queries = [hs.table(postgres.url(database), n).filter("u > 0").count() for n in "ts"]
        postgres.run("DROP TABLE t", "ALTER TABLE s RENAME u TO v", database=database)
        for query in queries:
            with pytest.raises(EngineUnavailable, match=r"(any more|is gone).*nothing was charged"):
                query.release(epsilon=1.0, ledger=ledger, budget="b")
        assert ledger.log == []


class TestTexts:
    """Keys, constants and names that no database holds are refused before anything is asked."""

    def test_keys_that_leave_no_mark_to_part_them(self, ledger):
        """They are sent as one string, and a character that none of them holds parts them."""
        marks = "".join(map(chr, [*range(1, 32), *range(0xE000, 0xF900)]))
        table = hs.table(pa.table({"k": ["a"]}))
        with pytest.raises(ParameterError, match="cannot be sent"):
            table.group_by("k", keys=[marks]).count().release(
                epsilon=1.0, ledger=ledger, budget="b"
            )
        assert ledger.log == []
        table.group_by("k", keys=[marks[1:]]).count().release(
            epsilon=1.0, ledger=ledger, budget="b"
        )

    @pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "a\x00"])
    def test_halves_of_characters_and_zero_bytes(self, text):
        table = hs.table(pa.table({"k": ["a"], "n": [1]}))
        spelled = text.encode("unicode_escape").decode()
        for ask in (
            lambda: table.group_by("k", keys=[text]),
            lambda: table.group_by("k", keys={"k": ["b", text]}),
            lambda: table.filter(f"k == '{spelled}'"),
            lambda: table.filter(f"k in ['a', '{spelled}']"),
            lambda: table.derive("x", f"'{spelled}'"),
            lambda: table.derive(text, "n"),
            lambda: table.count(name=text),
        ):
            with pytest.raises(ParameterError):
                ask()

    def test_what_the_encoding_of_a_database_lacks(self, postgres, ledger):
        """A key or constant outside Latin-1 costs nothing there; one inside is answered."""
        name = f"latin_{os.urandom(4).hex()}"
        made = "ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        postgres.run(f"CREATE DATABASE {name} {made}")
        postgres.run("CREATE TABLE t (k text)", database=name)
        table = hs.table(postgres.url(name), "t")
        for query in (
            table.group_by("k", keys=["a", "\u65e5"]).count(),
            table.filter("k == '\u65e5'").count(),
        ):
            with pytest.raises(ParameterError, match=r"encoding.*nothing was charged"):
                query.release(epsilon=1.0, ledger=ledger, budget="b")
        assert ledger.log == []
        table.group_by("k", keys=["\xe9"]).count().release(epsilon=1.0, ledger=ledger, budget="b")
        assert len(ledger.log) == 1

    @pytest.mark.parametrize(
        ("encoding", "stored", "read"),
        [
            ("WIN1252", b"Caf\xe9 \x81", "Caf\uefe9 \uef81"),
            ("WIN1252", b"Caf\xe9", "Caf\xe9"),
            ("EUC_JP", b"\xa9\xa1", "\uefa9\uefa1"),
            ("EUC_JP", b"\xad\xa1", "\u2460"),
            ("UTF8", b"\xe3\x81\x82", "\u3042"),
        ],
    )
    def test_no_text_of_a_row_ends_a_query(self, postgres, ledger, encoding, stored, read):
        """UTF-8 lacks a character for some bytes that a database takes: it was a paid failure."""
        name = f"held_{os.urandom(4).hex()}"
        made = f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        postgres.run(f"CREATE DATABASE {name} {made}")
        text = f"convert_from('\\x{stored.hex()}'::bytea, '{encoding}')"
        postgres.run(
            f"CREATE TABLE t AS SELECT CASE WHEN i % 2 = 0 THEN 'plain' ELSE {text} END AS k "
            "FROM generate_series(1, 400) i",
            "INSERT INTO t VALUES (NULL)",
            database=name,
        )
        table = hs.table(postgres.url(name), "t")
        query = table.group_by("k", select_partitions=True).count()
        answer = query.release(epsilon=20.0, delta=1e-6, ledger=ledger, budget="b")
        assert sorted(answer.keys["k"]) == sorted(["plain", read])
        cells = read_columns(table, ["k"], 60.0)["k"]
        assert {each: cells.count(each) for each in cells} == {"plain": 200, read: 200, None: 1}

    def test_a_database_that_does_not_know_its_texts_is_refused(self, postgres):
        name = f"ascii_{os.urandom(4).hex()}"
        made = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        postgres.run(f"CREATE DATABASE {name} {made}")
        postgres.run("CREATE TABLE t (k text)", database=name)
        with pytest.raises(ParameterError, match="SQL_ASCII"):
            hs.table(postgres.url(name), "t")

    def test_keys_are_the_values_that_an_engine_answers_with(self):
        """A timestamp equals no date, and an object that only looks like a key decides nothing."""
        import pandas as pd

        class Word(str):
            def __str__(self):
                return "b"

            def __eq__(self, other):
                return False

            __hash__ = str.__hash__

        day = datetime.date(2020, 1, 1)
        table = hs.table(pa.table({"d": [day] * 50, "k": ["a"] * 50}))
        for key in (day, "2020-01-01", datetime.datetime(2020, 1, 1), pd.Timestamp(day)):
            answer = table.group_by("d", keys=[key]).count().release(epsilon=50.0)
            assert answer.rows()[0]["count"] > 40
        for key in (datetime.datetime(2020, 1, 1, 1), pd.Timestamp("2020-01-01", tz="UTC"), 5):
            with pytest.raises(ParameterError, match="key"):
                table.group_by("d", keys=[key])
        answer = table.group_by("k", keys=[Word("a")]).count().release(epsilon=50.0)
        assert (answer.rows()[0]["k"], answer.rows()[0]["count"] > 40) == ("a", True)
        assert table.group_by("k", keys=np.array(["a"])).keys.values == (("a",),)


class TestNoise:
    def test_noise_that_cannot_be_laid_out_is_not_charged(self, ledger, monkeypatch):
        """Whatever a grid or an error bar refuses is refused before the charge."""
        from hushed import noise

        def refused(**_):
            raise ParameterError("no such grid")

        monkeypatch.setattr(noise, "gaussian_grid", refused)
        query = hs.table(pa.table({"x": [1.0]})).sum("x", low=0, high=1)
        with pytest.raises(ParameterError, match="no such grid"):
            query.release(epsilon=1.0, delta=1e-6, noise="gaussian", ledger=ledger, budget="b")
        assert ledger.log == []

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("epsilon", "beta"),
        [(1e-12, 1e-300), (1e-12, 1 - 1e-16), (1e-3, 0.5), (1e300, 1e-300), (1e300, 1 - 1e-16)],
    )
    def test_extreme_terms_are_answered_or_free(self, epsilon, beta, ledger):
        table = hs.table(pa.table({"x": [1.0] * 5}))
        query = table.count().mean("x", low=0, high=1).variance("x", low=-1e99, high=1e100)
        query = query.quantiles("x", [0.5], low=0, high=1).histogram("x", low=0, high=1)
        for noise, delta in (("laplace", 0.0), ("gaussian", 1e-300), ("gaussian", 0.5)):
            before = len(ledger.log)
            try:
                query.release(
                    epsilon=epsilon, delta=delta, noise=noise, beta=beta, ledger=ledger, budget="b"
                )
            except QueryFailed:
                pytest.fail("charged, and not answered")
            except HushedError:
                assert len(ledger.log) == before


class TestSize:
    """What would not fit into the memory is refused before the charge, by public numbers alone."""

    @pytest.mark.slow_cases("quantiles")
    @pytest.mark.parametrize("kind", ["histogram", "quantiles"])
    def test_too_many_numbers_are_not_charged(self, kind, ledger):
        """A thousand keys with ten thousand bins each, or with as many candidates six times."""
        table = hs.table(pa.table({"x": [1.0] * 50, "g": [0] * 50}))
        more = {"bins": 10_000} if kind == "histogram" else {"candidates": 10_001}
        given = [[0.5] * 6] if kind == "quantiles" else []
        total = 10_000_000 if kind == "histogram" else 6_006_000
        for keys, fits in ((range(1000), False), (range(3), True)):
            asked = table.group_by("g", keys=list(keys))
            query = getattr(asked, kind)("x", *given, low=0, high=2, **more)
            if fits:
                assert len(query.release(epsilon=50.0, ledger=ledger, budget="b")) == 3
                continue
            with pytest.raises(ParameterError, match=f"{total}: use fewer keys, bins"):
                query.release(epsilon=50.0, ledger=ledger, budget="b")
            assert ledger.log == []

    @pytest.mark.slow
    def test_keys_that_are_not_selected_take_no_memory(self):
        """Two thousand keys of one row each, of which none is released, with ten thousand bins."""
        table = hs.table(pa.table({"x": [1.0] * 2000, "g": list(range(2000))}))
        query = table.group_by("g", select_partitions=True)
        query = query.histogram("x", low=0, high=2, bins=10_000)
        query.release(epsilon=1.0, delta=1e-9)  # imports
        tracemalloc.start()
        try:
            assert len(query.release(epsilon=1.0, delta=1e-9)) == 0
            assert tracemalloc.get_traced_memory()[1] < 20e6  # written out: 160e6
        finally:
            tracemalloc.stop()

    def test_too_many_selected_keys_stay_paid(self, ledger, monkeypatch):
        """Their number is what the selection released; the answer is refused, as it would fail."""
        monkeypatch.setattr(_release, "_MOST_NUMBERS", 30)
        table = hs.table(pa.table({"x": [1.0] * 400, "g": [i % 4 for i in range(400)]}))
        query = table.group_by("g", select_partitions=True).histogram("x", low=0, high=2)
        with pytest.raises(QueryFailed, match="would read 40: partition selection kept too many"):
            query.release(epsilon=9.0, delta=1e-6, ledger=ledger, budget="b")
        assert len(ledger.log) == 1
        monkeypatch.setattr(_release, "_MOST_NUMBERS", 40)
        bins = query.release(epsilon=9.0, delta=1e-6).values["histogram_x"]
        assert [max(range(10), key=each.__getitem__) for each in bins] == [5] * 4


class TestTime:
    """A query may have a time limit, and one that is stopped says what was paid."""

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ["duckdb", "postgres"])
    @pytest.mark.filterwarnings("ignore:endless is a view")
    def test_a_query_that_is_stopped_stays_paid(self, engine, request, tmp_path, ledger):
        """After the charge, with words that say so; the next query is answered."""
        made = "CREATE VIEW endless AS SELECT 1 AS u, sin(a.i) * b.i AS x"
        made += " FROM {0} AS a(i), {0} AS b(i)"
        if engine == "duckdb":
            source = f"duckdb:///{tmp_path / 't.db'}"
            with duckdb.connect(str(tmp_path / "t.db")) as con:
                con.execute(made.format("range(1000000)"))
                con.execute("CREATE TABLE t AS SELECT 1 AS u")
        else:
            source = request.getfixturevalue("postgres_url")
            with psycopg.connect(source) as con:
                con.execute(made.format("generate_series(1, 1000000)"))
                con.execute("CREATE TABLE t AS SELECT 1 AS u")
        table = hs.table(source, "endless", user="u").bound_contributions(max_rows_per_user=3)
        query = table.mean("x", low=0, high=9)
        with pytest.raises(QueryFailed, match=r"not within 2 s; .*the charge stays"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=2)
        assert len(ledger.log) == 1
        with pytest.raises(EngineUnavailable, match="nothing was charged"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=1e-9)
        assert len(ledger.log) == 1
        hs.table(source, "t").count().release(epsilon=1.0, timeout=60)

    @pytest.mark.slow
    def test_a_wait_for_the_ledger_costs_no_answer(self, tmp_path):
        """The time in which others hold the ledger is not the time of the query."""
        query = hs.table(pa.table({"x": [1.0] * 50})).count()
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as book:
            book.open_budget("b", hs.Guarantee(epsilon=99.0, neighbours="add-remove"))
            other = sqlite3.connect(
                tmp_path / "b.db", isolation_level=None, check_same_thread=False
            )
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(4.0, other.close).start()
            paid = {"epsilon": 50.0, "ledger": book, "budget": "b", "key": "k"}
            assert query.release(**paid, timeout=3).value("count") > 40
            assert book.answer("b", 1) is not None

    @pytest.mark.slow
    def test_time_that_ends_while_an_answer_is_read_stays_paid(self, ledger, monkeypatch):
        """How many keys are read may be private; no noise is drawn any more."""
        kept = _release.run_scan

        def slow(*arguments):
            found = kept(*arguments)
            time.sleep(max(0.0, ends - time.monotonic()))
            return found

        monkeypatch.setattr(_release, "run_scan", slow)
        query = hs.table(pa.table({"x": [1.0] * 50})).count()
        ends = time.monotonic() + 2.1
        with pytest.raises(QueryFailed, match=r"not within 2 s; .*the charge stays"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=2)
        assert len(ledger.log) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "step", [pytest.param("prepare", marks=pytest.mark.slow), "_build_answer"]
    )
    def test_time_that_ends_before_the_charge_costs_nothing(self, step, ledger, monkeypatch):
        """In the last step before it, too."""
        kept = getattr(_release, step)

        def slow(*arguments, **named):
            found = kept(*arguments, **named)
            time.sleep(max(0.0, ends - time.monotonic()))
            return found

        monkeypatch.setattr(_release, step, slow)
        query = hs.table(pa.table({"x": [1.0] * 50})).count()
        ends = time.monotonic() + 3.1
        with pytest.raises(EngineUnavailable, match="all of the 3 s; nothing was charged"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=3)
        assert ledger.log == []

    def test_a_limit_of_one_query_stops_no_other(self):
        """The connection that was stopped answers the next one, with and without a limit."""
        table = hs.table(pa.table({"x": [1.0] * 50}))
        for timeout in (30, None, 5, None):
            assert table.count().release(epsilon=50.0, timeout=timeout).value("count") > 40

    @pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "1", True, 2e6])
    def test_a_limit_is_a_number_of_seconds(self, timeout, ledger):
        query = hs.table(pa.table({"x": [1.0]})).count()
        with pytest.raises(ParameterError, match="timeout must be"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=timeout)
        assert ledger.log == []

    @pytest.mark.slow
    def test_a_table_that_is_locked_costs_nothing(self, postgres_url, ledger):
        """The plan itself waits for the lock, and the time is over before the charge."""
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute("CREATE TABLE t (x int)")
            query = hs.table(postgres_url, "t").count()
            with made.transaction():
                made.execute("LOCK TABLE t")
                with pytest.raises(EngineUnavailable, match="nothing was charged"):
                    query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=0.3)
            assert ledger.log == []
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=60)

    @pytest.mark.slow
    def test_a_limit_that_ends_before_the_query_starts_holds(self, monkeypatch, ledger):
        """DuckDB forgets an interrupt that finds nothing to stop; it is told again."""
        numbers = pa.table({"u": range(1_000_000), "x": [0.5] * 1_000_000})
        query = (
            hs.table(numbers, user="u")
            .bound_contributions(max_rows_per_user=2)
            .mean("x", low=0, high=1)
        )
        asked = duckdb_engine.run_sql

        def late(engine, sql):
            if not sql.startswith(("EXPLAIN", "CREATE TEMP TABLE IF NOT EXISTS")):
                time.sleep(3.2)  # what reads rows
            return asked(engine, sql)

        monkeypatch.setattr(duckdb_engine, "run_sql", late)
        with pytest.raises(QueryFailed, match=r"not within 3 s; .*the charge stays"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=3)
        assert len(ledger.log) == 1

    @pytest.mark.filterwarnings("ignore:endless is a view")
    @pytest.mark.slow
    def test_a_server_that_is_frozen_is_hung_up_on(self, postgres_url, ledger):
        """It does not keep the limit that it was told; it is not waited for."""
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE VIEW endless AS SELECT a AS x FROM generate_series(1, 1 << 30) a")
        query = hs.table(postgres_url, "endless").count()
        frozen = query.connection.rows.get_backend().con.info.backend_pid
        freeze = threading.Timer(1.0, os.kill, (frozen, signal.SIGSTOP))
        thaw = threading.Timer(90.0, os.kill, (frozen, signal.SIGCONT))
        freeze.start()
        thaw.start()
        try:
            with pytest.raises(QueryFailed, match=r"not within 3 s; .*the charge stays"):
                query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=3)
            assert thaw.is_alive()  # the server is frozen still
        finally:
            thaw.cancel()
            os.kill(frozen, signal.SIGCONT)
        with pytest.raises(EngineUnavailable, match="nothing was charged"):
            query.release(epsilon=1.0, ledger=ledger, budget="b", timeout=3)
        assert len(ledger.log) == 1

    def test_the_limit_of_the_server_is_not_loosened(self, postgres, ledger):
        """A shorter limit of the user's role holds, and nothing of ours is left behind."""
        database = postgres.create_database()
        to_postgres(pa.table({"x": [1]}), postgres.url(database), "t")
        postgres.run(f"ALTER DATABASE {database} SET statement_timeout = '30ms'", database=database)
        table = hs.table(postgres.url(database), "t")
        con = table.connection.rows.get_backend().con
        with con.transaction():
            con.execute(LIMIT_OF_THIS_QUERY.format(60_000))
            assert con.execute("SHOW statement_timeout").fetchone() == ("30ms",)
            con.execute(LIMIT_OF_THIS_QUERY.format(7))
            assert con.execute("SHOW statement_timeout").fetchone() == ("7ms",)
        assert con.execute("SHOW statement_timeout").fetchone() == ("30ms",)


class TestWay:
    """Why a database cannot be reached, in public words, without the address."""

    @pytest.mark.parametrize(
        ("user", "port", "database", "words"),
        [
            ("hushed:{password}", "9", "postgres", "no server listens"),
            ("hushed:SECRETPW", "{port}", "postgres", "refuses this user"),
            ("nobody_here:SECRETPW", "{port}", "postgres", "refuses this user"),
            ("hushed:{password}", "{port}", "no_such_db", "no database of this name"),
            ("hushed:SECRETPW", "{port}x", "postgres", "address cannot be read"),
            ("hushed:se@SECRETPW", "{port}", "postgres", "refuses this user"),
            ("hushed:se/SECRETPW", "{port}", "postgres", "address cannot be read|no host|listens"),
            ("hushed:se#SECRETPW", "{port}", "postgres", "address cannot be read|no host|listens"),
        ],
    )
    def test_the_reason_is_told(self, user, port, database, words, postgres):
        who = user.format(password=postgres.password)
        url = f"postgresql://{who}@127.0.0.1:{port.format(port=postgres.port)}/{database}"
        with pytest.raises(EngineUnavailable, match=words) as caught:
            hs.table(url, "t")
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        told = str(caught.value)
        assert not [each for each in ("SECRETPW", postgres.password, "nobody_here") if each in told]

    @pytest.mark.parametrize(
        "source",
        [
            "u:SECRETPW@host/db",
            "u:SECRETPW@host://db",
            "duckdb:///u:SECRETPW@host/db",
            "duckdb:///md:db?motherduck_token=SECRETPW",
            "mysql://u:SECRETPW@host/db",
            "host=h password=SECRETPW",
            "postgresql:/u:SECRETPW@host/db.csv",
        ],
    )
    def test_what_may_be_an_address_is_not_shown(self, source, tmp_path):
        with pytest.raises(HushedError) as caught:
            hs.table(source, "t")
        assert "SECRETPW" not in str(caught.value)
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            made.execute("CREATE TABLE t (x int)")
        with pytest.raises(NotFound) as caught:  # the two arguments exchanged
            hs.table(f"duckdb:///{tmp_path / 't.db'}", source)
        assert "SECRETPW" not in str(caught.value)

    @pytest.mark.slow
    def test_the_name_of_a_file_is_no_table(self, tmp_path, monkeypatch):
        """DuckDB would read it with a reader that guesses types, and fails on cells."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "data.csv").write_text("x\n1\n")
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            made.execute("CREATE SCHEMA s")
            made.execute("CREATE TABLE s.Inner (x int)")
        source = f"duckdb:///{tmp_path / 't.db'}"
        for name in ("data.csv", str(tmp_path / "data.csv"), "made", "Inner"):
            with pytest.raises(NotFound, match="no table"):
                hs.table(source, "nosuch." + name if name == "Inner" else name)
        for name in ("s.Inner", "s.inner", "t.s.inner"):
            assert list(hs.table(source, name).columns) == ["x"]

    def test_the_tables_there_are_named(self, postgres):
        """Those of the usual schema by their names, others with it; at most ten."""
        database = postgres.create_database()
        made = [f"CREATE TABLE t{i:02} (x int)" for i in range(12)]
        postgres.run("CREATE SCHEMA a", "CREATE TABLE a.b (x int)", *made, database=database)
        for name in ("rows", "a.rows", "nosuch.rows"):
            with pytest.raises(NotFound, match=r"tables: a\.b, t00, .*t08 and 3 more") as caught:
                hs.table(postgres.url(database), name)
            assert "pg_class" not in str(caught.value)


class TestViews:
    CONDITION = "rows of its own user alone"

    @pytest.mark.slow
    def test_a_view_is_warned_of(self, postgres_url, tmp_path, ledger):
        """At opening, in the quote and in the answer; not on a table."""
        commands = "CREATE TABLE t AS SELECT 1 AS u, 2.0 AS x", "CREATE VIEW v AS SELECT * FROM t"
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            for command in commands:
                made.execute(command)
        with psycopg.connect(postgres_url) as made:
            for command in (*commands, "CREATE MATERIALIZED VIEW m AS SELECT * FROM t"):
                made.execute(command)
        file = f"duckdb:///{tmp_path / 't.db'}"
        opened = [(file, "v"), (file, "main.v"), (postgres_url, "v"), (postgres_url, "public.v")]
        for source, name in [*opened, (postgres_url, "m")]:
            with pytest.warns(UserWarning, match=self.CONDITION):
                query = (
                    hs.table(source, name, user="u")
                    .bound_contributions(max_rows_per_user=1)
                    .count()
                )
            assert self.CONDITION in query.quote(epsilon=1.0).explain()
            assert self.CONDITION in " ".join(query.release(epsilon=1.0).warnings)
        for source in (file, postgres_url):
            told = hs.table(source, "t").count().release(epsilon=50.0).warnings
            assert self.CONDITION not in " ".join(told)

    @pytest.mark.slow_cases("T.S.v", "s.v", "t.s.V")
    @pytest.mark.parametrize("name", ["V", "s.v", "S.V", "t.s.V", "T.S.v", "Main.v", "t.main.V"])
    def test_a_view_is_warned_of_by_every_name_that_finds_it(self, name, tmp_path):
        """DuckDB ignores the case of names; the name of the file may stand before them."""
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            made.execute("CREATE TABLE t AS SELECT 1 AS u; CREATE SCHEMA s; CREATE TABLE w (u INT)")
            for each in ("v", "s.v", "s.w"):
                made.execute(f"CREATE VIEW {each} AS SELECT * FROM t")
        with pytest.warns(UserWarning, match=self.CONDITION):
            hs.table(f"duckdb:///{tmp_path / 't.db'}", name)
        assert hs.table(f"duckdb:///{tmp_path / 't.db'}", "w").connection.warnings == ()

    def test_columns_that_are_computed_when_they_are_read_are_warned_of(self, tmp_path):
        """One row that was changed makes every query fail on them, and insertion checks nothing."""
        address = f"duckdb:///{tmp_path / 't.db'}"
        with duckdb.connect(tmp_path / "t.db") as made:
            made.execute("CREATE TABLE plain (u INT, x INT DEFAULT 5)")
            made.execute("CREATE TABLE t (u INT, s VARCHAR, x INT AS (CAST(s AS INT)))")
            made.execute("INSERT INTO t (u, s) SELECT i, '7' FROM range(9) r(i)")
            made.execute("UPDATE t SET s = 'seven' WHERE u = 3")
        for name in ("t", "T", "main.t"):
            with pytest.warns(UserWarning, match="computed when it is read"):
                table = hs.table(address, name)
        assert (
            "computed when it is read" in table.sum("x", low=0, high=9).quote(epsilon=1).explain()
        )
        with pytest.raises(QueryFailed):
            table.sum("x", low=0, high=9).release(epsilon=1)
        assert hs.table(address, "plain").connection.warnings == ()

    @pytest.mark.parametrize("computed", [False, True])
    def test_such_columns_of_postgres_are_warned_of(self, postgres_url, monkeypatch, computed):
        """Those of version 18; here one of a stored column stands in for them."""
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE TABLE t (u int, x int GENERATED ALWAYS AS (u + 1) STORED)")
        asked = postgres_engine._WARNED_OF
        assert "'v'" in asked
        if computed:
            monkeypatch.setattr(postgres_engine, "_WARNED_OF", asked.replace("= 'v')", "= 's')"))
        told = []
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            told = hs.table(postgres_url, "t").connection.warnings
        assert [str(each.message) for each in heard] == list(told)
        assert any("computed when it is read" in each for each in told) == computed

    def test_policies_on_rows_are_remarked_on(self, postgres_url):
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE TABLE t (u int)")
            made.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
        with pytest.warns(UserWarning, match="row-level security"):
            hs.table(postgres_url, "t")

    @pytest.mark.parametrize("deep", [False, True])
    @pytest.mark.parametrize("kind", ["partition", "child"])
    def test_a_foreign_table_among_the_parts_of_a_table_is_warned_of(
        self, kind, deep, postgres_url
    ):
        """Its rows are read with those of the table, and may be those of a view elsewhere."""
        by = "PARTITION BY LIST (u)" if kind == "partition" else ""

        def part(parent, values):
            if kind == "partition":
                return f"PARTITION OF {parent} FOR VALUES IN ({values})"
            return f"() INHERITS ({parent})"

        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w")
            made.execute(f"CREATE TABLE t (u int) {by}")
            made.execute(f"CREATE TABLE near {part('t', '1, 2')} {by}")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            early = hs.table(postgres_url, "t").count()
        place = part("near", "1") if deep else part("t", "3")
        with psycopg.connect(postgres_url) as made:
            made.execute(f"CREATE FOREIGN TABLE there {place} SERVER far")
        with pytest.raises(EngineUnavailable, match="open it again"):  # it told no warning
            early.release(epsilon=1)
        with pytest.warns(UserWarning, match=f"t is in part a foreign table: .*{self.CONDITION}"):
            hs.table(postgres_url, "t")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["floor", "FLOOR", "hash", "+"])
def test_macros_in_place_of_functions_of_duckdb_are_refused(name, tmp_path):
    """They would read other rows for each row, as no expression can; other macros are harmless."""
    with duckdb.connect(str(tmp_path / "t.db")) as made:
        made.execute("CREATE TABLE t AS SELECT range::DOUBLE AS x FROM range(10)")
        made.execute("CREATE MACRO mine(y) AS (SELECT max(x) FROM t)")
    query = hs.table(f"duckdb:///{tmp_path / 't.db'}", "t").sum("x", low=0, high=1e4)
    assert abs(query.release(epsilon=1e6).value("sum_x") - 45) < 1
    del query
    with duckdb.connect(str(tmp_path / "t.db")) as made:
        made.execute(f'CREATE MACRO "{name}"(y, z := 0) AS (SELECT 1e9 * max(x) FROM t)')
    with pytest.raises(ParameterError, match=rf"macro '?{re.escape(name)}'?, which.*another name"):
        hs.table(f"duckdb:///{tmp_path / 't.db'}", "t")


@pytest.mark.parametrize(
    "path", ["public, pg_catalog", "pg_catalog, public", "public", "pg_temp, public"]
)
def test_functions_of_others_are_not_called_whatever_the_search_path(path, postgres):
    """The floor that is meant is PostgreSQL's own, also where another one would come first."""
    database = postgres.create_database()
    postgres.run(
        "CREATE TABLE t AS SELECT x::float8 FROM generate_series(0, 9) AS x",
        "CREATE FUNCTION public.floor(float8) RETURNS float8 LANGUAGE sql AS "
        "'SELECT 1e9 * max(x) FROM public.t'",
        f"ALTER DATABASE {database} SET search_path = {path}",
        database=database,
    )
    for name in ("t", "public.t"):
        query = hs.table(postgres.url(database), name).sum("x", low=0, high=1e4)
        assert abs(query.release(epsilon=1e6).value("sum_x") - 45) < 1


@pytest.fixture
def logins(postgres):
    """A reader of private rows, and somebody who may create functions beside them; addresses."""
    database = postgres.create_database()
    postgres.run(
        "CREATE ROLE reader LOGIN PASSWORD 'secret'",
        "CREATE ROLE mallory LOGIN PASSWORD 'secret'",
        "GRANT CREATE ON SCHEMA public TO PUBLIC",  # as before PostgreSQL 15
        "CREATE TABLE t AS SELECT x AS u, x::float8 FROM generate_series(0, 9) AS x",
        "GRANT SELECT ON t TO reader",
        database=database,
    )
    url = make_url(postgres.url(database)).set(password="secret")
    yield [
        url.set(username=name).render_as_string(hide_password=False)
        for name in ("reader", "mallory")
    ]
    postgres.run(
        "DROP OWNED BY reader, mallory CASCADE", "DROP ROLE reader, mallory", database=database
    )


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["operator", "function"])
def test_an_operator_of_somebody_else_sees_no_row(kind, when, logins, ledger):
    """PostgreSQL prefers what fits the types best: a function by a login without rights on rows."""
    reader, mallory = logins
    planted = [
        "CREATE TABLE loot (x float8)",
        "GRANT INSERT ON loot TO PUBLIC",
        "CREATE FUNCTION steal(x float8, y numeric) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO public.loot VALUES (x); RETURN true; END $$",
        "CREATE OPERATOR >= (LEFTARG = float8, RIGHTARG = numeric, FUNCTION = steal)",
    ]
    if kind == "function":
        planted[2:] = [
            "CREATE FUNCTION hashint8extended(x bigint, y int) RETURNS bigint LANGUAGE sql "
            "AS 'INSERT INTO public.loot VALUES (x); SELECT x'"
        ]

    def plant():
        with psycopg.connect(mallory) as login:
            for each in planted:
                login.execute(each)

    if when == "before":
        plant()
    table = hs.table(reader, "t", user="u").bound_contributions(max_rows_per_user=1)
    if when == "after":
        plant()
    query = table.sum("x", low=0, high=10.5)
    assert abs(query.release(epsilon=1e6, ledger=ledger, budget="b").value("sum_x") - 45) < 1
    assert len(ledger.log) == 1
    with psycopg.connect(mallory) as login:
        assert login.execute("SELECT count(*) FROM loot").fetchone() == (0,)


def test_a_cast_of_somebody_else_sees_no_row(postgres, logins, ledger):
    """Whoever owns an enumeration may make a cast of it, which is found in every search path."""
    reader, mallory = logins
    with psycopg.connect(mallory) as login:
        for each in (
            "CREATE TYPE ward AS ENUM ('heart', 'lung')",
            "CREATE TABLE loot (x text)",
            "GRANT INSERT ON loot TO PUBLIC",
            "CREATE FUNCTION steal(x ward) RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO public.loot VALUES (enum_out(x)); RETURN 'heart'; END $$",
            "CREATE CAST (ward AS text) WITH FUNCTION steal(ward)",
        ):
            login.execute(each)
        name = login.info.dbname
    postgres.run("ALTER TABLE t ADD y ward DEFAULT 'lung'", database=name)
    query = hs.table(reader, "t").group_by("y", keys=["heart", "lung"]).count()
    answer = query.release(epsilon=1e6, ledger=ledger, budget="b")
    assert answer.to_dict()["count"] == [0, 10]
    with psycopg.connect(mallory) as login:
        assert login.execute("SELECT count(*) FROM loot").fetchone() == (0,)


@pytest.mark.parametrize(
    ("made", "stored"),
    [
        ("TYPE string AS (x text)", "string"),
        ("TYPE string AS RANGE (subtype = int)", "string"),
        ("TYPE citext AS ENUM ('lung'); CREATE DOMAIN string AS citext", "string"),
        ("TYPE part AS (x text); CREATE TYPE \"part[]\" AS ENUM ('lung')", "part[]"),
    ],
)
def test_a_type_by_the_name_of_another_is_not_cast(postgres, logins, made, stored):
    """Ibis knows types by their names: here each is a text to it, and its cast a function."""
    reader, mallory = logins
    source = "citext" if "DOMAIN" in made else stored
    with psycopg.connect(mallory) as login:
        for each in (
            f"CREATE {made}",
            f"CREATE FUNCTION steal(x {source}) RETURNS text LANGUAGE sql AS $$ SELECT 'heart' $$",
            f"CREATE CAST ({source} AS text) WITH FUNCTION steal({source})",
        ):
            login.execute(each)
        name = login.info.dbname
    postgres.run(f"SET search_path TO public; ALTER TABLE t ADD y {stored}", database=name)
    assert hs.table(reader, "t").columns["y"] == "other"


@pytest.mark.parametrize(
    ("make", "kind", "cell"),
    [
        # Ibis reads what has the name of some enumeration as a text, and these names as numbers.
        ("CREATE TYPE ward AS (x int)", "ward", "ROW(1)"),
        ("CREATE TYPE double AS (x int)", "double", "ROW(1)"),
        ("CREATE TYPE heart AS ENUM ('1')", "heart[]", "'{1}'"),
    ],
)
def test_nor_does_a_cast_of_a_type_with_a_name_of_another_kind(
    make, kind, cell, postgres, logins, ledger
):
    """Whoever owns a type may make a cast of it, and an enumeration of its name elsewhere."""
    reader, mallory = logins
    wanted = "double precision" if kind == "double" else "text"
    with psycopg.connect(mallory) as login:
        for each in (
            make,
            "CREATE TABLE loot (x text)",
            "GRANT INSERT ON loot TO PUBLIC",
            f"CREATE FUNCTION steal(x {kind}) RETURNS {wanted} LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO public.loot VALUES (1); RETURN 1; END $$",
            f"CREATE CAST ({kind} AS {wanted}) WITH FUNCTION steal({kind})",
        ):
            login.execute(each)
        name = login.info.dbname
    postgres.run(
        "CREATE SCHEMA apart",
        f"CREATE TYPE apart.\"{kind}\" AS ENUM ('1')" if kind != "double" else "SELECT 1",
        f"ALTER TABLE t ADD y {kind} DEFAULT {cell}",
        database=name,
    )
    query = hs.table(reader, "t")
    counted = query.count().release(epsilon=1e6, ledger=ledger, budget="b")
    assert abs(counted.value("count") - 10) < 1
    with pytest.raises(ParameterError, match="y"):
        query.sum("y", low=0, high=1) if kind == "double" else query.group_by("y", keys=["1"])
    with psycopg.connect(mallory) as login:
        assert login.execute("SELECT count(*) FROM loot").fetchone() == (0,)


def test_opening_a_table_calls_nothing_of_somebody_else(logins):
    """Not for a table by name, nor for the list of tables in an error, nor for a warning."""
    reader, mallory = logins
    types = "oid, regclass", "information_schema.sql_identifier, information_schema.sql_identifier"
    with psycopg.connect(mallory) as login:
        login.execute("CREATE TABLE loot (who text)")
        login.execute("GRANT INSERT ON loot TO PUBLIC")
        for number, (left, right) in enumerate(each.split(", ") for each in types):
            login.execute(
                f"CREATE FUNCTION mine{number}(x {left}, y {right}) RETURNS bool LANGUAGE sql AS "
                "'INSERT INTO public.loot VALUES (current_user); SELECT true'"
            )
            for sign in ("=", "<>"):
                login.execute(
                    f"CREATE OPERATOR {sign} (LEFTARG = {left}, RIGHTARG = {right}, "
                    f"FUNCTION = mine{number})"
                )
    assert list(hs.table(reader, "t").columns) == ["u", "x"]
    with pytest.raises(NotFound, match=r"its tables: .*\bt\b"):
        hs.table(reader, "tt")
    with psycopg.connect(mallory) as login:
        assert login.execute("SELECT * FROM loot").fetchall() == []


def test_a_table_is_found_where_the_search_path_of_its_reader_finds_it(postgres):
    """In the first schema that has one, whatever letters the schema has; enumerations, too."""
    database = postgres.create_database()
    place = '"we"".ird:x %s"'
    postgres.run(
        f"CREATE SCHEMA {place}",
        f"CREATE TYPE {place}.mood AS ENUM ('glad', 'sad')",
        f"CREATE TABLE {place}.t AS SELECT 'sad'::{place}.mood AS m FROM generate_series(1, 7)",
        "CREATE TABLE t AS SELECT 'sad'::text AS m, 2 AS y",
        f"ALTER DATABASE {database} SET search_path = nowhere, {place}, public",
        database=database,
    )
    with warnings.catch_warnings(action="error"):
        first, second = (hs.table(postgres.url(database), name) for name in ("t", "public.t"))
    assert (list(first.columns), list(second.columns)) == (["m"], ["m", "y"])
    told = first.group_by("m", keys=["glad", "sad"]).count().release(epsilon=60.0)
    assert told.values["count"] == (0, 7)


def test_a_view_in_an_earlier_schema_does_not_stand_in_for_a_table(postgres):
    """Its maker, who may not read the table, saw each row by a function of the view."""
    database, who = postgres.create_database(), f"bob_{os.urandom(4).hex()}"
    url = postgres.url(database)
    postgres.run(
        f"CREATE ROLE {who} LOGIN PASSWORD 'x'",
        f"GRANT CREATE ON SCHEMA public TO {who}",
        "CREATE SCHEMA clinic",
        "CREATE TABLE clinic.t AS SELECT i AS x FROM generate_series(1, 9) i",
        f"ALTER DATABASE {database} SET search_path = public, clinic",
        database=database,
    )
    assert list(hs.table(url, "t").columns) == ["x"]
    with psycopg.connect(url.replace(f"hushed:{postgres.password}", f"{who}:x")) as login:
        login.execute("CREATE VIEW t AS SELECT 1 AS y")
    with pytest.raises(ParameterError, match=r"different owners.*public\.t, clinic\.t"):
        hs.table(url, "t")
    assert list(hs.table(url, "clinic.t").columns) == ["x"]


def test_a_table_of_ones_own_stands_before_that_of_somebody_else(postgres):
    """As PostgreSQL's own search path is meant: the schema of the login comes first."""
    database, who = postgres.create_database(), f"ana_{os.urandom(4).hex()}"
    url = postgres.url(database)
    postgres.run(
        f"CREATE ROLE {who} LOGIN PASSWORD 'x'",
        f"CREATE SCHEMA {who} AUTHORIZATION {who}",
        "CREATE TABLE t AS SELECT i AS x FROM generate_series(1, 9) i",
        database=database,
    )
    own = url.replace(f"hushed:{postgres.password}", f"{who}:x")
    with psycopg.connect(own) as login:
        login.execute("CREATE TABLE t (y INTEGER)")
    assert list(hs.table(own, "t").columns) == ["y"]
    assert list(hs.table(url, "t").columns) == ["x"]


def test_a_view_whose_function_looks_around_is_told_why_it_is_refused(postgres, ledger):
    """Nothing is looked up in the path of a login, also not by functions of its own in a view."""
    database = postgres.create_database()
    postgres.run(
        "CREATE FUNCTION more(x float8) RETURNS float8 LANGUAGE sql AS 'SELECT x + 1'",
        "CREATE FUNCTION twice(x float8) RETURNS float8 LANGUAGE sql AS 'SELECT more(more(x))'",
        "CREATE VIEW v AS SELECT twice(x) AS x FROM generate_series(0, 9) AS x",
        database=database,
    )
    with pytest.warns(UserWarning, match="v is a view"):
        query = hs.table(postgres.url(database), "v").sum("x", low=0, high=99)
    with pytest.raises(ParameterError, match="give that function a search_path of its own"):
        query.release(epsilon=1e6, ledger=ledger, budget="b")
    assert ledger.log == []
    postgres.run("ALTER FUNCTION twice SET search_path = public", database=database)
    assert abs(query.release(epsilon=1e6).value("sum_x") - 65) < 1


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_role_that_speaks_few_letters_is_answered_in_all(encoding, postgres):
    """What the server was told of a client's letters does not decide what may be asked or noted."""
    database = postgres.create_database()
    url = postgres.url(database)
    to_postgres(pa.table({"city": ["上海", "Köln", "上海"]}), url, "t")
    with hs.Ledger(url) as book:
        book.open_budget("b", hs.Guarantee(epsilon=99.0, neighbours="add-remove"))
    postgres.run(f"ALTER DATABASE {database} SET client_encoding = '{encoding}'", database=database)
    query = hs.table(url, "t").group_by("city", keys=["上海", "Köln", "Łódź"]).count()
    with hs.Ledger(url) as book:
        told = query.release(epsilon=60.0, ledger=book, budget="b", note="上海", key="上海")
        assert told.values["count"] == (2, 1, 0)
        assert book.entries("b")[0].note == "上海"
        again = query.release(epsilon=60.0, ledger=book, budget="b", note="上海", key="上海")
    assert again == told


def test_a_role_that_quotes_all_names_is_answered(postgres):
    """The types of columns are known by names without quotation marks, too."""
    database = postgres.create_database()
    postgres.run(
        "CREATE TABLE t AS SELECT DATE '2020-01-02' AS d, 1.5::float8 AS x, 'a'::text AS w",
        f"ALTER DATABASE {database} SET quote_all_identifiers = on",
        database=database,
    )
    table = hs.table(postgres.url(database), "t")
    assert dict(table.columns) == {"d": "date", "x": "float", "w": "string"}
    query = table.filter("d == '2020-01-02' and w == 'a'").count()
    assert query.release(epsilon=50.0).value("count") == 1


@pytest.mark.slow
@pytest.mark.parametrize("conforming", ["on", "off"])
def test_a_constant_with_a_backslash_is_a_constant(conforming, postgres):
    """Whatever a role says of backslashes, no constant or key ends early and goes on as SQL."""
    database = postgres.create_database()
    url = postgres.url(database)
    words = ["\\", "\\'", "\\\\", "a\\", "'", "\\x41"]
    to_postgres(pa.table({"who": [*range(6), 7], "word": [*words, "b"]}), url, "t")
    with hs.Ledger(url) as book:
        book.open_budget("b", hs.Guarantee(epsilon=9e3, neighbours="add-remove"))
    postgres.run(
        f"ALTER DATABASE {database} SET standard_conforming_strings = {conforming}",
        database=database,
    )
    table = hs.table(url, "t")
    with hs.Ledger(url) as book:
        paid = {"epsilon": 60.0, "ledger": book, "budget": "b", "note": words[1]}
        grouped = table.group_by("word", keys=[*words, "c"]).count().release(**paid)
        assert grouped.values["count"] == (1, 1, 1, 1, 1, 1, 0)
        for word in words:
            assert table.filter(f"word == {word!r}").count().release(**paid).value("count") == 1
        code = (
            """\\' AS condition FROM (SELECT '' AS c0, generate_series(1, (SELECT max(who) """
            """FROM t) * 1000)) AS t0) AS t2) AS t3) AS t4 -- """
        )
        asked = table.filter(f"word == {code!r}").count()
        assert asked.release(**paid).value("count") == 0  # and not 7000
        assert book.entries("b")[-1].note == words[1]


def _write_duckdb(frame, path):
    with duckdb.connect(str(path)) as made:
        made.register("frame", frame)
        made.execute('CREATE TABLE "rows" AS FROM frame')


FILES = {
    "parquet": parquet.write_table,
    "arrow": partial(feather.write_feather, compression="uncompressed"),
    "db": _write_duckdb,
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("how", ["removed", "replaced", "written anew", "damaged"])
def test_a_file_that_changed_since_it_was_opened_costs_nothing(how, kind, tmp_path, ledger):
    """A file that each query reads: another one under its name is noticed before.

    An Arrow file is mapped into memory: reading what was cut off would end the process.
    """
    write, path, new = FILES[kind], tmp_path / f"visits.{kind}", tmp_path / f"new.{kind}"
    write(pa.table({"x": [1.0] * 50}), path)
    address = f"duckdb:///{path}" if kind == "db" else path
    query = hs.table(address).sum("x", low=0, high=2)
    assert query.release(epsilon=50.0, ledger=ledger, budget="b").value("sum_x") > 40
    write(pa.table({"x": ["a"] * 70}), new)
    if how == "replaced":
        new.replace(path)
    elif how == "written anew":
        path.write_bytes(new.read_bytes())
    elif how == "damaged":
        path.write_bytes(b"PAR1")
    else:
        path.unlink()
    with pytest.raises(EngineUnavailable, match=rf"visits.{kind}.*Nothing was charged"):
        query.release(epsilon=50.0, ledger=ledger, budget="b")
    assert len(ledger.log) == 1


def test_a_table_where_warnings_are_errors(monkeypatch):
    """What Ibis warns of is no fault of a column: the message says what to let pass."""

    def warned(*_, **__):
        raise DeprecationWarning("older words")

    monkeypatch.setattr("ibis.backends.duckdb.Backend.table", warned)
    with pytest.raises(ParameterError, match=r"Ibis warns \(Deprecation.*let this one pass"):
        hs.table(pa.table({"x": [1.0]}))


@pytest.mark.parametrize(
    "name", ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment", "__FileName"]
)
def test_a_parquet_column_that_arrow_has_too_costs_nothing(name, tmp_path):
    """Every query of such a file was charged, and failed where Arrow began to read."""
    parquet.write_table(pa.table({"age": [1, 2, 3], name: [1, 2, 3]}), tmp_path / "rows.parquet")
    if name == "__FileName":
        held = hs.table(tmp_path / "rows.parquet").sum(name, low=0, high=9, name="all")
        assert held.release(epsilon=1e6).value("all") == pytest.approx(6, abs=0.01)
        return
    with pytest.raises(ParameterError, match=r"rows\.parquet has a column .* rename it"):
        hs.table(tmp_path / "rows.parquet")
