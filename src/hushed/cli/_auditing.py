"""The command that judges: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hushed._ground.whole_files import write_whole
from hushed.auditing import AuditReport
from hushed.auditing import audit as judge
from hushed.cli._audit_options import Claimed, Effort, Inputs, Reports
from hushed.cli._audit_pairs import choose_pairs
from hushed.cli._audit_zoo import SPECIMEN, audit_named, audit_zoo
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_note
from hushed.cli._records import take_records
from hushed.cli._spelling import spell_option
from hushed.cli._written import check_drawing, check_targets, inputs_of
from hushed.errors import ParameterError

_HINTS = {  # in place of those in Python
    "batch": "say --batch if it takes (rows, rng, size), else leave it out",
    "relation": "for query answers, each of which may move by 1, say --relation answers",
}


@take_records
def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:FUNCTION",
            help="The mechanism (rows, rng) -> output; zoo for all mechanisms of known verdict, "
            "zoo:NAME for one of them; or, with --command, a program that reads and writes lines.",
        ),
    ],
    claimed: Claimed,
    asked: Inputs,
    effort: Effort,
    files: Reports,
) -> None:
    """Judge what a mechanism claims: violated with a witness, or not refuted."""
    # 1 says that a claim is violated: whatever keeps the audit from running is a 2.
    stopped = "stopped; there is no verdict"
    with finish(json=files.json, stopped=stopped, refused=BAD_USE, hints=_HINTS) as result:
        inputs = inputs_of(mechanism, asked.pairs)
        page = [] if files.html is None else [files.html]
        check_targets({"--html": files.html}, inputs, force=files.force, former="audit report")
        check_drawing(files.html)
        check_targets({"--out": files.out}, (*inputs, *page), force=files.force)
        settings = effort.settings()
        own = _name_given(claimed, asked, effort)
        of_zoo = {**settings, "bits": effort.bits}
        if mechanism == "zoo":
            whole = {"--bits": effort.bits or None, "--out": files.out, "--html": files.html}
            named = {**own, **whole}
            audit_zoo(result, claimed.claim_epsilon, of_zoo, named, json=files.json)
            return
        judged = ""
        if mechanism.startswith(SPECIMEN):
            report, judged = audit_named(mechanism, claimed.claim_epsilon, of_zoo, own)
            result["judged"] = judged
        else:
            _require_all(claimed, asked)
            claim = claimed.read()
            report = judge(
                effort.read(mechanism),
                choose_pairs(asked, asked.relation or claimed.neighbours),
                claim=claim,
                batch=effort.batch,
                relation=asked.relation,
                answers=asked.count,
                progress=print_note,
                **settings,
            )
        result.update(report.to_dict())
        if not files.json:
            print_line(report.explain(spell_option))
            if judged:
                print_line(f"\nJudged: {judged}.")
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the verdict stands, its page may be missing") as end:
        end["exit_code"] = REFUSED if report.verdict == "violated" else 0
        _write(report, files, data="" if effort.command else Path(mechanism).name)


def _require_all(claimed: Claimed, asked: Inputs) -> None:
    """Name everything that is missing at once, where it is more than one thing."""
    if claimed.claim_epsilon is None and claimed.claim_rho is None and asked.pairs is None:
        raise ParameterError(
            "two things are missing: what is claimed, --claim-epsilon or --claim-rho, and the "
            "inputs to try, --pairs. For a function of rows: --pairs extremes --low LOW --high HIGH"
        )


def _name_given(claimed: Claimed, asked: Inputs, effort: Effort) -> dict[str, Any]:
    """Name the options that have no place beside the zoo, which brings its own."""
    return {
        "--claim-delta": claimed.claim_delta or None,
        "--claim-rho": claimed.claim_rho,
        "--claim-order": claimed.claim_order,
        "--pairs": asked.pairs,
        **asked.domain,
        "--relation": asked.relation,
        "--answers": asked.answers,
        "--command": effort.command or None,
    }


def _write(report: AuditReport, files: Reports, data: str) -> None:
    """Write the page and the certificate of an audit, where they were asked for."""
    if files.html is not None:
        from hushed.plots._audits import audit_page  # noqa: PLC0415

        write_whole(files.html, audit_page(report, spell_option, data))
        print_note(f"page written to {files.html}")
    if files.out is not None:
        from hushed.statements import certify  # noqa: PLC0415

        write_whole(files.out, certify(report, data=data).to_json() + "\n")
        print_note(f"certificate written to {files.out}")
