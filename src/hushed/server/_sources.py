"""Where the rows of a data set lie, and how they are opened; no row is read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hushed.tables._open import open_table

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def open(self) -> Table:
        """Open the table."""
        return open_table(
            self.address,
            self.table,
            user=self.user,
            types=dict(self.types) or None,
            header=self.header,
        )


def fingerprint(table: Table) -> str:
    """Digest size and time of the files of a table; empty where it lies in a database."""
    state = table.connection.state
    return "" if state is None else hashlib.sha256(repr(state).encode()).hexdigest()
