"""The command for tables: query."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._types import ColumnType
from hushed.cli._kept import read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import KeyOption
from hushed.cli._outcome import finish, print_line, print_notes
from hushed.cli._panels import BOUNDS, LEDGER, NOISE, OUTPUT, QUERY, STATISTICS, TABLE
from hushed.cli._query_file import read_query_file
from hushed.cli._spelling import spell_option
from hushed.errors import ParameterError
from hushed.statistics._candidates import Spacing
from hushed.tables._expressions import find_column
from hushed.tables._plan import NoiseName
from hushed.tables._storage import plain_rows

_Many = list[str] | None
_SEARCHED = ("--sum", "--mean", "--variance")  # a bound of theirs may be the word search
_HINTS = {  # in place of those in Python
    "count": "add --count, --sum COLUMN:LOW:HIGH or another one",
    "header": 'give --header "patient;city;cost"',
    "keys": "give --keys A,B,C or --select-partitions",
    "max_groups_per_user": "give --max-groups-per-user N or --max-rows-per-user N",
    "max_rows_per_user": "give --max-rows-per-user N",
    "noise": "leave --delta out, or ask for --noise gaussian",
    "table": "name one with --table NAME",
    "types": "to read strings as numbers, declare the column type: --type COLUMN=float",
    "user": "give --user COLUMN",
}


def query(
    context: typer.Context,
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
            help="Column that identifies the user; without it the unit is one row.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    types: Annotated[
        _Many,
        typer.Option(
            "--type",
            help="COLUMN=TYPE, with the types int, float, string, bool, date, timestamp; repeat. "
            "The columns of a CSV file are strings unless declared.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(
            metavar="LINE",
            help="Column names for a CSV file without a line of names, with its delimiter: "
            "patient;city;cost. Then every line of the file is a row.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    max_rows_per_user: Annotated[
        int | None, typer.Option(help="Most rows of one user that count.", rich_help_panel=BOUNDS)
    ] = None,
    max_groups_per_user: Annotated[
        int | None,
        typer.Option(help="Most groups of one user that count.", rich_help_panel=BOUNDS),
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
    select_partitions: Annotated[
        bool,
        typer.Option(
            "--select-partitions/--no-select-partitions",
            help="Private partition selection: find the keys with noise; needs --delta.",
            rich_help_panel=QUERY,
        ),
    ] = False,
    count: Annotated[
        bool, typer.Option("--count/--no-count", help="Number of rows.", rich_help_panel=STATISTICS)
    ] = False,
    count_users: Annotated[
        bool,
        typer.Option(
            "--count-users/--no-count-users", help="Number of users.", rich_help_panel=STATISTICS
        ),
    ] = False,
    sum_of: Annotated[
        _Many,
        typer.Option(
            "--sum",
            help="COLUMN:LOW:HIGH; HIGH or LOW may be the word search; repeat.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    mean: Annotated[
        _Many,
        typer.Option(help="COLUMN:LOW:HIGH, as for --sum; repeat.", rich_help_panel=STATISTICS),
    ] = None,
    variance: Annotated[
        _Many,
        typer.Option(help="COLUMN:LOW:HIGH, as for --sum; repeat.", rich_help_panel=STATISTICS),
    ] = None,
    quantile: Annotated[
        _Many,
        typer.Option(
            help="COLUMN:LOW:HIGH:PROBABILITY, or several, whose answers are sorted: "
            "0.25,0.5,0.75; repeat.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    median: Annotated[
        _Many,
        typer.Option(help="COLUMN:LOW:HIGH, the quantile 0.5; repeat.", rich_help_panel=STATISTICS),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            help="Number of evenly spaced values from LOW to HIGH, among which a quantile is "
            "chosen; 2 to 10001. By default 2000, geometric if LOW is 0 or more.",
            rich_help_panel=STATISTICS,
        ),
    ] = None,
    spacing: Annotated[
        Spacing | None,
        typer.Option(help="Spacing of these values.", rich_help_panel=STATISTICS),
    ] = None,
    histogram: Annotated[
        _Many, typer.Option(help="COLUMN:LOW:HIGH:BINS; repeat.", rich_help_panel=STATISTICS)
    ] = None,
    delta: Annotated[
        float,
        typer.Option(help="For --select-partitions and Gaussian noise.", rich_help_panel=NOISE),
    ] = 0.0,
    noise: Annotated[
        NoiseName, typer.Option(help="Which noise.", rich_help_panel=NOISE)
    ] = "laplace",
    quote: Annotated[
        bool,
        typer.Option(
            "--quote/--no-quote",
            help="Show the price only: nothing is read or charged.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain/--no-explain",
            help="With --quote: show how far one user or row moves each number, and the noise "
            "that hides it.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    about_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Public guess of the number of rows in a group, for the error of means and "
            "variances in --quote.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Address of the ledger to charge.", rich_help_panel=LEDGER)
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Name of the budget in the ledger.", rich_help_panel=LEDGER)
    ] = None,
    note: Annotated[str, typer.Option(help="Note in the ledger.", rich_help_panel=LEDGER)] = "",
    key: KeyOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds that the query may take; not on Spark. A query that is stopped after "
            "the charge stays paid.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    file: Annotated[  # noqa: ARG001  (its callback reads it)
        Path | None,
        typer.Option(
            "--file",
            metavar="QUERY.toml",
            help="A TOML file with these options, by their names without dashes; options on the "
            "command line win.",
            is_eager=True,
            callback=read_query_file,
            rich_help_panel=QUERY,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json/--no-json", help="Print one JSON object.", rich_help_panel=OUTPUT),
    ] = False,
) -> None:
    """Query a private table for noisy aggregates."""
    with finish(json=json, hints=_HINTS) as result:
        with warnings.catch_warnings():  # they are printed below
            warnings.simplefilter("ignore", UserWarning)
            request = hs.table(data, table, user=user, types=_types(types or ()), header=header)
        print_notes(request.connection.warnings)
        for condition in where or ():
            request = request.filter(condition)
        for text in derive or ():
            name, found, expression = text.partition("=")
            if not found:
                raise ParameterError(f"--derive takes NAME=EXPRESSION, got {text!r}")
            request = request.derive(name.strip(), expression)
        if max_rows_per_user is not None or max_groups_per_user is not None:
            request = request.bound_contributions(
                max_rows_per_user=max_rows_per_user, max_groups_per_user=max_groups_per_user
            )
        request = _add_grouping(request, by or (), keys or (), select_partitions=select_partitions)
        request = request.count() if count else request
        request = request.count_users() if count_users else request
        request = _add_aggregates(request, sum_of, mean, variance, histogram)
        offered: dict[str, Any] = {"candidates": candidates, "spacing": spacing}
        request = _add_quantiles(request, quantile or (), offered)
        for text in median or ():
            column, low, high = _parts("--median", text, 2)
            request = request.quantiles(
                column, [0.5], low=low, high=high, name=f"median_{column}", **offered
            )
        if _is_typed(context, "about_rows") and not quote:
            raise ParameterError("--about-rows is for --quote")
        if explain and not quote:
            raise ParameterError("--explain is for --quote")
        with open_named(ledger, budget) as opened:
            if quote:
                price = request.quote(
                    epsilon=epsilon,
                    delta=delta,
                    noise=noise,
                    rows=about_rows,
                    ledger=opened,
                    budget=budget,
                )
                result.update(_price(price))
                shown = price.explain(_spell, distances=explain)
            else:
                answer = request.release(
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
                    candidates={name: asdict(each) for name, each in answer.candidates.items()},
                    bounds={name: list(ends) for name, ends in answer.bounds.items()},
                    warnings=list(answer.warnings),
                    level=answer.level,
                    **_promise(answer.guarantee, answer.unit),
                )
                result["kept"] = read_again(ledger, budget, key or answer.entry)
                shown = str(answer)
        if not json:
            print_line(shown)


def _is_typed(context: typer.Context, name: str) -> bool:
    """Tell whether an option stands on the command line itself, and not in a query file."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _spell(name: str, value: object) -> str:
    """Spell an argument of a quote as an option."""
    return spell_option("about_rows" if name == "rows" else name, value)


def _types(texts: Sequence[str]) -> dict[str, ColumnType]:
    """Read the column types of the command line; `table` checks them."""
    found: dict[str, Any] = {}
    for text in texts:
        column, equals, declared = text.rpartition("=")
        if not equals or not column:
            raise ParameterError(f"--type takes COLUMN=TYPE, got {text!r}")
        found[column.strip()] = declared.strip()
    return found


def _add_grouping(
    request: hs.Table, by: Sequence[str], keys: Sequence[str], *, select_partitions: bool
) -> hs.Table:
    if not by:
        if keys or select_partitions:
            raise ParameterError("--keys and --select-partitions need --by COLUMN")
        return request
    if not keys:
        return request.group_by(*by, select_partitions=select_partitions)
    if len(keys) != len(by):
        raise ParameterError(f"give --keys once for each --by: {len(by)} wanted, {len(keys)} given")
    known = {
        column: [_cell(value, request, column) for value in listed.split(",")]
        for column, listed in zip(by, keys, strict=True)
    }
    return request.group_by(*by, keys=known, select_partitions=select_partitions)


def _cell(text: str, request: hs.Table, column: str) -> Any:
    """Read a key of the command line as the type of its column."""
    column_type = request.columns[find_column(column, request.columns)]
    if column_type == "int":
        try:
            return int(text)
        except ValueError:
            raise ParameterError(f"a key of {column!r} must be an integer: {text!r}") from None
    if column_type == "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    if text != text.strip():
        raise ParameterError(
            f"the key {text!r} of {column!r} begins or ends with a blank, and would match only a "
            "key with that blank: write A,B,C without blanks. Use Python for keys with blanks"
        )
    return text


def _add_aggregates(
    request: hs.Table,
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
            request = method(request, column, low=low, high=high)
    for text in histograms or ():
        column, low, high, bins = _parts("--histogram", text, 3)
        if not float(bins).is_integer():
            raise ParameterError(f"--histogram takes an integer number of bins, got {text!r}")
        request = request.histogram(column, low=low, high=high, bins=int(bins))
    return request


def _add_quantiles(
    request: hs.Table, quantiles: Sequence[str], offered: dict[str, Any]
) -> hs.Table:
    """Add quantiles; those of one option are sorted."""
    for text in quantiles:
        bounds, _, listed = text.rpartition(":")
        try:
            wanted = [float(each) for each in listed.split(",")]
        except ValueError:
            bounds, wanted = "", []
        column, low, high = _parts("--quantile", bounds, 2, text)
        name = None if len(wanted) > 1 else f"quantile_{column}_{wanted[0]:g}"
        request = request.quantiles(column, wanted, low=low, high=high, name=name, **offered)
    return request


def _parts(option: str, text: str, numbers: int, given: str | None = None) -> tuple[Any, ...]:
    """Column and numbers of ``COLUMN:LOW:HIGH...``; the column may hold colons."""
    column, *found = text.rsplit(":", numbers)
    words = ("search",) if option in _SEARCHED else ()
    try:
        values: list[Any] = [each if each in words else float(each) for each in found]
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
        "distances": [asdict(each) for each in price.distances],
        "threshold": price.threshold,
        "level": price.level,
        "epsilon_left": left,
        **_promise(price.guarantee, price.unit),
    }
