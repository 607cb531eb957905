"""The columns of the page Data: kinds, bounds and keys; no row is read."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from hushed._ground.numerals import read_number, read_whole
from hushed._ground.printing import shown
from hushed._ground.types import ColumnType
from hushed._rows._texts import read_bool
from hushed._web.fields import Form
from hushed.tables import Table

KINDS: Final[tuple[ColumnType, ...]] = get_args(ColumnType)
NOT_USED: Final = ""
MOST_COLUMNS: Final = 200  # shown at once; more are found by their name
_BOUNDED, _KEYED = ("int", "float"), ("string", "int", "bool", "date")
_MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column, as the page shows it."""

    number: int
    name: str  # as the table names it
    label: str  # as it may be shown
    kinds: tuple[str, ...]  # what may be chosen
    kind: str
    low: str
    high: str
    keys: str
    bounded: bool
    keyed: bool
    origin: str  # of what was suggested, such as public.csv
    taken: str  # which parts were, such as kind,low


def list_columns(plain: Table, fields: Mapping[str, str]) -> tuple[tuple[Column, ...], int]:
    """List the columns with what was typed for them.

    Of more than 200, these are the used ones, that of the people, and 200 that the search finds.
    """
    typed = {
        fields.get(f"col.{number}.name", ""): number for number in range(len(plain.columns) + 1)
    }
    sought = fields.get("search", "").strip().casefold()
    found: list[Column] = []
    hidden = more = 0
    for number, (name, stored) in enumerate(plain.columns.items()):
        at = f"col.{typed.get(name, number)}"
        same = fields.get(f"{at}.name") == name
        kind = fields.get(f"{at}.kind", "") if same else ""
        kept = kind or name == fields.get("user")
        if len(plain.columns) > MOST_COLUMNS and not kept:
            if more >= MOST_COLUMNS or sought not in name.casefold():
                hidden += 1
                continue
            more += 1
        kinds = () if stored == "other" else KINDS
        if kind not in kinds:
            kind = NOT_USED
        text = {each: fields.get(f"{at}.{each}", "") if same else "" for each in _TEXTS}
        found.append(
            Column(
                number=number,
                name=name,
                label=shown(name),
                kinds=kinds,
                kind=kind,
                bounded=kind in _BOUNDED,
                keyed=kind in _KEYED,
                **text,
            )
        )
    return tuple(found), hidden


_TEXTS = ("low", "high", "keys", "origin", "taken")


def check_bounds(form: Form, typed: Table, column: Column) -> bool:
    """Check the bounds of a column, at their fields."""
    at = f"col.{column.number}"
    numbers = Form({"low": column.low, "high": column.high})
    low, high = numbers.number("low"), numbers.number("high")
    for side, number in (("low", low), ("high", high)):
        if number is None:
            form.refuse(
                f"{at}.{side}",
                numbers.errors.get(side, "give both bounds, or none"),
            )
    if low is None or high is None:
        return False
    with form.at(f"{at}.high"):
        typed.sum(column.name, low=low, high=high)
        return True
    return False


def read_keys(
    form: Form, at: str, typed: Table, column: tuple[str, str], text: str
) -> tuple[Any, ...]:
    """Read public keys of a column, by its name and kind: one a line, or one line with commas."""
    name, kind = column
    if kind not in _KEY_FORMS:
        form.refuse(
            at, f"keys are listed for {', '.join(_KEY_FORMS)}; this column is of type {kind}"
        )
        return ()
    lines = [each.strip() for each in text.strip().splitlines()]
    if len(lines) == 1:
        lines = [each.strip() for each in lines[0].split(",")]
    lines = [each for each in lines if each]
    if len(lines) > _MOST_KEYS:
        form.refuse(at, f"at most {_MOST_KEYS:,} keys can be listed, got {len(lines):,}")
        return ()
    try:
        found = tuple(READERS[kind](each) for each in lines)
    except ValueError:
        form.refuse(at, f"a key of this column is {_KEY_FORMS[kind]}")
        return ()
    with form.at(at):
        typed.group_by(name, keys={name: found})
        return found
    return ()


READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "int": lambda text: read_whole(text.strip()),
    "float": lambda text: read_number(text.strip()),
    "bool": read_bool,
    "date": datetime.date.fromisoformat,
}
_KEY_FORMS = {
    "int": "a whole number",
    "bool": "true or false",
    "date": "a date such as 2024-12-31",
    "string": "a text",
}
