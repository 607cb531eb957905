"""Parts of an expression: columns, constants and times, and what errors advise about them."""

from __future__ import annotations

import ast
import datetime
import re
from contextlib import suppress
from typing import Any

from hushed._ground.printing import brief
from hushed._ground.types import ColumnType

_LONGEST_NAME = 200  # characters of a part that a message shows
_STARTS_AS_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def column_of(node: ast.expr) -> str | None:
    """Name of the column that a node refers to, if it is a column."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Call(
            func=ast.Name(id="column"), args=[ast.Constant(value=str() as name)], keywords=[]
        ):
            return name
    return None


def constant_of(node: ast.expr) -> Any:
    """Value of a constant, with its sign; None for anything else."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def texts_compared(tree: ast.expr) -> dict[str, list[str]]:
    """List the texts that each column is compared with, for equality."""
    found: dict[str, list[str]] = {}
    alike = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and all(isinstance(each, alike) for each in node.ops):
            sides = [node.left, *node.comparators]
            parts = [each for side in sides for each in getattr(side, "elts", [side])]
            names = [name for name in map(column_of, parts) if name is not None]
            texts = [each for each in map(constant_of, parts) if isinstance(each, str)]
            for name in names:
                found.setdefault(name, []).extend(texts)
    return found


def read_time(text: str) -> datetime.datetime:
    """Read an ISO date or time, in UTC if it has a zone."""
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


def is_time(text: object) -> bool:
    try:
        read_time(str(text))
    except (ValueError, OverflowError):
        return False
    return isinstance(text, str)


def excerpt(node: ast.expr) -> str:
    """Show part of an expression, cut if it is long."""
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST_NAME and text.isprintable() else brief(text)


def say_no_time(text: str, kind: ColumnType) -> str:
    """Say why a text is no date or time."""
    if _STARTS_AS_DAY.match(text):
        return f"there is no day or time {brief(text)} in the years 1 to 9999 of UTC"
    more = " or 'YYYY-MM-DD HH:MM'" if kind == "timestamp" else ""
    return f"{brief(text)} is no {kind}: write 'YYYY-MM-DD'{more}"


def order_advice(left: ast.expr, right: ast.expr) -> dict[str, str]:
    """Advise where a column of strings is set in order with what looks like a date or a number."""
    texts = [each for each in (constant_of(left), constant_of(right)) if isinstance(each, str)]
    if len(texts) != 1:
        return {}
    if _STARTS_AS_DAY.match(texts[0]):
        day = len(texts[0]) <= len("YYYY-MM-DD")
        return type_advice(left, right, kind="date" if day else "timestamp")
    with suppress(ValueError):
        float(texts[0])
        return type_advice(left, right)
    return {}


def type_advice(*texts: ast.expr, kind: ColumnType = "float") -> dict[str, str]:
    """Fields of an error that advise, where a column of strings may hold what is wanted."""
    columns = [*filter(None, map(column_of, texts))]
    return declaring_advice(columns[0], kind) if len(columns) == 1 else {}


def declaring_advice(column: str, kind: ColumnType = "float") -> dict[str, str]:
    """Fields of an error that advise to read a column of strings as another type."""
    if len(column) > _LONGEST_NAME or not column.isprintable():
        column = "COLUMN"
    what = {"date": "dates", "timestamp": "times"}.get(kind, "numbers")
    hint = f"to read strings as {what}, declare the column type (of a team server, ask the steward)"
    hint += f": types={{{column!r}: {kind!r}}}"
    return {"parameter": "types", "hint": hint}
