"""Tables that are open, so that a key press does not open a file or a connection again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushed.tables import Table
from hushed.tables._engine.parts import state_of
from hushed.tables._open import open_table
from hushed.workbench._marks import files_of

_MOST = 16


class Tables:
    """The tables that were opened last, by all that they were opened with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[object, Table] = OrderedDict()

    def open(
        self,
        source: str | Path,
        name: str = "rows",
        *,
        types: Mapping[str, Any] | None = None,
        user: str | None = None,
        **options: Any,
    ) -> Table:
        """Open a table as `hushed.table` does; a file that changed is opened again."""
        mark = [state_of(each) for each in files_of(source)]
        key = (str(source), name, tuple((types or {}).items()), user, *options.items(), *mark)
        with self._lock:
            kept = self._open.get(key)
            if kept is None or is_lost(kept):
                # The page shows what the connection warns of.
                kept = open_table(source, name, types=types, user=user, **options)
                self._open[key] = kept
                while len(self._open) > _MOST:
                    self._open.popitem(last=False)
            self._open.move_to_end(key)
            return kept


def is_lost(table: Table) -> bool:
    """Whether the connection of a table broke, so that it has to be opened again."""
    held = table.connection
    return held.engine.is_closed(held.rows.get_backend())
