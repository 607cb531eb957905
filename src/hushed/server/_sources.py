"""Where the rows of a data set lie, and how they are opened; no row is read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hushed.tables._engine.parts import list_files
from hushed.tables._open import open_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hushed._ground.types import ColumnType
    from hushed.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a process has to know to open a data set; an address may hold a password."""

    address: str = field(repr=False)
    table: str
    user: str | None = None
    types: Mapping[str, ColumnType] = field(default_factory=dict)
    header: str | None = None
    listed: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # public keys of columns

    def open(self) -> Table:
        """Open the table."""
        found = open_table(
            self.address,
            self.table,
            user=self.user,
            types=dict(self.types) or None,
            header=self.header,
        )
        listed = {name: tuple(each) for name, each in self.listed.items()}
        return replace(found, connection=replace(found.connection, listed=listed))


def fingerprint(table: Table) -> str:
    """Digest what a system knows of the files of a table; empty where it lies in a database.

    Inode, size and time of when it was opened; and when it was written last by the clock of the
    system as it is now, which nobody sets back: a file of the same size may be given its old time.
    """
    found = table.connection
    if found.state is None or found.file is None:
        return ""
    told = [found.state, *(_written(each) for each in list_files(found.file))]
    return hashlib.sha256(repr(told).encode()).hexdigest()


def is_away(table: Table) -> bool:
    """Whether the file of a table is not there now, as on a disk that may come back."""
    file = table.connection.file
    return file is not None and not all(each.exists() for each in list_files(file))


def _written(path: Path) -> int | None:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return None
