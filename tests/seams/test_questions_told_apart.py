"""Two questions are never taken for one: not by their digest, their export, nor by a letter."""

import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import KeyInUse, ParameterError

CERTAIN = 60.0  # an epsilon at which a count is off by one in e^60


def test_names_that_the_caller_gives_belong_to_the_question(tmp_path):
    """The stored answer of one column was read again for another one, under the same key."""
    path = tmp_path / "rows.csv"
    path.write_text("1,100\n" * 50)
    types = {"a": "float", "b": "float"}
    asked = [hs.table(path, header=header, types=types) for header in ("a,b", "b,a", "a,b")]
    digests = [table.count().prepare(epsilon=1.0).digest for table in asked]
    assert digests[0] == digests[2] != digests[1]
    with hs.Ledger(f"sqlite:///{tmp_path}/book.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "mine"}
        mean = [table.mean("a", low=0, high=200) for table in asked]
        answer = mean[0].release(**ask)
        with pytest.raises(KeyInUse):
            mean[1].release(**ask)
        assert mean[2].release(**ask) == answer


@pytest.mark.parametrize(
    ("written", "read"),
    [("dose_\u00b5g", "dose_\u03bcg"), ("\ufb01eld", "field"), ("e\u0301t\u00e9", "\u00e9t\u00e9")],
    ids=["micro", "ligature", "accent"],
)
def test_a_name_is_read_letter_by_letter(written, read):
    """Python reads some letters as others, and so read another column than was named."""
    rows = {written: [1.0] * 40, read: [9.0] * 40, "other": [0.0] * 40}
    both = hs.table(pa.table(rows))
    asked = both.filter(f"(is_null(other) or\n {written} > 5) and {written} < 20").count()
    assert asked.release(epsilon=CERTAIN).value("count") == 0
    assert both.filter(f"{read} > 5").count().release(epsilon=CERTAIN).value("count") == 40
    alone = hs.table(pa.table({read: [9.0] * 40}))
    with pytest.raises(ParameterError, match="there is no column"):
        alone.filter(f"{written} > 5")
    with pytest.raises(ParameterError, match="there is no function"):
        both.filter("\ufb02oor(other) > 5")


@pytest.mark.slow
def test_a_column_declared_of_its_own_type_is_read_as_it_is(tmp_path):
    """An exported query declares types: integers beyond 63 bits were missing there."""
    path = tmp_path / "rows.parquet"
    rows = pa.table({"u": pa.array([2**64 - 1] * 40 + [3] * 2, pa.uint64())})
    pa.parquet.write_table(rows, path)
    direct = hs.table(path).filter("u > 5").count()
    program = {}
    exec(hs.Query.of(direct).to_python(str(path)), program)
    declared = hs.table(path, types={"u": "int"}).filter("u > 5").count()
    for query in (direct, program["query"], declared):
        assert query.release(epsilon=CERTAIN).value("count") == 40


def invalid_words(words):
    """Strings of Arrow that hold these bytes, whether they are UTF-8 or not."""
    ends = np.cumsum([0, *map(len, words)]).astype(np.int32)
    held = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    return pa.Array.from_buffers(pa.string(), len(words), held)


@pytest.mark.slow
def test_a_key_that_is_no_utf_8_is_told_as_that_of_a_frame(tmp_path):
    """A Parquet file may hold it: the answer that its users had paid for was lost."""
    path = tmp_path / "rows.parquet"
    words = [b"K\xf6ln", b"K\xfcln", b"Rome", "Łódź".encode(), b""]
    rows = pa.table({"city": invalid_words(words * 30), "n": [1, 2] * 75, "ok": [True] * 150})
    pa.parquet.write_table(rows, path)
    terms = {"epsilon": CERTAIN, "delta": 1e-6}
    for by in (["city"], ["n", "city", "ok"], ["n", "ok"]):
        told = []
        for source in (path, rows):
            answer = hs.table(source).group_by(*by, select_partitions=True).count()
            told.append(answer.release(**terms).rows())
        assert told[0] == told[1]
        assert sum(row["count"] for row in told[0]) == 150
        assert {row.get("city") for row in told[0]} in (
            {"K\ueff6ln", "K\ueffcln", "Rome", "Łódź", ""},
            {None},
        )


def test_a_byte_that_ends_a_string_where_it_is_sorted_makes_no_user_of_two(tmp_path):
    """DuckDB took them for one, and read numbers behind them as others, far beyond their bounds."""
    names = [name for i in range(50) for name in (b"u%d" % i, b"u%d\xff\xff" % i)] * 4
    rows = pa.table({"who": invalid_words(names), "x": [float(i % 5) for i in range(400)]})
    pa.parquet.write_table(rows, tmp_path / "rows.parquet")
    table = hs.table(tmp_path / "rows.parquet", user="who").bound_contributions(max_rows_per_user=1)
    told = table.count().count_users().sum("x", low=0, high=4).release(epsilon=9 * CERTAIN)
    assert (told.value("count"), told.value("users")) == (100, 100)
    assert -1 < told.value("sum_x") < 401


def test_a_name_in_another_schema_is_another_table(postgres, tmp_path):
    """Which table a name means is a matter of the login's search path."""
    database = postgres.create_database()
    made = "CREATE SCHEMA {0}; CREATE TABLE {0}.t AS SELECT generate_series(1, 10) AS a"
    postgres.run(made.format("one"), made.format("two"), database=database)
    one, two = (
        f"{postgres.url(database)}?options=-csearch_path%3D{each}" for each in ("one", "two")
    )
    with hs.Ledger(f"sqlite:///{tmp_path}/book.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "mine"}
        answer = hs.table(one, "t").count().release(**ask)
        with pytest.raises(KeyInUse):
            hs.table(two, "t").count().release(**ask)
        assert hs.table(two, "one.t").count().release(**ask) == answer
