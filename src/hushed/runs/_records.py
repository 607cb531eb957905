"""Records of finished trials: how they are written, and how they are read from what is left."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushed._ground.types import Floats

_MAGIC = b"\x93HUSHED\x01"
_HEAD = struct.Struct("<8sQQBH")  # magic, first trial, one past the last, dimensions, bytes of note
_CRC = struct.Struct("<I")
_MOST_DIMENSIONS = 8
_MOST_NOTE = 2**16 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """Results of consecutive trials, as one writer kept them."""

    first: int
    values: Floats  # one row for each trial
    file: str  # where it was found
    note: str = ""  # what differed where they ran

    @property
    def stop(self) -> int:
        """One past the last trial."""
        return self.first + len(self.values)


def write_record(first: int, values: Floats, note: str = "") -> bytes:
    """Write one record: magic, trials, shape, note, checksum, doubles.

    Nothing in it is ever executed.
    """
    body = np.ascontiguousarray(values, dtype="<f8").tobytes()
    said = note.encode("ascii", "backslashreplace")[:_MOST_NOTE]
    head = _HEAD.pack(_MAGIC, first, first + len(values), values.ndim, len(said))
    head += struct.pack(f"<{values.ndim}Q", *values.shape) + said
    return b"".join((head, _CRC.pack(zlib.crc32(body, zlib.crc32(head))), body))


def read_records(content: bytes, file: str) -> tuple[list[Record], int]:
    """Read all records that are whole; gives the number of bytes that belong to none, too.

    What a killed writer left, or a flipped bit, is passed over: the next record is looked for.
    """
    found: list[Record] = []
    at = used = 0
    while (at := content.find(_MAGIC, at)) >= 0:
        record, end = _read_record(content, at, file)
        if record is None:
            at += 1
            continue
        found.append(record)
        used += end - at
        at = end
    return found, len(content) - used


def _read_record(content: bytes, at: int, file: str) -> tuple[Record | None, int]:
    """Read the record that begins at a place; None if it is not whole."""
    start = at + _HEAD.size
    if start > len(content):
        return None, at
    _, first, stop, dimensions, length = _HEAD.unpack_from(content, at)
    said = start + 8 * dimensions
    body = said + length + _CRC.size
    if not 1 <= dimensions <= _MOST_DIMENSIONS or body > len(content):
        return None, at
    shape: Sequence[int] = struct.unpack_from(f"<{dimensions}Q", content, start)
    end = body + 8 * math.prod(shape)
    if end > len(content) or stop - first != shape[0] or stop <= first:
        return None, at
    view = memoryview(content)
    (crc,) = _CRC.unpack_from(content, body - _CRC.size)
    if crc != zlib.crc32(view[body:end], zlib.crc32(view[at : body - _CRC.size])):
        return None, at
    values = np.frombuffer(content, "<f8", math.prod(shape), body).reshape(shape)
    note = content[said : said + length].decode("ascii", "replace")
    return Record(first=first, values=values, file=file, note=note), end
