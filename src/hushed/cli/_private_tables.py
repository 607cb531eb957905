"""Private tables from CSV and Parquet files: every line is a row, and each cell is read by itself.

What a file looks like is public: whether its first line names columns, how many there are, and
which hold texts. What a row holds is not: no cell is refused, and none changes how others are read.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from hushed._ground.checks import is_utf16
from hushed._ground.numerals import is_whole_number
from hushed._rows import _containers as containers
from hushed.cli._outcome import print_note
from hushed.cli._public_cells import read_number
from hushed.cli._tables import (
    Frame,
    Table,
    find_column,
    find_nested,
    is_parquet,
    make_frame,
    name_user,
    number_columns,
    read_parquet,
    require_table,
)
from hushed.errors import BadRows, ParameterError
from hushed.populations import Population, PublicTable

_SAVE_LINES = "save it with a line feed at the end of each"
# A mark that closes is followed by no other one: two of them are one within the cell.
_CELL = re.compile(r'("(?:[^"]|"")*"(?:[^",][^,]*)?|[^,]*),')
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_MOST_COLUMNS = 10_000
_FEW = (1, 20)  # rows by which the form of a population is known
_TEXTS = ("str", "string")  # types of a frame, in small letters; objects may be dates


@dataclass(frozen=True, slots=True, kw_only=True)
class _Private:
    """What a private file holds."""

    path: Path
    columns: tuple[str, ...]  # names from the header; empty without one
    shown: Sequence[str]  # those of them that messages may show
    width: int
    cells: list[list[Any]]  # of each row as many as there are columns

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, or their places."""
        return self.columns or number_columns(self.width)

    def find(self, column: str | None, option: str = "--column") -> int:
        """Find the place of a column."""
        return find_column(
            self.path, column, self.columns, self.width, option=option, known=self.shown
        )

    def get(self, place: int) -> list[Any]:
        """Get the cells of a column."""
        return [row[place] for row in self.cells]


def read_private_table(
    path: Path,
    frame: Frame = "numpy",
    *,
    header: bool | None,
    columns: int | None = None,
    texts: Sequence[str] = (),
    user: str | None = None,
) -> Table:
    """Read private rows: a text in a column of texts, else a number or NaN.

    How many columns a file without a header has, and which of them are of texts, is said, as a
    single row may change what the others look like.
    """
    held = _read(path, header, user, *texts, width=columns)
    if held.columns and columns is not None:
        raise ParameterError("--columns is for a CSV file without a header, which has --no-header")
    if not held.columns and columns is None:
        raise ParameterError(
            f"say by --columns how many columns {path.name} has: without a header it is told from "
            "private rows, and a single one could change how all others are read"
        )
    whose = None if user is None else held.find(user, "--user")
    if texts and frame == "numpy":
        raise ParameterError("--text goes with --frame pandas or polars: an array holds numbers")
    places = {held.find(each, "--text") for each in texts}
    return _make_table(held, frame, places, coded=None if whose in places else whose)


def read_table_like(
    path: Path,
    population: Population,
    frame: Frame,
    *,
    header: bool | None,
    columns: Sequence[str] | None,
    user: str | None = None,
) -> Table:
    """Read private rows as those of a public population look.

    If the first row of a public file names its columns, so does that of the private one, and only
    these names are shown. Without names there are as many columns as in the population. What is of
    texts there is of texts here; all else is numbers, or NaN.
    """
    told = True if header is None and columns else header
    public = _find_layout(population)
    width = _find_width(public, user)
    held = _read(path, told, user, shown=columns or (), width=width)
    if not held.columns:
        print_note(
            f"each line of {path.name} is read as a row of {width} "
            f"column{'s' * (width > 1)}, as many as the population has; {_AS_UTF8}"
        )
    texts, others = set[int](), dict[int, Any]()
    nested = find_nested(path, frame)
    if public is not None and frame != "numpy":
        kinds = zip(public.columns, public.kinds, public.types, strict=False)
        types = {name: element.dtype for name, kind, element in kinds if kind == "other"}
        for place, name in enumerate(held.names):
            if name not in types:
                continue
            if str(types[name]).lower() in _TEXTS or not is_parquet(path):
                texts.add(place)
            else:
                others[place] = nested.get(name, types[name])
    whose = None if user is None else held.find(user, "--user")
    return _make_table(held, frame, texts, others, coded=None if whose in texts else whose)


def _find_width(public: containers.Layout | None, user: str | None) -> int:
    """Find the number of columns of public rows; of what cannot be drawn one that refuses no user.

    Private rows have no say in it: a single one could change how all others are read.
    """
    if public is not None:
        return len(public.columns) or 1
    return int(user) if user and is_whole_number(user) else 1


def _find_layout(population: Population) -> containers.Layout | None:
    """Find the form of public rows; None of what cannot be drawn, which sampling then says."""
    if isinstance(population, PublicTable):
        return containers.layout(population.frame)
    for count in _FEW:  # it may want to be asked for more than one row
        with suppress(Exception, SystemExit):
            return containers.layout(population.draw(np.random.default_rng(0), count))
    return None


def read_private_column(
    path: Path, column: str | None, *, header: bool | None, text: bool = False
) -> Any:
    """Read one private column: an array of numbers, NaN where there is none, or a list of texts."""
    held = _read(path, header, column, single=_is_first(column), width=_find_last(column))
    _note_place(held, column)
    found = held.get(held.find(column))
    return ["" if cell is None else str(cell) for cell in found] if text else _take_numbers(found)


def read_column_of_users(
    path: Path, column: str | None, user: str, *, header: bool | None
) -> tuple[Any, list[str | None]]:
    """Read a private column of numbers, and whose each row is; None of one that is nobody's."""
    last = _find_last(column, user)
    held = _read(path, header, column, user, single=_is_first(column, user), width=last)
    _note_place(held, column)
    numbers = _take_numbers(held.get(held.find(column)))
    return numbers, [name_user(cell) for cell in held.get(held.find(user, "--user"))]


def _is_first(*named: str | None) -> bool:
    """Tell whether the first column alone is read: in it an empty line is a row, too."""
    return all(each is None or (is_whole_number(each) and int(each) == 1) for each in named)


def _find_last(*named: str | None) -> int:
    """Find the last column that is read, where they are counted: rows have no say in it."""
    last = max(int(each) if each and is_whole_number(each) else 1 for each in named)
    if last > _MOST_COLUMNS:
        raise ParameterError(f"columns are counted up to {_MOST_COLUMNS:,}, got {last:,}")
    return last or 1


def _note_place(held: _Private, column: str | None) -> None:
    """Say which cells are read where no header does: how many there are is not told from rows."""
    if held.columns:
        return
    if column is None:
        print_note(
            f"the first cell of each line of {held.path.name} is read; --column 2 reads the second"
            f"; {_AS_UTF8}"
        )
    else:
        print_note(
            f"cell {column} of each line of {held.path.name} is read, of the first line, too; a "
            f"line that has fewer counts as one with an empty cell there; {_AS_UTF8}"
        )


def _read(
    path: Path,
    header: bool | None,
    *named: str | None,
    shown: Sequence[str] | None = None,
    width: int | None = None,
    single: bool | None = None,
) -> _Private:
    """Read a private file, of which only names that are known to be names are shown.

    A column that is called by its name says that there are names. The number of columns is that of
    the header, else the given one, and never told from rows.
    """
    require_table(path)
    stated = header is not None or is_parquet(path)
    told = header
    if not stated and any(name is not None and not is_whole_number(name) for name in named):
        told = True
    elif not stated:
        raise ParameterError(
            f"say --header or --no-header: whether the first row of {path.name} names its columns "
            "is not told from private rows"
        )
    if is_parquet(path):
        columns, cells = read_parquet(path, header)
    else:
        columns, cells = _read_csv(path, header=bool(told))
    if shown is None:
        shown = columns if stated else ()
    wide = len(columns) or width or 1
    # In one column an empty line is a row with an empty cell: else its number would tell of it.
    if wide == 1 if single is None or columns else single:
        cells = [row or [""] for row in cells]
    even = [[*row[:wide], *[""] * (wide - len(row))] for row in cells if row]
    return _Private(path=path, columns=columns, shown=shown, width=wide, cells=even)


# Said whatever the file holds: without a header its first bytes are those of a row.
_AS_UTF8 = "texts are read as UTF-8, and in UTF-16, as Windows writes them, no cell is a number"


def _read_csv(path: Path, *, header: bool) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Read each line as a row: a quotation mark that is never closed affects its own row only."""
    content = path.read_bytes()
    if header and is_utf16(
        content
    ):  # without a header these are bytes of a row, and decide nothing
        raise BadRows(f"{path.name} is in UTF-16, as Windows writes texts; save it in UTF-8")
    text = content.decode("utf-8-sig", "surrogateescape").translate(_BROKEN)
    if "\n" not in text and "\r" in text.rstrip("\r"):
        raise BadRows(f"{path.name} has carriage returns in place of ends of lines; {_SAVE_LINES}")
    lines = text.split("\n")
    rows = [_split_line(line.rstrip("\r")) for line in (lines if lines[-1] else lines[:-1])]
    if not header:
        return (), rows
    if not rows:
        raise BadRows(f"{path.name} is empty: it has no header, either")
    names = tuple(cell.strip() for cell in rows[0])
    if len(names) == 1 and (between := next((each for each in ";\t|" if each in names[0]), "")):
        raise BadRows(f"{path.name} has {between!r} between its cells; save it with commas")
    if len(set(names)) < len(names):
        raise BadRows(f"{path.name} names a column twice")
    return names, rows[1:]


_WHOLE = re.compile("0|[1-9][0-9]{0,14}")
# What is not UTF-8 becomes a private-use character for each byte, so that different texts differ.
# Such a character in a text is written as its three bytes are, too.
_BROKEN: dict[int, int | str] = {0xDC00 + byte: 0xEF00 + byte for byte in range(0x80, 0x100)}
_BROKEN |= {
    each: "".join(chr(0xEF00 + byte) for byte in chr(each).encode())
    for each in range(0xEF80, 0xF000)
}


def _split_line(line: str) -> list[str]:
    """Split a line as `hushed.table` does: a cell wholly in quotation marks is what is in them."""
    if '"' not in line:
        return line.split(",") if line else []
    return [
        cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell
        for cell in _CELL.findall(f"{line},")
    ]


def _make_table(
    held: _Private,
    frame: Frame,
    texts: set[int],
    others: Mapping[int, Any] = MappingProxyType({}),
    *,
    coded: int | None,
) -> Table:
    """Put columns together: of texts, of things as they are, of codes of users, of numbers."""
    read: dict[str, Any] = {}
    for place, name in enumerate(held.names):
        cells = held.get(place)
        if place in texts:
            read[name] = _take_texts(cells, frame)
        elif place in others:
            read[name] = _take_others(cells, frame, others[place])
        else:
            read[name] = _take_numbers([*map(_number_user, cells)] if place == coded else cells)
    return Table(rows=make_frame(read, frame), columns=held.columns)


def _number_user(cell: Any) -> int | None:
    """Give a user a number by the own name alone, which no other name has.

    A number that tells of the rows above it would carry one user's rows to all others. A double is
    near to many large whole numbers, and 7 and 007 may be two users: a name that is no whole number
    of at most 15 digits, in its usual spelling, has a digest below 0.
    """
    name = name_user(cell)
    if name is None or _WHOLE.fullmatch(name):
        return None if name is None else int(name)
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return -1 - int.from_bytes(digest)


def _take_numbers(cells: Iterable[Any]) -> Any:
    """Numbers of a column, NaN where there is none."""
    numbers = [read_number(cell) for cell in cells]
    return np.array([np.nan if each is None else each for each in numbers], dtype=np.float64)


def _take_others(cells: list[Any], frame: Frame, dtype: Any) -> Any:
    """Things of a column as they are; of the given type where their own is not told from cells.

    All may be missing but for one row. Of lists and records the first cells would decide.
    """
    if importlib.util.find_spec(frame) is None:
        return cells
    library = importlib.import_module(frame)
    nested = frame == "polars" and dtype.is_nested()
    if not nested and not all(cell is None for cell in cells):
        return cells
    try:
        return library.Series(cells, dtype=dtype)
    except Exception:  # another type, by which the gate refuses it
        return cells


def _take_texts(cells: list[Any], frame: Frame) -> Any:
    """Texts of a column, None where a cell is empty; its type does not depend on the cells."""
    found = [None if cell is None or cell == "" else str(cell) for cell in cells]
    if importlib.util.find_spec(frame) is None:
        return found  # which the frame then refuses
    library = importlib.import_module(frame)
    return library.Series(found, dtype=library.Series(["text"]).dtype)
