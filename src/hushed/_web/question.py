"""From the fields of the question page to a query on a table."""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, get_args

from hushed._ground.printing import format_down, shown
from hushed._web.fields import Form
from hushed._web.statistics import Builder, ask_statistics, list_kinds
from hushed.tables._plan import NoiseName

OPERATORS: Final[tuple[str, ...]] = (">=", ">", "<=", "<", "==", "!=", "is missing", "is there")
_MOST_CONDITIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Generic[Builder]):
    """What is publicly known of a table; nothing of it comes from its rows."""

    table: Builder  # nothing is asked yet
    kinds: Mapping[str, str]  # type of each column that is used
    limits: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # bounds as typed
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # public keys
    rows: int | None = None  # public guess of the number of rows
    max_rows_per_user: int | None = None
    problems: Mapping[str, str] = field(default_factory=dict)  # with a join, by field
    keys_where: str = "list them on the page Data"  # what helps where there are no public keys

    def columns(self, types: Iterable[str]) -> tuple[str, ...]:
        """List the columns of some types."""
        wanted = tuple(types)
        return tuple(name for name, kind in self.kinds.items() if kind in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a question is priced, besides its epsilon."""

    delta: float = 0.0
    noise: NoiseName = "laplace"
    rows: int | None = None

    def as_arguments(self) -> dict[str, Any]:
        """Give them as arguments of `Table.quote`."""
        return {"delta": self.delta, "noise": self.noise, "rows": self.rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Builder]):
    """A question as far as it could be read."""

    table: Builder | None  # with all that is asked; None if a field is wrong or nothing is asked
    terms: Terms
    errors: Mapping[str, str]  # by field
    fields_of: Mapping[str, str]  # prefix of the fields of each output, by its name
    labels: Mapping[str, str]  # what each output is called on the page
    private_keys: bool = False


def read_question(described: Known[Builder], fields: Mapping[str, str]) -> Question[Builder]:
    """Read what is asked; what cannot be used is told at its field."""
    form = Form(fields, dict(described.problems))
    table = _bound(described, form, described.table)
    table = _keep_rows(described, form, table)
    private = bool(form.text("group")) and form.text("keys") == "private"
    table = _group(described, form, table, private=private)
    asked, places, labels = ask_statistics(described, form, table)
    terms = _read_terms(described, form, private=private)
    whole = not form.errors and bool(places)
    return Question(
        table=asked if whole else None,
        terms=terms,
        errors=form.errors,
        fields_of=places,
        labels=labels,
        private_keys=private,
    )


def _bound(described: Known[Builder], form: Form, table: Builder) -> Builder:
    """Set the contribution bounds of a table of people."""
    if table.user is None:
        return table
    rows = form.whole("max_rows", described.max_rows_per_user)
    groups = form.whole("max_groups") if form.text("group") else None
    if rows is None and groups is None:
        form.refuse("max_rows", "say how many rows of one person count, such as 5")
        return table
    with form.at("max_rows"):
        return table.bound_contributions(max_rows_per_user=rows, max_groups_per_user=groups)
    return table


def _keep_rows(described: Known[Builder], form: Form, table: Builder) -> Builder:
    """Keep the rows that fulfil every condition."""
    rows = form.numbered("where")
    if len(rows) > _MOST_CONDITIONS:
        form.refuse(
            f"where.{rows[_MOST_CONDITIONS]}.value",
            f"a question has at most {_MOST_CONDITIONS} conditions: write more of them as one text",
        )
    for row in rows[:_MOST_CONDITIONS]:
        name = f"where.{row}"
        column = form.text(f"{name}.column")
        if column:
            with form.at(f"{name}.value"):
                table = table.filter(_write_condition(described, form, name, column))
    text = form.text("where_text")
    if text:
        with form.at("where_text"):
            table = table.filter(text)
    return table


def _write_condition(described: Known[Builder], form: Form, name: str, column: str) -> str:
    """Write a condition as the library reads it."""
    plain = column.isidentifier() and not keyword.iskeyword(column) and column.isascii()
    cell, operator = column if plain else f"column({column!r})", form.text(f"{name}.op") or "=="
    if operator == "is missing":
        return f"is_null({cell})"
    if operator == "is there":
        return f"not is_null({cell})"
    typed, kind = form.text(f"{name}.value"), described.kinds.get(column, "string")
    if not typed:
        form.refuse(f"{name}.value", "give the value to compare with")
    if operator not in OPERATORS:
        form.refuse(f"{name}.op", "choose how to compare")
        operator = "=="
    return f"{cell} {operator} {_write_value(form, f'{name}.value', typed, kind)}"


def _write_value(form: Form, name: str, typed: str, kind: str) -> str:
    """Write a value of a condition by the type of its column."""
    if kind in ("int", "float"):
        found = form.number(name)
        return "0" if found is None else typed
    if kind == "bool":
        if typed.lower() not in ("true", "false"):
            form.refuse(name, "this must be true or false")
        return "True" if typed.lower() == "true" else "False"
    return repr(typed)


def _group(described: Known[Builder], form: Form, table: Builder, *, private: bool) -> Builder:
    """Group the rows by one or two columns."""
    columns = [c for c in (form.text("group"), form.text("group2")) if c]
    columns = list(dict.fromkeys(columns))
    if not columns:
        return table
    missing = [each for each in columns if not described.keys.get(each)]
    if missing and not private:
        form.refuse(
            "keys",
            f"{shown(missing[0])} has no public keys: {described.keys_where}, or let them be found "
            "privately",
        )
        return table
    keys = None if private else {each: described.keys[each] for each in columns}
    with form.at("group"):
        return table.group_by(*columns, keys=keys, select_partitions=private)
    return table


def _read_terms(described: Known[Builder], form: Form, *, private: bool) -> Terms:
    """Read noise, delta and the guess of rows in a group."""
    noise = form.text("noise") or "laplace"
    if noise not in get_args(NoiseName):
        form.refuse("noise", "choose Laplace or Gaussian noise")
        noise = "laplace"
    delta = form.number("delta", 0.0) or 0.0
    if delta == 0 and (private or noise == "gaussian"):
        needs = "private keys" if private else "Gaussian noise"
        form.refuse("delta", f"{needs} need a delta above 0: {offer_delta(described)} is usual")
    if "top_k" in list_kinds(form):
        _refuse_noise_of_top(form, noise, delta)
    rows = form.whole("rows", guess_rows(described, form.fields))
    return Terms(delta=delta, noise="gaussian" if noise == "gaussian" else "laplace", rows=rows)


def _refuse_noise_of_top(form: Form, noise: str, delta: float) -> None:
    """Keys are chosen, and no noise is added to a number."""
    if noise == "gaussian":
        form.refuse("noise", "keys are chosen without Gaussian noise: use Laplace")
    if delta:
        form.refuse("delta", "the most frequent keys spend no delta: leave it empty")


def guess_rows(described: Known[Builder], fields: Mapping[str, str]) -> int | None:
    """Give the public guess of the rows of a group: those of the table, evenly divided."""
    if described.rows is None:
        return None
    columns = {c for c in (fields.get("group", ""), fields.get("group2", "")) if c}
    groups = math.prod(max(1, len(described.keys.get(each, ()))) for each in columns)
    return max(1, described.rows // groups)


def offer_delta(described: Known[Builder]) -> str:
    """Give the usual delta: one part in ten times the number of rows, as guessed; rounded down."""
    return format_down(1 / (10 * (described.rows or 100_000)), 1)
