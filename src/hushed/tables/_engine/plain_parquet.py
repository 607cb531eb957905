"""Parquet files whose texts were dictionaries in Arrow, read as the plain texts that they hold.

A file of Arrow tells beside its columns which types they had in memory. Of a dictionary Arrow then
makes one again, and in doing so it checks each text: one that is no UTF-8 would keep every query of
the table from ending. So the file is read as if it did not tell.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TOLD = b"ARROW:schema"  # the name under which the types stand in the footer


class PlainFile(io.RawIOBase):
    """A Parquet file that tells of no types of Arrow; it is open only while it is read."""

    def __init__(self, path: Path, footer: bytes) -> None:
        super().__init__()
        self._path = path
        self._size = path.stat().st_size
        self._place = 0
        self._told = self._size - len(footer) + _find_types(footer)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read in any order."""
        return True

    def tell(self) -> int:
        """Give the place of what is read next."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place."""
        self._place = offset + (0, self._place, self._size)[whence]
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, or all that are left."""
        left = max(0, self._size - self._place)
        with open(self._path, "rb") as file:
            file.seek(self._place)
            found = bytearray(file.read(left if size is None or size < 0 else min(size, left)))
        first = self._told - self._place
        for i in range(max(first, 0), min(first + len(_TOLD), len(found))):
            found[i] = ord("-")
        self._place += len(found)
        return bytes(found)


def hide_types(footer: bytes) -> bytes:
    """Give a footer that does not tell them."""
    place = _find_types(footer)
    return footer[:place] + b"-" * len(_TOLD) + footer[place + len(_TOLD) :]


def _find_types(footer: bytes) -> int:
    """Find the name under which the types stand: the last one before what it names.

    A column may have the same name, and the least or the largest value of one, which is private.
    They stand before, so that neither is changed, and no cell decides whether a file is opened.
    """
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    told = parquet.read_metadata(pa.BufferReader(b"PAR1" + footer)).metadata[_TOLD]
    return footer.rindex(_TOLD, 0, footer.rindex(told))


def has_dictionaries(schema: Any) -> bool:
    """Whether a column was a dictionary."""
    import pyarrow as pa  # noqa: PLC0415

    return any(pa.types.is_dictionary(field.type) for field in schema)


def open_plain(files: Sequence[Path], footers: Sequence[bytes], schema: Any) -> Any:
    """Give a data set of files, of which nothing is read before it is asked for."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import dataset  # noqa: PLC0415

    kind = dataset.ParquetFileFormat()
    parts = [
        kind.make_fragment(pa.PythonFile(PlainFile(file, footer), mode="r"))
        for file, footer in zip(files, footers, strict=True)
    ]
    return dataset.FileSystemDataset(parts, schema, kind)
