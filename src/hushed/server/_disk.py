"""Files that are on the disk when a function returns, whole, whatever happens to the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a private file, all of it or nothing."""
    replace_file(path, text.encode())


def replace_file(path: Path, content: bytes) -> None:
    """Replace a private file, all of it or nothing."""
    fresh = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk: without it, a new name may be lost."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def one_by_one(path: Path) -> Iterator[None]:
    """Wait for all other processes that work on a file, by a lock beside it."""
    import fcntl  # noqa: PLC0415  (not on all systems)

    with path.with_name(f"{path.name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file, however this process ends
        yield
