"""Open a table at an address, in a file, or in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hushed._ground.types import ColumnType
from hushed.errors import ParameterError
from hushed.tables._engine.connections import Connection, open_stored
from hushed.tables._engine.engines import BY_NAME, BY_SCHEME
from hushed.tables._engine.files import FROM_SQLITE, open_file


def connect(
    url: str,
    name: str,
    types: Mapping[str, ColumnType],
    header: str | None = None,
    *,
    newlines_in_values: bool = False,
) -> Connection:
    """Open a table at an address."""
    scheme, found, _ = url.partition("://")
    if not found or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        opened = open_file(Path(url), name, types, header, newlines_in_values=newlines_in_values)
        # Names that the caller gives, and where a row ends, say which cells are asked: they belong
        # to the question.
        told = ("" if header is None else f" {header!r}") + (
            " newlines_in_values" if newlines_in_values else ""
        )
        return replace(opened, place=opened.place + told)
    if newlines_in_values:
        raise ParameterError(
            "newlines_in_values is for CSV files; a database separates its rows itself",
            parameter="newlines_in_values",
        )
    if header is not None:
        raise ParameterError(
            "header is for CSV files; a database names its columns", parameter="header"
        )
    if scheme in BY_SCHEME:
        return open_stored(BY_SCHEME[scheme], url, name, types)
    known = ", ".join(each.example for each in BY_NAME.values())
    met = f"cannot read {scheme}:// addresses"
    if scheme == "sqlite":
        met = "sqlite:// is the address of a ledger (ledger=, --ledger), and no table is in one; "
        met += FROM_SQLITE
    raise ParameterError(f"{met}; use {known} or the path of a CSV, Parquet or Arrow file")
