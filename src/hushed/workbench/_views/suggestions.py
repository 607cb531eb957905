"""What a public table suggests for the columns of a private one: kinds, bounds and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, feather, parquet

from hushed._ground.printing import format_exactly
from hushed.errors import BadRows

_MOST_KEYS = 50
_PARTS = ("kind", "low", "high", "keys")


def suggest_columns(public: Path, fields: Mapping[str, str]) -> dict[str, str]:
    """Fill in what is still empty from the rows of a public table, and mark it with its name."""
    rows = _read(public)
    filled = dict(fields)
    origin = fields.get("public", public.name)
    for name, typed in fields.items():
        at = name.removesuffix(".name")
        if (
            not (name.startswith("col.") and name.endswith(".name"))
            or typed not in rows.schema.names
        ):
            continue
        found = _suggest(rows.column(typed))
        if typed == fields.get("user"):  # whose row it is: nothing is asked of such a column
            continue
        empty = not fields.get(f"{at}.kind")
        same = fields.get(f"{at}.kind") == found.get("kind")
        if not found or not (empty or same):
            continue
        new = [part for part in found if not fields.get(f"{at}.{part}")]
        if new:
            filled |= {f"{at}.{part}": found[part] for part in new}
            known = [each for each in fields.get(f"{at}.taken", "").split(",") if each]
            filled |= {f"{at}.origin": origin, f"{at}.taken": ",".join([*known, *new])}
    return filled


def settle_suggestions(
    before: Mapping[str, str], typed: Mapping[str, str], *, holds: Callable[[], bool]
) -> dict[str, str]:
    """Take away what a table suggested that is not the public one any more, or turned out private.

    What was changed by hand since then is no suggestion any more, and stays.
    """
    found = dict(typed)
    origins = {name: text for name, text in typed.items() if name.endswith(".origin") and text}
    allowed = bool(origins) and bool(typed.get("public")) and holds()
    for name, origin in origins.items():
        at = name.removesuffix(".origin")
        taken = [part for part in typed.get(f"{at}.taken", "").split(",") if part in _PARTS]
        same = [p for p in taken if _plain(typed, f"{at}.{p}") == _plain(before, f"{at}.{p}")]
        if not (allowed and origin == typed.get("public")):
            found |= {f"{at}.{part}": "" for part in same}
            same = []
        found |= {f"{at}.taken": ",".join(same), name: origin if same else ""}
    return found


def _plain(fields: Mapping[str, str], name: str) -> str:
    """Give a text with the line ends that a browser may have changed."""
    return "\n".join(fields.get(name, "").split())


def _read(public: Path) -> Any:
    readers = {".parquet": parquet.read_table, ".csv": csv.read_csv, ".tsv": csv.read_csv}
    try:
        return readers.get(public.suffix.lower(), feather.read_table)(str(public))
    except (pa.ArrowException, OSError, ValueError):
        raise BadRows("the public table cannot be read; fill in the columns by hand") from None


def _suggest(column: Any) -> dict[str, str]:
    kind = _kind_of(column.type)
    if kind in ("int", "float"):
        ends = pc.min_max(column).as_py()
        if ends["min"] is None:
            return {"kind": kind}
        if not ends["min"] < ends["max"]:
            return {"kind": kind}
        low, high = (format_exactly(float(ends[each])) for each in ("min", "max"))
        return {"kind": kind, "low": low, "high": high}
    if kind == "string":
        found = pc.unique(pc.drop_null(column)).to_pylist()
        plain = [each for each in sorted(found) if each.strip() == each and each.isprintable()]
        if 0 < len(found) <= _MOST_KEYS and len(plain) == len(found):
            return {"kind": kind, "keys": "\n".join(plain)}
    return {"kind": kind} if kind else {}


def _kind_of(stored: Any) -> str:
    checks = {
        "bool": pa.types.is_boolean,
        "int": pa.types.is_integer,
        "float": pa.types.is_floating,
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
        "string": lambda each: pa.types.is_string(each) or pa.types.is_large_string(each),
    }
    return next((kind for kind, check in checks.items() if check(stored)), "")
