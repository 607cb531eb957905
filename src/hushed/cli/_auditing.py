"""The command that judges: audit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hushed.auditing import Claim, Command, Renyi, ZeroConcentrated
from hushed.auditing import audit as judge
from hushed.cli import _audit_options as options
from hushed.cli._audit_pairs import Domain, choose_pairs
from hushed.cli._audit_zoo import audit_zoo
from hushed.cli._inputs import read_function
from hushed.cli._options import JsonOption, KeepOption, read_keep
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_note
from hushed.cli._spelling import spell_option
from hushed.cli._written import check_targets, inputs_of
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours

_HINTS = {  # in place of those in Python
    "batch": "say --batch if it takes (rows, rng, size), else leave it out",
    "relation": "for query answers, each of which may move by 1, say --relation answers",
}


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:FUNCTION",
            help="The mechanism (rows, rng) -> output; zoo for all mechanisms of known verdict; "
            "or, with --command, a program that reads and writes lines.",
        ),
    ],
    claim_epsilon: options.ClaimEpsilon = None,
    claim_delta: options.ClaimDelta = 0.0,
    claim_rho: options.ClaimRho = None,
    claim_order: options.ClaimOrder = None,
    neighbours: options.Neighbours = "replace-one",
    pairs: options.Pairs = None,
    low: options.Low = None,
    high: options.High = None,
    rows: options.Rows = None,
    relation: options.Relation = None,
    answers: options.Answers = None,
    samples: options.Samples = 100_000,
    confidence: options.Confidence = 0.95,
    batch: options.Batch = False,
    sequential: options.Sequential = False,
    bits: options.Bits = True,
    command: options.Command = False,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    keep: KeepOption = None,
    html: options.Html = None,
    force: options.Force = False,
    json: JsonOption = False,
) -> None:
    """Judge what a mechanism claims: violated with a witness, or not refuted."""
    effort: dict[str, Any] = {
        "samples": samples,
        "confidence": confidence,
        "sequential": sequential,
        "bits": bits,
        "seed": seed,
        "workers": workers,
    }
    kept = read_keep(keep, private=False)
    # 1 says that a claim is violated: whatever keeps the audit from running is a 2.
    stopped = "stopped; there is no verdict"
    with finish(json=json, stopped=stopped, refused=BAD_USE, hints=_HINTS) as result:
        inputs = inputs_of(mechanism, pairs)
        check_targets({"--html": html}, inputs, force=force, former="audit report")
        domain = Domain(low=low, high=high, rows=rows)
        if mechanism == "zoo":
            named = {
                "--claim-delta": claim_delta or None,
                "--claim-rho": claim_rho,
                "--claim-order": claim_order,
                "--pairs": pairs,
                **domain.options(),
                "--relation": relation,
                "--answers": answers,
                "--command": command or None,
                "--html": html,
                "--keep": keep,
            }
            audit_zoo(result, claim_epsilon, effort, named, json=json)
            return
        claim = _claim(claim_epsilon, claim_delta, claim_rho, claim_order, neighbours)
        chosen = choose_pairs(pairs, domain, answers, relation or neighbours)
        report = judge(
            Command(mechanism.split()) if command else read_function(mechanism),
            chosen,
            claim=claim,
            batch=batch,
            relation=relation,
            answers=options.ANSWERS if answers is None else answers,
            progress=print_note,
            keep=kept,
            **effort,
        )
        result.update(report.to_dict())
        if not json:
            print_line(report.explain(spell_option))
    # Standard output is complete: what goes wrong from here on is told on standard error.
    with finish(json=False, stopped="stopped; the verdict stands, its page may be missing") as end:
        end["exit_code"] = REFUSED if report.verdict == "violated" else 0
        if html is not None:
            from hushed.plots._audits import audit_page  # noqa: PLC0415

            html.write_text(audit_page(report, spell_option), encoding="utf-8")
            print_note(f"page written to {html}")


def _claim(
    epsilon: float | None,
    delta: float,
    rho: float | None,
    order: float | None,
    neighbours: Neighbours,
) -> Claim:
    if (epsilon is None) == (rho is None):
        raise ParameterError("give --claim-epsilon or --claim-rho, one of them")
    if rho is not None:
        return ZeroConcentrated(rho=rho, neighbours=neighbours)
    if order is not None:
        return Renyi(order=order, epsilon=float(epsilon or 0), neighbours=neighbours)
    return Guarantee(epsilon=float(epsilon or 0), delta=delta, neighbours=neighbours)
