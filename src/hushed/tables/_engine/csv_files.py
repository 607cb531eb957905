"""CSV files, of which opening reads the header alone; queries read the rows, a piece at a time.

A line is a row, whatever it contains: neither a quotation mark that is never closed nor millions of
cells may affect other rows. Where the caller declares that values hold ends of lines, a record ends
with the first end of line that has an even number of quotation marks before it. Reading fails on no
byte, and its memory does not grow with the file, nor with the longest line.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushed._ground.checks import is_utf16
from hushed.errors import BadRows, ParameterError
from hushed.tables._engine.frames import may_be_repaired, repair_bytes

_DELIMITERS = ",;\t|"
_MARK = b"\xef\xbb\xbf"  # byte order mark; some programs write it before a text
_NUMERIC = re.compile(r"[-+.,:/ \d]*\d[-+.,:/ \d]*")  # numbers, dates and times in any format
# A cell and what ends it, as in `lines_query`; nothing is tried twice, for a line may be long.
_CELL = '(?:"(?:[^"]++|"")*+"(?:[^"{mark}][^{mark}]*)?|[^{mark}]*)[{mark}]'
_LONGEST_NAMES = 1 << 20  # bytes of a first line
_PIECE = 1 << 22  # bytes read at once
_LONGEST = 1 << 24  # bytes of a record; a longer one has no cells
_MOST_BEYOND = 1 << 16  # separators of a batch beyond those of its columns; each takes memory


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile:
    """A CSV file of which only the header was read.

    DuckDB asks an object with these two methods for a new stream of rows at each scan, and reads
    nothing to plan a query.
    """

    path: Path
    names: tuple[str, ...]  # of the columns
    delimiter: str
    start: int  # bytes before the first row
    size: int  # bytes when it was opened; a file that grows is not read for ever
    newlines_in_values: bool = False

    def __arrow_c_schema__(self) -> Any:
        return _lines_schema().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        reader = pa.RecordBatchReader.from_batches(_lines_schema(), self._read_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _read_batches(self) -> Iterator[Any]:
        """Read all records, a batch at a time."""
        quoted = self.newlines_in_values
        with open(self.path, "rb", buffering=0) as file:
            marked = self.start == 0 and file.read(len(_MARK)) == _MARK
            file.seek(len(_MARK) if marked else self.start)

            def read() -> bytes:
                return file.read(min(_PIECE, max(0, self.size - file.tell())))

            blank = self.delimiter.encode() + b"\n"
            for held, ends in _split_records(read, blank, quoted=quoted):
                yield self._cut(_make_batch(held, ends, quoted=quoted), held)

    def _cut(self, batch: Any, held: bytes) -> Any:
        """Keep of each record the cells of the columns, if a batch has many others.

        No cell that is kept is read in another way, so that other records decide nothing.
        """
        import pyarrow as pa  # noqa: PLC0415

        width, mark = len(self.names), self.delimiter
        if held.count(mark.encode()) <= batch.num_rows * (width - 1) + _MOST_BEYOND:
            return batch
        cell = re.compile(_CELL.format(mark=mark))
        lines = (each.as_py() for each in batch.column(0))
        cut = [_cut_line(each, cell, mark, width) for each in lines]
        return pa.record_batch([pa.array(cut, pa.large_string())], schema=_lines_schema())


def open_csv(path: Path, header: str | None, *, newlines_in_values: bool) -> CsvFile:
    """Read the header of a CSV file, and not one byte after it."""
    tabbed = path.suffix.lower() == ".tsv"
    if header is None:
        start, first = _read_first_line(path)
        names, delimiter = _split_names(first, tabbed=tabbed)
        _require_names(path, names, first)
    else:
        start = 0
        names, delimiter = _split_names(header, tabbed=tabbed and "\t" in header)
        delimiter = "\t" if tabbed else delimiter
        if not names or not all(map(str.strip, names)) or len(set(names)) < len(names):
            raise ParameterError(
                f"header must name every column, and no column twice, got {header!r}",
                parameter="header",
            )
    return CsvFile(
        path=path,
        names=tuple(names),
        delimiter=delimiter,
        start=start,
        size=path.stat().st_size,
        newlines_in_values=newlines_in_values,
    )


def _read_first_line(path: Path) -> tuple[int, str]:
    """Read the first line, byte by byte, because what follows is private."""
    read = bytearray()
    with open(path, "rb", buffering=0) as file:
        while len(read) < _LONGEST_NAMES and (byte := file.read(1)):
            read += byte
            if byte == b"\n":
                break
    if len(read) == _LONGEST_NAMES and not read.endswith(b"\n"):  # its rest would be a row
        raise BadRows(f"{path.name}: the first line is longer than {_LONGEST_NAMES:,} bytes")
    if is_utf16(read):
        raise BadRows(f"{path.name} is in UTF-16, as Windows writes texts; save it in UTF-8")
    return len(read), read.decode("utf-8-sig", "replace").rstrip("\r\n")


def _split_names(line: str, *, tabbed: bool) -> tuple[list[str], str]:
    """Split a line of names, and find its delimiter."""
    delimiter = "\t" if tabbed else max(_DELIMITERS, key=line.count)
    try:
        return next(csv.reader([line], delimiter=delimiter), []), delimiter
    except csv.Error:  # a cell is too long for a name, or contains an end of line
        return [], delimiter


def _require_names(path: Path, names: Sequence[str], first: str) -> None:
    """Refuse a first line that may be a record; only that line decides, and it is not shown."""
    if not first.strip():
        raise BadRows(f"{path.name}: the first line is empty, and has to name the columns")
    if "\r" in first:
        why = "has carriage returns in place of ends of lines, or within a name"
    elif "\x00" in first:
        why = "contains a null character"
    elif first.count('"') % 2:  # every record after it would begin inside a value
        why = "has a quotation mark that is not closed on it"
    elif not names or not all(map(str.strip, names)):
        why = "has an empty cell, or one too long for a name"
    elif len(set(names)) < len(names):
        why = "has the same name twice"
    elif any(map(_numeric, names)):
        why = "contains a number or a date"
    else:
        return
    raise BadRows(
        f"{path.name}: the first line of a CSV file must name its columns, and this one {why}; it "
        "may be a record, so nothing of it is shown. If it is a record, give the names and the "
        "delimiter. If not, give every column a name of its own that is not a number",
        parameter="header",
        hint="give header='patient;city;cost'",
    )


def _numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return _NUMERIC.fullmatch(cell) is not None
    return True


def _split_records(
    read: Callable[[], bytes], blank: bytes, *, quoted: bool
) -> Iterator[tuple[bytes, Any]]:
    """Give what is read in pieces of whole records, with `blank` for one that is too long.

    And where the records of a piece end, or None where that is not known. Whether a record is too
    long depends on itself alone, and not on where a piece begins.
    """
    held, piece = b"", b"\n"
    while piece:
        piece = read()
        held += piece
        ends = _find_ends(held, quoted=quoted)
        last = int(ends[-1]) if ends.size else 0
        if last:
            kept = _blank_long_records(held[:last], ends, blank)
            yield kept, ends if len(kept) == last else None
        held = held[last:]
        if len(held) > _LONGEST:
            yield blank, None
            held, piece = _skip_record(read, held, quoted=quoted), blank
    if held:  # the last record, without its end
        yield held, None


def _find_ends(held: bytes, *, quoted: bool, quotes: int = 0) -> Any:
    """Find where records end, after so many quotation marks of the first one."""
    cells = np.frombuffer(held, np.uint8)
    ends = np.flatnonzero(cells == ord("\n"))
    if quoted:
        before = np.searchsorted(np.flatnonzero(cells == ord('"')), ends) + quotes
        ends = ends[before % 2 == 0]
    return ends + 1


def _blank_long_records(held: bytes, ends: Any, blank: bytes) -> bytes:
    """Replace records that are too long."""
    if len(held) <= _LONGEST:
        return held
    places = itertools.pairwise([0, *ends.tolist()])
    records = (held[first:last] for first, last in places)
    return b"".join(each if len(each) - 1 <= _LONGEST else blank for each in records)


def _skip_record(read: Callable[[], bytes], held: bytes, *, quoted: bool) -> bytes:
    """Read up to the end of a record, and give what was read after it."""
    quotes = held.count(b'"')
    while piece := read():
        ends = _find_ends(piece, quoted=quoted, quotes=quotes)
        if ends.size:
            return piece[ends[0] :]
        quotes += piece.count(b'"')
    return b""


def _make_batch(held: bytes, ends: Any, *, quoted: bool) -> Any:
    """Make a batch of records, a string each, with every byte that is not UTF-8 replaced."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if may_be_repaired(held):  # whatever else is in this batch, so that a cell is read by itself
        held, ends = repair_bytes(held), None
    lines = _split(held, ends, quoted=quoted)
    try:
        lines.validate(full=True)
    except pa.ArrowInvalid:
        lines = _split(repair_bytes(held), None, quoted=quoted)
    return pa.record_batch([pc.ascii_rtrim(lines, "\r\n")], schema=_lines_schema())


def _split(held: bytes, ends: Any, *, quoted: bool) -> Any:
    """Split bytes into records, without a copy; where they end is looked for unless it is known."""
    import pyarrow as pa  # noqa: PLC0415

    ends = _find_ends(held, quoted=quoted) if ends is None else ends
    last = [] if ends.size and ends[-1] == len(held) else [len(held)]
    offsets = np.concatenate([[0], ends, last]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(
        offsets.size - 1, pa.py_buffer(offsets), pa.py_buffer(held)
    )


def _lines_schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema([("line", pa.large_string())])


def _cut_line(line: str, cell: re.Pattern[str], mark: str, width: int) -> str:
    """Cut a record after its last column, with its cells as `lines_query` splits them."""
    if line.count(mark) < width:
        return line
    if '"' not in line:
        return mark.join(line.split(mark, width)[:width])
    ended, end = line + mark, 0
    for _ in range(width):
        found = cell.match(ended, end)
        if found is None:
            break
        end = found.end()
    return ended[: end - 1]


def lines_query(lines: str, delimiter: str, width: int) -> str:
    """Write a query of DuckDB that splits each line into cells, by itself.

    A cell that is wholly in quotation marks is what stands within them; any other is as it is
    written, also one in which a mark is never closed, or stands before other characters. In a file
    of one column an empty line is a row without a value; elsewhere it is none. Private files of the
    command line are read by the same rules.
    """
    # A mark that closes is followed by no other one: two of them are one within the cell.
    # No group is asked for: to find where one begins takes ten times as long in a long cell.
    each = (
        f"""'(?:"(?:[^"]|"")*"(?:[^"{delimiter}][^{delimiter}]*)?|[^{delimiter}]*)[{delimiter}]'"""
    )
    split = f"regexp_extract_all(line || '{delimiter}', {each})"
    cell = f'(?:[^"{delimiter}]*|"[^"{delimiter}]*")'
    strings = ", ".join(f"nullif(cells[{i + 1}], '') AS c{i}" for i in range(width))
    kept = "" if width == 1 else " WHERE line <> ''"
    # The last way is general, but takes ten times as long: simple lines take the others.
    return f"""SELECT {strings} FROM (SELECT CASE
            WHEN NOT contains(line, '"') THEN string_split(line, '{delimiter}')
            WHEN regexp_full_match(line, '{cell}(?:[{delimiter}]{cell})*')
                THEN string_split(replace(line, '"', ''), '{delimiter}')
            ELSE list_transform(list_transform({split}, lambda x: left(x, -1)),
                lambda x: CASE WHEN regexp_full_match(x, '"(?:[^"]|"")*"')
                    THEN replace(substring(x, 2, length(x) - 2), '""', '"') ELSE x END)
            END AS cells FROM {lines}{kept})"""  # noqa: S608
