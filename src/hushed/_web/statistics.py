"""The statistics of a question: from their fields to what is asked of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hushed._ground.printing import shown
from hushed._web.fields import Form
from hushed.errors import HushedError
from hushed.tables._builder import QueryBuilder

if TYPE_CHECKING:
    from hushed._web.question import Known

Builder = TypeVar("Builder", bound=QueryBuilder)

STATISTICS: Final[dict[str, str]] = {
    "count": "number of rows",
    "count_users": "number of people",
    "sum": "sum",
    "mean": "mean",
    "variance": "variance",
    "median": "median",
    "quantiles": "quantiles",
    "histogram": "histogram",
    "top_k": "most frequent keys",
}
KINDS: Final = STATISTICS | {"mean": "mean (average)"}  # as a form offers them
NUMERIC: Final = ("int", "float", "bool")
GROUPABLE: Final = ("int", "string", "bool", "date")
WITHOUT_COLUMN: Final = ("count", "count_users")
SEARCHABLE: Final = ("sum", "mean", "variance")  # their bounds can be found in the rows, privately
SEARCHES: Final[Mapping[str, str]] = {
    "": "chosen here",
    "high": "the upper one found privately",
    "low": "the lower one found privately",
    "both": "both found privately",
}
PLACES = "3"  # keys that a top has where nothing is said
_MOST = 20


def list_kinds(form: Form) -> list[str]:
    """List the kinds of the statistics that are asked."""
    return [form.text(f"stat.{row}.kind") for row in form.numbered("stat")[:_MOST]]


def list_fields(name: str, kind: str, search: str = "") -> list[str]:
    """List the fields that a statistic of a kind has."""
    if not kind:
        return [f"{name}.kind"]
    parts = ["kind"] if kind == "top_k" else ["kind", "weight"]
    if kind not in WITHOUT_COLUMN:
        parts.append("column")
    if kind in SEARCHABLE:
        parts.append("search")
    if kind not in (*WITHOUT_COLUMN, "top_k"):
        parts += [each for each in ("low", "high") if not _is_searched(each, kind, search)]
    extra = {"quantiles": ["probabilities"], "histogram": ["bins"], "top_k": ["column2", "k", "of"]}
    return [f"{name}.{part}" for part in (*parts, *extra.get(kind, ()))]


def _is_searched(side: str, kind: str, search: str) -> bool:
    return kind in SEARCHABLE and search in (side, "both")


def ask_statistics(
    described: Known[Builder], form: Form, table: Builder
) -> tuple[Builder, dict[str, str], dict[str, str]]:
    """Ask for each statistic; say where its fields are, and what it is called."""
    places: dict[str, str] = {}
    labels: dict[str, str] = {}
    for row in form.numbered("stat")[:_MOST]:
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
    if kind in WITHOUT_COLUMN:
        return STATISTICS[kind]
    second = form.text(f"{name}.column2") if kind == "top_k" else ""
    also = f" and {shown(second)}" if second not in ("", column) else ""
    return f"{STATISTICS[kind]} of {shown(column)}{also}"


def _field_of(error: HushedError, kind: str) -> str:
    """Give the field that a refusal is about."""
    known = {"low", "high", "weight", "bins", "probabilities", "k"}
    if error.parameter in known:
        return str(error.parameter)
    return "kind" if kind in (*WITHOUT_COLUMN, "top_k") else "column"


def _ask_one(
    described: Known[Builder], form: Form, table: Builder, name: str, kind: str, weight: float
) -> Builder:
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
    elif kind == "top_k":
        return _ask_top(described, form, table, name)
    else:
        return _ask_of_column(described, form, table, name, kind, weight)
    return table


def _ask_top(described: Known[Builder], form: Form, table: Builder, name: str) -> Builder:
    """Ask for the most frequent of the public keys of a column, or of two columns together."""
    keys: dict[str, Any] = {}
    for part in ("column", "column2"):
        column = form.text(f"{name}.{part}")
        if column and not described.keys.get(column):
            form.refuse(
                f"{name}.{part}",
                f"{shown(column)} has no public keys to choose from: {described.keys_where}",
            )
            return table
        if column:
            keys[column] = list(described.keys[column])
    of = form.text(f"{name}.of") or "rows"
    if of not in ("rows", "users") or (of == "users" and table.user is None):
        form.refuse(f"{name}.of", "the table has no column of people: count its rows")
        return table
    together = math.prod(map(len, keys.values()))
    k = form.whole(f"{name}.k", min(int(PLACES), together)) or 1
    return table.top_k(*keys, k=k, keys=keys, of="users" if of == "users" else "rows")


def _ask_of_column(
    described: Known[Builder], form: Form, table: Builder, name: str, kind: str, weight: float
) -> Builder:
    """Ask for a statistic of a column, within public bounds or some that are found privately."""
    column = form.text(f"{name}.column")
    bounds = _read_bounds(described, form, name, column, kind)
    if bounds is None:
        return table
    limits: dict[str, Any] = {"low": bounds[0], "high": bounds[1], "weight": weight}
    if kind == "histogram":
        return table.histogram(column, bins=form.whole(f"{name}.bins", 10) or 10, **limits)
    if kind == "quantiles":
        return table.quantiles(column, _read_probabilities(form, name), **limits)
    found: Builder = getattr(table, kind)(column, **limits)
    return found


def _read_bounds(
    described: Known[Builder], form: Form, name: str, column: str, kind: str
) -> tuple[float | str, float | str] | None:
    """Read the bounds of a statistic; those of the data page stand in for empty fields."""
    search = form.text(f"{name}.search")
    if search not in SEARCHES:
        form.refuse(f"{name}.search", "choose how the bounds are known")
        return None
    found: list[float | str] = []
    for side, default in zip(("low", "high"), described.limits.get(column, ("", "")), strict=True):
        field_name = f"{name}.{side}"
        if _is_searched(side, kind, search):
            found.append("search")
            continue
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
    low, high = found
    if isinstance(low, float) and isinstance(high, float) and low >= high:
        form.refuse(f"{name}.high", "the upper bound must be above the lower one")
        return None
    return low, high


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
