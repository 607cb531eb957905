"""The command for tables: query."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._ground.numerals import read_number, read_whole
from hushed._ground.printing import plain_path
from hushed._ground.types import ColumnType
from hushed.cli._guesses import read_rows_per_user
from hushed.cli._joining import add_joins, joined_files
from hushed.cli._open_ledger import open_named
from hushed.cli._outcome import REFUSED, finish, print_line, print_note, print_notes
from hushed.cli._query_errors import check_target, describe_errors, read_errors
from hushed.cli._query_figures import check_plot, draw_answer, draw_errors
from hushed.cli._query_file import check_files, read_question, spell_hints, write_files
from hushed.cli._query_options import Asked, Files, Many, Opened, Price, TimeoutOption
from hushed.cli._query_together import check_several, describe_together, quote_together, say_unfit
from hushed.cli._records import Account, take_records
from hushed.cli._release_words import read_again
from hushed.cli._spelling import Hint, describe_error, spell_option
from hushed.cli._written import files_of, inputs_of
from hushed.errors import Overspent, ParameterError
from hushed.tables._export import declared_types
from hushed.tables._expressions import find_column
from hushed.tables._left_out import remark_of
from hushed.tables._open import open_table
from hushed.tables._quote_for import QuotedErrors
from hushed.tables._storage import plain_rows

_FILES_OF_ROWS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")
_SEARCHED = ("--sum", "--mean", "--variance")  # a bound of theirs may be the word search


def _spell_types(hint: str) -> str:
    """Spell the advice to declare the type of a column, which names it."""
    declared = literal_eval(hint.partition("types=")[2])
    return f"{hint.partition(',')[0]}, declare the column type: " + " ".join(
        f"--type {quote(f'{column}={kind}')}" for column, kind in declared.items()
    )


_HINTS: dict[str, Hint] = {  # in place of those in Python
    "count": "add --count, --sum COLUMN:LOW:HIGH or another one",
    "header": 'give --header "patient;city;cost"',
    "keys": "give --keys A,B,C or --select-partitions",
    "max_groups_per_user": "give --max-groups-per-user N or --max-rows-per-user N",
    "max_rows_per_user": "give --max-rows-per-user N",
    "rows": "give --about-rows, such as --about-rows 100",
    "noise": "leave --delta out, or ask for --noise gaussian",
    "table": "name one with --table NAME",
    "types": _spell_types,
    "user": "give --user COLUMN",
    "users_are_public": "join private tables of one database with --join-users; only if everybody "
    "may know these users, and all that the file says of them, give --users-are-public",
}


@take_records
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
    price: Price,
    opened: Opened,
    asked: Asked,
    account: Account,
    files: Files,
    timeout: TimeoutOption = None,
) -> None:
    """Query a private table for noisy aggregates."""
    answer, written = None, ""
    several = files.file or []
    file = several[0] if several else None
    with finish(json=files.json, hints=spell_hints(file, files.question, _HINTS)) as result:
        check_target(
            price.epsilon, price.error or (), price.rows, quote=price.quote, share=price.share
        )
        if price.explain and not price.quote:
            raise ParameterError("--explain is for --quote")
        if len(several) > 1:
            check_several(files, price)
            _quote_several(context, data, price, opened, asked, account, files, result)
            return
        request = _build(context, data, opened, asked, file, files.question)
        terms: dict[str, Any] = {"delta": price.delta, "noise": price.noise}
        terms["rows_per_user"] = read_rows_per_user(price.rows_per_user, data, request.query.user)
        solved = _solve(request, price, terms)
        terms["epsilon"] = price.epsilon
        if solved is not None:
            request, terms["epsilon"] = solved.table, solved.epsilon
            result.update(describe_errors(solved))
        read = inputs_of(data, file, price.rows_per_user, *joined_files(asked))
        taken = (*read, *files_of(account.ledger))
        check_files(files.save, files.out, *taken, force=files.force, quote=price.quote)
        check_plot(files.plot, files.save, request, taken, quote=price.quote)
        written = "" if files.save is None else hs.Query.of(request).to_toml()
        _note_unit(request, file)
        with open_named(account.ledger, account.budget) as ledger:
            if price.quote:
                quoted, unfit = _quote(request, price, terms, ledger, account.budget)
                result.update(_price(quoted), refusal=unfit or None)
                draw_errors(files.plot, request, terms, price.rows)
                told = _say_price(quoted, unfit, solved, whole=price.explain)
            else:
                answer = request.release(
                    timeout=timeout, progress=True, **terms, **account.charge(ledger)
                )
                result.update(_answer(answer))
                named = account.key or answer.entry
                result["kept"] = read_again(account.ledger, account.budget, named)
                told = str(answer)
        if not files.json:
            print_line(told)
    kept = result.get("kept", "")
    write_files(files.save, written, files.out, answer, force=files.force, kept=kept)
    draw_answer(files.plot, answer, kept)
    if result.get("refusal"):
        raise typer.Exit(REFUSED)


def _note_unit(request: hs.Table, file: Path | None) -> None:
    """Say how a person of several rows is protected, where each row is."""
    if request.unit == "row":
        how = "with --user" if file is None else f'by user = "COLUMN" in {file.name}'
        print_note(f"protected is each row: if a person may have several, name their column {how}")


def _quote_several(
    context: typer.Context,
    data: str,
    price: Price,
    opened: Opened,
    asked: Asked,
    account: Account,
    files: Files,
    result: dict[str, Any],
) -> None:
    """Quote several questions, and what they cost together."""
    terms: dict[str, Any] = {
        "epsilon": price.epsilon,
        "delta": price.delta,
        "noise": price.noise,
        "rows": price.rows,
    }

    def quote(file: Path) -> tuple[hs.Quote, str | None]:
        try:
            request = _build(context, data, opened, asked, file, files.question)
            guess = read_rows_per_user(price.rows_per_user, data, request.query.user)
            return request.quote(**terms, rows_per_user=guess), request.query.user
        except ParameterError as error:
            said = describe_error(error, spell_hints(file, None, _HINTS))
            named = said.startswith((file.name, "--"))
            raise ParameterError(said if named else f"{file.name}: {said}") from None

    check_files(None, files.out, force=files.force, quote=True)
    with open_named(account.ledger, account.budget) as ledger:
        found = quote_together(files.file or [], quote, ledger, account.budget)
    result.update(describe_together(found, _price))
    if not files.json:
        print_line(found.explain(lambda each: each.explain(spell_option, distances=price.explain)))
    if found.unfit:
        result["exit_code"] = REFUSED


def _build(
    context: typer.Context,
    data: str,
    opened: Opened,
    asked: Asked,
    file: Path | None,
    question: str | None,
) -> hs.Table:
    """Build what is asked: from a file of its own, or from the options."""
    dialect: dict[str, Any] = {
        "header": opened.header,
        "newlines_in_values": opened.newlines_in_values,
    }
    whole = read_question(context, file, question)
    if whole is not None:
        declared = declared_types(whole, data)
        return _open(data, opened.table, whole.user, declared, **dialect).ask(whole)
    request = _open(data, opened.table, opened.user, _types(opened.types or ()), **dialect)
    first = _count_keys(asked)
    request = add_joins(_derive(request, asked, 0, first), asked, data, _cell)
    for condition in asked.where or ():
        request = request.filter(condition)
    request = _derive(request, asked, first)
    if asked.max_rows_per_user is not None or asked.max_groups_per_user is not None:
        request = request.bound_contributions(
            max_rows_per_user=asked.max_rows_per_user,
            max_groups_per_user=asked.max_groups_per_user,
        )
    request = _add_grouping(request, asked)
    return _add_quantiles(_add_aggregates(request, asked), asked)


def _solve(request: hs.Table, price: Price, terms: Mapping[str, Any]) -> QuotedErrors | None:
    """Find the smallest epsilon that keeps the errors, where they were given."""
    if not price.error:
        return None
    return request.quote_for(
        errors=read_errors(price.error),
        rows=price.rows,
        share=price.share,
        **terms,
    )


def _quote(
    request: hs.Table,
    price: Price,
    terms: Mapping[str, Any],
    ledger: hs.Ledger | None,
    budget: str | None,
) -> tuple[hs.Quote, str]:
    """Quote a price, also one that the budget has no room for; then with the words of that."""
    try:
        return request.quote(rows=price.rows, **terms, ledger=ledger, budget=budget), ""
    except Overspent as refusal:
        return request.quote(rows=price.rows, **terms), say_unfit(refusal)


def _say_price(quoted: hs.Quote, unfit: str, solved: QuotedErrors | None, *, whole: bool) -> str:
    told = quoted if solved is None else replace(solved, quote=quoted)
    return told.explain(spell_option, distances=whole) + (
        f"\nthe query does not fit: {unfit}" if unfit else ""
    )


def _open(
    data: str, table: str | None, user: str | None, types: Mapping[str, Any], **dialect: Any
) -> hs.Table:
    if table is not None and Path(data).suffix.lower() in _FILES_OF_ROWS:
        raise ParameterError(
            f"--table names a table in a database, and {plain_path(data)} is a file: leave it out"
        )
    request = open_table(data, table or "rows", user=user, types=types, **dialect)
    print_notes(request.connection.told)
    return request


def _count_keys(asked: Asked) -> int:
    """Count the derived columns before the joins: up to the last one that a join names."""
    joined = {text.rpartition(":")[2] for text in asked.join or ()}
    names = [text.partition("=")[0].strip() for text in asked.derive or ()]
    return max((i for i, name in enumerate(names, 1) if name in joined), default=0)


def _derive(request: hs.Table, asked: Asked, begin: int, end: int | None = None) -> hs.Table:
    for text in (asked.derive or [])[begin:end]:
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


def _add_grouping(request: hs.Table, asked: Asked) -> hs.Table:
    """Group by keys, or choose the top of them."""
    tops = {"rows": asked.top_k, "users": asked.top_k_users}
    chosen = {of: k for of, k in tops.items() if k is not None}
    by, keys = asked.by or (), asked.keys or ()
    if not by:
        if keys or asked.select_partitions or chosen:
            raise ParameterError(
                "--keys, --select-partitions, --top-k and --top-k-users need --by COLUMN"
            )
        return request
    if chosen and (asked.select_partitions or not keys or len(chosen) > 1):
        raise ParameterError(
            "a top is a query of its own, among public keys: give --top-k or --top-k-users, and "
            "--keys once for each --by"
        )
    if not keys:
        return request.group_by(*by, select_partitions=asked.select_partitions)
    if len(keys) != len(by):
        raise ParameterError(f"give --keys once for each --by: {len(by)} wanted, {len(keys)} given")
    known = {
        column: [_cell(value, request, column) for value in listed.split(",")]
        for column, listed in zip(by, keys, strict=True)
    }
    for of, k in chosen.items():
        return request.top_k(*by, k=k, keys=known, of=of)  # type: ignore[arg-type]
    return request.group_by(*by, keys=known, select_partitions=asked.select_partitions)


def _cell(text: str, request: hs.Table, column: str) -> Any:
    """Read a key of the command line as the type of its column."""
    column_type = request.columns[find_column(column, request.columns)]
    if column_type == "int":
        try:
            return read_whole(text.strip())
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


def _add_aggregates(request: hs.Table, asked: Asked) -> hs.Table:
    """Add counts, sums, means, variances and histograms."""
    request = request.count() if asked.count else request
    request = request.count_users() if asked.count_users else request
    plain: list[tuple[str, Many, Callable[..., hs.Table]]] = [
        ("--sum", asked.sum_of, hs.Table.sum),
        ("--mean", asked.mean, hs.Table.mean),
        ("--variance", asked.variance, hs.Table.variance),
    ]
    for option, texts, method in plain:
        for text in texts or ():
            column, low, high = _parts(option, text, 2)
            request = method(request, column, low=low, high=high)
    for text in asked.histogram or ():
        column, low, high, bins = _parts("--histogram", text, 3)
        if not float(bins).is_integer():
            raise ParameterError(f"--histogram takes an integer number of bins, got {text!r}")
        request = request.histogram(column, low=low, high=high, bins=int(bins))
    return request


def _add_quantiles(request: hs.Table, asked: Asked) -> hs.Table:
    """Add quantiles, of which those of one option are sorted, and medians."""
    offered: dict[str, Any] = {"candidates": asked.candidates, "spacing": asked.spacing}
    for text in asked.quantile or ():
        bounds, _, listed = text.rpartition(":")
        try:
            wanted = [read_number(each.strip()) for each in listed.split(",")]
        except ValueError:
            bounds, wanted = "", []
        column, low, high = _parts("--quantile", bounds, 2, text)
        if not all(0 < each < 1 for each in wanted):
            raise ParameterError(
                f"--quantile takes COLUMN:LOW:HIGH:PROBABILITY, got {text!r}; the probability, or "
                "several with commas between them, comes last and lies between 0 and 1"
            )
        name = None if len(wanted) > 1 else f"quantile_{column}_{wanted[0]:g}"
        request = request.quantiles(column, wanted, low=low, high=high, name=name, **offered)
    for text in asked.median or ():
        column, low, high = _parts("--median", text, 2)
        request = request.median(column, low=low, high=high, **offered)
    return request


def _parts(option: str, text: str, numbers: int, given: str | None = None) -> tuple[Any, ...]:
    """Column and numbers of ``COLUMN:LOW:HIGH...``; the column may hold colons."""
    column, *found = text.rsplit(":", numbers)
    words = ("search",) if option in _SEARCHED else ()
    try:
        values: list[Any] = [each if each in words else read_number(each.strip()) for each in found]
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
        "edges": {name: list(edges) for name, edges in answer.edges.items()},
        "probabilities": {name: list(asked) for name, asked in answer.probabilities.items()},
        "not_included": {name: remark_of(answer, name) for name in answer.values},
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
