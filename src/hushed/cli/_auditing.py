"""The command that judges: audit."""

from __future__ import annotations

import json as decoder
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hushed._printing import format_down, format_up, plain_path
from hushed.auditing import (
    FAMILIES,
    AuditReport,
    Claim,
    Command,
    Pair,
    Relation,
    Renyi,
    ZeroConcentrated,
    allowed_error,
    describe_families,
    extreme_pairs,
)
from hushed.auditing import audit as judge
from hushed.cli._inputs import read_function
from hushed.cli._outcome import BAD_USE, REFUSED, finish, print_line, print_note
from hushed.cli._panels import AUDIT, CLAIM, OUTPUT, PAIRS
from hushed.cli._spelling import spell_option
from hushed.cli._written import check_targets, inputs_of
from hushed.errors import NotFound, ParameterError
from hushed.guarantee import Guarantee, Neighbours

_ANSWERS, _ROWS = 5, 4
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
    claim_epsilon: Annotated[
        float | None, typer.Option(help="Claimed privacy loss.", rich_help_panel=CLAIM)
    ] = None,
    claim_delta: Annotated[float, typer.Option(help="Claimed slack.", rich_help_panel=CLAIM)] = 0.0,
    claim_rho: Annotated[
        float | None, typer.Option(help="Claimed rho of zCDP, instead.", rich_help_panel=CLAIM)
    ] = None,
    claim_order: Annotated[
        float | None,
        typer.Option(
            help="Order of the Renyi divergence that epsilon bounds.", rich_help_panel=CLAIM
        ),
    ] = None,
    neighbours: Annotated[
        Neighbours, typer.Option(help="Relation of the claim.", rich_help_panel=CLAIM)
    ] = "replace-one",
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Needed. For a function of rows: extremes, with --low and --high, or a JSON file "
            "with a list of [ROWS, NEIGHBOUR]. For a function of query answers: patterns, "
            "histogram, or the name of a pattern.",
            rich_help_panel=PAIRS,
        ),
    ] = None,
    low: Annotated[
        str | None,
        typer.Option(
            help="Lowest value of a row, LOW[,LOW...] for columns.", rich_help_panel=PAIRS
        ),
    ] = None,
    high: Annotated[
        str | None,
        typer.Option(
            help="Highest value of a row, HIGH[,HIGH...] for columns.", rich_help_panel=PAIRS
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            help=f"Rows of a table of extremes; {_ROWS} by default.", rich_help_panel=PAIRS
        ),
    ] = None,
    relation: Annotated[
        Relation | None,
        typer.Option(help="How two inputs of a pair may differ.", rich_help_panel=PAIRS),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(
            help=f"Query answers in a pattern; {_ANSWERS} by default.", rich_help_panel=PAIRS
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Runs on each side of the pairs, all in all.", rich_help_panel=AUDIT)
    ] = 100_000,
    confidence: Annotated[
        float, typer.Option(help="Of everything certified.", rich_help_panel=AUDIT)
    ] = 0.95,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="The function is (rows, rng, size) -> outputs.", rich_help_panel=AUDIT
        ),
    ] = False,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential", help="Stop as soon as the claim is contradicted.", rich_help_panel=AUDIT
        ),
    ] = False,
    bits: Annotated[
        bool, typer.Option(help="Look at the bit patterns of doubles.", rich_help_panel=AUDIT)
    ] = True,
    command: Annotated[
        bool,
        typer.Option(
            "--command",
            help="The argument is a program, not FILE.py:FUNCTION.",
            rich_help_panel=AUDIT,
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the audit.", rich_help_panel=AUDIT)] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes.", rich_help_panel=AUDIT)
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the report as a page.", rich_help_panel=OUTPUT)
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a file that is not an earlier report.", rich_help_panel=OUTPUT
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Judge what a mechanism claims: violated with a witness, or not refuted."""
    options: dict[str, Any] = {
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
        if mechanism == "zoo":
            _refuse_for_zoo(
                {
                    "--claim-delta": bool(claim_delta),
                    "--claim-rho": claim_rho is not None,
                    "--claim-order": claim_order is not None,
                    "--pairs": pairs is not None,
                    "--low": low is not None,
                    "--high": high is not None,
                    "--rows": rows is not None,
                    "--relation": relation is not None,
                    "--answers": answers is not None,
                    "--command": command,
                    "--html": html is not None,
                }
            )
            _zoo(result, claim_epsilon, options, json=json)
            return
        claim = _claim(claim_epsilon, claim_delta, claim_rho, claim_order, neighbours)
        domain = _Domain(low=low, high=high, rows=rows)
        chosen = _pairs(pairs, domain, answers, relation or neighbours)
        subject = Command(mechanism.split()) if command else read_function(mechanism)
        report = judge(
            subject,
            chosen,
            claim=claim,
            batch=batch,
            relation=relation,
            answers=_ANSWERS if answers is None else answers,
            progress=print_note,
            **options,
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

    def given(self) -> list[str]:
        named = {"--low": self.low, "--high": self.high, "--rows": self.rows}
        return [option for option, value in named.items() if value is not None]

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
        return extreme_pairs(*ends, _ROWS if self.rows is None else self.rows, relation)


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


def _refuse_for_zoo(given: dict[str, bool]) -> None:
    """Refuse what the zoo's own claims and pairs leave no room for."""
    named = [option for option, is_given in given.items() if is_given]
    if named:
        raise ParameterError(
            f"audit zoo brings its own claims and pairs: leave out {', '.join(named)}"
        )


def _zoo(
    result: dict[str, Any], epsilon: float | None, options: dict[str, Any], *, json: bool
) -> None:
    """Audit every mechanism of the zoo on its own pairs, and print the table.

    The probability of error is shared out among them, so that all verdicts hold together.
    """
    try:
        zoo = import_module("hushed.zoo")
    except ModuleNotFoundError:
        raise NotFound("this installation has no zoo of mechanisms") from None
    rows = []
    specimens = zoo.specimens(0.1 if epsilon is None else epsilon)
    shared = 1 - allowed_error(options["confidence"]) / len(specimens)
    for specimen in specimens:
        report = _audit_specimen(specimen, {**options, "confidence": shared})
        rows.append(
            {
                "name": specimen.name,
                "private": specimen.private,
                "verdict": report.verdict,
                "claim": specimen.claim.epsilon,
                "epsilon_low": report.epsilon_low,
                "delta_low": report.delta_low,
                "seconds": report.seconds,
            }
        )
        if not json:
            print_line(
                f"{specimen.name:40} {'private' if specimen.private else 'not private':12} "
                f"{report.verdict:12} claim {format_up(specimen.claim.epsilon):<9} "
                f"certified {format_down(report.epsilon_low, 3):<9} {report.seconds:5.1f} s"
            )
    result |= {"zoo": rows, "confidence": options["confidence"]}
    if not json:
        print_line(_zoo_in_words(rows, options["samples"], options["confidence"]))
    wrong = [row["name"] for row in rows if row["private"] and row["verdict"] == "violated"]
    result["exit_code"] = REFUSED if wrong else 0


def _zoo_in_words(rows: list[dict[str, Any]], samples: int, confidence: float) -> str:
    """Count what was caught and what was accused, and say how sure that is."""
    accused = dict.fromkeys((True, False), 0)
    for row in rows:
        accused[row["private"]] += row["verdict"] == "violated"
    broken = sum(not row["private"] for row in rows)
    return (
        f"With {samples} runs a side, {accused[False]} of {broken} that are not private were "
        f"caught (more runs catch more) and {accused[True]} of {len(rows) - broken} private ones "
        f"accused. All verdicts and bounds hold together with confidence {format_down(confidence)}."
    )


def _audit_specimen(specimen: Any, options: dict[str, Any]) -> AuditReport:
    """Audit on the specimen's pairs; on values alone, because its truth is about real numbers."""
    relation: Relation = "answers"
    if specimen.relation == "one-row":
        relation = specimen.claim.neighbours
    print_note(f"{specimen.name} ...")
    return judge(
        specimen.mechanism,
        specimen.pairs,
        claim=specimen.claim,
        relation=relation,
        batch=True,
        **{**options, "bits": False},
    )
