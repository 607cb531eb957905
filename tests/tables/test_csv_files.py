"""A CSV file is read when it is queried, and no earlier."""

from __future__ import annotations

import csv
import random
import re
import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import hushed as hs
from hushed.errors import BadRows, EngineUnavailable, ParameterError
from hushed.tables._engine import csv_files

BIG = 3_000_000  # bytes of rows

# The kernel's count of the bytes that a process read: of everything, such as /proc, too.
READ_BEFORE = """
import sys
import hushed as hs

def prepare(path):
    query = hs.table(path, types={"cost": "float"}).sum("cost", low=0, high=10)
    query.quote(epsilon=1.0)
    return query.prepare(epsilon=1.0)

def bytes_read():
    return int(open("/proc/self/io").read().split()[1])

prepare(sys.argv[1])  # modules are read
before = bytes_read()
prepared = prepare(sys.argv[2])
middle = bytes_read()
prepared.answer(charged=prepared.digest, keep=str)
print(middle - before, bytes_read() - middle)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts bytes")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_row_is_read_before_the_release(suffix, tmp_path):
    """Opened, quoted and prepared: the bytes are those of a header, and the answer reads all."""
    paths = [str(tmp_path / f"{size}.{suffix}") for size in ("small", "big")]
    for path, rows in zip(paths, (1, BIG // 10), strict=True):
        if suffix == "csv":
            with open(path, "w") as file:
                file.write("who,cost\n" + "ada,1.25\n" * rows)
        else:
            cells = pa.array(range(rows), pa.float64())
            table = pa.table({"who": ["ada"] * rows, "cost": cells})
            parquet.write_table(table, path, compression="none", use_dictionary=False)
    ran = subprocess.run(
        [sys.executable, "-c", READ_BEFORE, *paths], check=True, capture_output=True, text=True
    )
    before, after = map(int, ran.stdout.split())
    assert before < 60_000  # Arrow alone would read 65,536 bytes of rows to find a schema
    assert after > 0.8 * BIG


def test_a_file_that_changed_is_refused_before_the_charge(tmp_path):
    """A row was added after opening: nothing is charged, and opened anew it answers."""
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}")
    ledger.open_budget("rows", hs.Guarantee(epsilon=100.0, neighbours="add-remove"))
    query = hs.table(path).count()
    prepared = query.prepare(epsilon=50.0)
    with path.open("a") as file:
        file.write("2\n")
    with pytest.raises(EngineUnavailable, match="not as it was when it was opened"):
        query.release(epsilon=50.0, ledger=ledger, budget="rows")
    with pytest.raises(EngineUnavailable, match="not as it was when it was opened"):
        prepared.answer(charged=prepared.digest, keep=str)
    assert ledger.balance("rows").spent.epsilon == 0
    assert hs.table(path).count().release(epsilon=50.0).value("count") == 2


def test_values_hold_ends_of_lines_where_that_is_declared(tmp_path):
    """The rows of Python's csv module, which are other rows where every line is one."""
    path = tmp_path / "t.csv"
    rows = [["ada", 'a "note"\nof\r\nthree lines, and\n'], ["bob", "plain"], ["eve", "x,y\n"]]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["who", "note"], *rows])
    table = hs.table(path, newlines_in_values=True)
    assert table.count().release(epsilon=50.0).value("count") == 3
    for who, note in rows:
        asked = table.filter(f"who == {who!r} and note == {note!r}").count()
        assert asked.release(epsilon=50.0).value("count") == 1, who
    lines = hs.table(path).count().release(epsilon=50.0).value("count")
    assert lines == len(path.read_text().splitlines()) - 1


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("name", ["pat\nient", 'pat"ient\n'])
def test_a_name_that_holds_an_end_of_line_is_refused(name, across, tmp_path):
    """Its second line would be read as a row, and, across lines, every row begin inside a value."""
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[name, "note"], ["ada", "a\nb"], ["bob", "c\nd"]])
    with pytest.raises(BadRows, match="quotation mark that is not closed"):
        hs.table(path, newlines_in_values=across)


@pytest.mark.slow
def test_a_first_line_without_end_is_refused(tmp_path):
    """Its names would end somewhere, and the rest of it would be a row."""
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"column{i}" for i in range(120_000)) + "\n1,2\n")
    with pytest.raises(BadRows, match="longer than 1,048,576 bytes"):
        hs.table(path)


def test_only_a_csv_file_takes_ends_of_lines_in_values(tmp_path):
    """Refused for a frame, another file and a database, by its name."""
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    for source in (pa.table({"a": [1]}), tmp_path / "t.parquet", "duckdb:///t.db"):
        with pytest.raises(ParameterError, match="newlines_in_values is for CSV files"):
            hs.table(source, newlines_in_values=True)


@pytest.mark.slow
def test_a_line_that_is_too_long_is_a_row_without_cells(tmp_path):
    """Memory is bounded whatever a line holds; the rows around it are read."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n" + "1," * (1 << 23) + "1\n1,2\n")
    table = hs.table(path)
    assert table.count().release(epsilon=50.0).value("count") == 3
    assert table.filter("a == '1'").count().release(epsilon=50.0).value("count") == 2


@pytest.mark.parametrize("cell", ["", '"', '""', '"a""b"', '"x'])
def test_a_line_of_millions_of_cells_keeps_no_query_from_ending(cell, tmp_path):
    """As a team server has it, whose engine gets so much memory: one row would fail them all."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n" + f"1,2,{f'{cell},' * (12_000_000 // (len(cell) + 1))}\n1,2\n")
    table = hs.table(path)
    backend = table.connection.rows.get_backend()
    table.connection.engine.confine(backend, 300_000_000)
    table = table.filter("a == '1'").filter("b == '2'")
    assert table.count().release(epsilon=50.0).value("count") == 3


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_line_that_is_cut_has_the_same_cells(width, mark):
    """Whether it is cut depends on other lines; what its cells are does not."""
    draw, cell = random.Random(f"{width}{mark}"), re.compile(csv_files._CELL.format(mark=mark))
    parts = ['"', '""', mark, "a", "\n"]
    whole = ["".join(draw.choices(parts, k=draw.randint(1, 14))) for _ in range(2000)]
    cut = [csv_files._cut_line(each, cell, mark, width) for each in whole]
    assert cut != whole

    def split(lines):
        given = pa.table({"line": lines})
        engine = duckdb.connect().register("given", given)
        return engine.execute(csv_files.lines_query("given", mark, width)).fetchall()

    assert split(cut) == split(whole)


PEAK = """
import resource, sys
import hushed as hs
query = hs.table(sys.argv[1], types={"cost": "float"}).group_by("who", keys=["ada", "bob"])
query.sum("cost", low=0, high=10).release(epsilon=1.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    """A file of 60 MB, 150 MB once it is read, takes less than 100 MB more than one of 5 MB."""
    peaks = []
    for lines in (500_000, 6_000_000):
        path = tmp_path / f"{lines}.csv"
        with path.open("w") as file:
            file.write("who,cost\n")
            for _ in range(lines // 500_000):
                file.write("ada,1.125\n" * 500_000)
        ran = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True
        )
        peaks.append(int(ran.stdout))
        path.unlink()
    assert peaks[1] - peaks[0] < 100


def test_another_way_of_reading_a_file_is_another_question(tmp_path):
    """Under a key that is paid, it is refused: names and ends of rows say which cells are asked."""
    path = tmp_path / "t.csv"
    path.write_text('x,y\n1,"2\n3"\n')
    ways = [{}, {"newlines_in_values": True}, {"header": "x,y"}, {"header": "y,x"}]
    ways.append({"header": "x,y", "newlines_in_values": True})
    digests = [hs.table(path, **way).count().prepare(epsilon=1.0).digest for way in ways]
    assert len(set(digests)) == len(ways)
    assert hs.table(path, **ways[-1]).count().prepare(epsilon=1.0).digest == digests[-1]


def test_no_group_of_a_pattern_is_extracted():
    """Sixteen megabytes of quotation marks took DuckDB ten seconds, and a second without groups."""
    for mark in ",;\t|":
        made = csv_files.lines_query("lines", mark, 3)
        patterns = [each for each in made.split("'") if "[^" in each]
        assert len(patterns) >= 2
        assert not [each for each in patterns if re.search(r"\((?!\?:)", each)]


@pytest.mark.parametrize(
    "text", ['"' * 99, '"' * 100, '"é",x"', '"a,""b,\u00fc', ",\U0001f600,", '"']
)
def test_cells_end_before_their_delimiter(text):
    """Whatever their letters, and one character alone is cut."""
    lines = pa.table({"line": [text]})
    with duckdb.connect() as con:
        con.register("lines", lines)
        (cells,) = con.execute(csv_files.lines_query("lines", ",", 3)).fetchall()
    whole = re.compile('("(?:[^"]|"")*"(?:[^",][^,]*)?|[^,]*),')
    plain = [each.group(1) for each in whole.finditer(f"{text},")]
    read = [
        each[1:-1].replace('""', '"') if re.fullmatch('"(?:[^"]|"")*"', each) else each
        for each in plain
    ]
    wanted = [each or None for each in read] + [None] * 3
    assert list(cells) == wanted[:3]
