"""Files that are on the disk when a function returns, whole, whatever happens to the machine."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hushed._ground.printing import plain_path

_LOW = 500_000_000  # bytes free; one answer takes as many at most


def list_short_room(folder: Path, files: Sequence[Path]) -> list[str]:
    """Say where a disk is nearly full, and where it has no room for a copy of a ledger in files."""
    found = []
    if (free := shutil.disk_usage(folder).free) < _LOW:
        found.append(
            f"the disk of {plain_path(folder)} is nearly full, {free / 1e6:,.0f} MB are free: on a "
            "full one questions are refused, or paid and answered when there is room. Make room"
        )
    size = sum(each.stat().st_size for each in files if each.exists())
    if files and (free := shutil.disk_usage(files[0].parent).free) < size:
        found.append(
            f"the disk has no room for a copy of the ledger beside it: {size / 1e6:,.1f} MB, and "
            f"{free / 1e6:,.1f} MB are free. Keep copies on another disk, and make room before one "
            "is restored"
        )
    return found


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a private file, all of it or nothing."""
    replace_file(path, text.encode())


def replace_file(path: Path, content: bytes) -> None:
    """Replace a private file, all of it or nothing."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)  # it may be a link to somewhere else
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        hand_over(file.fileno(), path.parent)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def append_text(path: Path, text: str) -> None:
    """Add to a file, all of it or nothing, unless the machine stops meanwhile."""
    rest = text.encode()
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk: without it, a new name may be lost."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_private_folder(path: Path) -> None:
    """Make a folder that nobody else reads, unless it is there, for the owner of the one above."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    made = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        hand_over(made, path.parent)
    finally:
        os.close(made)


def hand_over(file: int, folder: Path) -> None:
    """Give what the administrator has made in a folder to its owner, who serves what is in it.

    A file that has another name elsewhere, too, is not given away.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner, given = folder.stat(), os.fstat(file)
        if stat.S_ISDIR(given.st_mode) or given.st_nlink == 1:
            os.chown(file, owner.st_uid, owner.st_gid)


def open_lock(path: Path) -> IO[str]:
    """Open a file that is locked; nobody else opens it, for whoever may read a file may lock it.

    A link is refused: the owner of the folder would be given what it leads to.
    """
    how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    file = os.fdopen(os.open(path, how, 0o600), "a")
    with suppress(OSError):  # of another owner
        hand_over(file.fileno(), path.parent)
        if os.fstat(file.fileno()).st_mode & 0o077:
            os.fchmod(file.fileno(), 0o600)
    return file


@contextmanager
def one_by_one(path: Path) -> Iterator[None]:
    """Wait for all other processes that work on a file, by a lock beside it."""
    import fcntl  # noqa: PLC0415  (not on all systems)

    with open_lock(path.with_name(f"{path.name}.lock")) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file, however this process ends
        yield
