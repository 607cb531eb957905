"""A query written as what people run: Python, a command, a notebook."""

from __future__ import annotations

import json
import shlex
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from hushed._ground.checks import read_epsilon, require_one_of, require_within
from hushed._ground.decimals import read
from hushed.statistics._candidates import CANDIDATES
from hushed.tables._expressions import names_in
from hushed.tables._plan import NoiseName
from hushed.tables._question_parts import Derive

if TYPE_CHECKING:
    from hushed.tables._question import Query
    from hushed.tables._question_parts import AnyAggregate

Pairs = list[tuple[str, str | None]]  # options and their values

# Engines with types of their own, which nobody declares.
_TYPED = ("postgresql:", "postgres:", "spark:")
_DATABASES = (*_TYPED, "duckdb:")  # whose tables have names


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvLines:
    """How the lines of a CSV file are rows, where `table` has to be told."""

    header: str | None = None
    newlines_in_values: bool = False


_AS_USUAL = CsvLines()


def _name_table(source: str, name: str | None) -> str:
    """Name the table; of a database whose table nobody named, a word to be filled in."""
    return name or ("TABLE" if source.startswith(_DATABASES) else "rows")


def write_python(query: Query, source: str, name: str | None, lines: CsvLines = _AS_USUAL) -> str:
    """Write a program that ends with the query as a `Table`."""
    name = _name_table(source, name)
    opened = [repr(source)]
    opened += [repr(name)] if name != "rows" else []
    opened += [f"user={query.user!r}"] if query.user is not None else []
    types = declared_types(query, source)
    opened += [f"types={types!r}"] if types else []
    opened += [f"header={lines.header!r}"] if lines.header is not None else []
    opened += ["newlines_in_values=True"] if lines.newlines_in_values else []
    calls = [f"    .{method}({arguments})\n" for method, arguments in _calls(query)]
    program = ["import hushed as hs\n\n", f"table = hs.table({', '.join(opened)})\n"]
    program += ["query = (\n    table\n", *calls, ")\n"] if calls else ["query = table\n"]
    return "".join(program)


def write_notebook(
    query: Query,
    source: str,
    name: str | None,
    terms: tuple[float, float, NoiseName],
    lines: CsvLines = _AS_USUAL,
) -> str:
    """Write a notebook of four cells: words, query, price, release."""
    epsilon, delta, noise = _read_terms(*terms)
    said = f"epsilon={epsilon!r}"
    said += f", delta={delta!r}" if delta else ""
    said += f", noise={noise!r}" if noise != "laplace" else ""
    cells = [
        _cell(
            "markdown",
            "# A private query\n\nThe price is shown before a row is read. **Each run of the last "
            f"cell costs epsilon {epsilon!r} again, and nothing counts or limits that**, unless it "
            "charges a budget and keeps the answer under a key of yours: "
            '`query.release(..., ledger=hs.Ledger("sqlite:///budget.db"), budget="NAME", '
            'key="NAME")`. `hushed ledger open` opens a budget.',
        ),
        _cell("code", write_python(query, source, name, lines)),
        _cell("code", f"query.quote({said})"),
        _cell("code", f"answer = query.release({said})\nanswer"),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
        indent=1,
    )


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.rstrip("\n")}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


def _read_terms(epsilon: float, delta: float, noise: NoiseName) -> tuple[float, float, NoiseName]:
    """Read what goes into a program, as plain numbers and names."""
    require_one_of("noise", noise, get_args(NoiseName))
    slack = read("delta", delta, up=False)
    require_within("delta", slack, 0, 1)
    return read_epsilon(epsilon), slack, noise


def write_command(
    query: Query,
    source: str,
    name: str | None,
    terms: tuple[float, float, NoiseName],
    lines: CsvLines = _AS_USUAL,
) -> str:
    """Write a command, with options where they can say all that is asked."""
    epsilon, delta, noise = _read_terms(*terms)
    name = _name_table(source, name)
    last = ["--", source] if source.startswith("-") else []  # no option, whatever its name
    words = ["hushed", "query", *([] if last else [source])]
    words += _join("--table", name) if name != "rows" else ()
    words += [] if lines.header is None else _join("--header", lines.header)
    words += ["--newlines-in-values"] if lines.newlines_in_values else []
    asked = _options(query, source)
    words += ["--query", json.dumps(json.loads(query.to_json()))] if asked is None else asked
    price = ["--epsilon", repr(epsilon)]
    price += ["--delta", repr(delta)] if delta else []
    price += ["--noise", noise] if noise != "laplace" else []
    return shlex.join([*words, *price, *last])


def declared_types(query: Query, source: str) -> dict[str, str]:
    """Give the types to declare: the strings of a file need none."""
    if source.startswith(_TYPED):
        return {}
    return {c: t for c, t in query.columns.items() if t not in ("string", "other")}


def _calls(query: Query) -> list[tuple[str, str]]:
    """Give the methods of `Table` that ask the query, with their arguments."""
    users = _find_users(query)
    calls = [_call_step(step.model_dump(), users) for step in query.steps]
    bounds = _bounds(query)
    if bounds:
        calls.append(("bound_contributions", ", ".join(f"{n}={v}" for n, v in bounds.items())))
    groups, columns = query.groups, ""
    if groups is not None:
        columns = ", ".join(map(repr, groups.columns))
        keys = groups.named_keys()
        how = "select_partitions=True" if keys is None else f"keys={keys!r}"
        columns = f"{columns}, {how}"
    top = any(each.kind == "top_k" for each in query.aggregates)
    if groups is not None and not top:
        calls.append(("group_by", columns))
    for each in query.aggregates:
        said = _leave_out(each)
        before = [columns] if each.kind == "top_k" else []
        before += [repr(said.pop("column"))] if "column" in said else []
        before += [repr(list(said.pop("probabilities")))] if "probabilities" in said else []
        calls.append((each.kind, ", ".join([*before, *(f"{n}={v!r}" for n, v in said.items())])))
    return calls


def _find_users(query: Query) -> set[str]:
    """Find the user column and what is computed from it."""
    found = set() if query.user is None else {query.user}
    for step in query.steps:
        if isinstance(step, Derive) and names_in(step.expression) & found:
            found.add(step.derive)
    return found


def _call_step(said: Mapping[str, Any], users: Container[str]) -> tuple[str, str]:
    if "filter" in said:
        return "filter", repr(said["filter"])
    if "derive" in said:
        return "derive", f"{said['derive']!r}, {said['expression']!r}"
    default = "" if said["default"] is None else f", default={said['default']!r}"
    if "join_users" in said:
        columns = f"user={said['user']!r}, columns={list(said['columns'])!r}"
        return "join_users", f"{said['join_users']!r}, {columns}{default}"
    public = {said["join"]: list(said["keys"])}
    public |= {name: list(values) for name, values in said["columns"].items()}
    told = ", users_are_public=True" if said["join"] in users else ""
    return "join", f"{public!r}, on={said['join']!r}{default}{told}"


def _leave_out(each: AnyAggregate) -> dict[str, Any]:
    """Give the arguments of an aggregate, without those that are its defaults."""
    said = each.model_dump()
    for names in (["name"], ["weight"], ["bins"], ["of"], ["candidates", "spacing"]):
        rest = {name: value for name, value in said.items() if name not in names}
        said = rest if type(each)(**rest) == each else said
    del said["kind"]
    return said


def _bounds(query: Query) -> dict[str, int]:
    names = ("max_rows_per_user", "max_groups_per_user")
    return {name: getattr(query, name) for name in names if getattr(query, name) is not None}


def _options(query: Query, source: str) -> list[str] | None:
    """Give the options of the command, or None if they cannot say all."""
    parts = [_options_of_steps(query), _options_of_groups(query), _options_of_aggregates(query)]
    if any(part is None for part in parts):
        return None
    words: Pairs = [] if query.user is None else [("--user", query.user)]
    words += [
        ("--type", f"{column}={kind}") for column, kind in declared_types(query, source).items()
    ]
    words += [(f"--{name.replace('_', '-')}", str(n)) for name, n in _bounds(query).items()]
    words += [pair for part in parts for pair in part or ()]
    if any(column != column.strip() for column in query.columns):
        return None
    return [word for pair in words for word in _join(*pair)]


def _join(option: str, value: str | None) -> tuple[str, ...]:
    """Write an option and its value, which may begin with a dash."""
    if value is None:
        return (option,)
    return (f"{option}={value}",) if value.startswith("-") else (option, value)


def _options_of_steps(query: Query) -> Pairs | None:
    """Write joins by users, filters, derived columns, which is the order of the command.

    A public table has no file of its own, which an option could name.
    """
    words: Pairs = []
    order = []
    for step in query.steps:
        said = step.model_dump()
        found = _options_of_step(said)
        if found is None:
            return None
        order.append(("join_users" not in said) + ("derive" in said))
        words += found
    return words if order == sorted(order) else None


def _options_of_step(said: Mapping[str, Any]) -> Pairs | None:
    if "filter" in said:
        return [("--where", said["filter"])]
    if "derive" in said:
        name = said["derive"]
        plain = "=" not in name and name == name.strip()
        return [("--derive", f"{name}={said['expression']}")] if plain else None
    if "join_users" not in said:
        return None
    names, default = list(said["columns"]), said["default"] or {}
    if any(set(name) & set(":,=") for name in (said["user"], *names)):
        return None
    joined = f"{said['join_users']}:{said['user']}:{','.join(names)}"
    return [
        ("--join-users", joined),
        *(("--default", f"{name}={_write_cell(value)}") for name, value in default.items()),
    ]


def _write_cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options_of_groups(query: Query) -> Pairs | None:
    if query.groups is None:
        return []
    words: Pairs = [("--by", column) for column in query.groups.columns]
    if query.groups.keys is None:
        return [*words, ("--select-partitions", None)]
    for keys in query.groups.keys:
        written = [_write_cell(key) for key in keys]
        if any("," in key or not key or key != key.strip() for key in written):
            return None
        words.append(("--keys", ",".join(written)))
    return words


_IN_ORDER = ("count", "count_users", "sum", "mean", "variance", "histogram", "quantiles", "top_k")


def _options_of_aggregates(query: Query) -> Pairs | None:
    """Write aggregates in the order of the command, under the names that it gives them."""
    words: Pairs = []
    order = []
    for each in query.aggregates:
        said = each.model_dump()
        option, value, name = _option_of(said)
        if said["name"] != name or said["weight"] != 1:
            return None
        words.append((option, value))
        order.append((_IN_ORDER.index(said["kind"]), option == "--median"))
    once = [kind for kind, _ in order if kind in (0, 1)]
    offered = {
        (each.low >= 0, each.candidates, each.spacing)
        for each in query.aggregates
        if each.kind == "quantiles"
    }
    if order != sorted(order) or len(set(once)) < len(once):
        return None
    if offered - {(True, CANDIDATES, "geometric"), (False, CANDIDATES, "even")}:
        if len({each[1:] for each in offered}) > 1:
            return None
        ((_, candidates, spacing),) = {(None, *each[1:]) for each in offered}
        words += [("--candidates", str(candidates)), ("--spacing", spacing)]
    return words


def _option_of(said: Mapping[str, Any]) -> tuple[str, str | None, str]:
    """Option, value and name of the output of one aggregate."""
    kind, column = said["kind"], said.get("column")
    if kind == "top_k":
        return f"--top-k{'-users' if said['of'] == 'users' else ''}", str(said["k"]), "rank"
    if column is None:
        return f"--{kind.replace('_', '-')}", None, {"count": "count"}.get(kind, "users")
    value = f"{column}:{said['low']}:{said['high']}"
    if kind == "histogram":
        return "--histogram", f"{value}:{said['bins']}", f"histogram_{column}"
    if kind != "quantiles":
        return f"--{kind}", value, f"{kind}_{column}"
    listed = ",".join(map(repr, said["probabilities"]))
    if listed == "0.5" and said["name"] == f"median_{column}":
        return "--median", value, said["name"]
    only = len(said["probabilities"]) == 1
    name = f"quantile_{column}_{said['probabilities'][0]:g}" if only else f"quantiles_{column}"
    return "--quantile", f"{value}:{listed}", name
