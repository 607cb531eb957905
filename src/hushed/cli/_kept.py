"""The command ``hushed ledger answer``."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._ground.numerals import is_whole_number
from hushed.cli._options import BudgetArgument, JsonOption, LedgerArgument, option
from hushed.cli._outcome import finish, print_line
from hushed.cli._panels import OUTPUT
from hushed.cli._query_figures import draw_answer
from hushed.cli._query_file import check_files, write_content
from hushed.cli._query_options import OUT
from hushed.cli._release_words import describe_release
from hushed.cli._written import check_figure, files_of
from hushed.errors import BadFunction, NotFound, ParameterError, QueryFailed
from hushed.ledger._failures import raise_failure
from hushed.releasing._stored import read_release
from hushed.tables._layout import render
from hushed.tables._storage import read_answer


def answer(
    ledger: LedgerArgument,
    budget: BudgetArgument,
    name: Annotated[
        str,
        typer.Argument(metavar="KEY|NUMBER", help="Key of the release, or number of its entry."),
    ],
    out: Annotated[
        Path | None,
        option(
            f"{OUT} Of a release that was no query, its certificate, to a name that ends in .json.",
            OUTPUT,
            metavar="FILE",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        option("Draw the answer of a query to a file: .svg, .png or .html.", OUTPUT),
    ] = None,
    force: Annotated[bool, option("With --out: replace the file.", OUTPUT, "--force")] = False,
    json: JsonOption = False,
) -> None:
    """Read a released answer again; nothing is charged."""
    with finish(json=json, stopped="stopped; nothing was charged") as result:
        check_files(None, out, *files_of(ledger), force=force, quote=False)
        check_figure(plot)
        with hs.Ledger(ledger, create=False) as book:
            number = is_whole_number(name)
            text = book.answer(budget, int(name) if number else name)
        if text is None:
            raise NotFound(
                f"no answer is stored in budget {budget!r} under {name!r}: neither a key nor a "
                "number of an entry that released something"
            )
        result.update(_record(text))
        content, asked = _render(text, out, plot)
        if not json:
            print_line(_plain(_describe_answer(text)))
    write_content(out, content, force=force)
    draw_answer(plot, asked)


def _render(text: str, out: Path | None, plot: Path | None) -> tuple[bytes, hs.Answer | None]:
    """Give the content of the file of a stored answer; and the answer, where a query asked for it.

    A failure that was stored is raised: there is no answer to write.
    """
    if out is None and plot is None:
        return b"", None
    raise_failure(text)
    schema = _record(text).get("schema")
    if schema == "hushed answer":
        found = read_answer(text)
        return b"" if out is None else render(found, out.suffix), found
    if plot is not None:
        raise ParameterError("--plot draws the answer of a query, and this is none")
    if out is not None and out.suffix != ".json":
        raise ParameterError(
            f"this is the answer of no query: --out takes a file that ends in .json, got {out.name}"
        )
    stored = read_release(text)[1].to_json() if schema == "hushed release" else text
    return f"{stored.rstrip()}\n".encode(), None


def _plain(text: str) -> str:
    """Spell out what could steer a terminal: whoever may append may have stored any text."""
    return "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text
    )


def _record(text: str) -> dict[str, Any]:
    """Read a stored answer as JSON; what is none is a text."""
    try:
        found = loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):  # of numbers that JSON has not, too
        found = text
    return found if isinstance(found, dict) else {"answer": found}


def _refuse(name: str) -> None:
    raise ValueError(name)


def _describe_answer(text: str) -> str:
    """Put a stored answer into words; one of a kind that is not known here stays as it is."""
    try:
        raise_failure(text)
    except (BadFunction, QueryFailed) as failure:
        return f"{type(failure).__name__}: {failure}"
    schema = _record(text).get("schema")
    if schema == "hushed answer":
        return str(read_answer(text))
    for check in (hs.PopulationCheck, hs.MovementCheck):
        if schema == check.schema:
            return check.from_json(text).explain()
    if schema != "hushed release":
        return text
    value, certificate = read_release(text)
    return describe_release(value, certificate)
