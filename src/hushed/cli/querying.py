"""The command for tables: query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import hushed as hs
from hushed.cli.ledgers import open_named
from hushed.cli.options import JsonOption
from hushed.cli.outcome import finish, say
from hushed.errors import ParameterError
from hushed.tables.expressions import Kind, find_column
from hushed.tables.plan import NoiseName

__all__ = ["query"]

_Many = list[str] | None


def query(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="The private table: a CSV, Parquet or Arrow file, duckdb:///FILE, "
            "postgresql://..., spark://...",
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="Privacy loss of the whole query, in nats.")],
    table: Annotated[str, typer.Option(help="Name of the table in a database.")] = "rows",
    user: Annotated[
        str | None, typer.Option(help="Column that says whose row it is; without it a row counts.")
    ] = None,
    types: Annotated[
        _Many,
        typer.Option(
            "--type",
            help="COLUMN=KIND, kinds whole, real, text, truth, day, moment; repeat. A CSV file "
            "holds text until told otherwise.",
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of one user that count.")] = None,
    groups: Annotated[int | None, typer.Option(help="Groups of one user that count.")] = None,
    where: Annotated[_Many, typer.Option(help='Condition such as "age >= 18"; repeat.')] = None,
    derive: Annotated[_Many, typer.Option(help="NAME=EXPRESSION; repeat.")] = None,
    by: Annotated[_Many, typer.Option(help="Grouping column; repeat.")] = None,
    keys: Annotated[
        _Many, typer.Option(help="Public keys of each grouping column: A,B,C; once for each --by.")
    ] = None,
    private_keys: Annotated[
        bool, typer.Option("--private-keys", help="Select the keys privately; needs --delta.")
    ] = False,
    count: Annotated[bool, typer.Option("--count", help="Number of rows.")] = False,
    count_users: Annotated[bool, typer.Option("--count-users", help="Number of users.")] = False,
    sum_of: Annotated[_Many, typer.Option("--sum", help="COLUMN:LOW:HIGH; repeat.")] = None,
    mean: Annotated[_Many, typer.Option(help="COLUMN:LOW:HIGH; repeat.")] = None,
    variance: Annotated[_Many, typer.Option(help="COLUMN:LOW:HIGH; repeat.")] = None,
    quantile: Annotated[_Many, typer.Option(help="COLUMN:LOW:HIGH:PROBABILITY; repeat.")] = None,
    histogram: Annotated[_Many, typer.Option(help="COLUMN:LOW:HIGH:BINS; repeat.")] = None,
    delta: Annotated[float, typer.Option(help="For --private-keys or Gaussian noise.")] = 0.0,
    noise: Annotated[NoiseName, typer.Option(help="Which noise.")] = "laplace",
    quote: Annotated[
        bool, typer.Option("--quote", help="Tell the price only: nothing is read or charged.")
    ] = False,
    ledger: Annotated[str | None, typer.Option(help="Address of the ledger to charge.")] = None,
    budget: Annotated[str | None, typer.Option(help="Name of the budget in the ledger.")] = None,
    note: Annotated[str, typer.Option(help="Remark for the ledger.")] = "",
    json: JsonOption = False,
) -> None:
    """Ask a private table for noisy aggregates."""
    with finish(json=json) as result:
        asked = hs.table(data, table, user=user, types=_types(types or ()))
        for condition in where or ():
            asked = asked.filter(condition)
        for text in derive or ():
            name, found, expression = text.partition("=")
            if not found:
                raise ParameterError(f"--derive takes NAME=EXPRESSION, got {text!r}")
            asked = asked.derive(name.strip(), expression)
        if rows is not None or groups is not None:
            asked = asked.per_user(rows=rows, groups=groups)
        asked = _grouped(asked, by or (), keys or (), private_keys=private_keys)
        asked = asked.count() if count else asked
        asked = asked.count_users() if count_users else asked
        asked = _aggregated(asked, sum_of, mean, variance, quantile, histogram)
        opened = open_named(ledger, budget)
        if quote:
            price = asked.quote(
                epsilon=epsilon, delta=delta, noise=noise, ledger=opened, budget=budget
            )
            result.update(_price(price))
            shown = price.explain()
        else:
            answer = asked.release(
                epsilon=epsilon, delta=delta, noise=noise, ledger=opened, budget=budget, note=note
            )
            result.update(
                rows=answer.rows(), level=answer.level, **_promise(answer.guarantee, answer.unit)
            )
            shown = "\n".join([*_lines(answer), "", answer.explain()])
        if not json:
            say(shown)


def _types(texts: Sequence[str]) -> dict[str, Kind]:
    """Kinds of columns as written on the command line; `table` checks them."""
    found: dict[str, Any] = {}
    for text in texts:
        column, equals, kind = text.rpartition("=")
        if not equals or not column:
            raise ParameterError(f"--type takes COLUMN=KIND, got {text!r}")
        found[column.strip()] = kind.strip()
    return found


def _grouped(
    asked: hs.Table, by: Sequence[str], keys: Sequence[str], *, private_keys: bool
) -> hs.Table:
    if not by:
        if keys or private_keys:
            raise ParameterError("--keys and --private-keys need --by COLUMN")
        return asked
    if not keys:
        return asked.group_by(*by, private_keys=private_keys)
    if len(keys) != len(by):
        raise ParameterError(f"give --keys once for each --by: {len(by)} wanted, {len(keys)} given")
    known = {
        column: [_cell(value, asked, column) for value in listed.split(",")]
        for column, listed in zip(by, keys, strict=True)
    }
    return asked.group_by(*by, keys=known, private_keys=private_keys)


def _cell(text: str, asked: hs.Table, column: str) -> Any:
    """Read a key as written on the command line, in the kind of its column."""
    kind = asked.columns[find_column(column, asked.columns)]
    if kind == "whole":
        try:
            return int(text)
        except ValueError:
            raise ParameterError(f"a key of {column!r} must be a whole number: {text!r}") from None
    if kind == "truth":
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _aggregated(
    asked: hs.Table,
    sums: _Many,
    means: _Many,
    variances: _Many,
    quantiles: _Many,
    histograms: _Many,
) -> hs.Table:
    plain: list[tuple[str, _Many, Callable[..., hs.Table]]] = [
        ("--sum", sums, hs.Table.sum),
        ("--mean", means, hs.Table.mean),
        ("--variance", variances, hs.Table.variance),
    ]
    for option, texts, method in plain:
        for text in texts or ():
            column, low, high = _parts(option, text, 2)
            asked = method(asked, column, low=low, high=high)
    for text in quantiles or ():
        column, low, high, p = _parts("--quantile", text, 3)
        name = f"quantile_{column}_{p:g}"
        asked = asked.quantiles(column, [p], low=low, high=high, name=name)
    for text in histograms or ():
        column, low, high, bins = _parts("--histogram", text, 3)
        asked = asked.histogram(column, low=low, high=high, bins=int(bins))
    return asked


def _parts(option: str, text: str, numbers: int) -> tuple[Any, ...]:
    """Column and numbers of ``COLUMN:LOW:HIGH...``; the column may hold colons."""
    column, *found = text.rsplit(":", numbers)
    try:
        values = [float(each) for each in found]
    except ValueError:
        values = []
    if len(values) != numbers:
        more = {"--quantile": ":PROBABILITY", "--histogram": ":BINS"}.get(option, "")
        raise ParameterError(f"{option} takes COLUMN:LOW:HIGH{more}, got {text!r}")
    return (column, *values)


def _promise(guarantee: hs.Guarantee, unit: str) -> dict[str, Any]:
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": guarantee.neighbours,
        "unit": unit,
    }


def _price(price: hs.Quote) -> dict[str, Any]:
    outputs = [
        {
            "name": each.name,
            "share": each.share,
            "accuracy": each.accuracy,
            "measured": dict(each.measured),
        }
        for each in price.outputs
    ]
    left = None if price.left is None else price.left.epsilon_left
    return {
        "outputs": outputs,
        "threshold": price.threshold,
        "level": price.level,
        "epsilon_left": left,
        **_promise(price.guarantee, price.unit),
    }


def _lines(answer: hs.Answer) -> list[str]:
    """Lay the answer out as a table of text."""
    rows = [
        [str(each) for each in key]
        + [_shown(answer.values[n][i], answer.low[n][i], answer.high[n][i]) for n in answer.values]
        for i, key in enumerate(zip(*answer.keys.values(), strict=True) if answer.keys else [()])
    ]
    head = [*answer.keys, *answer.values]
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [head, *rows]
    ]


def _shown(value: Any, low: Any, high: Any) -> str:
    if isinstance(value, list):
        return " ".join(f"{each:g}" for each in value)
    text = str(value) if isinstance(value, int) else f"{value:.6g}"
    return text if low is None else f"{text} [{low:.6g}, {high:.6g}]"
