"""One query, several engines: exact cells agree bit for bit, and with plain Python."""

import math
from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from tests.engines import ENGINES, SERVERS
from tests.nasty_tables import clipped, nasty

import hushed as hs
from hushed.errors import ParameterError
from hushed.tables._scan import fetch_keys, prepare, run_scan

SECRET = 1234567890123456789


def cells(query, secret=SECRET, delta=0.0):
    """The exact cells of a query: what a release adds noise to."""
    found = run_scan(prepare(query.connection, query.query, secret))
    return replace(found, values=tuple(list(column) for column in found.values))


def full(table):
    """A query that uses every aggregate on every kind of column."""
    return (
        table.filter("is_null(well) or not (city == 'rome' and x > 2) or n in [1, 5, -7]")
        .derive("part", "floor(n / 100)")
        .derive("odd", "abs(x - 3 * n) / (n - 5)")
        .group_by("city", keys=["Rome", "Oslo", "", "Zürich", "O'Hara", 'say "hi"', "absent"])
        .bound_contributions(max_rows_per_user=1000)
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
        .quantiles("x", [0.5], low=0, high=100)
        .quantiles("odd", [0.5], low=1e-3, high=1e5)
    )


CONDITIONS = (
    "x > 2", "x >= 1.5 and x != 100", "n < 3 or x < 3", "not (x <= n)", "1 < n <= 50 < x + n",
    "is_null(n / (n - 5))", "is_null(-x)", "is_null(city) or is_null(day)", "x == x", "n == n",
    "city == 'O\\'Hara'", "city != 'Rome'", "city in ['', '%_', 'Zürich', 'say \"hi\"', '\\\\']",
    "city not in ['Oslo ']", "city == 'Oslo'", "n in [1, -7, 2.5]", "x in [1.5, 50]",
    "day > '1999-12-31'", "day in ['1969-07-20', '2024-02-29']", "year(day) == 2024",
    "month(day) < 3 or is_null(day)", "at <= '1582-10-10'", "at == at", "day >= day",
    "at != '2024-02-29T23:59:59.999999'", "at in ['0001-01-01', '2021-03-28T02:30:00']",
    "well", "not well", "well == True", "well != (n > 5)", "column('n') > 3", "abs(x) < 1e-300",
)  # fmt: skip
NUMBERS = (
    "x + n", "x - n", "x * x", "x / n", "n / x", "-x", "-n + 3", "abs(x)", "abs(n - 60)",
    "floor(x)", "floor(-x / 7)", "floor(n / 2) * 2", "x * 1e200 * 1e200", "1 / (x - x)", "n / 0",
    "0.1 + n", "9007199254740993 + n", "floor(x * 1e99)", "year(day)", "month(day)", "year(at)",
    "month(at)", "floor(year(at) / 10) * 10", "abs(floor(x / 3) - x / 3) * 1e6",
    "2 * -3.5 - n / 3 * x",
)  # fmt: skip

WHOLE = (
    "floor(x) * floor(n)", "floor(x) * floor(x) * floor(x)", "abs(floor(x)) * -floor(n)",
    "floor(x) - -floor(x) * floor(x)", "floor(x) / floor(n)",
)  # fmt: skip


def each_of(table, texts):
    """Sum and number of values of every expression."""
    for i, text in enumerate(texts):
        table = table.derive(f"e{i}", text)
    for i, text in enumerate(texts):
        top = 1 if text in CONDITIONS else 1e5
        table = table.mean(f"e{i}", low=-top, high=top)
    return table


def odd_rows():
    """Rows with one extreme cell each, and a user of their own."""
    cells_of = {
        "x": [math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -2.2e-308, -0.0],
        "n": [2**63 - 1, -(2**63), 0],
        "city": [
            "'; DROP TABLE t; --",
            "\\",
            "`",
            "a" * 70_000,
            "\u202e\U0001f600\ufffe",
            "\r\n\t",
        ],
        "day": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)],
        "at": [datetime.min, datetime.max, datetime(1883, 11, 18, 12)],
    }
    schema = nasty(60).schema.append(pa.field("kind", pa.string()))
    rows = [{name: cell} for name, found in cells_of.items() for cell in [*found, None]]
    plain = {"x": 1.0, "n": 5, "city": "Rome", "well": True, "kind": "odd"}
    return pa.Table.from_pylist(
        [{**plain, "who": -i, **row} for i, row in enumerate(rows, 1)], schema
    )


def thorough(query):
    """Every kind of aggregate and function, with limits that bind."""
    for name, text in {
        "a": "x * x - n / x", "f": "floor(x) + abs(n)", "y": "year(day) + month(at)",
        "t": "city in ['Rome', 'Oslo'] or at > '2000-01-01' or x < n",
    }.items():  # fmt: skip
        query = query.derive(name, text)
    query = query.bound_contributions(max_rows_per_user=3).count().count_users()
    for column in ("x", "n", "a", "f", "y"):
        query = query.variance(column, low=-30, high=3000)
    query = query.sum("t", low=0, high=1).histogram("x", low=0, high=9, bins=4)
    return query.quantiles("n", [0.5], low=-50, high=160)


def short(table):
    """A query that is quick to compile."""
    query = (
        table.filter("x < 90")
        .group_by("well", keys=[True, False])
        .bound_contributions(max_rows_per_user=7, max_groups_per_user=1)
    )
    return query.count().sum("n", low=-20, high=50)


@pytest.fixture(scope="module")
def frame():
    return nasty()


@pytest.fixture(scope="module")
def on_duckdb(frame):
    return cells(full(hs.table(frame, user="who")))


class TestEngines:
    @pytest.mark.slow
    @pytest.mark.parametrize("engine", [pytest.param("polars", marks=pytest.mark.slow), *SERVERS])
    def test_engines_agree_bit_for_bit(self, engine, frame, on_duckdb, placed):
        """Every exact cell of a query on nasty values is the same as on DuckDB."""
        source, name = placed(engine, frame)
        there = cells(full(hs.table(source, name, user="who")))
        assert there == on_duckdb
        assert sum(map(sum, (c for c in there.values if isinstance(c[0], int)))) != 0

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", [pytest.param("polars", marks=pytest.mark.slow), *SERVERS])
    @pytest.mark.parametrize("texts", [CONDITIONS, NUMBERS[::3], NUMBERS[1::3], NUMBERS[2::3]])
    def test_the_whole_language_agrees(self, engine, texts, frame, placed):
        """Every condition, function and operator gives the numbers of DuckDB, missing or not."""
        source, name = placed(engine, frame)
        found = [cells(each_of(hs.table(*where), texts)) for where in ((frame,), (source, name))]
        assert found[0] == found[1]
        assert len({column[0] for column in found[0].values}) > len(texts) / 2

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_table_without_rows(self, engine, frame, placed):
        """All zeros for public keys, none for private ones, and one zero without any."""
        source, name = placed(engine, frame.slice(0, 0))
        table = hs.table(source, name, user="who").bound_contributions(
            max_rows_per_user=2, max_groups_per_user=2
        )
        query = table.count().count_users().mean("x", low=-1, high=1)
        query = query.histogram("x", low=0, high=1, bins=3).quantiles("n", [0.5], low=0, high=4)
        nothing = [0, 0, 0, 0, [0] * 3, [0] * 2000]
        assert cells(query).values == tuple([each] for each in nothing)
        keyed = cells(query.group_by("city", keys=["Rome", ""]))
        assert keyed.values == tuple([each] * 2 for each in nothing)
        private = cells(query.group_by("city", select_partitions=True), delta=1e-6)
        assert private.keys == ()
        assert private.users == []

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ENGINES)
    def test_one_odd_row_fails_nothing_and_moves_no_other(self, engine, placed):
        """The cells of the plain rows are the same with and without the oddest rows beside them."""
        odd = odd_rows()
        frame = pa.concat_tables([nasty(60).append_column("kind", [["plain"] * 60]), odd])
        source, name = placed(engine, frame)
        every = hs.table(source, name, user="who").group_by("kind", keys=["plain", "odd"])
        found = [cells(thorough(each)) for each in (every.filter("kind == 'plain'"), every)]
        assert [c[0] for c in found[0].values] == [c[0] for c in found[1].values]
        assert [c[1] for c in found[1].values[:2]] == [len(odd), len(odd)]

    @pytest.mark.parametrize("engine", ENGINES)
    def test_whole_numbers_are_multiplied_as_doubles(self, engine, placed):
        """As integers they overflow: one row would decide whether the query fails."""
        frame = pa.table({"x": [1.5, 1e10, -1e300, None], "n": [3, 2**63 - 1, -(2**63), 5]})
        source, name = placed(engine, frame)
        table = hs.table(source, name)
        for i, text in enumerate(WHOLE):
            table = table.derive(f"e{i}", text).mean(f"e{i}", low=-1, high=1)
        assert cells(table).values[1::2] == ([3],) * len(WHOLE)
        product = hs.table(source, name).derive("e", WHOLE[0])
        exact = product.filter("e == 3 or e > 9e25 and e < 1e26 or e > 8e31 and e < 9e31")
        assert cells(exact.count()).values == ([3],)

    @pytest.mark.parametrize("engine", ENGINES)
    def test_the_least_and_the_largest_number_are_keys(self, engine, placed):
        frame = pa.table({"n": [2**63 - 1, -(2**63), -(2**63), 0, None]})
        table, keys = hs.table(*placed(engine, frame)), [-(2**63), 2**63 - 1]
        assert cells(table.group_by("n", keys=keys).count()).values == ([2, 1],)
        known = table.join({"n": keys, "m": [5, 6]}, on="n").sum("m", low=0, high=9)
        assert cells(known).values == ([16],)
        with pytest.raises(ParameterError, match="have 64 bits"):
            table.group_by("n", keys=[2**63])

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_constant_of_many_digits_is_compared_with_any_whole_number(self, engine, placed):
        """DuckDB read it as a decimal, and the number beside it, too, which failed if large."""
        frame = pa.table({"n": [2**63 - 1, -(2**63), 0, None], "m": [1, 2, 3, 4]})
        table = hs.table(*placed(engine, frame))
        small = "0.00012345678901234567"
        wanted = {
            f"n < {small}": 2, f"n < -{small}": 1, f"n in [{small}, 0]": 1, f"n == {small}": 0,
            f"{small} <= n": 1, f"-{small} < n < {small}": 1, f"n not in [{small}]": 3,
            "n == -9223372036854775808": 1,
            "n in [-9223372036854775808, 4]": 1,
            "n < -9223372036854775807": 1,
            "-9223372036854775808 * m < 0": 4,
            "1e-308 - 9223372036854775807 < n": 2,
        }  # fmt: skip
        for i, text in enumerate(wanted):
            table = table.derive(f"e{i}", text).sum(f"e{i}", low=0, high=1)
        assert [column[0] for column in cells(table).values] == [*wanted.values()]

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ENGINES)
    def test_public_keys_of_every_kind(self, engine, placed):
        """Keys find exactly their own rows, whatever marks a text holds, alone or among others."""
        columns = {
            "text": ["", "\x01", "a\x02b", "a", "O'Hara", 'say "hi"', "\\x41", "\n", "a,b", None],
            "whole": [0, -1, 2**63 - 1, -(2**63) + 1, 10, 1, 12, 123, 99, None],
            "truth": [True, False, None, True, False, True, True, True, None, None],
            "day": [date(2020, 2, 29), date(1, 1, 1), date(9999, 12, 31), *[None] * 7],
        }
        source, name = placed(engine, pa.table(columns))
        for column, held in columns.items():
            all_keys = list(dict.fromkeys(v for v in held if v is not None))
            for keys in (all_keys, all_keys[:1], all_keys[1:]):
                query = hs.table(source, name).group_by(column, keys=keys).count()
                assert cells(query).values[0] == [held.count(key) for key in keys]

    @pytest.mark.slow
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

    @pytest.mark.slow
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
        for source, types in ((frame, None), (tmp_path / "t.csv", {"x": "float"})):
            query = hs.table(source, user="who", types=types).bound_contributions(
                max_rows_per_user=5
            )
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


class TestContributionBounds:
    @pytest.mark.parametrize("engine", ENGINES)
    def test_no_user_exceeds_the_limits(self, engine, placed):
        """With rows=3 and groups=2 every user keeps 3 rows at most, in 2 groups at most."""
        users, copies, groups = 40, 12, 6
        table = pa.table(
            {
                "who": [u for u in range(users) for _ in range(copies)],
                "g": [(u + i) % groups for u in range(users) for i in range(copies)],
                "x": [float(i) for _ in range(users) for i in range(copies)],
            }
        )
        source, name = placed(engine, table)
        query = hs.table(source, name, user="who").bound_contributions(
            max_rows_per_user=3, max_groups_per_user=2
        )
        grouped = query.group_by("g", keys=list(range(groups)))
        found = cells(grouped.count().count_users().sum("x", low=0, high=11))
        assert sum(found.values[0]) == 3 * users
        assert users <= sum(found.values[1]) <= 2 * users
        other = cells(grouped.count().count_users().sum("x", low=0, high=11), secret=SECRET // 3)
        assert other.values[2] != found.values[2]  # another key keeps other rows
        assert cells(query.count()).values[0][0] == 3 * users

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize(
        "bounds",
        [{"max_rows_per_user": 1}, {"max_groups_per_user": 1, "max_rows_per_user": 3}],
    )
    def test_which_rows_are_kept_is_fair(self, engine, bounds, placed):
        """Of 800 users with the same 8 rows each row is kept by about 100 (5.5 sigma)."""
        users = 800
        table = pa.table(
            {"who": [u for u in range(users) for _ in range(8)], "g": list(range(8)) * users}
        )
        source, name = placed(engine, table)
        query = hs.table(source, name, user="who").bound_contributions(**bounds)
        found = cells(query.group_by("g", keys=list(range(8))).count()).values[0]
        assert sum(found) == users
        assert all(abs(n - 100) < 5.5 * math.sqrt(100 * 7 / 8) for n in found), found


class TestPrivateKeys:
    @pytest.mark.slow
    def test_only_opaque_names_cross_before_the_selection(self, frame):
        """Private keys are 32 hexadecimal digits; those chosen can be named, and no others."""
        query = (
            hs.table(frame, user="who")
            .bound_contributions(max_groups_per_user=2)
            .group_by("city", select_partitions=True)
        )
        query = query.count_users()
        found = run_scan(prepare(query.connection, query.query, SECRET))
        assert all(len(key[0]) == 32 and int(key[0], 16) > 0 for key in found.keys)
        assert 2 <= len(found.keys) <= 9
        chosen = [key[0] for key in found.keys[:2]]
        assert set(fetch_keys(prepare(query.connection, query.query, SECRET), chosen)) == set(
            chosen
        )
        with pytest.raises(hs.errors.QueryFailed):
            fetch_keys(prepare(query.connection, query.query, SECRET), [chosen[0], "0" * 32])

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", SERVERS)
    @pytest.mark.parametrize("columns", [("city", "well"), ("day", "ten")])
    def test_engines_name_the_same_keys(self, engine, columns, frame, placed):
        """Private groups hold the same users as on DuckDB, by key, where limits do not bind."""
        answers = []
        for source, name in ((frame, "rows"), placed(engine, frame)):
            query = hs.table(source, name, user="who").bound_contributions(
                max_groups_per_user=50, max_rows_per_user=500
            )
            query = query.derive("ten", "floor(n / 10)").group_by(*columns, select_partitions=True)
            query = query.count().histogram("x", low=0, high=9, bins=2)
            found = run_scan(prepare(query.connection, query.query, SECRET))
            names = fetch_keys(
                prepare(query.connection, query.query, SECRET), [key[0] for key in found.keys]
            )
            keys = [names[key[0]] for key in found.keys]
            answers.append(
                dict(zip(keys, zip(found.users, found.values[0], strict=True), strict=True))
            )
        assert answers[0] == answers[1]
        assert len(answers[0]) > 9
