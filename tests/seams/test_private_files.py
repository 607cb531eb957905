"""A private file or frame: one row, whatever it holds, changes nothing of how others are read."""

import datetime as dt
import math
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.cli._private_tables import (
    read_column_of_users,
    read_private_column,
    read_private_table,
    read_table_like,
)
from hushed.cli._tables import read_table
from hushed.errors import BadRows, ParameterError

ODD = ["", "5", "5,6", "5,6,7", '"', '"5,6', "x,y", "inf,nan", "\ufeff5", "\udc80,1", "9" * 400]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("lines", [["1,2", "3"], ["1", ""], ["1,2", "3", ""], [""] * 3, ["1,2,3"]])
def test_no_row_decides_how_many_columns_or_rows_there_are(tmp_path, lines, odd):
    """In a file without a header, the most frequent number of cells is changed by a single row."""

    def read(given, reader):
        path = tmp_path / "rows.csv"
        text = "".join(f"{each}\n" for each in given)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return reader(path)

    def place(path):
        return read_private_column(path, "1", header=False).tolist()

    def text(path):
        return read_private_column(path, None, header=False, text=True)

    def whose(path):
        cells, users = read_column_of_users(path, "1", "1", header=False)
        return [*zip(map(str, cells.tolist()), users, strict=True)]

    def rows(columns):
        return lambda path: read_private_table(path, header=False, columns=columns).rows.tolist()

    def like(columns):
        box = hs.populations.Uniform(low=[0] * columns, high=[9] * columns)
        more = {"header": False, "columns": None}
        return lambda path: read_table_like(path, box, "numpy", **more).rows.tolist()

    several = [rows(2), like(2)]
    readers = [place, whose, rows(1), like(1), *several]
    readers += [text] if not any("," in each for each in [*lines, odd]) else []
    for reader in readers:
        before, after = read(lines, reader), read([odd, *lines[1:]], reader)
        skipped = reader in several  # of several columns an empty line is no row
        assert len(before) - (not skipped or bool(lines[0])) == len(after) - (
            not skipped or bool(odd)
        )
        others = [bool(skipped and not each) for each in lines].count(False)
        kept = others - (not skipped or bool(lines[0]))
        np.testing.assert_equal(before[len(before) - kept :], after[len(after) - kept :])


def test_the_number_of_columns_is_said_where_no_header_says_it(tmp_path):
    """And not beside a header, which says it."""
    (tmp_path / "rows.csv").write_text("1,2\n" * 9)
    with pytest.raises(ParameterError, match=r"say by --columns how many columns rows\.csv has"):
        read_private_table(tmp_path / "rows.csv", header=False)
    with pytest.raises(ParameterError, match="without a header"):
        read_private_table(tmp_path / "rows.csv", header=True, columns=2)


@pytest.mark.parametrize("name", ["release", "check-population"])
def test_without_a_header_there_are_as_many_columns_as_in_the_population(tmp_path, name):
    """One row would change which number is the most frequent, and so what is refused."""
    (tmp_path / "f.py").write_text("def middle(rows):\n    return rows[:, 1].mean()\n")
    function = [f"{tmp_path}/f.py:middle"] if name == "release" else []
    words = [*function, "--population", "uniform:0,9:0,9", "--epsilon", "9", "--no-header"]
    words += ["--gamma", "0.3", "--workers", "1"] if name == "release" else ["--tables", "19"]
    told = []
    for last in ("1,2", "1,2,3"):
        path = tmp_path / "rows.csv"
        path.write_text("1,2\n" * 10 + "1,2,3\n" * 10 + f"{last}\n")
        result = CliRunner().invoke(app, [name, str(path), *words, "--json"])
        assert result.exit_code == (name != "release"), result.output  # constant, not uniform
        told.append(result.stderr)
    assert "rows.csv is read as a row of 2 columns, as many as the population has" in told[0]
    assert told[0] == told[1]


NESTED = {
    "lists": (pa.list_(pa.int64()), [[1], [2, 3]], [None, [], [None]]),
    "lists of lists": (pa.list_(pa.list_(pa.int64())), [[[1]], [[2], [3]]], [None, [], [[]]]),
    "records": (pa.struct({"a": pa.int64()}), [{"a": 1}, {"a": 2}], [None, {"a": None}]),
    "lists of records": (
        pa.list_(pa.struct({"a": pa.int64(), "b": pa.float64()})),
        [[{"a": 1, "b": 0.5}], []],
        [None, [], [{"a": None, "b": None}]],
    ),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("where", ["one", "all"])
def test_lists_and_records_have_the_type_of_their_file(tmp_path, kind, where):
    """Polars told it from the first cells: one that is empty made it another one, or an error."""
    dtype, cells, odd = NESTED[kind]

    def write(name, given):
        columns = {"held": pa.array(given, dtype), "cost": [1.0] * len(given)}
        pq.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    def read(given):
        path, options = write("private.parquet", given), {"header": None}
        held = read_table_like(path, public, "polars", **options, columns=("held", "cost")).rows
        assert held.dtypes == public.frame.dtypes
        return held["held"].to_list()

    public = hs.populations.PublicTable(
        read_table(write("public.parquet", cells * 3), "polars").rows, promise="table"
    )
    assert read(cells * 2) == cells * 2
    for each in odd:
        given = [each, *cells] if where == "one" else [each] * 3
        assert read(given)[1:] == given[1:]


def test_a_map_is_no_record_of_its_first_keys(tmp_path):
    """The keys of the first row would be the columns of all."""
    cells = pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"held": cells}), tmp_path / "rows.parquet")
    with pytest.raises(BadRows, match="'held' is a map"):
        read_table(tmp_path / "rows.parquet", "polars")
    assert read_table(tmp_path / "rows.parquet", "pandas").rows["held"].tolist()[1]


TIMES = {
    "date": (pl.Date, dt.date(2020, 1, 1)),
    "time": (pl.Datetime("us"), dt.datetime(2020, 1, 1)),
    "zoned": (pl.Datetime("us", "Europe/Berlin"), dt.datetime(2020, 1, 1)),
    "list": (pl.List(pl.Float64), [1.0]),
}


@pytest.mark.parametrize("frame", ["pandas", "polars"])
@pytest.mark.parametrize("kind", TIMES)
def test_a_column_of_parquet_keeps_its_type_if_all_of_it_is_missing(tmp_path, frame, kind):
    """One row less, and no cell says of which type it is."""
    dtype, cell = TIMES[kind]
    path = tmp_path / "rows.parquet"
    public = pl.DataFrame({"at": pl.Series([cell] * 9, dtype=dtype), "cost": [1.0] * 9})
    shown = public.to_pandas() if frame == "pandas" else public
    if kind == "date" and frame == "pandas":
        shown = shown.assign(at=pd.Series([cell] * 9, dtype=object))
    population = hs.populations.PublicTable(shown)
    types = []
    for cells in ([cell, None], [None, None], [[], []] if kind == "list" else [None]):
        pl.DataFrame(
            {"at": pl.Series(cells, dtype=dtype), "cost": [1.0] * len(cells)}
        ).write_parquet(path)
        read = read_table_like(path, population, frame, header=None, columns=("at", "cost"))
        types.append(list(map(str, read.rows.dtypes)))
    assert types == [list(map(str, shown.dtypes))] * 3


def broken(last):
    """Texts of Arrow, of which the last may be no UTF-8."""
    cells = [*["\uef80".encode()] * 50, b"plain", last]
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    buffers = [pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))]
    return pa.StringArray.from_buffers(len(cells), *buffers)


FRAMES = {
    "arrow": lambda last: pa.table({"name": broken(last)}),
    "dictionary": lambda last: pa.table(
        {"name": pa.DictionaryArray.from_arrays(pa.array(range(52)), broken(last))}
    ),
    "pandas": lambda last: pd.DataFrame(
        {
            "name": pd.Series(
                [*["\uef80"] * 50, "plain", last.decode("utf-8", "surrogateescape")], dtype=object
            )
        }
    ),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("word", ["\uef80", "\uefee\uefbe\uef80", "plain"])
def test_bytes_that_are_no_text_change_no_other_cell(kind, word):
    """A byte is spelled as a character; one that others hold already is spelled out in any case.

    Before, it was in tables with such a byte alone: of one row, a filter took 50 others, or none.
    """
    found = []
    for last in (b"x", b"\xff"):
        table = hs.table(FRAMES[kind](last)).filter(f"name == {word!r}").count()
        found.append(table.release(epsilon=1e4).value("count"))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_no_two_texts_are_shown_as_one_key(tmp_path, kind):
    """A byte that is not UTF-8, and the character that it is shown as: an answer names both."""
    texts = [b"\x80", "\uef80".encode(), b"\xff", "\uefff".encode(), "\uef7f".encode(), b"plain"]
    cells = [each for each in texts for _ in range(40)]
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    buffers = [pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))]
    rows = pa.table({"name": pa.StringArray.from_buffers(len(cells), *buffers)})
    rows = rows.append_column("who", pa.array(range(len(cells))))
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(rows, path)
    if kind == "csv":
        path.write_bytes(b"name,who\n" + b"".join(b"%s,%d\n" % (c, i) for i, c in enumerate(cells)))
    table = hs.table(rows if kind == "arrow" else path, user="who")
    query = table.bound_contributions(max_rows_per_user=1)
    query = query.group_by("name", select_partitions=True).count()
    answer = query.release(epsilon=40, delta=1e-3)
    assert len(set(answer.keys["name"])) == len(texts)
    assert hs.verify(hs.certify(answer)).reproduced


NO_TEXT = [
    b"\x80",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"a\xff",
    b"\xe2\x82",
    b"\xf8",
]


@pytest.mark.slow_cases(
    *(f"{place}-{kind}" for place in ("name", "who") for kind in ("database", "dictionary", "view"))
)
@pytest.mark.parametrize("kind", ["text", "dictionary", "categories", "view", "database"])
@pytest.mark.parametrize("place", ["name", "who"])
def test_no_cell_that_is_no_text_makes_a_query_fail(tmp_path, kind, place):
    """DuckDB makes no table of such a cell, and the bounded rows are kept in one: it told of it."""
    cells = [*(b"plain", "\xe9".encode()) * 20, *NO_TEXT, *NO_TEXT]
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    buffers = [pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))]
    texts = pa.StringArray.from_buffers(len(cells), *buffers)
    if kind in ("dictionary", "categories"):  # those of pandas have numbers of 8 bits
        codes = pa.array(range(len(cells)), pa.int32() if kind == "dictionary" else pa.int8())
        texts = pa.DictionaryArray.from_arrays(codes, texts)
    if kind == "view":
        texts = texts.cast(pa.string_view())
    other = "who" if place == "name" else "name"
    numbers = pa.array([f"u{i}" for i in range(len(cells))])
    rows = pa.table({place: texts, other: numbers})
    source = tmp_path / "rows.parquet"
    if kind == "database":  # Arrow may write what is no text into one, behind what is
        source = f"duckdb:///{tmp_path}/rows.db"
        with duckdb.connect(str(tmp_path / "rows.db")) as database:
            database.register("given", rows)
            written = f"CREATE TABLE rows AS SELECT * FROM given ORDER BY {place} <> 'plain'"
            database.execute(f"{written}, {place} <> '\xe9'")
    else:
        pq.write_table(rows, source)
    table = hs.table(source, user="who")
    query = table.bound_contributions(max_rows_per_user=1, max_groups_per_user=1)
    people = query.count_users().release(epsilon=1e4).value("users")
    assert people == (len(cells) if place == "name" else 2 + len(NO_TEXT))
    chosen = query.group_by("name", select_partitions=True).count()
    assert len(chosen.release(epsilon=1e3, delta=1e-3)) == (
        2 + len(NO_TEXT) if place == "name" else 0
    )
    listed = query.group_by("name", keys=["plain", "u0"]).count().release(epsilon=1e4)
    assert sum(listed.values["count"]) == (20 if place == "name" else 1)


ONE_ROW = {"fewer": "3", "more": "1,2,3", "as many": "4,5", "empty": ""}


@pytest.mark.parametrize("column", [None, "1", "2", "3"])
@pytest.mark.parametrize("others", [["1,2", "7"], ["1", "1,2"], []], ids=str)
def test_no_row_decides_which_columns_there_are(tmp_path, column, others):
    """Without a header, one row was the most frequent form, and another column was refused."""
    found = set()
    for row in ONE_ROW.values():
        path = tmp_path / "private.csv"
        path.write_text("\n".join([*others, row, "8,9"]) + "\n")
        numbers = read_private_column(path, column, header=False)
        place = int(column or 1) - 1
        lines = [line.split(",") for line in [*others, row, "8,9"] if line or place == 0]
        cells = [(line[place : place + 1] or [""])[0] for line in lines]
        wanted = [float(cell) if cell else math.nan for cell in cells]
        assert np.array_equal(numbers, wanted, equal_nan=True)
        beside, whose = read_column_of_users(path, column or "1", "2", header=False)
        assert len(beside) == len(whose)
        words = ["statistic", "median", str(path), "--no-header", "--low", "0", "--high", "9"]
        words += ["--epsilon", "1", *(["--column", column] if column else [])]
        done = CliRunner().invoke(app, words)
        found.add((done.exit_code, done.stderr))
    assert len(found) == 1
    ((code, words),) = found
    assert code == 0
    read = "the first cell" if column is None else f"cell {column}"
    assert f"{read} of each line of private.csv is read" in words


def test_a_place_that_no_file_has_is_refused_before_a_row_is_read(tmp_path):
    """It would take as much memory for each row; the limit is public."""
    path = tmp_path / "private.csv"
    path.write_text("1\n")
    with pytest.raises(hs.errors.ParameterError, match="counted up to 10,000, got 10,001"):
        read_private_column(path, "10001", header=False)


CATEGORIES = pa.dictionary(pa.int8(), pa.string())


def test_categories_of_parquet_are_read_beside_columns_of_every_type(tmp_path):
    """The file is read as if it told of no types of Arrow: all others are what they were."""
    day = dt.datetime(2024, 3, 1, 12, 30)
    cells = {
        "ward": pa.array(["A", None, "B"] * 20).dictionary_encode().cast(CATEGORIES),
        "cost": pa.array([0.5, None, 2.0] * 20, pa.float32()),
        "day": pa.array([day.date()] * 60, pa.date64()),
        "at": pa.array([day] * 60, pa.timestamp("s", "Europe/Rome")),
        "fine": pa.array([day] * 60, pa.timestamp("ns")),
        "big": pa.array([2**63 + 5] * 60, pa.uint64()),
        "tiny": pa.array([-3] * 60, pa.int8()),
        "half": pa.array([1.5] * 60, pa.float16()),
        "sum": pa.array([Decimal("12.34")] * 60, pa.decimal128(9, 2)),
        "long": pa.array(["long"] * 60, pa.large_string()),
        "while": pa.array([5] * 60, pa.duration("s")),
    }
    (tmp_path / "parts").mkdir()
    for i in range(2):
        pq.write_table(pa.table(cells), tmp_path / "parts" / f"{i}.parquet", row_group_size=25)
    parts = hs.table(tmp_path / "parts")
    frame = hs.table(pa.concat_tables([pa.table(cells)] * 2))
    assert parts.columns == frame.columns
    asked = [
        "cost > 1", "day == '2024-03-01'", "at > '2024-03-01T11:00' and at < '2024-03-01T12:31'",
        "fine == '2024-03-01T12:30'", "big > 9", "tiny == -3", "half == 1.5", "sum > 12.3",
        "long == 'long'", "ward == 'A'", "is_null(ward)",
    ]  # fmt: skip
    for table in (parts, frame):
        query = table.group_by("ward", keys=["A", "B"]).count()
        assert query.release(epsilon=1e4).values["count"] == (40, 40)
        for each in asked:
            found = table.filter(each).count().release(epsilon=1e4).value("count")
            assert found == (40 if each in ("cost > 1", "ward == 'A'", "is_null(ward)") else 120)


@pytest.mark.parametrize("parts", [1, 2])
def test_no_cell_decides_whether_categories_are_opened(tmp_path, parts):
    """The footer holds the least and the largest cells, which may be the word that is looked for.

    A column may have that name, too, and what somebody wrote beside the columns.
    """
    texts = ["ARROW:schema", "B", "ARROW:schemb", "A"]
    for i in range(parts):
        made = pa.table({
            "ward": pa.array(texts * 5).dictionary_encode().cast(CATEGORIES),
            "ARROW:schema": texts * 5,
            "half": pa.array([1.5] * 20, pa.float16()),
        }).replace_schema_metadata({"a": "ARROW:schema", "z": "ARROW:schema"})  # fmt: skip
        pq.write_table(made, tmp_path / f"{i}.parquet", row_group_size=7)
    table = hs.table(tmp_path if parts > 1 else tmp_path / "0.parquet")
    assert dict(table.columns) == {"ward": "string", "ARROW:schema": "string", "half": "float"}
    for each in ("ward", "ARROW:schema"):
        answer = table.group_by(each, keys=texts).count().release(epsilon=1e4)
        assert answer.values["count"] == (5 * parts,) * 4


@pytest.mark.parametrize("kind", [pa.decimal128(38, 37), pa.decimal128(20, 2), pa.decimal128(9, 2)])
@pytest.mark.parametrize("where", ["frame", "parquet"])
@pytest.mark.parametrize("declared", [None, "int", "float", "string"])
def test_no_decimal_that_is_none_makes_a_query_fail(tmp_path, kind, where, declared):
    """A cell of more digits than its column has, as programs write it: DuckDB fails to cast it."""
    raw = b"".join(each.to_bytes(16, "little", signed=True) for each in (-(2**127), 2**127 - 1, 7))
    rows = pa.table({"x": pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(raw)])})
    if where == "parquet":
        pq.write_table(rows, tmp_path / "rows.parquet")
    source = rows if where == "frame" else tmp_path / "rows.parquet"
    table = hs.table(source, types={} if declared is None else {"x": declared})
    asked = table.filter("not is_null(x)").count()
    asked = asked if declared == "string" else asked.sum("x", low=0, high=1)
    assert asked.release(epsilon=100.0).value("count") <= 4


def test_an_integer_of_128_bits_may_have_more_digits_than_a_decimal(tmp_path):
    """Ibis takes it for a decimal of 38 digits, and the largest ones have 39."""
    with duckdb.connect(str(tmp_path / "rows.db")) as made:
        made.execute("CREATE TABLE rows (x HUGEINT)")
        made.execute(f"INSERT INTO rows VALUES ({-(2**127)}), ({2**127 - 1}), (7)")
    table = hs.table(f"duckdb:///{tmp_path}/rows.db", "rows")
    answer = table.count().sum("x", low=-3, high=2).release(epsilon=1e5)
    assert answer.value("count") == 3
    assert abs(answer.value("sum_x") - 1) < 0.1


@pytest.mark.parametrize("frame", ["numpy", "pandas", "polars"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_no_two_users_with_large_numbers_are_one(tmp_path, frame, ending):
    """A double is near to many of them: of two people as one, neither was covered alone."""
    users = [2**63 - 1 - i for i in range(6)] + [0, 1, 2**53]
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        path.write_text("who,cost\n" + "".join(f"{each},1.5\n" for each in users))
    else:
        pq.write_table(pa.table({"who": users, "cost": [1.5] * 9}), path)
    for found in (
        read_table(path, frame, header=ending == "csv" or None, user="who"),
        read_private_table(path, frame, header=ending == "csv" or None, user="who"),
    ):
        names = found.rows[:, 0] if frame == "numpy" else found.rows["who"]
        assert len(set(names)) == 9


def test_no_two_users_whose_names_are_one_number_are_one(tmp_path):
    """Nor one whose name is the number that stands for another: each is covered alone."""
    first = ["7", "007", "7.0", "+7", "7e0", "-1", "\uff17", "0", "00", "-0"]
    path = tmp_path / "rows.csv"

    def numbers(users):
        path.write_text("who,cost\n" + "".join(f"{each},1.5\n" for each in users))
        return read_private_table(path, header=True, user="who").rows[:, 0]

    users = [*first, "anna", *(f"{abs(each):.0f}" for each in numbers(["anna"]) + 1)]
    assert len(set(numbers(users))) == len(users)
    assert numbers(["7", "", "x"])[0] == 7
