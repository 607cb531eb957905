"""The command for tables: query."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import hushed as hs
from hushed.cli._kept import read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import JsonOption, KeyOption
from hushed.cli._outcome import finish, print_line, print_notes
from hushed.cli._panels import BOUNDS, LEDGER, NOISE, OUTPUT, QUERY, STATISTICS, TABLE
from hushed.cli._spelling import spell_option
from hushed.errors import ParameterError
from hushed.tables._expressions import Kind, find_column
from hushed.tables._plan import NoiseName
from hushed.tables._stored import plain_rows

_Many = list[str] | None
_HINTS = {  # in place of those in Python
    "count": "add --count, --sum COLUMN:LOW:HIGH or another aggregate",
    "groups": "give --groups N or --rows N",
    "header": 'give --header "patient;city;cost"',
    "keys": "give --keys A,B,C or --private-keys",
    "noise": "leave --delta out, or ask for --noise gaussian",
    "rows": "give --rows N",
    "table": "name one with --table NAME",
    "types": "to read a text as a number, declare its column: --type COLUMN=real",
    "user": "give --user COLUMN",
}


def query(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="The private table: a CSV, Parquet or Arrow file, duckdb:///FILE, "
            "postgresql://..., spark://...",
        ),
    ],
    epsilon: Annotated[
        float, typer.Option(help="Privacy loss of the whole query, in nats.", rich_help_panel=NOISE)
    ],
    table: Annotated[
        str, typer.Option(help="Name of the table in a database.", rich_help_panel=TABLE)
    ] = "rows",
    user: Annotated[
        str | None,
        typer.Option(
            help="Column that says whose row it is; without it a row counts.", rich_help_panel=TABLE
        ),
    ] = None,
    types: Annotated[
        _Many,
        typer.Option(
            "--type",
            help="COLUMN=KIND, kinds whole, real, text, truth, day, moment; repeat. A CSV file "
            "holds text until told otherwise.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="Names for a CSV file that has no line of them: patient;city;cost, with what "
            "stands between its cells. Every line of the file is a row then.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of one user that count.", rich_help_panel=BOUNDS)
    ] = None,
    groups: Annotated[
        int | None, typer.Option(help="Groups of one user that count.", rich_help_panel=BOUNDS)
    ] = None,
    where: Annotated[
        _Many, typer.Option(help='Condition such as "age >= 18"; repeat.', rich_help_panel=QUERY)
    ] = None,
    derive: Annotated[
        _Many, typer.Option(help="NAME=EXPRESSION; repeat.", rich_help_panel=QUERY)
    ] = None,
    by: Annotated[
        _Many, typer.Option(help="Grouping column; repeat.", rich_help_panel=QUERY)
    ] = None,
    keys: Annotated[
        _Many,
        typer.Option(
            help="Public keys of each grouping column: A,B,C; once for each --by.",
            rich_help_panel=QUERY,
        ),
    ] = None,
    private_keys: Annotated[
        bool,
        typer.Option(
            "--private-keys",
            help="Select the keys privately; needs --delta.",
            rich_help_panel=QUERY,
        ),
    ] = False,
    count: Annotated[
        bool, typer.Option("--count", help="Number of rows.", rich_help_panel=STATISTICS)
    ] = False,
    count_users: Annotated[
        bool, typer.Option("--count-users", help="Number of users.", rich_help_panel=STATISTICS)
    ] = False,
    sum_of: Annotated[
        _Many, typer.Option("--sum", help="COLUMN:LOW:HIGH; repeat.", rich_help_panel=STATISTICS)
    ] = None,
    mean: Annotated[
        _Many, typer.Option(help="COLUMN:LOW:HIGH; repeat.", rich_help_panel=STATISTICS)
    ] = None,
    variance: Annotated[
        _Many, typer.Option(help="COLUMN:LOW:HIGH; repeat.", rich_help_panel=STATISTICS)
    ] = None,
    quantile: Annotated[
        _Many,
        typer.Option(
            help="COLUMN:LOW:HIGH:PROBABILITY, or several: 0.25,0.5,0.75, whose answers are put in "
            "order; repeat.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    median: Annotated[
        _Many,
        typer.Option(help="COLUMN:LOW:HIGH, the quantile 0.5; repeat.", rich_help_panel=STATISTICS),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            help="Evenly spaced values from LOW to HIGH that a quantile is chosen from; 2 to "
            "10001.",
            rich_help_panel=STATISTICS,
        ),
    ] = 101,
    histogram: Annotated[
        _Many, typer.Option(help="COLUMN:LOW:HIGH:BINS; repeat.", rich_help_panel=STATISTICS)
    ] = None,
    delta: Annotated[
        float, typer.Option(help="For --private-keys or Gaussian noise.", rich_help_panel=NOISE)
    ] = 0.0,
    noise: Annotated[
        NoiseName, typer.Option(help="Which noise.", rich_help_panel=NOISE)
    ] = "laplace",
    quote: Annotated[
        bool,
        typer.Option(
            "--quote",
            help="Tell the price only: nothing is read or charged.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    about_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Public guess of the rows of a group: then --quote tells the error of means and "
            "variances.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Address of the ledger to charge.", rich_help_panel=LEDGER)
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Name of the budget in the ledger.", rich_help_panel=LEDGER)
    ] = None,
    note: Annotated[str, typer.Option(help="Remark for the ledger.", rich_help_panel=LEDGER)] = "",
    key: KeyOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds that the query may take; not on Spark. One that is stopped after the "
            "charge stays paid.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Ask a private table for noisy aggregates."""
    with finish(json=json, hints=_HINTS) as result:
        with warnings.catch_warnings():  # they are told below
            warnings.simplefilter("ignore", UserWarning)
            asked = hs.table(data, table, user=user, types=_types(types or ()), header=header)
        print_notes(asked.connection.remarks)
        for condition in where or ():
            asked = asked.filter(condition)
        for text in derive or ():
            name, found, expression = text.partition("=")
            if not found:
                raise ParameterError(f"--derive takes NAME=EXPRESSION, got {text!r}")
            asked = asked.derive(name.strip(), expression)
        if rows is not None or groups is not None:
            asked = asked.per_user(rows=rows, groups=groups)
        asked = _add_grouping(asked, by or (), keys or (), private_keys=private_keys)
        asked = asked.count() if count else asked
        asked = asked.count_users() if count_users else asked
        asked = _add_aggregates(asked, sum_of, mean, variance, histogram)
        asked = _add_quantiles(asked, quantile or (), candidates)
        for text in median or ():
            column, low, high = _parts("--median", text, 2)
            asked = asked.quantiles(
                column, [0.5], low=low, high=high, candidates=candidates, name=f"median_{column}"
            )
        if about_rows is not None and not quote:
            raise ParameterError("--about-rows is for --quote")
        opened = open_named(ledger, budget)
        if quote:
            price = asked.quote(
                epsilon=epsilon,
                delta=delta,
                noise=noise,
                rows=about_rows,
                ledger=opened,
                budget=budget,
            )
            result.update(_price(price))
            shown = price.explain(_spell)
        else:
            answer = asked.release(
                epsilon=epsilon,
                delta=delta,
                noise=noise,
                ledger=opened,
                budget=budget,
                note=note,
                key=key,
                timeout=timeout,
            )
            result.update(
                rows=plain_rows(answer),
                entry=answer.entry,
                rank_error=dict(answer.rank_error),
                remarks=list(answer.remarks),
                level=answer.level,
                **_promise(answer.guarantee, answer.unit),
            )
            result["kept"] = read_again(ledger, budget, key or answer.entry)
            shown = str(answer)
        if not json:
            print_line(shown)


def _spell(name: str, value: object) -> str:
    """Spell an argument of a quote as an option."""
    return spell_option("about_rows" if name == "rows" else name, value)


def _types(texts: Sequence[str]) -> dict[str, Kind]:
    """Kinds of columns as written on the command line; `table` checks them."""
    found: dict[str, Any] = {}
    for text in texts:
        column, equals, kind = text.rpartition("=")
        if not equals or not column:
            raise ParameterError(f"--type takes COLUMN=KIND, got {text!r}")
        found[column.strip()] = kind.strip()
    return found


def _add_grouping(
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
    if text != text.strip():
        raise ParameterError(
            f"the key {text!r} of {column!r} begins or ends with a blank, and no group but one of "
            "just that name would be found: write A,B,C without blanks. A key that has one is "
            "asked for in Python"
        )
    return text


def _add_aggregates(
    asked: hs.Table,
    sums: _Many,
    means: _Many,
    variances: _Many,
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
    for text in histograms or ():
        column, low, high, bins = _parts("--histogram", text, 3)
        if not float(bins).is_integer():
            raise ParameterError(f"--histogram takes a whole number of bins, got {text!r}")
        asked = asked.histogram(column, low=low, high=high, bins=int(bins))
    return asked


def _add_quantiles(asked: hs.Table, quantiles: Sequence[str], candidates: int) -> hs.Table:
    """Add quantiles; those of one option are put in order."""
    for text in quantiles:
        bounds, _, listed = text.rpartition(":")
        try:
            wanted = [float(each) for each in listed.split(",")]
        except ValueError:
            bounds, wanted = "", []
        column, low, high = _parts("--quantile", bounds, 2, text)
        name = None if len(wanted) > 1 else f"quantile_{column}_{wanted[0]:g}"
        asked = asked.quantiles(
            column, wanted, low=low, high=high, candidates=candidates, name=name
        )
    return asked


def _parts(option: str, text: str, numbers: int, given: str | None = None) -> tuple[Any, ...]:
    """Column and numbers of ``COLUMN:LOW:HIGH...``; the column may hold colons."""
    column, *found = text.rsplit(":", numbers)
    try:
        values = [float(each) for each in found]
    except ValueError:
        values = []
    if len(values) != numbers:
        more = {"--quantile": ":PROBABILITY", "--histogram": ":BINS"}.get(option, "")
        raise ParameterError(f"{option} takes COLUMN:LOW:HIGH{more}, got {given or text!r}")
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
