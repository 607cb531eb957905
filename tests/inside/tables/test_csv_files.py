"""CSV files are read in pieces of whole records, and reading depends on no piece."""

from __future__ import annotations

import csv
import io
import random

import pytest

import hushed as hs
from hushed.errors import QueryFailed
from hushed.tables._engine import csv_files

SEED = 11


def read_lines(path, *, quoted=False, header="a,b"):
    """Every record that a query reads."""
    file = csv_files.open_csv(path, header, newlines_in_values=quoted)
    return [line for batch in file._read_batches() for line in batch.column(0).to_pylist()]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 1 << 22])
def test_the_size_of_a_piece_changes_no_record(piece, tmp_path, monkeypatch):
    """Against Python's own split of the whole file; bytes of every kind, and records too long."""
    monkeypatch.setattr(csv_files, "_PIECE", piece)
    monkeypatch.setattr(csv_files, "_LONGEST", 6)
    rng = random.Random(SEED)
    path = tmp_path / "t.csv"
    for _ in range(60):
        held = "".join(rng.choices('ab,"é\n\n\x00', k=rng.randint(0, 40))).encode()
        path.write_bytes(held)
        wanted = [
            "," if len(line) > 6 else line.decode()
            for line in held.removesuffix(b"\n").split(b"\n")
        ]
        assert read_lines(path) == (wanted if held else [])


@pytest.mark.parametrize("piece", [1, 5, 33, 1 << 22])
def test_values_with_ends_of_lines_are_read_as_they_were_written(piece, tmp_path, monkeypatch):
    """Records that Python's csv module wrote; what it wrote for a record is what is read."""
    monkeypatch.setattr(csv_files, "_PIECE", piece)
    rng = random.Random(SEED)
    written = []
    for _ in range(300):
        record = io.StringIO()
        cells = ["".join(rng.choices('a",\n', k=rng.randint(1, 6))) for _ in range(2)]
        csv.writer(record, lineterminator="\n").writerow(cells)
        written.append(record.getvalue())
    path = tmp_path / "t.csv"
    path.write_text("".join(written))
    assert read_lines(path, quoted=True) == [each.removesuffix("\n") for each in written]


def test_bytes_that_are_no_text_stay_in_their_row(tmp_path, monkeypatch):
    """One invalid byte changes one record, whichever piece it is in."""
    monkeypatch.setattr(csv_files, "_PIECE", 8)
    path = tmp_path / "t.csv"
    path.write_bytes(b"one,1\ntw\xff,2\r\nthree,3\n\xe2\x82\nfive,5")
    assert read_lines(path) == ["one,1", "tw\uefff,2", "three,3", "\uefe2\uef82", "five,5"]


def test_only_characters_that_stand_for_bytes_are_spelled_out(tmp_path):
    """Others of the private use area, which begin with the same byte, stay as they are."""
    path = tmp_path / "t.csv"
    for text, read in (("\ue000", "\ue000"), ("\uef81", "\uefee\uefbe\uef81"), ("é", "é")):
        path.write_text(f"{text},1\nb,{text}", encoding="utf-8")
        assert read_lines(path) == [f"{read},1", f"b,{read}"]


def test_records_end_where_a_piece_says(tmp_path, monkeypatch):
    """Whatever the length of a piece: the ends that were found with it are not looked for again."""
    path = tmp_path / "t.csv"
    lines = ["a,1", "", '"b', 'c",2', "long" * 9, "d,\uef81", "e"]
    path.write_text("\n".join(lines), encoding="utf-8")
    expected = [each.replace("\uef81", "\uefee\uefbe\uef81") for each in lines]
    looked = []
    find = csv_files._find_ends

    def find_and_note(held, **said):
        looked.append(held)
        return find(held, **said)

    monkeypatch.setattr(csv_files, "_find_ends", find_and_note)
    for piece in (1, 3, 7, 40, 1000):
        monkeypatch.setattr(csv_files, "_PIECE", piece)
        assert read_lines(path) == expected
    path.write_text("a,1\n" * 9)
    looked.clear()
    assert read_lines(path) == ["a,1"] * 9
    assert [each for each in looked if each] == [b"a,1\n" * 9]


def test_a_file_that_changes_while_it_is_read_gives_no_answer(tmp_path, monkeypatch):
    """The charge stays, since rows were read; the failure says what happened."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    make = csv_files._make_batch

    def make_and_write(held, ends, *, quoted):
        path.write_text("a,b\n3,4\n")
        return make(held, ends, quoted=quoted)

    monkeypatch.setattr(csv_files, "_make_batch", make_and_write)
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}")
    ledger.open_budget("rows", hs.Guarantee(epsilon=2.0, neighbours="add-remove"))
    with pytest.raises(QueryFailed, match="changed while it was read"):
        hs.table(path).count().release(epsilon=0.5, ledger=ledger, budget="rows")
    assert ledger.balance("rows").spent.epsilon == 0.5
