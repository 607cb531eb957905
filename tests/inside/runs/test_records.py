"""A record is read as it was written, or not at all."""

import numpy as np
import pytest

from hushed.runs._records import read_records, write_record

FIRST = np.arange(6.0).reshape(3, 2)
LAST = np.array([[0.5, -0.0], [np.inf, 1e-310]])
WHOLE = write_record(0, FIRST) + write_record(3, LAST)


def read(content):
    """Trials that are read, each with its results as bytes."""
    return {
        each.first + i: row.tobytes()
        for each in read_records(content, "here")[0]
        for i, row in enumerate(each.values)
    }


def test_records_are_read_as_they_were_written():
    """Trials, shape and every bit of the results come back, and nothing is left over."""
    records, unread = read_records(WHOLE, "here")
    assert [(each.first, each.stop, each.file) for each in records] == [
        (0, 3, "here"),
        (3, 5, "here"),
    ]
    assert records[1].values.tobytes() == LAST.tobytes()
    assert unread == 0


@pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 2, 3, 4), (3, 0)])
def test_results_of_any_shape_are_kept(shape):
    """Numbers, vectors, blocks, and results without any number."""
    (found,), _ = read_records(write_record(7, np.ones(shape)), "here")
    assert found.values.shape == shape


def test_a_note_comes_back_with_its_record():
    """In plain letters, however it was written, and cut where it is endless."""
    (found,), unread = read_records(write_record(7, FIRST, "other bits é\n"), "here")
    assert (found.note, unread) == ("other bits \\xe9\n", 0)
    assert found.values.tobytes() == FIRST.tobytes()
    (found,), _ = read_records(write_record(7, FIRST, "x" * 10**6), "here")
    assert set(found.note) == {"x"}


def test_a_tail_torn_at_any_byte_costs_the_last_record_alone():
    """The record before it is whole, and of the torn one nothing is read."""
    kept = read(write_record(0, FIRST))
    for cut in range(len(write_record(0, FIRST)), len(WHOLE)):
        assert read(WHOLE[:cut]) == kept, cut


def test_a_record_after_a_torn_one_is_found():
    """What one writer left half does not hide what comes after it."""
    half = write_record(0, FIRST)[:-5]
    assert read(half + write_record(3, LAST)) == read(write_record(3, LAST))


def test_no_flipped_bit_is_read():
    """Of every single flipped bit the record is dropped, and the other one is as it was."""
    before = read(WHOLE)
    border = len(write_record(0, FIRST))
    for place in range(8 * len(WHOLE)):
        spoiled = bytearray(WHOLE)
        spoiled[place // 8] ^= 1 << place % 8
        expected = {n for n in before if (n < 3) != (place // 8 < border)}
        assert read(bytes(spoiled)) == {n: before[n] for n in expected}, place


def test_what_is_no_record_is_counted():
    """Bytes that belong to no record are told, wherever they are."""
    assert read_records(b"abc" + WHOLE + b"defg", "here")[1] == 7
    assert read_records(b"", "here") == ([], 0)


def test_a_header_that_promises_more_than_there_is_takes_no_memory():
    """Sizes beyond the file are not believed."""
    huge = bytearray(write_record(0, FIRST))
    huge[25:33] = (2**60).to_bytes(8, "little")
    huge[8:24] = (0).to_bytes(8, "little") + (2**60).to_bytes(8, "little")
    assert read_records(bytes(huge), "here")[0] == []
