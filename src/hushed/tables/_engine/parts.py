"""A table in several Parquet files: those of a folder, or those that a pattern names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from hushed._ground.printing import plain_path
from hushed.errors import BadRows, NotFound, ParameterError

_NAMED = 3


def list_parts(path: Path) -> tuple[Path, ...]:
    """List the files of a folder or of a pattern, in order of their names; empty for a file.

    Spark and others put files into a folder whose names begin with ``_`` or ``.``: no rows are in
    them.
    """
    if path.is_dir():
        found = sorted(path.iterdir())
    elif has_magic(str(path)) and not path.exists():
        found = sorted(map(Path, glob(str(path))))
    else:
        return ()
    return tuple(each for each in found if not each.name.startswith(("_", ".")))


def read_parts(path: Path) -> tuple[Path, ...]:
    """List Parquet files; whatever else is there might hold rows, too, and is refused."""
    parts = list_parts(path)
    if not parts and path.is_dir():
        raise NotFound(f"there is no Parquet file in {plain_path(path)}")
    others = [
        each.name for each in parts if each.suffix.lower() != ".parquet" or not each.is_file()
    ]
    if others:
        named = ", ".join(map(plain_path, others[:_NAMED]))
        raise ParameterError(
            f"{plain_path(path)} has {len(others)} entries that are no Parquet files "
            f"({named}), and rows in them would be missing; name those that are meant by a "
            "pattern, such as 'FOLDER/*.parquet'"
        )
    _require_once(parts)
    return parts


def _require_once(parts: Sequence[Path]) -> None:
    """Refuse a file that is there under two names: a row of it would count twice."""
    known: dict[tuple[int, int], Path] = {}
    for part in parts:
        found = part.stat()
        first = known.setdefault((found.st_dev, found.st_ino), part)
        if first is not part:
            raise ParameterError(
                f"{plain_path(part.name)} and {plain_path(first.name)} are one file (by a link), "
                "and each row of it would count twice: remove one of the names, or name the files "
                "that are meant by a pattern"
            )


def require_one_schema(parts: Sequence[Path], schemas: Sequence[Any]) -> None:
    """Refuse files with other columns than the first one has, or of other types."""
    first = {each.name: each.type for each in schemas[0]}
    for part, schema in zip(parts, schemas, strict=True):
        found = {each.name: each.type for each in schema}
        if found != first or len(schema) > len(first):  # a name may be there twice
            raise BadRows(
                f"{plain_path(part.name)} has other columns, or columns of other types, than "
                f"{plain_path(parts[0].name)}: all files of a table must have the same"
            )


def list_files(path: Path) -> tuple[Path, ...]:
    """List the files that hold the rows of a table.

    What was written last to a DuckDB file may stand in a second one beside it.
    """
    beside = path.with_name(f"{path.name}.wal")
    return list_parts(path) or ((path, beside) if os.path.exists(beside) else (path,))


def state_of(path: Path) -> tuple[Any, ...] | None:
    """Inode, size and time of a file, or of each of several, by name; None if it is not there."""
    files = list_files(path)
    if files == (path,):
        return _state_of_file(path)
    return tuple((str(each), _state_of_file(each)) for each in files)


def _state_of_file(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
