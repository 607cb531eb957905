"""What ``hushed audit zoo`` does: judge every mechanism of the zoo on its own pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from hushed._functions._streams import Streams
from hushed._functions._trials import run_trials
from hushed._ground.printing import format_down, format_up
from hushed._ground.types import Floats
from hushed.auditing import AuditReport, Relation
from hushed.auditing import audit as judge
from hushed.auditing._audit import allowed_error
from hushed.cli._outcome import REFUSED, print_line, print_note
from hushed.errors import NotFound, ParameterError

SPECIMEN = "zoo:"
_VERDICTS = ("violated", "not refuted")


def audit_zoo(
    result: dict[str, Any],
    epsilon: float | None,
    effort: dict[str, Any],
    named: Mapping[str, object],
    *,
    json: bool,
) -> None:
    """Audit every mechanism of the zoo on its own pairs, and print the table.

    The probability of error is shared out among them, so that all verdicts hold together.
    """
    zoo = _open_zoo("audit zoo", named)
    specimens = zoo.specimens(0.1 if epsilon is None else epsilon)
    shared = 1 - allowed_error(effort["confidence"]) / len(specimens)
    rows = []
    for row in judge_all(specimens, epsilon, {**effort, "confidence": shared}):
        rows.append(row)
        if not json:
            print_line(
                f"{row['name']:40} {'private' if row['private'] else 'not private':12} "
                f"{row['verdict']:12} claim {format_up(row['claim']):<9} "
                f"certified {format_down(row['epsilon_low'], 3):<9} {row['seconds']:5.1f} s"
            )
    counts = count_verdicts(rows)
    result |= {"zoo": rows, "confidence": effort["confidence"], **counts}
    if not json:
        print_line(_zoo_in_words(rows, counts, effort["samples"], effort["confidence"]))
    result["exit_code"] = REFUSED if counts["accused"] else 0


def audit_named(
    mechanism: str, epsilon: float | None, effort: dict[str, Any], named: Mapping[str, object]
) -> tuple[AuditReport, str]:
    """Audit the one mechanism of the zoo that ``zoo:NAME`` names, and say what was judged."""
    zoo = _open_zoo("audit zoo:NAME", named)
    specimen = zoo.find(mechanism.removeprefix(SPECIMEN), 0.1 if epsilon is None else epsilon)
    report = _audit_specimen(specimen, effort, progress=print_note)
    return report, _judged_in_words(specimen, bits=_looks_at_bits(specimen, effort))


def _open_zoo(command: str, named: Mapping[str, object]) -> Any:
    """Find the zoo; refuse options that its mechanisms bring themselves."""
    if given := [option for option, value in named.items() if value is not None]:
        raise ParameterError(
            f"{command} brings its own claims and pairs: leave out {', '.join(given)}"
        )
    try:
        return import_module("hushed.zoo")
    except ModuleNotFoundError:
        raise NotFound("this installation has no zoo of mechanisms") from None


def count_verdicts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Count the broken ones that were caught and missed, the right ones accused and left alone."""
    names = {(False, True): "caught", (False, False): "missed", (True, True): "accused"}
    counts = dict.fromkeys(("caught", "missed", "accused", "cleared"), 0)
    for row in rows:
        counts[names.get((row["private"], row["verdict"] == "violated"), "cleared")] += 1
    return counts


def _zoo_in_words(
    rows: list[dict[str, Any]], counts: dict[str, int], samples: int, confidence: float
) -> str:
    """Tell what was caught and what was accused, how sure that is, and what was judged."""
    broken = counts["caught"] + counts["missed"]
    of_bits = [row["name"] for row in rows if row["bits"]]
    judged = f"all but {', '.join(of_bits)}, by the bit patterns of doubles" if of_bits else "all"
    return (
        f"With {samples} runs a side, {counts['caught']} of {broken} that are not private were "
        f"caught (more runs catch more) and {counts['accused']} of {len(rows) - broken} private "
        f"ones accused. All verdicts and bounds hold together with confidence "
        f"{format_down(confidence)}. Judged by their values alone: {judged}."
    )


def _looks_at_bits(specimen: Any, effort: Mapping[str, Any]) -> bool:
    """Look where the truth is about bits, unless the caller says otherwise."""
    return bool(specimen.doubles if effort.get("bits") is None else effort["bits"])


def _judged_in_words(specimen: Any, *, bits: bool) -> str:
    if bits and specimen.doubles:
        return "the values and the bit patterns of doubles, for which this mechanism is stated"
    if bits:
        return (
            "the values and the bit patterns of doubles. The zoo states this mechanism for real "
            "numbers: bits may rightly refute noise whose formula is right"
        )
    if specimen.doubles:
        return "the values alone, although this mechanism is stated for the bits of doubles"
    return "the values alone, for the zoo states this mechanism for real numbers"


def judge_all(
    specimens: Any, epsilon: float | None, effort: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Audit the specimens one after the other, or on an engine, where each is one trial."""
    if not isinstance(effort["workers"], str):
        for specimen in specimens:
            yield _describe(specimen, _audit_specimen(specimen, effort), effort)
        return
    judged = _Specimens(0.1 if epsilon is None else epsilon, {**effort, "workers": 1})
    if effort["keep"] is not None:
        raise ParameterError(
            "--keep goes with worker processes of this machine here: on a cluster each mechanism "
            "of the zoo is one piece of work, and its time is part of the table"
        )
    found = run_trials(judged, len(specimens), seed=0, workers=effort["workers"])
    for specimen, (verdict, *numbers) in zip(specimens, found.tolist(), strict=True):
        yield _describe(specimen, _Judged(_VERDICTS[int(verdict)], *numbers), effort)


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is shown of the report on a specimen."""

    verdict: str
    epsilon_low: float
    delta_low: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Specimens:
    """Audits specimens by their number in the zoo; their seed is the audit's, not the trial's."""

    epsilon: float
    effort: dict[str, Any]

    def __call__(self, streams: Streams) -> Floats:
        """One row for each specimen."""
        known = import_module("hushed.zoo").specimens(self.epsilon)
        found = [_audit_specimen(known[streams.trial], self.effort) for _ in streams]
        return np.array(
            [
                (_VERDICTS.index(each.verdict), each.epsilon_low, each.delta_low, each.seconds)
                for each in found
            ]
        )


def _describe(
    specimen: Any, report: AuditReport | _Judged, effort: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "name": specimen.name,
        "private": specimen.private,
        "verdict": report.verdict,
        "bits": _looks_at_bits(specimen, effort),
        "claim": specimen.claim.epsilon,
        "epsilon_low": report.epsilon_low,
        "delta_low": report.delta_low,
        "seconds": report.seconds,
    }


def _audit_specimen(
    specimen: Any, effort: dict[str, Any], progress: Callable[[str], None] | None = None
) -> AuditReport:
    """Audit on the specimen's pairs; on values alone where its truth is about real numbers."""
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
        progress=progress,
        **{**effort, "bits": _looks_at_bits(specimen, effort)},
    )
