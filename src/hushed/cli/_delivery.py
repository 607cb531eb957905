"""What all commands have in common that release an answer: the ledger, the answer, its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from json import loads
from pathlib import Path
from typing import Any

import hushed as hs
from hushed._ground.whole_files import write_whole
from hushed.cli._outcome import finish, print_line, print_note
from hushed.cli._records import Account, Output
from hushed.cli._release_words import describe_release, plain_value, read_again
from hushed.cli._written import check_drawing, check_targets, files_of
from hushed.errors import ParameterError


@dataclass
class Delivery:
    """What a command fills in."""

    result: dict[str, Any]  # the one JSON object
    released: hs.Release | None = None


@contextmanager
def deliver(inputs: Sequence[Path], account: Account, output: Output) -> Iterator[Delivery]:
    """Check ledger and files before the command runs; print and write what it released."""
    ledger, key = account.ledger, account.key
    charged_first = "" if ledger is None else "; if the budget was charged, the charge stays"
    with finish(
        json=output.json, stopped=f"stopped; nothing was released{charged_first}"
    ) as result:
        check_files(output.out, output.html, (*inputs, *files_of(ledger)), force=output.force)
        if key is not None and ledger is None:
            raise ParameterError("--key is the name of an answer in a ledger: --ledger URL, too")
        delivery = Delivery(result)
        yield delivery
        released = delivery.released
        if released is None:
            return
        certificate, value = released.certificate, plain_value(released.value)
        result.update(value=value, entry=released.entry, certificate=loads(certificate.to_json()))
        result["stated_error"] = asdict(released.error)
        if released.names:
            result["named"] = released.named or released.chosen
        result["kept"] = read_again(ledger, account.budget, key or released.entry)
        if not output.json:
            print_line(describe_release(released.value, certificate))
    # Standard output is complete: what goes wrong from here on is told on standard error.
    kept = result["kept"]
    stopped = "stopped; the answer was released, its files may be missing"
    with finish(json=False, stopped=stopped, kept=kept):
        write_files(certificate, output.out, output.html)


def check_files(
    out: Path | None, html: Path | None, inputs: Sequence[Path], *, force: bool
) -> None:
    """Find whatever would keep the certificate from being written before anything runs."""
    check_targets({"--out": out, "--html": html}, inputs, force=force)
    check_drawing(html)


def write_files(
    certificate: hs.Certificate | hs.Statement, out: Path | None, html: Path | None
) -> None:
    """Write a certificate as JSON and as a page, where it was asked for."""
    if out is not None:
        write_whole(out, certificate.to_json() + "\n")
        print_note(f"certificate written to {out}")
    if html is not None:
        from hushed.plots import certificate_page  # noqa: PLC0415

        write_whole(html, certificate_page(certificate))
        print_note(f"page written to {html}")
