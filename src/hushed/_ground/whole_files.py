"""Files that are written whole or not at all: what was there before stays until all is written."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file, or replace one, all of it or nothing.

    A device or a pipe, and a file in a folder where no other can be made, is written as it stands.
    """
    body = content.encode() if isinstance(content, str) else content
    place = Path(os.path.realpath(path))  # a link stays, and leads to what is written
    if place.exists() and not place.is_file():
        place.write_bytes(body)
        return
    fresh = place.with_name(f".{place.name[:100]}.{secrets.token_hex(8)}")
    try:
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except PermissionError:
        place.write_bytes(body)
        return
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(body)
        if place.exists():
            _keep_rights(fresh, place.stat())
        fresh.replace(place)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def _keep_rights(fresh: Path, before: os.stat_result) -> None:
    """Give a file the owner, as far as we may, and the rights of the one before."""
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(fresh, before.st_uid, before.st_gid)
    fresh.chmod(before.st_mode & 0o777)
