"""Public tables from CSV and Parquet files, with or without a header."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushed._ground.numerals import is_whole_number
from hushed._ground.printing import SAVE_AS_CSV, SPREADSHEETS, name_missing, suggest
from hushed.cli._outcome import print_note
from hushed.cli._public_cells import (
    Missing,
    drop_rows,
    lacks_number,
    read_number,
    read_public_cells,
)
from hushed.errors import BadRows, MissingExtra, NotFound, ParameterError

Frame = Literal["numpy", "pandas", "polars"]

# Endings of what people give by mistake. Any other is taken for CSV, as many endings of it are.
_NO_TABLES = frozenset(
    [
        ".db",
        ".sqlite",
        ".sqlite3",
        ".duckdb",
        ".json",
        ".jsonl",
        ".py",
        ".ipynb",
        ".arrow",
        ".feather",
        *SPREADSHEETS,
        ".zip",
        ".gz",
        ".tar",
        ".pdf",
        ".html",
        ".svg",
        ".png",
        ".pub",
        ".key",
        ".pem",
        ".toml",
        ".bin",
        ".npy",
        ".npz",
        ".pkl",
        ".joblib",
    ]
)


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
    user: str | None = None,
    missing: Missing | None = None,
) -> Table:
    """Read a CSV or Parquet file; users are numbered, unless a frame has their texts."""
    columns, cells = read_cells(path, header)
    names = columns or number_columns(len(cells[0]))
    if user is not None and frame == "numpy":
        place = find_column(path, user, columns, len(names), option="--user")
        numbers = _number_users([row[place] if place < len(row) else None for row in cells])
        for row, number in zip(cells, numbers, strict=True):
            if number is not None:
                row[place] = number
    read: dict[str, Any] = {}
    for i, name in enumerate(names):
        shown, found = _shown(i, columns), [row[i] for row in cells]
        read[name], text = read_public_cells(
            path, shown, found, _FRAMES, text=frame != "numpy", missing=missing
        )
        if name == user and not text:  # as doubles two large ones may be one
            read[name] = _number_users(found)
    if missing == "drop":
        read = drop_rows(path, read)
    for name, dtype in find_nested(path, frame).items():
        read[name] = importlib.import_module(frame).Series(read[name], dtype=dtype)
    return Table(rows=make_frame(read, frame), columns=columns)


def read_cells(path: Path, header: bool | None) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Read names and rows of a file; one row or more, all of one width."""
    require_table(path)
    columns, cells = read_parquet(path, header) if is_parquet(path) else _csv(path, header)
    if not cells:
        raise BadRows(f"{path.name} has no rows")
    _check_rectangular(path, len(columns or cells[0]), cells)
    return columns, cells


def read_column(
    path: Path,
    column: str | None,
    *,
    header: bool | None,
    text: bool,
    missing: Missing | None = None,
) -> Any:
    """Read one public column of a file: an array of numbers, or a list of texts."""
    columns, cells = read_cells(path, header)
    place = find_column(path, column, columns, len(cells[0]))
    found = [row[place] for row in cells]
    if not text:
        shown = _shown(place, columns)
        found, _ = read_public_cells(path, shown, found, _MODE, text=False, missing=missing)
    if missing == "drop":
        found = drop_rows(path, {"": found})[""]
    if text:
        return ["" if cell is None else str(cell) for cell in found]
    return np.array(found, dtype=np.float64)


def require_table(path: Path) -> None:
    """Refuse a file that is not there, or no table by its name: nothing in it is looked at."""
    if not path.is_file():
        raise NotFound(f"there is no file {name_missing(path)}")
    kind = path.suffix.lower()
    if kind in SPREADSHEETS:
        raise ParameterError(f"{path.name}: {SAVE_AS_CSV}")
    if kind in _NO_TABLES:
        raise ParameterError(
            f"{path.name} is no table by its name: give a CSV file, or a Parquet file that ends in "
            ".parquet; hushed query reads databases, too"
        )


def is_parquet(path: Path) -> bool:
    """Tell Parquet files, which name their columns, from CSV files."""
    return path.suffix == ".parquet"


def _shown(place: int, columns: Sequence[str]) -> str:
    return f"column {columns[place]!r}" if columns else f"column {place + 1}"


def name_user(cell: Any) -> str | None:
    """Name whose a row is; None where a cell is empty, missing or not a number of Parquet."""
    name = "" if cell is None else str(cell).strip()
    return None if not name or (isinstance(cell, float) and np.isnan(cell)) else name


def _number_users(cells: Sequence[Any]) -> list[int | None]:
    """Give users numbers as they come up; None where a cell names nobody."""
    known: dict[str, int] = {}
    names = map(name_user, cells)
    return [None if each is None else known.setdefault(each, len(known)) for each in names]


def number_columns(width: int) -> tuple[str, ...]:
    """Name columns by their places."""
    return tuple(f"column {i + 1}" for i in range(width))


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
    told = columns if known is None else known
    names = ", ".join(told) or f"1 to {width}"
    if column is None:
        if width > 1:
            raise ParameterError(
                f"{path.name} has {width} columns ({names}): name one of them by {option}"
            )
        return 0
    if column in columns:
        return columns.index(column)
    if is_whole_number(column) and 1 <= int(column) <= width:
        return int(column) - 1
    if told:
        near = suggest(column, told) or ";"
        raise ParameterError(f"{path.name} has no column {column!r}{near} it has {names}")
    if not columns:
        raise ParameterError(
            f"{path.name} has no column {column!r}: columns of a file without a header are counted "
            "from 1"
        )
    raise ParameterError(
        f"{path.name} has no column {column!r}; say it by its place, {names}, or by the name in "
        "the file's first row, which is not shown"
    )


def check_columns(public: Sequence[str] | None, private: Sequence[str]) -> None:
    """Refuse a private table whose header is not that of the public one."""
    if public is None or tuple(public) == tuple(private):
        return
    if not public or not private:
        has, lacks = ("public", "private") if public else ("private", "public")
        raise BadRows(
            f"the {has} table has a header, the {lacks} one has none; give both the same form"
        )
    pairs = zip(public, private, strict=False)
    same = min(len(public), len(private))
    position = next((i for i, (a, b) in enumerate(pairs) if a != b), same) + 1
    raise BadRows(
        f"the public table has columns {', '.join(public)}; the first row of the private one, "
        f"which has to name the same, differs from it in column {position}; where both tables "
        "have no names, say --no-header"
    )


def _csv(path: Path, header: bool | None) -> tuple[tuple[str, ...], list[list[Any]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = _drop_empty(list(csv.reader(file)))
    except UnicodeDecodeError:
        raise BadRows(f"{path.name} is not text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as cause:
        raise BadRows(f"{path.name} cannot be read as CSV: {cause}") from None
    if rows:
        _refuse_semicolons(path, rows[0])
    if not rows or not (_has_header(path, rows) if header is None else header):
        return (), [list(row) for row in rows]
    names = tuple(cell.strip() for cell in rows[0])
    if len(set(names)) < len(names):
        raise BadRows(f"{path.name} names a column twice")
    return names, [list(row) for row in rows[1:]]


def _refuse_semicolons(path: Path, first: list[str]) -> None:
    """Refuse a file whose first row is one cell, or no numbers, unless it is cut at semicolons."""
    parts = ",".join(first).split(";")
    numbers = all(read_number(part.replace(",", ".")) is not None for part in parts)
    if len(parts) > 1 and (len(first) == 1 or numbers):
        raise BadRows(
            f"{path.name}: its cells are separated by semicolons, and are read at commas, with "
            "numbers as 1234.50. Write it so, as by pandas.read_csv(file, sep=';', decimal=',')"
            ".to_csv(new_file, index=False)"
        )


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
    if any(read_number(cell) is not None for cell in first):
        print_note(f"no header found in {path.name}: its first row counts as a record")
        return False
    for place in range(len(first)):
        cells = [row[place] for row in below if place < len(row) and not lacks_number(row[place])]
        if cells and all(read_number(cell) is not None for cell in cells):
            return True
    found = "there is no column of numbers" if below else "there are no rows"
    raise ParameterError(
        f"{path.name}: the first row holds no number, and {found} below it, so it may be a header "
        "or a record; say --header or --no-header"
    )


def read_parquet(path: Path, header: bool | None) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Read names and rows of a Parquet file."""
    if header is False:
        raise ParameterError(f"{path.name} is a Parquet file, which always names its columns")
    try:
        import polars  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("a Parquet file", "polars", "or save the table as CSV") from None
    try:
        frame = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as cause:
        if "UTF-8" in str(cause):
            raise BadRows(
                f"{path.name} holds a text that is not UTF-8: write the file again with texts in "
                "UTF-8; hushed query reads it as it is"
            ) from None
        raise BadRows(f"{path.name} cannot be read as Parquet; it may be damaged") from None
    return tuple(frame.columns), [list(row) for row in frame.iter_rows()]


def _check_rectangular(path: Path, width: int, cells: list[list[Any]]) -> None:
    for number, row in enumerate(cells, start=1):
        if len(row) != width:
            raise BadRows(
                f"{path.name}: row {number} has {len(row)} cells where {width} are expected"
            )


_FRAMES = "use --frame pandas or polars for columns of text"
_MODE = "of texts there is a mode, with --category for each"


def find_nested(path: Path, frame: Frame) -> dict[str, Any]:
    """Find the types of lists and records in a Parquet file, which Polars would tell from cells."""
    if frame != "polars" or not is_parquet(path):
        return {}
    import polars  # noqa: PLC0415

    found = {}
    for name, dtype in polars.read_parquet_schema(path).items():
        if str(dtype).startswith("Map"):
            raise BadRows(
                f"{path.name}: column {name!r} is a map, of which Polars makes a record with the "
                "first keys alone; use --frame pandas, or make it a list of records"
            )
        if dtype.is_nested():
            found[name] = dtype
    return found


def make_frame(columns: dict[str, list[Any]], frame: Frame) -> Any:
    """Put columns into an array or a frame."""
    if frame == "numpy":
        return np.column_stack(
            [np.asarray(column, dtype=np.float64) for column in columns.values()]
        )
    try:
        library = importlib.import_module(frame)
    except ImportError:
        raise MissingExtra(f"--frame {frame}", frame) from None
    return library.DataFrame(columns)


def name_user_column(
    user: str | None, path: Path, rows: Any, columns: Sequence[str]
) -> str | int | None:
    """Name the column of users as the rows do: by its place in an array, by its name in a frame."""
    if user is None:
        return None
    if not isinstance(rows, np.ndarray):
        names = tuple(rows.columns)
        return str(names[find_column(path, user, names, len(names), option="--user")])
    width = rows.shape[1] if rows.ndim == 2 else 1
    return find_column(path, user, columns, width, option="--user")
