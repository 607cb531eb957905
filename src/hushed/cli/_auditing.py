"""The command that judges: audit."""

from __future__ import annotations

import json as decoder
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hushed._printing import plain_path
from hushed.auditing import (
    Claim,
    Command,
    Pair,
    Relation,
    Renyi,
    ZeroConcentrated,
    extreme_pairs,
)
from hushed.auditing import audit as judge
from hushed.auditing._pairs import FAMILIES, describe_families
from hushed.cli import _audit_options as options
from hushed.cli._audit_zoo import audit_zoo
from hushed.cli._inputs import read_function
from hushed.cli._options import JsonOption
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_note
from hushed.cli._spelling import spell_option
from hushed.cli._written import check_targets, inputs_of
from hushed.errors import NotFound, ParameterError
from hushed.guarantee import Guarantee, Neighbours

_EXTREMES = "extremes"
_CHOICES = (
    f"For a function of rows: '{_EXTREMES}' (tables at the ends of a domain, one row changed; with "
    "--low and --high), or a JSON file with a list of [ROWS, NEIGHBOUR]. For a function of a list "
    f"of query answers: {describe_families()}"
)
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
    # 1 says that a claim is violated: whatever keeps the audit from running is a 2.
    stopped = "stopped; there is no verdict"
    with finish(json=json, stopped=stopped, refused=BAD_USE, hints=_HINTS) as result:
        inputs = inputs_of(mechanism, pairs)
        check_targets({"--html": html}, inputs, force=force, former="audit report")
        domain = _Domain(low=low, high=high, rows=rows)
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
            }
            audit_zoo(result, claim_epsilon, effort, named, json=json)
            return
        claim = _claim(claim_epsilon, claim_delta, claim_rho, claim_order, neighbours)
        chosen = _pairs(pairs, domain, answers, relation or neighbours)
        report = judge(
            Command(mechanism.split()) if command else read_function(mechanism),
            chosen,
            claim=claim,
            batch=batch,
            relation=relation,
            answers=options.ANSWERS if answers is None else answers,
            progress=print_note,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Domain:
    """Options for tables at the ends of a domain."""

    low: str | None
    high: str | None
    rows: int | None

    def options(self) -> dict[str, object]:
        return {"--low": self.low, "--high": self.high, "--rows": self.rows}

    def given(self) -> list[str]:
        return [option for option, value in self.options().items() if value is not None]

    def pairs(self, relation: Relation) -> list[Pair]:
        if relation == "answers":
            raise ParameterError(
                "--pairs extremes gives tables of rows: leave out --relation answers"
            )
        if self.low is None or self.high is None:
            raise ParameterError(
                "--pairs extremes needs the domain of a row: --low LOW --high HIGH"
            )
        ends = _numbers("--low", self.low), _numbers("--high", self.high)
        return extreme_pairs(*ends, options.ROWS if self.rows is None else self.rows, relation)


def _numbers(option: str, text: str) -> float | list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{option} takes numbers, LOW[,LOW...], got {text!r}") from None
    return found if len(found) > 1 else found[0]


def _pairs(
    spec: str | None, domain: _Domain, answers: int | None, relation: Relation
) -> str | list[Pair]:
    """Name of a family of answers, tables at the ends of a domain, or pairs from a file."""
    if spec is None:
        raise ParameterError(f"an audit needs --pairs. {_CHOICES}")
    if spec != _EXTREMES and domain.given():
        raise ParameterError(f"{', '.join(domain.given())} belongs to --pairs {_EXTREMES}")
    if spec not in FAMILIES and answers is not None:
        raise ParameterError(
            f"--answers belongs to a family of query answers: {', '.join(FAMILIES)}"
        )
    if spec == _EXTREMES:
        return domain.pairs(relation)
    return spec if spec in FAMILIES else _pairs_in_file(spec)


def _pairs_in_file(spec: str) -> list[Pair]:
    path = Path(spec)
    if not path.is_file():
        raise NotFound(
            f"there is no file {plain_path(spec)}, and no family of that name. {_CHOICES}"
        )
    try:
        content = decoder.loads(path.read_text(encoding="utf-8"))
    except ValueError as cause:
        raise ParameterError(f"{path.name} is not JSON: {cause}") from None
    if not isinstance(content, list) or not all(
        isinstance(each, list) and len(each) == 2 for each in content
    ):
        raise ParameterError(f"{path.name} must hold a list of [ROWS, NEIGHBOUR]")
    return [
        Pair(rows=_table(one), neighbour=_table(other), name=f"pair {number}")
        for number, (one, other) in enumerate(content, start=1)
    ]


def _table(rows: Any) -> Any:
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        return rows
