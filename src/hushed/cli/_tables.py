"""Tables from CSV and Parquet files, with or without a header."""

from __future__ import annotations

import csv
import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushed._printing import plain_path
from hushed.cli._outcome import print_note
from hushed.errors import BadRows, MissingExtra, NotFound, ParameterError

Frame = Literal["numpy", "pandas", "polars"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows from a file."""

    rows: Any  # the rows; an array has shape (rows, columns)
    columns: tuple[str, ...]  # names from the header; empty without one


def read_table(
    path: Path,
    frame: Frame = "numpy",
    *,
    header: bool | None = None,
    known: Sequence[str] | None = None,
    user: str | None = None,
) -> Table:
    """Read a CSV or Parquet file; in an array the users of a column are numbered."""
    columns, cells = _read_cells(path, header)
    names = columns or _number_columns(cells)
    if user is not None and frame == "numpy":
        _number_users(cells, find_column(path, user, columns, len(names), option="--user"))
    shown = [
        f"column {name!r}" if columns and (known is None or name in known) else f"column {i}"
        for i, name in enumerate(names, start=1)
    ]
    read = {
        name: _column(path, shown[i], [row[i] for row in cells], _FRAMES, text=frame != "numpy")
        for i, name in enumerate(names)
    }
    return Table(rows=_make_frame(read, frame), columns=columns)


def read_private_table(
    path: Path,
    frame: Frame = "numpy",
    *,
    header: bool | None,
    texts: Sequence[str] = (),
    user: str | None = None,
) -> Table:
    """Read private rows, each cell by itself: a text in a column of texts, else a number or NaN.

    Which columns are of texts is said, as a single row may change what the others look like.
    """
    told = _require_header(path, header, user, *texts)
    columns, cells = _read_cells(path, told, private=True)
    names = columns or _number_columns(cells)
    known = columns if _is_stated(path, header) else ()
    if user is not None:
        whose = find_column(path, user, columns, len(names), option="--user", known=known)
        if frame == "numpy":
            _encode_users(cells, whose)
    if texts and frame == "numpy":
        raise ParameterError("--text goes with --frame pandas or polars: an array holds numbers")
    places = {
        find_column(path, t, columns, len(names), option="--text", known=known) for t in texts
    }
    read = {
        name: (_take_texts if i in places else _take_numbers)([row[i] for row in cells])
        for i, name in enumerate(names)
    }
    return Table(rows=_make_frame(read, frame), columns=columns)


def _number_columns(cells: list[list[Any]]) -> tuple[str, ...]:
    return tuple(f"column {i + 1}" for i in range(len(cells[0])))


def _require_header(path: Path, header: bool | None, *named: str | None) -> bool | None:
    """Whether the first row of a private file names columns: said, never told from the rows.

    A column that is called by a name says it, too.
    """
    if _is_stated(path, header) or not path.is_file():
        return header
    if any(name is not None and not name.isdecimal() for name in named):
        return True
    raise ParameterError(
        f"say --header or --no-header: whether the first row of {path.name} names its columns is "
        "not told from private rows"
    )


def _is_stated(path: Path, header: bool | None) -> bool:
    """Whether it is known without a look at the rows that names are names."""
    return header is not None or path.suffix == ".parquet"


def _read_cells(
    path: Path, header: bool | None, *, private: bool = False
) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Read names and rows of a file; one row or more, all of one width.

    In a private one no cell is refused, also none that is no text in UTF-8, or very long.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {plain_path(path)}")
    if path.suffix == ".parquet":
        if header is False:
            raise ParameterError(f"{path.name} is a Parquet file, which always names its columns")
        columns, cells = _parquet(path)
    else:
        columns, cells = _csv(path, header, private=private)
    if not cells:
        raise BadRows(f"{path.name} has no rows")
    _check_rectangular(path, len(columns or cells[0]), cells)
    return columns, cells


def read_column(path: Path, column: str | None, *, header: bool | None, text: bool) -> Any:
    """Read one public column of a file: an array of numbers, or a list of texts."""
    columns, cells = _read_cells(path, header)
    return _cells_of(path, find_column(path, column, columns, len(cells[0])), columns, cells, text)


def read_private_column(
    path: Path, column: str | None, *, header: bool | None, text: bool = False
) -> Any:
    """Read one private column, each cell by itself: an array of numbers, or a list of texts.

    What is no number becomes NaN, and no cell is refused: that would tell what one row holds.
    """
    columns, cells = _read_cells(path, _require_header(path, header, column), private=True)
    known = columns if _is_stated(path, header) else ()
    place = find_column(path, column, columns, len(cells[0]), known=known)
    return _private_cells(place, cells, text)


def read_column_of_users(
    path: Path, column: str | None, user: str, *, header: bool | None
) -> tuple[Any, list[str | None]]:
    """Read a private column of numbers, and whose each row is; None of one that is nobody's."""
    columns, cells = _read_cells(path, _require_header(path, header, column, user), private=True)
    known = columns if _is_stated(path, header) else ()
    place = find_column(path, column, columns, len(cells[0]), known=known)
    whose = find_column(path, user, columns, len(cells[0]), option="--user", known=known)
    users = [_name_user(row[whose]) for row in cells]
    return _private_cells(place, cells, text=False), users


def _private_cells(place: int, cells: list[list[Any]], text: bool) -> Any:
    found = [row[place] for row in cells]
    if text:
        return ["" if cell is None else str(cell) for cell in found]
    return np.array(_take_numbers(found))


def _shown(place: int, columns: Sequence[str]) -> str:
    return f"column {columns[place]!r}" if columns else f"column {place + 1}"


def _name_user(cell: Any) -> str | None:
    """Name whose a row is; None where a cell is empty, missing or not a number of Parquet."""
    name = "" if cell is None else str(cell).strip()
    return None if not name or (isinstance(cell, float) and np.isnan(cell)) else name


def _number_users(cells: list[list[Any]], place: int) -> None:
    """Write numbers for the names of users, as they come up: an array holds no texts."""
    known: dict[str, int] = {}
    for row in cells:
        name = _name_user(row[place]) if place < len(row) else None
        if name is not None:
            row[place] = known.setdefault(name, len(known))


def _encode_users(cells: list[list[Any]], place: int) -> None:
    """Write numbers for the names of users, each by its own name alone.

    A number that tells of the rows above it would carry one user's rows to all others.
    """
    for row in cells:
        name = _name_user(row[place])
        if name is not None and _number(name) is None:
            digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
            row[place] = int.from_bytes(digest)


def _cells_of(
    path: Path, place: int, columns: Sequence[str], cells: list[list[Any]], text: bool
) -> Any:
    found = [row[place] for row in cells]
    if text:
        return [str(cell) for cell in found]
    read = _column(path, _shown(place, columns), found, _MODE, text=False)
    return np.array(read, dtype=np.float64)


def find_column(
    path: Path,
    column: str | None,
    columns: Sequence[str],
    width: int,
    *,
    option: str = "--column",
    known: Sequence[str] | None = None,
) -> int:
    """Place of a column that is named, or counted from 1; the only one need not be named.

    Only names that are known as such are shown.
    """
    names = ", ".join(columns if known is None else known) or f"1 to {width}"
    if column is None:
        if width > 1:
            raise ParameterError(
                f"{path.name} has {width} columns ({names}): name one of them by {option}"
            )
        return 0
    if column in columns:
        return columns.index(column)
    if column.isdecimal() and 1 <= int(column) <= width:
        return int(column) - 1
    raise ParameterError(f"{path.name} has no column {column!r}; it has {names}")


def check_columns(public: Sequence[str] | None, private: Sequence[str]) -> None:
    """Refuse a private table whose header is not that of the public one."""
    if public is None or tuple(public) == tuple(private):
        return
    if not public or not private:
        has, lacks = ("public", "private") if public else ("private", "public")
        raise BadRows(
            f"the {has} table has a header, the {lacks} one has none; give both the same form, "
            "or say --header or --no-header"
        )
    pairs = zip(public, private, strict=False)
    same = min(len(public), len(private))
    position = next((i for i, (a, b) in enumerate(pairs) if a != b), same) + 1
    raise BadRows(
        f"the public table has columns {', '.join(public)}; the private one differs from it "
        f"in column {position}"
    )


def _csv(
    path: Path, header: bool | None, *, private: bool
) -> tuple[tuple[str, ...], list[list[Any]]]:
    errors = "backslashreplace" if private else "strict"
    longest = csv.field_size_limit(_LONGEST_CELL) if private else csv.field_size_limit()
    try:
        if header:  # of a private file, too, it is public
            with path.open("rb") as file:
                file.readline().decode("utf-8-sig")
        with path.open(newline="", encoding="utf-8-sig", errors=errors) as lines:
            rows = _drop_empty(list(csv.reader(lines)))
    except UnicodeDecodeError:
        raise BadRows(f"{path.name} is not text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as cause:
        raise BadRows(f"{path.name} cannot be read as CSV: {cause}") from None
    finally:
        csv.field_size_limit(longest)
    if not rows or not (_has_header(path, rows) if header is None else header):
        return (), [list(row) for row in rows]
    names = tuple(cell.strip() for cell in rows[0])
    if len(set(names)) < len(names):
        raise BadRows(f"{path.name} names a column twice")
    return names, [list(row) for row in rows[1:]]


def _drop_empty(lines: list[list[str]]) -> list[list[str]]:
    """Leave out empty lines, but in a file of one column: there they are rows with an empty cell.

    Otherwise the number of rows, which is public, would tell that a cell is empty.
    """
    if all(len(line) <= 1 for line in lines) and any(lines):
        return [line or [""] for line in lines]
    return [line for line in lines if line]


def _has_header(path: Path, rows: list[list[str]]) -> bool:
    """Whether the first row names columns; refuses to guess where it may be a record."""
    first, below = rows[0], rows[1:]
    if any(_number(cell) is not None for cell in first):
        print_note(f"no header found in {path.name}: its first row counts as a record")
        return False
    if any(
        all(i < len(row) and _number(row[i]) is not None for row in below)
        for i in range(len(first))
        if below
    ):
        return True
    found = "there is no column of numbers" if below else "there are no rows"
    raise ParameterError(
        f"{path.name}: the first row holds no number, and {found} below it, so it may be a header "
        "or a record; say --header or --no-header"
    )


def _parquet(path: Path) -> tuple[tuple[str, ...], list[list[Any]]]:
    try:
        import polars  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a Parquet file", "polars", "or save the table as CSV") from None
    try:
        frame = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException):
        raise BadRows(f"{path.name} cannot be read as Parquet; it may be damaged") from None
    return tuple(frame.columns), [list(row) for row in frame.iter_rows()]


def _check_rectangular(path: Path, width: int, cells: list[list[Any]]) -> None:
    for number, row in enumerate(cells, start=1):
        if len(row) != width:
            raise BadRows(
                f"{path.name}: row {number} has {len(row)} cells where {width} are expected"
            )


_LONGEST_CELL = 2**31 - 1
_FRAMES = "use --frame pandas or polars for columns of text"
_MODE = "of texts there is a mode, with --category for each"


def _column(path: Path, shown: str, cells: list[Any], cure: str, *, text: bool) -> list[Any]:
    """Numbers of a column; its texts, if none is a number and texts are allowed."""
    for number, cell in enumerate(cells, start=1):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            raise BadRows(
                f"{path.name}: {shown} has a missing cell in row {number}; "
                "fill it or leave the row out"
            )
    numbers = [_number(cell) for cell in cells]
    if text and all(value is None for value in numbers):
        return cells
    for number, value in enumerate(numbers, start=1):
        if value is None:
            hint = "" if text else f"; {cure}"
            raise BadRows(
                f"{path.name}: {shown} holds text in row {number} where a number is expected{hint}"
            )
        if not np.isfinite(value):
            raise BadRows(
                f"{path.name}: {shown} holds NaN or infinity in row {number}; "
                "fill it or leave the row out"
            )
    return numbers


def _take_numbers(cells: list[Any]) -> list[float]:
    """Numbers of a private column, NaN where there is none."""
    numbers = [_number(cell) for cell in cells]
    return [np.nan if number is None else number for number in numbers]


def _take_texts(cells: list[Any]) -> list[str | None]:
    """Texts of a private column, None where a cell is empty."""
    return [None if cell is None or cell == "" else str(cell) for cell in cells]


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _make_frame(columns: dict[str, list[Any]], frame: Frame) -> Any:
    if frame == "numpy":
        return np.column_stack([np.array(column, dtype=np.float64) for column in columns.values()])
    try:
        library = importlib.import_module(frame)
    except ImportError:
        raise MissingExtra(f"--frame {frame}", frame) from None
    return library.DataFrame(columns)
