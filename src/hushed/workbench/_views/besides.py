"""Columns of another private table of the same people, which a question adds to the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hushed._ground.printing import flat, shown
from hushed._web.fields import Form
from hushed.tables._beside import join_beside
from hushed.tables._engine import open_beside
from hushed.workbench._views.columns import READERS, read_keys
from hushed.workbench._views.question import Described

BESIDE = "beside"  # the fields of the page: beside, beside.user, beside.1.add, beside.1.keys, ...
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A column of the other table that can be added."""

    at: str  # what its fields begin with
    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The other table, as far as it was opened; no row of it is read."""

    described: Described  # the table without the columns that are added
    columns: tuple[Offered, ...]
    warnings: tuple[str, ...] = ()

    def list_chosen(self, fields: Mapping[str, str]) -> tuple[Offered, ...]:
        """List the columns that are ticked."""
        return tuple(each for each in self.columns if fields.get(f"{each.at}.add") == each.name)


def list_beside(fields: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """List the fields of the other table, by which a description is remembered."""
    found = (each for each in fields.items() if each[0].partition(".")[0] == BESIDE)
    return tuple(sorted(found))


def can_join(described: Described) -> bool:
    """Whether there can be another table of the same people: in a database, joined by them."""
    table = described.table
    return table.user is not None and table.connection.in_database


def join_private(described: Described, fields: Mapping[str, str]) -> Described:
    """Add the chosen columns of the other table; problems are told by field."""
    form = Form(fields)
    with form.at(BESIDE):
        other = open_beside(described.table.connection, form.text(BESIDE))
        whose = form.text(f"{BESIDE}.user") or described.table.user or ""
        if whose in other.columns:
            columns = _offer(other.columns, whose)
            told = tuple(map(flat, other.warnings))
            beside = Beside(described=described, columns=columns, warnings=told)
            return _join(beside, form, whose)
        listed = ", ".join(shown(name) for name in [*other.columns][:20])
        form.refuse(f"{BESIDE}.user", f"say which of its columns says whose row it is: {listed}")
    return replace(described, problems=form.errors)


def _offer(columns: Mapping[str, str], whose: str) -> tuple[Offered, ...]:
    """List the columns that can be added; their numbers hold whosoever the people are."""
    found = (
        Offered(at=f"{BESIDE}.{number}", name=name, kind=kind)
        for number, (name, kind) in enumerate(columns.items(), 1)
        if kind != "other" and name != whose
    )
    return tuple(found)[:_MOST]


def _join(beside: Beside, form: Form, whose: str) -> Described:
    """Join by the people, if the library takes it."""
    described, chosen = replace(beside.described, beside=beside), beside.list_chosen(form.fields)
    if not chosen:
        form.refuse(BESIDE, "choose the columns that are added")
    default, names = _read_defaults(form, chosen), [each.name for each in chosen]
    table = None
    if not form.errors:
        with form.at(BESIDE):
            # What is warned of stands on the page.
            table, _ = join_beside(described.table, form.text(BESIDE), whose, names, default)
    if table is None:
        return replace(described, problems=form.errors)
    keys: dict[str, tuple[Any, ...]] = {}
    for each in chosen:
        at = f"{each.at}.keys"
        if form.text(at):
            keys[each.name] = read_keys(form, at, table, (each.name, each.kind), form.text(at))
    return replace(
        described,
        table=table,
        kinds={**described.kinds, **{each.name: each.kind for each in chosen}},
        keys={**described.keys, **keys},
        problems=form.errors,
    )


def _read_defaults(form: Form, chosen: tuple[Offered, ...]) -> dict[str, Any] | None:
    """Read what people without a row there get; None where their rows are left out."""
    typed = {each: form.text(f"{each.at}.rest") for each in chosen}
    if not any(typed.values()):
        return None
    found: dict[str, Any] = {}
    for each, text in typed.items():
        if not text:
            form.refuse(f"{each.at}.rest", "give a value here, too, or for none of the columns")
            continue
        try:
            found[each.name] = READERS.get(each.kind, str)(text)
        except ValueError:
            form.refuse(f"{each.at}.rest", f"this column is of type {each.kind}")
    return found
