"""The command for tables: query."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._types import ColumnType
from hushed.cli import _query_options as options
from hushed.cli._kept import read_again
from hushed.cli._ledgers import open_named
from hushed.cli._options import BudgetOption, KeyOption
from hushed.cli._outcome import finish, print_line, print_notes
from hushed.cli._query_errors import check_target, describe_errors, read_errors
from hushed.cli._query_file import read_question, save_question, write_answer
from hushed.cli._spelling import spell_option
from hushed.cli._written import files_of, inputs_of
from hushed.errors import ParameterError
from hushed.tables._export import declared_types
from hushed.tables._expressions import find_column
from hushed.tables._storage import plain_rows

_SEARCHED = ("--sum", "--mean", "--variance")  # a bound of theirs may be the word search
_HINTS = {  # in place of those in Python
    "count": "add --count, --sum COLUMN:LOW:HIGH or another one",
    "header": 'give --header "patient;city;cost"',
    "keys": "give --keys A,B,C or --select-partitions",
    "max_groups_per_user": "give --max-groups-per-user N or --max-rows-per-user N",
    "max_rows_per_user": "give --max-rows-per-user N",
    "rows": "give --about-rows, such as --about-rows 100",
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
    epsilon: options.Epsilon = None,
    error: options.Error = None,
    share: options.Share = "weights",
    table: options.Table = "rows",
    user: options.User = None,
    types: options.Types = None,
    header: options.Header = None,
    max_rows_per_user: options.MaxRowsPerUser = None,
    max_groups_per_user: options.MaxGroupsPerUser = None,
    where: options.Where = None,
    derive: options.Derive = None,
    by: options.By = None,
    keys: options.Keys = None,
    select_partitions: options.SelectPartitions = False,
    count: options.Count = False,
    count_users: options.CountUsers = False,
    sum_of: options.Sum = None,
    mean: options.Mean = None,
    variance: options.Variance = None,
    quantile: options.Quantile = None,
    median: options.Median = None,
    top_k: options.TopK = None,
    top_k_users: options.TopKUsers = None,
    candidates: options.Candidates = None,
    spacing: options.Spacing = None,
    histogram: options.Histogram = None,
    delta: options.Delta = 0.0,
    noise: options.Noise = "laplace",
    quote: options.Quote = False,
    explain: options.Explain = False,
    rows: options.AboutRows = None,
    ledger: options.Ledger = None,
    budget: BudgetOption = None,
    note: options.Note = "",
    key: KeyOption = None,
    timeout: options.Timeout = None,
    file: options.QueryFile = None,
    question: options.Question = None,
    save: options.Save = None,
    out: options.Out = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Query a private table for noisy aggregates."""
    answer = None
    with finish(json=json, hints=_HINTS) as result:
        check_target(epsilon, error or (), rows, quote=quote, share=share)
        whole = read_question(context, file, question)
        if whole is None:
            request = _open(data, table, user, _types(types or ()), header)
            request = _add_columns(request, where or (), derive or ())
            if max_rows_per_user is not None or max_groups_per_user is not None:
                request = request.bound_contributions(
                    max_rows_per_user=max_rows_per_user, max_groups_per_user=max_groups_per_user
                )
            tops = {"rows": top_k, "users": top_k_users}
            request = _add_grouping(
                request, by or (), keys or (), select_partitions=select_partitions, tops=tops
            )
            request = request.count() if count else request
            request = request.count_users() if count_users else request
            request = _add_aggregates(request, sum_of, mean, variance, histogram)
            offered: dict[str, Any] = {"candidates": candidates, "spacing": spacing}
            request = _add_quantiles(request, quantile or (), offered)
            request = _add_medians(request, median or (), offered)
        else:
            declared = declared_types(whole, data)
            request = _open(data, table, whole.user, declared, header).ask(whole)
        if explain and not quote:
            raise ParameterError("--explain is for --quote")
        terms: dict[str, Any] = {"delta": delta, "noise": noise}
        solved = None
        if error:
            wanted = read_errors(error)
            solved = request.quote_for(errors=wanted, rows=rows, share=share, **terms)
            request, epsilon = solved.table, solved.epsilon
            result.update(describe_errors(solved))
        taken = (*inputs_of(data, file), *files_of(ledger))
        save_question(save, out, request, *taken, force=force, quote=quote)
        with open_named(ledger, budget) as opened:
            asked: dict[str, Any] = {
                **terms,
                "epsilon": epsilon,
                "ledger": opened,
                "budget": budget,
            }
            if quote:
                price = request.quote(rows=rows, **asked)
                result.update(_price(price))
                told = price if solved is None else replace(solved, quote=price)
                shown = told.explain(spell_option, distances=explain)
            else:
                answer = request.release(note=note, key=key, timeout=timeout, **asked)
                result.update(_answer(answer))
                result["kept"] = read_again(ledger, budget, key or answer.entry)
                shown = str(answer)
        if not json:
            print_line(shown)
    write_answer(out, answer, force=force)


def _open(
    data: str, table: str, user: str | None, types: Mapping[str, Any], header: str | None
) -> hs.Table:
    with warnings.catch_warnings():  # they are printed below
        warnings.simplefilter("ignore", UserWarning)
        request = hs.table(data, table, user=user, types=types, header=header)
    print_notes(request.connection.warnings)
    return request


def _add_columns(request: hs.Table, where: Sequence[str], derive: Sequence[str]) -> hs.Table:
    for condition in where:
        request = request.filter(condition)
    for text in derive:
        name, found, expression = text.partition("=")
        if not found:
            raise ParameterError(f"--derive takes NAME=EXPRESSION, got {text!r}")
        request = request.derive(name.strip(), expression)
    return request


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
    request: hs.Table,
    by: Sequence[str],
    keys: Sequence[str],
    *,
    select_partitions: bool,
    tops: Mapping[str, int | None],
) -> hs.Table:
    """Group by keys, or choose the top of them."""
    asked = {of: k for of, k in tops.items() if k is not None}
    if not by:
        if keys or select_partitions or asked:
            raise ParameterError(
                "--keys, --select-partitions, --top-k and --top-k-users need --by COLUMN"
            )
        return request
    if asked and (select_partitions or not keys or len(asked) > 1):
        raise ParameterError(
            "a top is a query of its own, among public keys: give --top-k or --top-k-users, and "
            "--keys once for each --by"
        )
    if not keys:
        return request.group_by(*by, select_partitions=select_partitions)
    if len(keys) != len(by):
        raise ParameterError(f"give --keys once for each --by: {len(by)} wanted, {len(keys)} given")
    known = {
        column: [_cell(value, request, column) for value in listed.split(",")]
        for column, listed in zip(by, keys, strict=True)
    }
    for of, k in asked.items():
        return request.top_k(*by, k=k, keys=known, of=of)  # type: ignore[arg-type]
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
    sums: options.Many,
    means: options.Many,
    variances: options.Many,
    histograms: options.Many,
) -> hs.Table:
    plain: list[tuple[str, options.Many, Callable[..., hs.Table]]] = [
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


def _add_medians(request: hs.Table, medians: Sequence[str], offered: dict[str, Any]) -> hs.Table:
    for text in medians:
        column, low, high = _parts("--median", text, 2)
        request = request.quantiles(
            column, [0.5], low=low, high=high, name=f"median_{column}", **offered
        )
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
        ends = "LOW and HIGH are numbers" + (", or the word search" if words else "")
        raise ParameterError(f"{option} takes COLUMN:LOW:HIGH{more}, got {given or text!r}; {ends}")
    return (column, *values)


def _promise(guarantee: hs.Guarantee, unit: str) -> dict[str, Any]:
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": guarantee.neighbours,
        "unit": unit,
    }


def _answer(answer: hs.Answer) -> dict[str, Any]:
    return {
        "rows": plain_rows(answer),
        "entry": answer.entry,
        "rank_error": dict(answer.rank_error),
        "shortfall": dict(answer.shortfall),
        "candidates": {name: asdict(each) for name, each in answer.candidates.items()},
        "bounds": {name: list(ends) for name, ends in answer.bounds.items()},
        "warnings": list(answer.warnings),
        "level": answer.level,
        **_promise(answer.guarantee, answer.unit),
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
