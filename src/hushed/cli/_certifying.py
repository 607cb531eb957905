"""The commands ``certify``, ``study`` and ``report``: certificates of what was released."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from json import loads
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

import hushed as hs
from hushed._ground.numerals import is_whole_number
from hushed._ground.printing import flat
from hushed._ground.whole_files import write_whole
from hushed.cli._delivery import check_files, write_files
from hushed.cli._keys import read_key
from hushed.cli._options import BudgetArgument, BudgetOption, JsonOption, LedgerArgument, option
from hushed.cli._outcome import finish, print_line, print_note
from hushed.cli._panels import CONTEXT, LEDGER, NOISE, OUTPUT
from hushed.cli._record_files import read_record
from hushed.cli._records import take_records
from hushed.cli._written import files_of
from hushed.errors import DoesNotHold, ParameterError
from hushed.statements import public_key
from hushed.statements import sign as sign_statement
from hushed.statements._certifying import certify_record
from hushed.statements._signing import is_signed, read_unchecked
from hushed.statements._statement import is_statement

_STOPPED = "stopped; nothing was charged"
_ANSWER = (
    "certify takes what --out of hushed query wrote; for an answer that a ledger stores say "
    "--ledger ADDRESS --budget NAME --entry NUMBER, as hushed ledger show ADDRESS lists them"
)
_PART = "study takes certificates, which --out of hushed certify writes"


@dataclass(frozen=True, kw_only=True)
class Said:
    """What is said on the certificate, and nobody can check."""

    data: Annotated[str, option("Name of the data set, as its keepers call it.", CONTEXT)] = ""
    note: Annotated[str, option("What it was released, or made, for.", CONTEXT)] = ""
    actor: Annotated[str, option("Who released it, or made the page.", CONTEXT)] = ""


@dataclass(frozen=True, kw_only=True)
class Files:
    """Where a certificate goes, and who signs it."""

    out: Annotated[Path | None, option("Write the certificate as JSON.", OUTPUT)] = None
    html: Annotated[
        Path | None, option("Write the certificate as a page, which prints on two sides.", OUTPUT)
    ] = None
    sign: Annotated[
        Path | None,
        option(
            "Sign what --out writes with this private key, of hushed keys new.", OUTPUT, "--sign"
        ),
    ] = None
    force: Annotated[
        bool, option("Replace files that are not earlier certificates.", OUTPUT, "--force")
    ] = False
    json: JsonOption = False


@take_records
def certify(
    said: Said,
    files: Files,
    answer: Annotated[
        Path | None,
        typer.Argument(
            metavar="[ANSWER.json]", help="What query --out wrote; or say --ledger and --entry."
        ),
    ] = None,
    ledger: Annotated[
        str | None, option("Where it was charged, and is stored with its entry.", LEDGER)
    ] = None,
    budget: BudgetOption = None,
    entry: Annotated[
        str | None, option("Number, or key, of the entry.", LEDGER, metavar="KEY|NUMBER")
    ] = None,
) -> None:
    """Certify what was released: value, promise, data set, person and charge."""
    with _deliver([answer], ledger, files) as made:
        stored = (ledger, budget, entry)
        if (answer is None) == (stored == (None, None, None)) or (
            answer is None and None in stored
        ):
            raise ParameterError(
                "name the file of an answer, or --ledger, --budget and --entry, all three"
            )
        if answer is not None:
            record = read_record(answer, _ANSWER)
            if is_signed(record) or is_statement(record):
                key = " --key KEY.pub" if is_signed(record) else ""
                raise ParameterError(
                    f"{answer.name} is a certificate already: hushed verify {quote(str(answer))}"
                    f"{key} --html PAGE checks it and writes it as a page"
                )
            made.append(certify_record(record, **asdict(said)))
        else:
            with hs.Ledger(str(ledger), create=False) as book:
                named = _name(str(entry))
                made.append(hs.certify(named, ledger=book, budget=budget, **asdict(said)))


@take_records
def study(
    certificates: Annotated[
        list[Path],
        typer.Argument(metavar="CERTIFICATE...", help="What certify --out wrote, each once."),
    ],
    said: Said,
    files: Files,
    delta: Annotated[float, option("Joint delta.", NOISE)] = 1e-6,
) -> None:
    """Certify what several releases from the same rows promise together."""
    with _deliver(certificates, None, files) as made:
        parts = [_read_statement(each) for each in certificates]
        made.append(hs.certify_study(parts, delta=delta, **asdict(said)))


@take_records
def report(ledger: LedgerArgument, budget: BudgetArgument, said: Said, files: Files) -> None:
    """Show everything that was released under a budget, on one page."""
    with _deliver([], ledger, files) as made, hs.Ledger(ledger, create=False) as book:
        made.append(hs.certify_budget(book, budget, **asdict(said)))


@contextmanager
def _deliver(
    inputs: Sequence[Path | None], ledger: str | None, files: Files
) -> Iterator[list[hs.Statement]]:
    """Check files and key before the command runs; print and write what it certified."""
    with finish(json=files.json, stopped=_STOPPED) as result:
        named = [each for each in (*inputs, files.sign) if each is not None]
        check_files(files.out, files.html, (*named, *files_of(ledger)), force=files.force)
        key = None
        if files.sign is not None:
            if files.out is None:
                raise ParameterError("--sign signs what --out writes: give --out FILE, too")
            key = read_key(files.sign)
            public_key(key)
        made: list[hs.Statement] = []
        yield made
        found = made[0]
        result.update(loads(found.to_json()))
        if not files.json:
            print_line(found.explain())
    with finish(json=False, stopped="stopped; the files of the certificate may be missing"):
        write_files(found, None, files.html)
        if files.out is not None:
            text = found.to_json() if key is None else sign_statement(found, key)
            write_whole(files.out, text + "\n")
            print_note(f"{'' if key is None else 'signed '}certificate written to {files.out}")


def _name(entry: str) -> int | str:
    """Read the number of an entry, or a key, which is never a number."""
    return int(entry) if is_whole_number(entry) else entry


def _read_statement(path: Path) -> hs.Statement:
    """Read a certificate that is a part of a study; who signed it is not looked at."""
    text = read_record(path, _PART)
    try:
        return read_unchecked(text) if is_signed(text) else hs.Statement.from_json(text)
    except ParameterError as problem:
        kind = DoesNotHold if isinstance(problem, DoesNotHold) else ParameterError
        raise kind(f"{flat(path)}: {problem.message}") from None
