"""Files that are written whole or not at all: what was there before stays until all is written."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hushed._ground.printing import plain_path

_OPEN = {"/dev/stdout": 1, "/dev/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2}


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file, or replace one, all of it or nothing.

    A device or a pipe, and a file that cannot be replaced by another one, is written as it stands.
    What the system refuses is an OSError that names the file.
    """
    with _named(Path(path)):
        _write(Path(path), content.encode() if isinstance(content, str) else content)


@contextmanager
def _named(given: Path) -> Iterator[None]:
    """Name the file where one cannot be written: a full disk names none, and a new one is ours."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or "the system refused"
        raise OSError(error.errno, f"{plain_path(given)} cannot be written: {reason}") from None


def _write(given: Path, body: bytes) -> None:
    if str(given) in _OPEN:  # opened anew, it would begin at the start of a file it is sent to
        for each in (sys.stdout, sys.stderr):
            if each is not None:
                each.flush()
        with os.fdopen(os.dup(_OPEN[str(given)]), "wb") as stream:
            stream.write(body)
        return
    special = str(given.absolute()).startswith(("/dev/", "/proc/"))
    if given.exists() and (special or not given.is_file() or not os.access(given, os.W_OK)):
        given.write_bytes(body)  # an error, for one that may not be written
        return
    place = Path(os.path.realpath(given))  # a link stays, and leads to what is written
    fresh = place.with_name(f".hushed-{secrets.token_hex(8)}")
    before = place.stat() if place.exists() else None
    rights = 0o666 if before is None else before.st_mode & 0o777
    try:
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights)
    except PermissionError:
        place.write_bytes(body)
        return
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(body)
        if before is not None:
            _keep_rights(fresh, before)
        try:
            fresh.replace(place)
        except OSError:  # a file of another owner, or one that is mounted, is written as it stands
            place.write_bytes(body)
            fresh.unlink()
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def _keep_rights(fresh: Path, before: os.stat_result) -> None:
    """Give a file the owner, as far as we may, and the rights of the one before."""
    if hasattr(os, "chown"):
        for owner in (before.st_uid, -1):  # at least the group
            with suppress(OSError):
                os.chown(fresh, owner, before.st_gid)
                break
    fresh.chmod(before.st_mode & 0o777)
