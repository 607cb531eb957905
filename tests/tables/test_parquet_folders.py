"""A table in several Parquet files is one table: a folder, or a pattern that names some."""

import subprocess
import sys
import tracemalloc

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import ended

import hushed as hs
from hushed.errors import BadRows, EngineUnavailable, NotFound, ParameterError


def write(folder, name, who, cost, **columns):
    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.table({"who": who, "cost": cost, **columns}), folder / name)


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "visits"
    write(found, "part-0.parquet", ["ada", "bob"], [1.0, 2.0])
    write(found, "part-1.parquet", ["ada"], [4.0])
    write(found, "other.parquet", ["eve"], [8.0])
    (found / "_SUCCESS").touch()
    (found / ".part-0.parquet.crc").write_bytes(b"x")
    return found


def total(source, **settings):
    query = hs.table(source, **settings).sum("cost", low=0, high=100)
    return round(query.release(epsilon=1e5).value("sum_cost"), 1)


@pytest.mark.slow
def test_all_files_of_a_folder_are_one_table(folder):
    """As those of its pattern, and as the rows together; a user's rows may be in several."""
    assert total(folder) == total(str(folder) + "/") == total(folder / "*.parquet") == 15.0
    assert total(folder / "part-*.parquet") == 7.0
    assert total(folder / "part-0.parquet") == 3.0
    bounded = hs.table(folder, user="who").bound_contributions(max_rows_per_user=1)
    assert round(bounded.count().release(epsilon=1e5).value("count")) == 3


def test_a_file_that_is_named_like_a_pattern_is_a_file(tmp_path):
    """What is there counts for what it is."""
    write(tmp_path, "a[1].parquet", ["ada"], [1.0])
    write(tmp_path, "a1.parquet", ["bob"], [2.0])
    assert total(tmp_path / "a[1].parquet") == 1.0


def test_columns_may_stand_in_any_order(folder):
    """They are found by their names."""
    turned = pa.table({"cost": [16.0], "who": ["eve"]})
    parquet.write_table(turned, folder / "turned.parquet")
    assert total(folder) == 31.0


@pytest.mark.parametrize(
    "columns", [{"who": ["x"]}, {"who": ["x"], "cost": [1]}, {"who": ["x"], "Cost": [1.0]}]
)
def test_files_with_other_columns_are_refused(folder, columns):
    """By the name of the first such file; nothing is left out silently."""
    parquet.write_table(pa.table(columns), folder / "part-2.parquet")
    with pytest.raises(BadRows, match=r"part-2.parquet has other columns"):
        hs.table(folder)


def test_a_file_with_a_name_twice_is_refused(folder):
    """It would not be said which of the two columns counts."""
    twice = pa.Table.from_arrays(
        [pa.array(["eve"]), pa.array([1.0]), pa.array([2.0])], names=["who", "cost", "cost"]
    )
    parquet.write_table(twice, folder / "twice.parquet")
    with pytest.raises(BadRows, match=r"twice\.parquet has other columns"):
        hs.table(folder)


def test_nothing_but_the_end_of_a_cut_file_is_read(tmp_path):
    """Its last bytes are rows: they give the length of no footer."""
    path = tmp_path / "cut.parquet"
    with path.open("wb") as file:
        file.truncate(1 << 28)  # takes no space
        file.seek(-8, 2)
        file.write((1 << 27).to_bytes(4, "little") + b"rows")
    tracemalloc.start()
    try:
        with pytest.raises(BadRows, match="cannot be read as a parquet file"):
            hs.table(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 26


def test_what_is_no_parquet_file_is_refused(folder):
    """Rows in another file or folder would be missing; a pattern says what is meant."""
    (folder / "late.csv").write_text("who,cost\nada,1\n")
    (folder / "year=2024").mkdir()
    with pytest.raises(ParameterError, match=r"2 entries.*late.csv, year=2024.*by a pattern"):
        hs.table(folder)
    with pytest.raises(ParameterError, match="no Parquet files"):
        hs.table(folder / "*.csv")
    assert total(folder / "*.parquet") == 15.0


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_file_of_two_names_is_refused(folder, link):
    """A row of it would count twice, and move a count by two; a pattern may leave one name out."""
    getattr(folder / "latest.parquet", link)(folder / "part-1.parquet")
    with pytest.raises(ParameterError, match=r"part-1.* and .*latest\.parquet are one file"):
        hs.table(folder)
    assert "cost" in hs.table(folder / "part-*.parquet").columns


def test_folders_below_a_folder_are_named_by_a_pattern(folder):
    """What the names of the folders say is no column."""
    for year in (2023, 2024):
        write(folder / f"year={year}", "a.parquet", ["ada"], [float(year)])
    assert total(folder / "year=*" / "*.parquet") == 200.0  # each held to 100
    assert "year" not in hs.table(folder / "year=*" / "*.parquet").columns


def test_nothing_is_no_table(tmp_path):
    """An empty folder, a pattern that names no file."""
    (tmp_path / "none").mkdir()
    for path in ("none", "none/*.parquet", "x*", "missing"):
        with pytest.raises(NotFound, match="there is no"):
            hs.table(tmp_path / path)


@pytest.mark.parametrize("change", ["more", "less", "other"])
@pytest.mark.parametrize("pattern", ["", "*.parquet"])
def test_a_folder_that_changed_is_refused_before_the_charge(folder, pattern, change):
    """A file more, one less, another one in its place: nothing is charged."""
    ledger = hs.Ledger(f"sqlite:///{folder.parent / 'b.db'}")
    ledger.open_budget("rows", hs.Guarantee(epsilon=1e6, neighbours="add-remove"))
    query = hs.table(folder / pattern).count()
    prepared = query.prepare(epsilon=50.0)
    if change == "less":
        (folder / "other.parquet").unlink()
    else:
        write(folder, {"more": "new", "other": "other"}[change] + ".parquet", ["x"], [1.0])
    with pytest.raises(EngineUnavailable, match="not as it was when it was opened"):
        query.release(epsilon=50.0, ledger=ledger, budget="rows")
    with pytest.raises(EngineUnavailable, match="not as it was when it was opened"):
        prepared.answer(charged=prepared.digest, keep=str)
    assert ledger.balance("rows").spent.epsilon == 0


@pytest.mark.slow
def test_another_folder_is_another_question(folder):
    """Under a key, an answer about some of the files is none about all of them."""
    ledger = hs.Ledger(f"sqlite:///{folder.parent / 'b.db'}")
    ledger.open_budget("rows", hs.Guarantee(epsilon=1e6, neighbours="add-remove"))
    asked = {"epsilon": 50.0, "ledger": ledger, "budget": "rows", "key": "k"}
    hs.table(folder).count().release(**asked)
    with pytest.raises(hs.errors.HushedError, match="key"):
        hs.table(folder / "part-*.parquet").count().release(**asked)
    assert hs.table(folder).count().release(**asked).value("count") >= 0


READ_BEFORE = """
import sys
import tracemalloc
import hushed as hs

def prepare(path):
    return hs.table(path).sum("cost", low=0, high=10).prepare(epsilon=1.0)

def bytes_read():
    return int(open("/proc/self/io").read().split()[1])

prepare(sys.argv[1])
before = bytes_read()
prepared = prepare(sys.argv[2])
middle = bytes_read()
prepared.answer(charged=prepared.digest, keep=str)
print(middle - before, bytes_read() - middle)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux counts bytes")
def test_no_row_of_any_file_is_read_before_the_release(tmp_path):
    """Of four files of a megabyte each as much is read as their footers are long."""
    for name, rows in (("small", 1), ("big", 130_000)):
        for part in range(4):
            cells = pa.array(range(rows), pa.float64())
            (tmp_path / name).mkdir(exist_ok=True)
            path = tmp_path / name / f"{part}.parquet"
            table = pa.table({"cost": cells})
            parquet.write_table(table, path, compression="none", use_dictionary=False)
    words = [sys.executable, "-c", READ_BEFORE, tmp_path / "small", tmp_path / "big"]
    ran = subprocess.run(words, check=True, capture_output=True, text=True)
    before, after = map(int, ran.stdout.split())
    assert before < 60_000
    assert after > 4_000_000


@pytest.mark.slow
def test_a_command_takes_a_folder_and_a_pattern(folder, tmp_path):
    """In quotation marks, so that the shell does not open the pattern."""
    for source, count in (("visits", "4"), ("visits/part-*.parquet", "3")):
        words = ("query", source, "--count", "--epsilon", 1000)
        done = ended(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert count in done.stdout
        for out in ("visits/new.parquet", "visits/part-0.parquet"):  # rows of the next query
            done = ended(*words, "--out", out, "--force", cwd=tmp_path)
            assert done.returncode == 2
            assert "is an input of this command" in done.stderr
    assert total(folder) == 15.0
