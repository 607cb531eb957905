"""What a command line names, read: tables, functions and populations."""

from __future__ import annotations

import csv
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from hushed.errors import BadRows, NotFound, ParameterError
from hushed.populations import Exponential, Normal, Population, PublicTable, Simulator, Uniform

__all__ = ["Frame", "Table", "read_function", "read_population", "read_table"]

Frame = Literal["numpy", "pandas", "polars"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows from a file.

    Parameters
    ----------
    rows : ndarray of float or frame
        The rows; an array has shape (rows, columns).
    columns : tuple of str
        Names from the header; empty without one.
    """

    rows: Any
    columns: tuple[str, ...]


def read_table(path: Path, frame: Frame = "numpy") -> Table:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path : Path
        File; ``.parquet`` is read as Parquet, anything else as CSV with or without a header.
    frame : {"numpy", "pandas", "polars"}, default "numpy"
        What to hold the rows in.

    Returns
    -------
    Table
        Rows and column names.

    Raises
    ------
    NotFound
        If there is no such file.
    BadRows
        If the table is empty, ragged, has missing cells or text among numbers. Columns and row
        numbers are named, values never.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {path}")
    if path.suffix == ".parquet":
        columns, cells = _parquet(path)
    else:
        columns, cells = _csv(path)
    if not cells:
        raise BadRows(f"{path.name} has no rows")
    names = columns or tuple(f"column {i + 1}" for i in range(len(cells[0])))
    _check_rectangular(path, names, cells)
    read = {
        name: _column(path, name, [row[i] for row in cells], text=frame != "numpy")
        for i, name in enumerate(names)
    }
    return Table(rows=_framed(read, frame), columns=columns)


def _csv(path: Path) -> tuple[tuple[str, ...], list[list[Any]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except UnicodeDecodeError:
        raise BadRows(f"{path.name} is not text in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as cause:
        raise BadRows(f"{path.name} cannot be read as CSV: {cause}") from None
    if rows and not any(_number(cell) is not None for cell in rows[0]):
        header = tuple(cell.strip() for cell in rows[0])
        if len(set(header)) < len(header):
            raise BadRows(f"{path.name} names a column twice")
        return header, [list(row) for row in rows[1:]]
    return (), [list(row) for row in rows]


def _parquet(path: Path) -> tuple[tuple[str, ...], list[list[Any]]]:
    try:
        import polars  # noqa: PLC0415
    except ImportError:
        raise NotFound(
            "reading Parquet needs Polars: pip install 'hushed[polars]', or save the table as CSV"
        ) from None
    frame = polars.read_parquet(path)
    return tuple(frame.columns), [list(row) for row in frame.iter_rows()]


def _check_rectangular(path: Path, names: tuple[str, ...], cells: list[list[Any]]) -> None:
    for number, row in enumerate(cells, start=1):
        if len(row) != len(names):
            raise BadRows(
                f"{path.name}: row {number} has {len(row)} cells where {len(names)} are expected"
            )


def _column(path: Path, name: str, cells: list[Any], *, text: bool) -> list[Any]:
    """Numbers of a column; its texts, if none is a number and texts are allowed."""
    for number, cell in enumerate(cells, start=1):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            raise BadRows(
                f"{path.name}: column {name!r} has a missing cell in row {number}; "
                "fill it or leave the row out"
            )
    numbers = [_number(cell) for cell in cells]
    if text and all(value is None for value in numbers):
        return cells
    for number, value in enumerate(numbers, start=1):
        if value is None:
            hint = "" if text else "; use --frame pandas or polars for columns of text"
            raise BadRows(
                f"{path.name}: column {name!r} holds text in row {number} where a number is "
                f"expected{hint}"
            )
        if not np.isfinite(value):
            raise BadRows(
                f"{path.name}: column {name!r} holds NaN or infinity in row {number}; "
                "fill it or leave the row out"
            )
    return numbers


def _number(cell: Any) -> float | None:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _framed(columns: dict[str, list[Any]], frame: Frame) -> Any:
    if frame == "numpy":
        return np.column_stack([np.array(column, dtype=np.float64) for column in columns.values()])
    try:
        library = importlib.import_module(frame)
    except ImportError:
        raise NotFound(f"--frame {frame} needs pip install 'hushed[{frame}]'") from None
    return library.DataFrame(columns)


def read_function(spec: str) -> Any:
    """Load what ``FILE.py:NAME`` names.

    Parameters
    ----------
    spec : str
        Path of a Python file, a colon, and a name defined in it.

    Returns
    -------
    object
        What the name holds; it can be sent to worker processes.

    Raises
    ------
    NotFound
        If the file or the name is not there; the message lists what is.
    ParameterError
        If the text has no colon, or the file fails when run.
    """
    file, colon, name = spec.rpartition(":")
    if not colon or not name:
        raise ParameterError(f"expected FILE.py:NAME, got {spec!r}")
    path = Path(file)
    if not path.is_file():
        nearby = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        there = f"; Python files there: {', '.join(nearby)}" if nearby else ""
        raise NotFound(f"there is no file {file}{there}")
    module = _module(path)
    if not hasattr(module, name):
        names = sorted(
            key
            for key, value in vars(module).items()
            if not key.startswith("_")
            and not isinstance(value, ModuleType)
            and getattr(value, "__module__", module.__name__) == module.__name__
        )
        raise NotFound(
            f"{path.name} defines no {name!r}; it defines {', '.join(names) or 'nothing'}"
        )
    return getattr(module, name)


def _module(path: Path) -> ModuleType:
    import cloudpickle  # noqa: PLC0415

    name = f"hushed_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ParameterError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as cause:
        raise ParameterError(
            f"{path.name} failed when it was loaded: {type(cause).__name__}: {cause}"
        ) from cause
    cloudpickle.register_pickle_by_value(module)
    return module


def read_population(spec: str, frame: Frame = "numpy") -> tuple[Population, tuple[str, ...]]:
    """Read a population from the command line.

    Parameters
    ----------
    spec : str
        ``uniform:LOW,HIGH[:LOW,HIGH...]``, ``normal:MEAN,STD[:...]`` or
        ``exponential:RATE[:...]``, one part for each column; a CSV or Parquet file of public
        rows; or ``FILE.py:NAME``, a population or a function (rng, count) -> rows.
    frame : {"numpy", "pandas", "polars"}, default "numpy"
        What to hold the rows of a file in.

    Returns
    -------
    population : Population
        The source of rows.
    columns : tuple of str
        Column names of a file with a header; empty otherwise.

    Raises
    ------
    ParameterError, NotFound, BadRows
        If it cannot be read.
    """
    kind, colon, rest = spec.partition(":")
    if kind in ("uniform", "normal", "exponential") and colon:
        return _distribution(kind, rest, spec), ()
    if ".py:" in spec:
        found = read_function(spec)
        if isinstance(found, Population):
            return found, ()
        return Simulator(found, name=spec.rpartition(":")[2]), ()
    path = Path(spec)
    if not path.is_file():
        raise NotFound(
            f"cannot read population {spec!r}: no such file, and not uniform:LOW,HIGH, "
            "normal:MEAN,STD, exponential:RATE or FILE.py:NAME"
        )
    table = read_table(path, frame)
    return PublicTable(table.rows, name=path.name), table.columns


def _distribution(kind: str, rest: str, spec: str) -> Population:
    width = 1 if kind == "exponential" else 2
    try:
        columns = [[float(x) for x in part.split(",")] for part in rest.split(":")]
    except ValueError:
        raise ParameterError(f"population {spec!r} holds something that is no number") from None
    if any(len(column) != width for column in columns):
        raise ParameterError(f"{kind} takes {width} number(s) per column, got {spec!r}")
    parts = [list(part) for part in zip(*columns, strict=True)]
    if kind == "uniform":
        return Uniform(low=parts[0], high=parts[1])
    if kind == "normal":
        return Normal(mean=parts[0], std=parts[1])
    return Exponential(rate=parts[0])
