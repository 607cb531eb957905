"""Columns of a public file that a question adds to the rows: one row of the file for each key."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hushed._ground.printing import brief, shown
from hushed._rows._texts import read_texts
from hushed._web.fields import Form
from hushed.errors import ParameterError
from hushed.workbench._views.columns import READERS
from hushed.workbench._views.question import Described

FIELDS = ("join", "join_on", "join_default")
ENDINGS = (".csv", ".parquet")
KEYED = ("string", "int", "bool", "date")
_LARGEST = 2**23  # bytes; a public table has at most 100,000 cells
_MOST_KEYS = 10_000


def join_public(described: Described, fields: Mapping[str, str], path: Path) -> Described:
    """Add the columns of a public file to what is described; problems are told by field."""
    form = Form(fields)
    with form.at("join"):
        columns = _read_file(path)
        on = form.text("join_on") or _offer_key(described, columns)
        if on in columns and on in described.kinds:
            default = _read_defaults(form, on, columns)
            return _join(described, form, columns, on, default)
        form.refuse("join_on", _tell_keys(described, columns))
    return replace(described, problems=form.errors)


def _join(
    described: Described,
    form: Form,
    columns: dict[str, list[Any]],
    on: str,
    default: dict[str, str] | None,
) -> Described:
    """Join by the key, if the library takes it."""
    kind = described.kinds[on]
    try:
        keys = [READERS[kind](each) if isinstance(each, str) else each for each in columns[on]]
    except (KeyError, ValueError):
        form.refuse("join_on", f"{shown(on)} of this file has keys that are no {kind}")
        return replace(described, problems=form.errors)
    if form.errors:
        return replace(described, problems=form.errors)
    added: dict[str, list[Any]] = {}
    rest: dict[str, Any] = {}
    for name, cells in columns.items():
        if name != on:
            stated = [] if default is None else [default.get(name, "")]
            texts = all(isinstance(each, str) for each in cells)
            read = read_texts([*cells, *stated]) if texts else [*cells, *read_texts(stated)]
            added[name] = read[: len(cells)]
            if stated:
                rest[name] = read[-1]
    table = None
    with form.at("join_default" if default is not None else "join"):
        table = described.table.join(
            {on: keys, **added}, on=on, default=None if default is None else rest
        )
    if table is None or form.errors:
        return replace(described, problems=form.errors)
    types = {name: table.columns[name] for name in added}
    values = {name: [*cells, *([rest[name]] if rest else [])] for name, cells in added.items()}
    return replace(
        described,
        table=table,
        base=described,
        kinds={**described.kinds, **types},
        limits={**described.limits, **_list_limits(types, values)},
        keys={on: tuple(keys), **described.keys, **_list_keys(types, values)},
    )


def _list_limits(
    types: Mapping[str, str], values: Mapping[str, list[Any]]
) -> dict[str, tuple[str, str]]:
    """Give the ends of public numbers: the file is public, and so are these."""
    numeric = [name for name, kind in types.items() if kind in ("int", "float")]
    return {name: (repr(min(values[name])), repr(max(values[name]))) for name in numeric}


def _list_keys(
    types: Mapping[str, str], values: Mapping[str, list[Any]]
) -> dict[str, tuple[Any, ...]]:
    """Give the values of public columns, by which can be grouped."""
    found = {name: tuple(sorted(set(values[name]))) for name in types if types[name] in KEYED}
    return {name: keys for name, keys in found.items() if len(keys) <= _MOST_KEYS}


def _offer_key(described: Described, columns: Mapping[str, Any]) -> str:
    """Take the only column that both tables have; nothing where there are several."""
    both = [name for name in columns if name in described.kinds]
    return both[0] if len(both) == 1 else ""


def _tell_keys(described: Described, columns: Mapping[str, Any]) -> str:
    both = [shown(name) for name in columns if name in described.kinds]
    if both:
        return f"say by which column: {', '.join(both)}"
    return (
        "the file and the table have no column of the same name; its columns are "
        f"{', '.join(shown(name) for name in [*columns][:20])}"
    )


def _read_defaults(form: Form, on: str, columns: Mapping[str, Any]) -> dict[str, str] | None:
    """Read values for rows without a match, such as ``beds=0, region=none``."""
    text = form.text("join_default")
    if not text:
        return None
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or name not in columns or name == on:
            form.refuse(
                "join_default",
                f"give column = value for each added column, got {brief(part.strip())}; these are "
                f"{', '.join(shown(each) for each in columns if each != on)}",
            )
        found[name] = value
    missing = [name for name in columns if name != on and not found.get(name)]
    if missing:
        form.refuse("join_default", f"give a value for {shown(missing[0])}, too, or for none")
    return found


def _read_file(path: Path) -> dict[str, list[Any]]:
    """Read the columns of a public file: texts of CSV, values of Parquet."""
    if path.stat().st_size > _LARGEST:
        raise ParameterError("this file is too large to join: at most 100,000 cells together")
    if path.suffix.lower() == ".parquet":
        from pyarrow import ArrowException, parquet  # noqa: PLC0415

        try:
            return parquet.read_table(path).to_pydict()  # type: ignore[no-any-return]
        except (ArrowException, OSError):
            raise ParameterError("this is no readable Parquet file") from None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, *rows = [row for row in csv.reader(file) if row]
    except (OSError, ValueError, csv.Error):
        raise ParameterError("this is no CSV file with a line of names, in UTF-8") from None
    wrong = next((row for row in rows if len(row) != len(names)), None)
    if wrong is not None or len(set(names)) < len(names):
        raise ParameterError("its rows are not all of one width, or a name is there twice")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def describe_joined(described: Described) -> str:
    """Say which columns a question has from a public file; nothing without one."""
    if described.base is None:
        return ""
    added = [name for name in described.kinds if name not in described.base.kinds]
    return f"Added: {', '.join(map(shown, added))}."
