"""A file of private rows that changes, or says what is not so, ends no process and no answer."""

import struct
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import hushed as hs
from hushed.errors import BadRows, QueryFailed
from hushed.server._sources import fingerprint
from hushed.tables._engine import files

MAPS = Path("/proc/self/maps")
READ = Path("/proc/self/io")


@pytest.mark.skipif(not MAPS.exists(), reason="needs the list of mapped files of Linux")
@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_no_file_of_rows_is_mapped(tmp_path, compression):
    """The system kills a process that reads on in a mapped file that was cut: after a charge."""
    path = tmp_path / "rows.arrow"
    rows = pa.table({"a": list(range(100_000)), "s": ["x"] * 100_000})
    feather.write_feather(rows, path, compression=compression)
    table = hs.table(path)
    assert str(path) not in MAPS.read_text()
    assert table.count().release(epsilon=60.0).value("count") == 100_000
    assert str(path) not in MAPS.read_text()


@pytest.mark.skipif(not READ.exists(), reason="needs the count of bytes of Linux")
def test_opening_an_arrow_file_reads_no_row(tmp_path):
    """A team server opens it where ledger and key are."""

    def count_bytes():
        return int(READ.read_text().split()[1])

    path = tmp_path / "rows.arrow"
    feather.write_feather(pa.table({"a": list(range(10**6))}), path, compression="uncompressed")
    hs.table(pa.table({"a": [1]})).count().prepare(epsilon=60.0)  # loads what is needed
    before = count_bytes()
    asked = hs.table(path).count()
    asked.prepare(epsilon=60.0)
    assert count_bytes() - before < 10**6
    assert asked.release(epsilon=60.0).value("count") == 10**6


def test_a_text_that_begins_outside_of_a_damaged_file_fails_the_query(tmp_path):
    """It is looked for wherever it is said to be, and the process was ended."""
    path = tmp_path / "rows.arrow"
    feather.write_feather(pa.table({"a": ["ab", "cd", "ef"]}), path, compression="uncompressed")
    content = path.read_bytes()
    assert content.count(struct.pack("<4i", 0, 2, 4, 6)) == 1
    wrong = struct.pack("<4i", 0, 2**30, 2**31 - 8, 6)
    path.write_bytes(content.replace(struct.pack("<4i", 0, 2, 4, 6), wrong))
    with pytest.raises(QueryFailed):
        hs.table(path).count().release(epsilon=1.0)


def test_a_file_of_the_first_feather_is_called_that(tmp_path):
    path = tmp_path / "rows.feather"
    path.write_bytes(b"FEA1 and more")
    with pytest.raises(BadRows, match="is a Feather file of version 1"):
        hs.table(path)


def test_a_footer_that_is_longer_than_any_is_not_read(tmp_path, monkeypatch):
    """Its length is whatever stands in the file: rows, and gigabytes, would be read for it."""
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"a": list(range(1000))}), path)
    whole = path.read_bytes()
    forged = whole[:-8] + (len(whole) - 8).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(forged)
    with pytest.raises(BadRows):
        hs.table(path)
    path.write_bytes(whole)
    assert hs.table(path).columns == {"a": "int"}
    length = int.from_bytes(whole[-8:-4], "little")
    monkeypatch.setattr(files, "_MOST_FOOTER", length - 1)
    with pytest.raises(BadRows):
        hs.table(path)


def test_rows_that_duckdb_keeps_beside_its_file_are_a_change(tmp_path):
    """A program that was killed leaves them in a second file; the first one stays as it was."""
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(path) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS who")
    before = path.stat()
    opened = hs.table(f"duckdb:///{path}", "t", user="who")
    known = fingerprint(opened)
    opened.connection.rows.get_backend().disconnect()
    with duckdb.connect(path) as killed:
        killed.execute("PRAGMA disable_checkpoint_on_shutdown")
        killed.execute("INSERT INTO t VALUES (2)")
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert opened.connection.changed
    again = hs.table(f"duckdb:///{path}", "t", user="who")
    assert fingerprint(again) != known
    assert not again.connection.changed
