"""Open a table at an address, in a file, or in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hushed._types import ColumnType
from hushed.errors import ParameterError
from hushed.tables._engine.connections import Connection, open_stored
from hushed.tables._engine.engines import BY_NAME, BY_SCHEME
from hushed.tables._engine.files import open_file


def connect(
    url: str, name: str, types: Mapping[str, ColumnType], header: str | None = None
) -> Connection:
    """Open a table at an address."""
    scheme, found, _ = url.partition("://")
    if not found or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return open_file(Path(url), name, types, header)
    if header is not None:
        raise ParameterError(
            "header is for CSV files; a database names its columns", parameter="header"
        )
    if scheme in BY_SCHEME:
        return open_stored(BY_SCHEME[scheme], url, name, types)
    known = ", ".join(each.example for each in BY_NAME.values())
    raise ParameterError(
        f"cannot read {scheme}:// addresses; use {known} or the path of a CSV, "
        "Parquet or Arrow file"
    )
