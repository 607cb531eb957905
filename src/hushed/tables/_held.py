"""Warnings of types, public lists and the question alone: no row is looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from hushed._ground.printing import brief, shown, suggest
from hushed.tables._engine.normalisation import ColumnCast
from hushed.tables._expression_parts import column_of, constant_of
from hushed.tables._query import Query
from hushed.tables._requests import Derive, Filter

_SAID = 5  # texts that are named; to look for names that are nearly the same takes time
_EQUAL = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def held_warnings(casts: Mapping[str, ColumnCast], query: Query) -> tuple[str, ...]:
    """Say of what a query reads that times are those of UTC, and which numbers no cell equals."""
    held = {name: cast.held for name, cast in casts.items() if cast.held}
    if not held:
        return ()
    parts = _list_parts(query)
    named = {column_of(part) for part in parts if isinstance(part, ast.expr)}
    zoned = [
        name
        for name, kind in held.items()
        if kind == "zoned" and (name in named or name in query.keys.columns)
    ]
    found = [
        f"Times of {shown(name)} have a zone and are read in UTC: their years, months and days are "
        "those of UTC, and not of the zone."
        for name in zoned
    ]
    for part in parts:
        if isinstance(part, ast.Compare):
            found += [_say_single(*pair) for pair in _list_equalities(part) if _differ(*pair, held)]
    return tuple(dict.fromkeys(found))


def unlisted_warnings(listed: Mapping[str, Sequence[Any]], query: Query) -> tuple[str, ...]:
    """Say which texts of a condition a public list of its column lacks: no row fits, perhaps.

    The lists are those that were declared with the table, and the public keys of the question.
    """
    grouped = zip(query.keys.columns, query.keys.values or (), strict=False)
    lists = {**dict(grouped), **listed}
    texts = {
        name: set(lists[name]) for name, kind in query.schema if kind == "string" if name in lists
    }
    found = dict.fromkeys(
        (column, constant)
        for part in _list_parts(query)
        if texts and isinstance(part, ast.Compare)
        for column, constant in _list_equalities(part)
        if column and column in texts
        if isinstance(constant, str) and constant not in texts[column]
    )
    said = [_say_unlisted(*each, lists[each[0]]) for each in islice(found, _SAID)]
    more = len(found) - len(said)
    if more:
        said.append(f"Of the texts in conditions, {more} more are not in the list of their column.")
    return tuple(said)


def _say_unlisted(column: str, text: str, listed: Sequence[Any]) -> str:
    return (
        f"{brief(text)} is not in the public list of what {shown(column)} holds"
        f"{suggest(text, map(str, listed)) or '.'} Perhaps no row has it: check how it is spelled."
    )


def _list_parts(query: Query) -> list[ast.AST]:
    """List all parts of the conditions and expressions of a query."""
    return [
        part
        for step in query.steps
        if isinstance(step, Filter | Derive)
        for part in ast.walk(step.condition.tree if isinstance(step, Filter) else step.value.tree)
    ]


def _list_equalities(node: ast.Compare) -> Iterator[tuple[str | None, Any]]:
    """List the columns and constants of which a comparison asks whether they are equal."""
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, _EQUAL):
            several = right.elts if isinstance(right, ast.List | ast.Tuple) else [right]
            for each in several:
                yield column_of(left), constant_of(each)
                yield column_of(each), constant_of(left)
        left = right


def _differ(column: str | None, constant: Any, held: Mapping[str, str]) -> bool:
    """Whether a constant is no number of single precision, beside a column of such."""
    if held.get(column or "") != "single" or type(constant) not in (int, float):
        return False
    return bool(_to_single(constant) != constant)


def _say_single(column: str | None, constant: Any) -> str:
    return (
        f"No cell of {shown(str(column))} equals {constant!r}: the column is of single precision "
        f"(float32), whose nearest number is {_to_single(constant)!r}. Ask for a range instead, or "
        "make a column of doubles where the table is made."
    )


def _to_single(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))
