"""Files as they were when they were described, and files that are one another's copies."""

from __future__ import annotations

import filecmp
import hashlib
from functools import lru_cache
from pathlib import Path

from hushed.tables._engine.parts import list_parts

_DUCKDB = "duckdb:///"


def files_of(source: str | Path) -> tuple[Path, ...]:
    """List the files that a table lies in; none for a database elsewhere.

    What was written to a DuckDB file last may stand in a second file beside it.
    """
    if isinstance(source, str):
        if not source.startswith(_DUCKDB):
            return ()
        path = Path(source.removeprefix(_DUCKDB))
        return tuple(each for each in (path, path.with_name(path.name + ".wal")) if each.exists())
    return list_parts(source) if source.is_dir() else (source,)


def mark_source(source: str | Path) -> str:
    """Sizes and times of the files of a table, by which a change is noticed; nothing for none."""
    marks = [(each.name, *_mark(each)) for each in files_of(source)]
    if len(marks) == 1:
        _, size, time = marks[0]
        return f"{size}:{time}"
    return hashlib.sha256(repr(marks).encode()).hexdigest() if marks else ""


def _mark(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:  # gone a moment ago
        return (-1, -1)
    return found.st_size, found.st_mtime_ns


def is_copy(public: Path, private: str | Path) -> bool:
    """Whether a file is a private one, or a copy of it, byte by byte.

    Bytes are read only of files of the same size, up to the first difference.
    """
    return any(_is_same(public, each) for each in files_of(private))


def _is_same(one: Path, other: Path) -> bool:
    try:
        if one.samefile(other):
            return True
    except OSError:
        return False
    marks = _mark(one), _mark(other)
    if marks[0][0] != marks[1][0] or marks[0][0] <= 0:
        return False
    return _has_same_bytes(one, other, marks)


@lru_cache(maxsize=1024)
def _has_same_bytes(one: Path, other: Path, _marks: object) -> bool:
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False
