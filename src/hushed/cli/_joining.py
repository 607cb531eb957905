"""Joins of ``hushed query``: with a public file, and with another private table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hushed as hs
from hushed._ground.printing import plain_path
from hushed._rows._texts import read_texts
from hushed.cli._query_options import Asked, Many
from hushed.cli._tables import is_parquet, read_cells
from hushed.cli._written import shares_files
from hushed.errors import ParameterError, PrivateRowsAsPopulation
from hushed.tables._engine import open_beside
from hushed.tables._expressions import find_column

ReadKey = Callable[[str, hs.Table, str], Any]


def add_joins(request: hs.Table, asked: Asked, data: str, read_key: ReadKey) -> hs.Table:
    """Add the columns of other tables: of public files first, then of private tables."""
    defaults = _read_defaults(asked.default)
    for text in asked.join or ():
        path, _, on = text.rpartition(":")
        if not path or not on:
            raise ParameterError(f"--join takes FILE:COLUMN, such as wards.csv:ward, got {text!r}")
        held = _read_file(request, Path(path), on, data, defaults, read_key)
        request = request.join(**held, on=on, users_are_public=asked.users_are_public)
    for text in asked.join_users or ():
        name, user, listed = [*text.rsplit(":", 2), "", ""][:3]
        if not (name and user and listed):
            raise ParameterError(
                "--join-users takes TABLE:USER:COLUMN,COLUMN, such as patients:id:age, "
                f"got {text!r}"
            )
        request = _join_users(request, name, user, listed.split(","), defaults)
    if defaults:
        raise ParameterError(
            f"--default names {next(iter(defaults))!r}, which no --join or --join-users adds"
        )
    return request


def joined_files(asked: Asked) -> list[Path]:
    """List the public files, which nothing is written over."""
    return [Path(text.rpartition(":")[0]) for text in asked.join or ()]


def _read_defaults(texts: Many) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParameterError(f"--default takes COLUMN=VALUE, such as beds=0, got {text!r}")
        if name in found:
            raise ParameterError(f"--default names {name!r} twice")
        found[name] = value
    return found


def _read_file(
    request: hs.Table,
    path: Path,
    on: str,
    data: str,
    defaults: dict[str, str],
    read_key: ReadKey,
) -> dict[str, Any]:
    """Read a public file: cells as the types that they look like, keys as those of the rows."""
    if shares_files(path, data):
        raise PrivateRowsAsPopulation(
            f"--join {plain_path(path)} holds the private rows, and a join would write all of it "
            "into the query: give a public file"
        )
    names, rows = read_cells(path, header=True)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    keys = columns.pop(on, None)
    default: dict[str, Any] = {}
    for name, cells in columns.items():
        stated = [defaults.pop(name)] if name in defaults else []
        columns[name], read = _read_column(cells, stated, typed=is_parquet(path))
        if stated:
            default[name] = read[0]
    if keys is not None:
        find_column(on, request.columns)
        columns[on] = [read_key(key, request, on) if isinstance(key, str) else key for key in keys]
    return {"public": columns, "default": default or None}


def _join_users(
    request: hs.Table, name: str, user: str, columns: Sequence[str], defaults: dict[str, str]
) -> hs.Table:
    """Join another private table of the database, by its users."""
    default = None
    if any(each in defaults for each in columns):
        types = open_beside(request.connection, name).columns
        default = {}
        for each in columns:
            if each in defaults:
                text = defaults.pop(each)
                default[each] = text if types.get(each) == "string" else read_texts([text])[0]
    return request.join_users(name, user=user, columns=columns, default=default)


def _read_column(
    cells: list[Any], stated: list[str], *, typed: bool
) -> tuple[list[Any], list[Any]]:
    """Read the cells of a public column, and the value that is stated for rows without a match."""
    if typed:
        texts = any(isinstance(cell, str) for cell in cells)
        return cells, list(stated) if texts else read_texts(stated)
    read = read_texts([*cells, *stated])
    return read[: len(cells)], read[len(cells) :]
