"""From the fields of the question page to a query on a table."""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from hushed._printing import format_down, shown
from hushed.errors import HushedError
from hushed.tables import Table
from hushed.tables._plan import NoiseName
from hushed.workbench._views.fields import Form

STATISTICS: Final[Mapping[str, str]] = {
    "count": "number of rows",
    "count_users": "number of people",
    "sum": "sum",
    "mean": "mean",
    "variance": "variance",
    "median": "median",
    "quantiles": "quantiles",
    "histogram": "histogram",
}
OPERATORS: Final[tuple[str, ...]] = (">=", ">", "<=", "<", "==", "!=", "is missing", "is there")
NUMERIC: Final = ("int", "float", "bool")
GROUPABLE: Final = ("int", "string", "bool", "date")
_WITHOUT_COLUMN = ("count", "count_users")
_MOST_STATISTICS, _MOST_CONDITIONS = 20, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What the data page says of a table; nothing of it comes from its rows."""

    table: Table  # as it was opened: names and types of columns only
    budget: str  # name of the budget that is charged; empty without one
    source: str = ""  # address or path, without a password
    place: str = "rows"  # name of the table in a database
    kinds: Mapping[str, str]  # type of each column that is used
    limits: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # bounds as typed
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # public keys
    rows: int | None = None  # public guess of the number of rows
    max_rows_per_user: int | None = None
    public: Table | None = None  # a public table of the same columns

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
class Question:
    """A question as far as it could be read."""

    table: Table | None  # with all that is asked; None if a field is wrong or nothing is asked
    terms: Terms
    errors: Mapping[str, str]  # by field
    fields_of: Mapping[str, str]  # prefix of the fields of each output, by its name
    labels: Mapping[str, str]  # what each output is called on the page
    private_keys: bool = False


def read_question(described: Described, fields: Mapping[str, str]) -> Question:
    """Read what is asked; what cannot be used is told at its field."""
    form = Form(fields)
    table = _bound(described, form, described.table)
    table = _keep_rows(described, form, table)
    private = bool(form.text("group")) and form.text("keys") == "private"
    table = _group(described, form, table, private=private)
    asked, places, labels = _ask_statistics(described, form, table)
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


def _bound(described: Described, form: Form, table: Table) -> Table:
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


def _keep_rows(described: Described, form: Form, table: Table) -> Table:
    """Keep the rows that fulfil every condition."""
    for row in form.numbered("where")[:_MOST_CONDITIONS]:
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


def _write_condition(described: Described, form: Form, name: str, column: str) -> str:
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
        return "0" if found is None else (typed if "_" not in typed else repr(found))
    if kind == "bool":
        if typed.lower() not in ("true", "false"):
            form.refuse(name, "this must be true or false")
        return "True" if typed.lower() == "true" else "False"
    return repr(typed)


def _group(described: Described, form: Form, table: Table, *, private: bool) -> Table:
    """Group the rows by one or two columns."""
    columns = [c for c in (form.text("group"), form.text("group2")) if c]
    columns = list(dict.fromkeys(columns))
    if not columns:
        return table
    missing = [each for each in columns if not described.keys.get(each)]
    if missing and not private:
        form.refuse(
            "keys",
            f"{shown(missing[0])} has no public keys: list them on the page Data, or let them be "
            "found privately",
        )
        return table
    keys = None if private else {each: described.keys[each] for each in columns}
    with form.at("group"):
        return table.group_by(*columns, keys=keys, select_partitions=private)
    return table


def _ask_statistics(
    described: Described, form: Form, table: Table
) -> tuple[Table, dict[str, str], dict[str, str]]:
    """Ask for each statistic; say where its fields are, and what it is called."""
    places: dict[str, str] = {}
    labels: dict[str, str] = {}
    for row in form.numbered("stat")[:_MOST_STATISTICS]:
        name = f"stat.{row}"
        kind = form.text(f"{name}.kind")
        if not kind:
            continue
        weight = form.number(f"{name}.weight", 1.0)
        if weight is None or weight <= 0:
            form.refuse(f"{name}.weight", "a weight is a number above 0")
            continue
        try:
            table = _ask_one(described, form, table, name, kind, weight)
        except HushedError as error:
            form.refuse(f"{name}.{_field_of(error, kind)}", error.message)
            continue
        if len(table.aggregates) > len(places):
            output = table.aggregates[-1].name
            places[output], labels[output] = name, _label(form, name, kind)
    return table, places, labels


def _label(form: Form, name: str, kind: str) -> str:
    column = form.text(f"{name}.column")
    if kind in _WITHOUT_COLUMN:
        return STATISTICS[kind]
    return f"{STATISTICS[kind]} of {shown(column)}"


def _field_of(error: HushedError, kind: str) -> str:
    """Give the field that a refusal is about."""
    known = {"low", "high", "weight", "bins", "probabilities"}
    if error.parameter in known:
        return str(error.parameter)
    return "kind" if kind in _WITHOUT_COLUMN else "column"


def _ask_one(
    described: Described, form: Form, table: Table, name: str, kind: str, weight: float
) -> Table:
    """Ask for one statistic, or refuse one of its fields."""
    if kind not in STATISTICS:
        form.refuse(f"{name}.kind", "choose a statistic")
    elif kind == "count":
        return table.count(weight=weight)
    elif kind == "count_users":
        if table.user is not None:
            return table.count_users(weight=weight)
        form.refuse(f"{name}.kind", "the table has no column of people: count its rows")
    elif not form.text(f"{name}.column"):
        form.refuse(f"{name}.column", f"choose the column of the {STATISTICS[kind]}")
    else:
        return _ask_of_column(described, form, table, name, kind, weight)
    return table


def _ask_of_column(
    described: Described, form: Form, table: Table, name: str, kind: str, weight: float
) -> Table:
    """Ask for a statistic of a column, within public bounds."""
    column = form.text(f"{name}.column")
    bounds = _read_bounds(described, form, name, column, kind)
    if bounds is None:
        return table
    limits: dict[str, Any] = {"low": bounds[0], "high": bounds[1], "weight": weight}
    if kind == "histogram":
        return table.histogram(column, bins=form.whole(f"{name}.bins", 10) or 10, **limits)
    if kind in ("median", "quantiles"):
        asked = [0.5] if kind == "median" else _read_probabilities(form, name)
        output = f"median_{column}" if kind == "median" else None
        return table.quantiles(column, asked, name=output, **limits)
    found: Table = getattr(table, kind)(column, **limits)
    return found


def _read_bounds(
    described: Described, form: Form, name: str, column: str, kind: str
) -> tuple[float, float] | None:
    """Read the bounds of a statistic; those of the data page stand in for empty fields."""
    low, high = described.limits.get(column, ("", ""))
    found = []
    for side, default in (("low", low), ("high", high)):
        field_name = f"{name}.{side}"
        typed = form.text(field_name) or default
        number = Form({side: typed}, {}).number(side) if typed else None
        if number is None:
            form.number(field_name)
            form.refuse(
                field_name,
                f"a {STATISTICS[kind]} needs bounds: choose them without looking at the rows",
            )
            return None
        found.append(number)
    if found[0] >= found[1]:
        form.refuse(f"{name}.high", "the upper bound must be above the lower one")
        return None
    return found[0], found[1]


def _read_probabilities(form: Form, name: str) -> list[float]:
    """Read which quantiles are asked for; quartiles if nothing is said."""
    typed = form.text(f"{name}.probabilities") or "0.25, 0.5, 0.75"
    found = []
    for part in typed.replace(";", ",").split(","):
        number = Form({"p": part}).number("p")
        if number is None:
            form.refuse(f"{name}.probabilities", "these must be numbers such as 0.25, 0.5, 0.75")
            return [0.5]
        found.append(number)
    return found


def _read_terms(described: Described, form: Form, *, private: bool) -> Terms:
    """Read noise, delta and the guess of rows in a group."""
    noise = form.text("noise") or "laplace"
    if noise not in get_args(NoiseName):
        form.refuse("noise", "choose Laplace or Gaussian noise")
        noise = "laplace"
    delta = form.number("delta", 0.0) or 0.0
    if delta == 0 and (private or noise == "gaussian"):
        needs = "private keys" if private else "Gaussian noise"
        form.refuse("delta", f"{needs} need a delta above 0: {offer_delta(described)} is usual")
    rows = form.whole("rows", guess_rows(described, form.fields))
    return Terms(delta=delta, noise="gaussian" if noise == "gaussian" else "laplace", rows=rows)


def guess_rows(described: Described, fields: Mapping[str, str]) -> int | None:
    """Give the public guess of the rows of a group: those of the table, evenly divided."""
    if described.rows is None:
        return None
    columns = {c for c in (fields.get("group", ""), fields.get("group2", "")) if c}
    groups = math.prod(max(1, len(described.keys.get(each, ()))) for each in columns)
    return max(1, described.rows // groups)


def offer_delta(described: Described) -> str:
    """Give the usual delta: one part in ten times the number of rows, as guessed; rounded down."""
    return format_down(1 / (10 * (described.rows or 100_000)), 1)
