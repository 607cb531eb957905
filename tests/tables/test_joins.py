"""A join with a public table: against plain Python, on every engine, and against its own misuse."""

import math
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.engines import ENGINES

import hushed as hs
from hushed.errors import ParameterError
from hushed.statements import certify_budget
from hushed.tables._scan import prepare, run_scan

TEXTS = ["Rome", "rome", "ROME", "", None, "Zürich", "Zu\u0308rich", "Oslo ", "Oslo", "a\x01b", "%"]
ROWS = [
    (i % 9, TEXTS[i % 11], [None, 1, 2, -3, 2**62][i % 5], date(2024, 1, 1 + i % 3), float(i % 4))
    for i in range(300)
]
FRAME = pa.table(dict(zip(("who", "city", "n", "day", "x"), zip(*ROWS, strict=True), strict=True)))
CITIES = {
    "city": ["Rome", "ROME", "", "Zürich", "Oslo", "a\x01b", "absent"],
    "size": [3.5, 1.0, -2.25, 1e-300, 0.1, 7.0, 9.0],
    "land": ["Italia", "ITALIA", "", "Schweiz", "Norge\x02", "\x01", "?"],
    "sea": [True, False, True, False, True, False, True],
}


def cells(query, secret=5):
    """Exact answers of each measurement by public key."""
    found = run_scan(prepare(query.connection, query.query, secret))
    return dict(zip(found.keys, zip(*found.values, strict=True), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
class TestEngines:
    def test_rows_meet_the_public_row_of_their_key_and_no_other(self, engine, placed):
        """Counts by a joined column, byte by byte: case, spaces and accents are other keys."""
        lands = dict(zip(CITIES["city"], CITIES["land"], strict=True))
        wanted = Counter(lands[city] for _, city, *_ in ROWS if city in lands)
        query = hs.table(*placed(engine, FRAME)).join(CITIES, on="city")
        found = cells(query.group_by("land", keys=CITIES["land"]).count())
        assert {key: rows for (key,), (rows,) in found.items()} == {
            land: wanted[land] for land in CITIES["land"]
        }

    def test_rows_without_a_match_take_the_stated_values(self, engine, placed):
        """A missing key, too; and what is computed of them is computed of the stated value."""
        numbers = {"n": [2**62, -3, 5], "b": [1, 2, 3], "s": ["u", "v", "w"]}
        query = hs.table(*placed(engine, FRAME)).join(
            numbers, on="n", default={"b": 10, "s": "none"}
        )
        query = query.derive("twice", "b * 2").group_by("s", keys=["u", "v", "w", "none"])
        worth = {2**62: ("u", 2), -3: ("v", 4)}
        wanted = defaultdict(lambda: [0, 0])
        for _, _, n, _, _ in ROWS:
            name, twice = worth.get(n, ("none", 20))
            wanted[name][0] += 1
            wanted[name][1] += twice
        asked = query.count().sum("twice", low=0, high=64)
        step = asked.query.measured[1].step
        found = {key: (rows, total * step) for (key,), (rows, total) in cells(asked).items()}
        assert found == {key: tuple(wanted[key]) for key in ("u", "v", "w", "none")}

    def test_bounds_hold_after_the_join_for_each_user(self, engine, placed):
        """Rows that a join leaves out use up no bound; days are keys, too."""
        days = {"day": [date(2024, 1, 2), "2024-01-03"], "late": [False, True]}
        query = hs.table(*placed(engine, FRAME), user="who").join(days, on="day")
        query = query.bound_contributions(max_rows_per_user=2).group_by("late", keys=[True])
        late = Counter(who for who, *_, day, _ in ROWS if day == date(2024, 1, 3))
        (((rows,),),) = [list(cells(query.count()).values())]
        assert rows == sum(min(2, number) for number in late.values())


@pytest.mark.parametrize(
    "public",
    [pd.DataFrame, pl.DataFrame, pa.table, dict],
    ids=["pandas", "polars", "arrow", "dict"],
)
def test_every_kind_of_frame_asks_the_same_query(public):
    """Equal queries, whatever order the rows are in."""
    table = hs.table(FRAME)
    shuffled = {name: values[::-1] for name, values in CITIES.items()}
    assert table.join(public(shuffled), on="city") == table.join(CITIES, on="city")


def test_a_parquet_file_with_bytes_that_are_no_text_is_joined(tmp_path):
    """Its strings are held in another form, and equal keys are still equal."""
    raw = pa.array([b"Rome", b"\xffRome", b"Oslo", b"Rome"])
    broken = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    parquet.write_table(pa.table({"city": broken}), tmp_path / "t.parquet")
    query = hs.table(tmp_path / "t.parquet").join(CITIES, on="city", default={
        "size": 0.0, "land": "none", "sea": False,
    })  # fmt: skip
    found = cells(query.group_by("land", keys=["Italia", "none", "Norge\x02"]).count())
    assert [rows for (rows,) in found.values()] == [2, 1, 1]


@pytest.mark.parametrize(
    ("public", "on", "default", "words"),
    [
        ({"city": ["Rome", "Rome"], "a": [1, 2]}, "city", None, "two rows for.*Rome"),
        ({"n": [1, 1], "a": [1, 2]}, "n", None, "two rows"),
        ({"day": ["2024-01-01", date(2024, 1, 1)], "a": [1, 2]}, "day", None, "two rows"),
        ({"n": ["1"], "a": [1]}, "n", None, "type int, got .*'1'"),
        ({"n": [1.0], "a": [1]}, "n", None, "type int"),
        ({"n": [True], "a": [1]}, "n", None, "type int"),
        ({"city": [1], "a": [1]}, "city", None, "type string"),
        ({"city": [None], "a": [1]}, "city", None, "type string"),
        ({"city": [math.nan], "a": [1]}, "city", None, "type string"),
        ({"x": [1.0], "a": [1]}, "x", None, "cannot join by 'x' of type float"),
        ({"city": ["Rome"], "x": [1]}, "city", None, "a column 'x' already"),
        ({"city": ["Rome"]}, "city", None, "another one to add"),
        ({"town": ["Rome"], "a": [1]}, "city", None, "needs a column 'city'"),
        ({"city": ["Rome"], "a": [None]}, "city", None, "no missing cell"),
        ({"city": ["Rome"], "a": [math.nan]}, "city", None, "no missing cell"),
        ({"city": ["Rome"], "a": [math.inf]}, "city", None, "no missing cell"),
        ({"city": ["Rome", "b"], "a": [1, "1"]}, "city", None, "of one type"),
        ({"city": ["Rome"], "a": [2**64]}, "city", None, "no missing cell|numbers"),
        ({"city": ["Rome"], "a": ["\ud800"]}, "city", None, "strings"),
        ({"city": ["Rome"], "a": [1, 2]}, "city", None, "same number of cells"),
        ({"city": [], "a": []}, "city", None, "at least one"),
        ({"city": list(map(str, range(50_001))), "a": [0] * 50_001}, "city", None, "100000"),
        ({"city": ["Rome"], "a": [1]}, "city", {}, "value of each added column"),
        ({"city": ["Rome"], "a": [1]}, "city", {"b": 1}, "value of each added column"),
        ({"city": ["Rome"], "a": [1]}, "city", {"a": "1"}, "the default of 'a'"),
        ({"city": "Rome", "a": [1]}, "city", None, "public table must be"),
        ([1, 2], "city", None, "public table must be"),
        ({"city": ["Rome"], "a": [1]}, "town", None, "no column 'town'"),
        ({1: ["Rome"], "city": [1]}, "city", None, "needs a name"),
    ],
)
def test_a_public_table_that_does_not_fit_is_refused(public, on, default, words):
    """Two rows of a key, other types, missing cells: at once, and before anything is read."""
    with pytest.raises(ParameterError, match=words):
        hs.table(FRAME).join(public, on=on, default=default)


def test_pandas_keys_that_become_equal_are_refused():
    """A column of objects holds strings: what is written alike is one key."""
    mixed = pd.DataFrame({"city": pd.Series(["1", 1], dtype=object), "a": [1, 2]})
    with pytest.raises(ParameterError, match="two rows"):
        hs.table(FRAME).join(mixed, on="city")


def test_the_private_table_itself_is_not_joined():
    """As the frame that was opened, and as a table: its rows would be written into the query."""
    table = hs.table(FRAME)
    with pytest.raises(ParameterError, match="private table itself"):
        table.join(FRAME, on="city")
    with pytest.raises(ParameterError, match="join_users"):
        table.join(table, on="city")


def test_the_price_is_that_of_the_query_without_the_join():
    """One row stays one row; the steps of the quote say so."""
    plain = hs.table(FRAME, user="who").bound_contributions(max_rows_per_user=3)
    joined = plain.join(CITIES, on="city")
    for ask in (lambda t: t.count(), lambda t: t.count_users().sum("x", low=0, high=2)):
        first, second = (ask(each).quote(epsilon=1.0) for each in (plain, joined))
        assert first.guarantee == second.guarantee
        assert [each.scale for each in first.distances] == [e.scale for e in second.distances]
    assert "meets one public row at most, by city" in second.explain()


def test_a_certificate_says_what_was_joined():
    """The number of keys, the columns and a digest, which another public table changes."""
    told = []
    for change in (1.0, 2.0):
        public = {"city": ["Rome", "Oslo"], "size": [3.5, change]}
        query = hs.table(FRAME).join(public, on="city").mean("size", low=0, high=4)
        statement = hs.certify(query.release(epsilon=1.0))
        assert hs.verify(statement.to_json()).reproduced
        told.append(statement.explain())
    assert "one row for each of 2 keys" in told[0]
    digests = [text.partition("SHA-256 ")[2][:64] for text in told]
    assert len(set(digests)) == 2


@pytest.mark.slow
def test_a_join_after_a_filter_of_its_columns_and_before_another(tmp_path):
    """Steps run in their order, on a database file that is read only."""
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as made:
        made.register("frame", FRAME)
        made.execute("CREATE TABLE t AS SELECT * FROM frame")
    query = hs.table(f"duckdb:///{path}", "t").derive("key", "abs(n)").filter("x > 0")
    query = query.derive("small", "floor(x / 2)").derive("whole", "floor(abs(n) / 1)")
    public = {"city": ["Rome", "Oslo"], "size": [1, 2]}
    query = query.join(public, on="city").filter("size > 1")
    (((rows,),),) = [list(cells(query.count()).values())]
    assert rows == sum(city == "Oslo" and x > 0 for _, city, _, _, x in ROWS)


@pytest.mark.parametrize(
    ("public", "default", "words"),
    [
        ({"a": [1, 2]}, {"a": "x"}, "the default of 'a' must be of type int or float.*got 'x'"),
        ({"a": [1, 2]}, {"a": None}, "the default of 'a' must be of type int or float.*got None"),
        ({"a": ["x", "y"]}, {"a": 1}, "the default of 'a' must be of type string.*got 1"),
        ({"a": [True, False]}, {"a": 1}, "the default of 'a' must be of type bool.*got 1"),
        ({"a": [1, "x"]}, {"a": 1}, "column 'a' must hold"),
    ],
)
def test_a_wrong_default_is_told_as_such(public, default, words):
    """The column of the public table is right."""
    with pytest.raises(ParameterError, match=words) as refused:
        hs.table(FRAME).join({"city": ["Rome", "Oslo"], **public}, on="city", default=default)
    assert refused.value.parameter == ("public" if "hold" in words else "default")


def test_numbers_of_both_kinds_are_a_default():
    """As among the cells of a column."""
    table = hs.table(FRAME).join({"city": ["Rome"], "a": [1]}, on="city", default={"a": 0.5})
    assert table.columns["a"] == "float"


@pytest.mark.parametrize("missing", [None, math.nan, pd.NaT, pd.NA, Decimal("sNaN")])
def test_a_missing_key_of_a_public_table_is_told_with_its_row(missing):
    """And what to do with the row."""
    public = {"city": ["Rome", missing], "a": [1, 2]}
    with pytest.raises(ParameterError, match=r"row 2 of the public table: .*leave that row out"):
        hs.table(FRAME).join(public, on="city")


def test_a_key_that_is_there_twice_is_shown_as_it_is():
    """In one pair of quotation marks."""
    with pytest.raises(ParameterError, match="two rows for 'Rome' in 'city'"):
        hs.table(FRAME).join({"city": ["Rome", "Rome"], "a": [1, 2]}, on="city")
    with pytest.raises(ParameterError, match="two rows for 1 in 'n'"):
        hs.table(FRAME).join({"n": [1, 1], "a": [1, 2]}, on="n")


def joined_by_city(frame=FRAME):
    """Ask a question that publishes two rows of cities, with a condition."""
    public = {"city": ["Rome", "Oslo"], "size": [3.5, 1.0], "land": ["I", "N"]}
    return hs.table(frame).filter("x >= 0").join(public, on="city").count()


def test_certificate_and_report_say_that_the_joined_table_is_in_the_file(tmp_path):
    """How many rows, which columns, and that no limit protects it and it is taken to be public."""
    limit = hs.Guarantee(epsilon=5.0, neighbours="add-remove")
    with hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        ledger.open_budget("b", limit)
        terms = {"epsilon": 1.0, "ledger": ledger, "budget": "b"}
        answer = joined_by_city().release(**terms)
        hs.table(FRAME).count().release(**terms)
        joined_by_city().release(**terms)
        report = certify_budget(ledger, "b")
    table = "the joined public table (2 rows; columns city, land, size)"
    told = hs.certify(answer).explain()
    limits = told.partition("Without any limit: ")[2]
    assert f"conditions and expressions, all of {table}, and that this was asked" in limits
    assumed = told.partition("What is assumed: ")[2].partition("\n")[0]
    assert f"{table} is public: the file holds all of it" in assumed
    told = report.explain()
    limits = told.partition("Without any limit: ")[2]
    assert "what each stored answer was asked" in limits
    assert f"all of {table} of entries 1, 3, and that this was asked" in limits
    assumed = told.partition("What is assumed: ")[2].partition("\n")[0]
    assert "(2 rows; columns city, land, size) of entries 1, 3 is public" in assumed


def test_a_certificate_without_a_join_speaks_of_no_joined_table():
    """Nor of conditions where there are none."""
    told = hs.certify(hs.table(FRAME).count().release(epsilon=1.0)).explain()
    assert "joined" not in told
    assert "public keys and bounds, and that this was asked" in told


def test_quote_and_answer_say_how_much_of_the_public_table_they_publish():
    """Rows and columns, with the price and with the answer; nothing is said without a join."""
    asked = joined_by_city()
    for told in (asked.quote(epsilon=1.0), asked.release(epsilon=1.0)):
        (said,) = [each for each in told.warnings if "joined public table" in each]
        assert "All of the joined public table (2 rows; columns city, land, size) becomes" in said
        assert said in told.explain()
        assert "without a match in it are left out" in said
    assert not any("joined" in each for each in hs.table(FRAME).count().quote(epsilon=1).warnings)


class TestTablesByUsers:
    """A public table with a row for each user."""

    def public(self, key):
        return {key: [1, 2], "born": [1980, 1990]}

    def table(self):
        return hs.table(FRAME, user="who").bound_contributions(max_rows_per_user=3)

    @pytest.mark.parametrize(
        "derived", [(), ("floor(who / 1)",), ("abs(who)", "floor(middle / 1)")]
    )
    def test_a_list_of_the_users_is_not_taken_for_public(self, derived):
        """By the column of the users, and by one that is computed from it; and what to do."""
        table, key = self.table(), "who"
        for name, text in zip(("middle", "key")[-len(derived) :], derived, strict=False):
            table, key = table.derive(name, text), name
        public = self.public(key)
        with pytest.raises(
            ParameterError, match=r"column of the users.*join_users.*users_are_publ"
        ):
            table.join(public, on=key)
        with pytest.raises(ParameterError, match="column of the users"):
            table.join(public, on=key, users_are_public="yes")
        assert table.join(public, on=key, users_are_public=True).count().quote(epsilon=1).warnings

    def test_without_users_and_by_other_columns_nothing_is_asked(self):
        """A row has no name there."""
        public = self.public("who")
        assert hs.table(FRAME).join(public, on="who").steps
        assert self.table().join({"city": ["Rome"], "size": [1]}, on="city").steps

    def test_a_query_that_was_written_down_is_asked_again_and_exported(self):
        """The yes is not lost: neither as data nor as Python."""
        public = self.public("who")
        asked = self.table().join(public, on="who", users_are_public=True).count()
        data = hs.Query.of(asked)
        assert hs.table(FRAME, user="who").ask(data) == asked
        assert "users_are_public=True" in data.to_python("visits.parquet")
        other = self.table().join({"city": ["Rome"], "size": [1]}, on="city").count()
        assert "users_are_public" not in hs.Query.of(other).to_python("visits.parquet")
        answer = asked.release(epsilon=1.0)
        assert hs.verify(hs.certify(answer).to_json()).reproduced

    @pytest.mark.parametrize(
        ("user", "text", "told"),
        [('a "b', 'floor(column("a \\"b") / 1)', True), ("n", "floor(line / 1)", False)],
    )
    def test_exported_python_knows_what_is_computed_from_the_users(self, user, text, told):
        """By columns, and not by letters: of one it would be refused, of another say too much."""
        steps = [
            {"derive": "key", "expression": text},
            {"join": "key", "keys": [1], "columns": {"born": [1980]}},
        ]
        data = hs.Query(user=user, steps=steps, aggregates=[{"kind": "count"}])
        assert ("users_are_public=True" in data.to_python("visits.parquet")) == told
