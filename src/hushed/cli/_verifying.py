"""The command ``hushed verify``: what of a certificate can be checked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import hushed as hs
from hushed._functions._loading import read_function
from hushed._ground.whole_files import write_whole
from hushed.cli._delivery import check_files
from hushed.cli._inputs import in_blocks, read_population
from hushed.cli._keys import read_key
from hushed.cli._options import (
    HeaderOption,
    JsonOption,
    KeepOption,
    KeepPrivateOption,
    MissingOption,
    WorkersOption,
    option,
    read_keep,
)
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_note
from hushed.cli._panels import LEDGER, OUTPUT, ROWS
from hushed.cli._public_cells import MISSING_ALONE, Missing
from hushed.cli._record_files import read_record
from hushed.cli._tables import Frame
from hushed.cli._written import files_of, inputs_of
from hushed.errors import NotFound, ParameterError
from hushed.mechanisms._calibrated import answers_of
from hushed.mechanisms._registry import MECHANISMS
from hushed.populations import PublicTable, Simulator
from hushed.releasing import Verification
from hushed.releasing._verification import say_missing
from hushed.statements import StatementCheck, open_signed
from hushed.statements._kinds import kind_of_record
from hushed.statements._signing import is_signed, read_unchecked
from hushed.statements._statement import is_statement
from hushed.statements._verification import check_alone

_TAKES = "verify takes a certificate: what --out of hushed certify, release and others wrote"


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="JSON written by release --out, or certify."),
    ],
    function: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE.py:NAME]",
            help="The function that was released; not needed if the sensitivity was proven.",
        ),
    ] = None,
    population: Annotated[
        str | None,
        option("The public file or simulator, if the certificate names one.", ROWS),
    ] = None,
    frame: Annotated[
        Frame | None,
        option(
            "What the function gets: array or frame; by default what it was sampled with.", ROWS
        ),
    ] = None,
    header: HeaderOption = None,
    missing: MissingOption = None,
    accept_rounding: Annotated[
        bool,
        typer.Option(
            "--accept-rounding",
            help="Exit with 0 also if movements differ by rounding, as between two computers.",
        ),
    ] = False,
    workers: WorkersOption = None,
    keep: KeepOption = None,
    keep_private: KeepPrivateOption = False,
    ledger: Annotated[
        str | None, option("The ledger that was charged: is the entry in it?", LEDGER)
    ] = None,
    key: Annotated[
        Path | None,
        option("Public key of whoever has to have signed it: FILE.pub of hushed keys.", ROWS),
    ] = None,
    html: Annotated[
        Path | None,
        option("Write the certificate, signed or not, as a page, if nothing differs.", OUTPUT),
    ] = None,
    force: Annotated[
        bool, option("Replace a file that is no earlier certificate.", OUTPUT, "--force")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check a certificate: what follows from it, and its sampling again, bit for bit.

    For a proven sensitivity, whose proof is not checked, and for the answer of a query, the numbers
    that follow. Without the function of a sampled one the rest is checked, and --html writes the
    page: exit status 2. With --ledger whether it was charged, and what for.
    """
    # 1 says that it does not hold: whatever keeps it from being checked is a 2.
    with finish(json=json, refused=BAD_USE, unheld=REFUSED) as result:
        if missing is not None and population is None:
            raise ParameterError(MISSING_ALONE.format("--population"))
        named = inputs_of(certificate, key, function, population)
        check_files(None, html, (*named, *files_of(ledger)), force=force)
        text = read_record(certificate, _TAKES)
        pem = None if key is None else read_key(key)
        known = _read_certificate(text, pem)
        inner = known.subject.certificate if _is_release(known) else known
        f = None if function is None else read_function(function)
        source, lacking = None, ""
        if isinstance(inner, hs.Certificate):
            lacking = say_missing(inner) if function is None and population is None else ""
            f = None if f is None else _as_released(f, inner)
            held = frame or _frame_of(inner)
            source = _read_named(population, inner, held, header, missing) if population else None
        elif population is not None:
            raise ParameterError(f"the certificate of {known.kind} has no population")
        with _open(ledger) as book:
            found: Verification | StatementCheck
            if lacking:
                found = check_alone(text, lacking, ledger=book, key=pem)
            else:
                found = hs.verify(
                    text,
                    f,
                    population=source,
                    workers=workers,
                    progress=True,
                    keep=read_keep(keep, private=keep_private),
                    ledger=book,
                    key=pem,
                )
        result.update(asdict(found))
        accepted = ("bits", "rounding") if accept_rounding else ("bits",)
        whole = BAD_USE if lacking else 0  # what was checked holds, and it was not all
        result["exit_code"] = whole if found.agreement in accepted else REFUSED
        if not json:
            print_line(found.explain())
        if html is not None:
            _write_page(html, text, pem, agreement=found.agreement)


def _write_page(html: Path, text: str, key: bytes | None, *, agreement: str) -> None:
    """Write the page of a certificate that was checked; there is none of one that differs."""
    from hushed.plots import certificate_page  # noqa: PLC0415

    if agreement == "different":
        print_note("no page was written: the certificate does not hold")
        return
    write_whole(html, certificate_page(text, key=key))
    print_note(f"page written to {html}")


def _is_release(known: Any) -> bool:
    return isinstance(known, hs.Statement) and known.kind == "release"


def _as_released(f: Any, known: hs.Certificate) -> Any:
    """Put a function into the form in which it was sampled."""
    if known.mechanism.name in MECHANISMS:
        f = answers_of(MECHANISMS[known.mechanism.name], f, known.mechanism.parameters)
    if known.sampling is not None and known.sampling.blocks > 1:
        size = known.sampling.rows // known.sampling.blocks
        f = in_blocks(f, size, known.sampling.user)
    return f


@contextmanager
def _open(ledger: str | None) -> Iterator[hs.Ledger | None]:
    if ledger is None:
        yield None
        return
    with hs.Ledger(ledger, create=False) as book:
        yield book


def _read_certificate(text: str, key: bytes | None) -> Any:
    """Read a certificate; of a signed one only what a given key has signed."""
    if is_signed(text):
        return read_unchecked(text) if key is None else open_signed(text, key)
    if is_statement(text):
        return hs.Statement.from_json(text)
    with suppress(ParameterError):
        kind = kind_of_record(text).name
        raise NotFound(
            f"this file holds what was released ({kind}), and no certificate of it: hushed certify "
            "writes one"
        )
    return hs.Certificate.from_json(text)


def _frame_of(known: hs.Certificate) -> Frame:
    """Say what held the rows when they were sampled."""
    held = "" if known.sampling is None else known.sampling.container
    return "pandas" if held == "pandas" else "polars" if held == "polars" else "numpy"


def _read_named(
    spec: str,
    known: hs.Certificate,
    frame: Frame,
    header: bool | None,
    missing: Missing | None,
) -> hs.populations.Population:
    """Read a population that a certificate names, with the ranges that it states."""
    whose = None if known.sampling is None else known.sampling.user
    user = whose if whose is None or isinstance(whose, str) else str(whose + 1)
    source, _ = read_population(spec, frame, header=header, missing=missing, user=user)
    if known.sampling is None or not isinstance(source, PublicTable | Simulator):
        return source
    ends = {
        column: (-math.inf if low is None else low, math.inf if high is None else high)
        for column, low, high, _ in known.sampling.support
    }
    return replace(source, bounds=ends or None)
