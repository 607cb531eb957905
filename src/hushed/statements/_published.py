"""What the record of a query tells without noise: all that was asked, and the tables it joined."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from hushed.tables._joins import name_public_table
from hushed.tables._question import Query
from hushed.tables._question_parts import Derive, Filter

_MOST_ENTRIES = 10


def list_published(query: Query | None) -> str:
    """List what whoever has the file reads in it, whatever the noise."""
    parts = ["names and types of columns", "public keys and bounds"]
    steps = () if query is None else query.steps
    if any(isinstance(each, Filter | Derive) for each in steps):
        parts.append("conditions and expressions")
    return ", ".join([*parts, *(f"all of {each}" for each in joined_by(query))])


def assume_joined(query: Query | None) -> str:
    """Say that the tables that were joined are assumed to be public."""
    return "".join(
        f"; {each} is public: the file holds all of it, and no noise protects it"
        for each in joined_by(query)
    )


def joined_by(query: Query | None) -> list[str]:
    """Name the public tables that a query joined."""
    return [] if query is None else _name_joined(each.model_dump() for each in query.steps)


def name_joined_of(answers: Mapping[int, str]) -> list[str]:
    """Name the public tables of all stored answers of a budget, with the entries that hold them."""
    found: dict[str, list[int]] = {}
    for number, text in answers.items():
        for each in _read_joined(text):
            found.setdefault(each, []).append(number)
    return [f"{each} of {_name_entries(numbers)}" for each, numbers in found.items()]


def _read_joined(text: str) -> Iterator[str]:
    with suppress(Exception):  # whoever may append may have stored anything
        yield from _name_joined(json.loads(text)["asked"]["query"]["steps"])


def _name_joined(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        name_public_table(len(each["keys"]), [each["join"], *each["columns"]])
        for each in steps
        if "join" in each
    ]


def _name_entries(numbers: list[int]) -> str:
    more = len(numbers) - _MOST_ENTRIES
    listed = ", ".join(map(str, numbers[:_MOST_ENTRIES]))
    what = "entry" if len(numbers) == 1 else "entries"
    return f"{what} {listed}" + (f" and {more} more" if more > 0 else "")
