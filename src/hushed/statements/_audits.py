"""Audits as one kind of record: what was claimed, what was certified, and on which counts."""

from __future__ import annotations

from hushed._ground.printing import flat, format_down, format_up
from hushed.auditing import AuditReport
from hushed.auditing._goal import adapt_claim
from hushed.auditing._report import list_bounds, list_failed
from hushed.auditing._storage import SCHEMA, read_report, write_report
from hushed.statements._readings import Kind, Reading, Table
from hushed.statements._releases import split_paragraph

_HEADS = ("Evidence", "Failed runs", "Not refuted is not private")
_UNCHECKED = (
    "that the mechanism was run, as often as it says, and gave these counts",
    "which program was audited: its name is what was said",
    "which pairs were tried beside the one that was judged: their names are what was said",
    "the bounds of an audit that is sequential or about a population, the pairs that the first one "
    "certifies by name, and what the second one would have caught: they take all of its runs",
)


def _read(text: str) -> Reading:
    """Read a report, whose bounds follow from its counts."""
    report = read_report(text)
    seen, claim = report.witness.counts, adapt_claim(report.claim)
    likelier, other = report.witness.sides
    first, *rest = report.explain().split("\n\n")
    shown = "not refuted is not private" if report.verdict == "not refuted" else "certified"
    return Reading(
        title="an audit",
        subject=report,
        facts={"verdict": report.verdict, "recomputed": report.mode == "fixed"},
        rows=(
            ("verdict", f"{report.verdict} ({shown})"),
            ("claim", f"{claim.describe()}, {report.relation} neighbours"),
            ("confidence", format_down(report.confidence)),
            *list_bounds(report),
            (
                "would have been caught",
                f"{claim.quantity.lower()} of {format_up(report.minimum_detectable)} or more, in "
                "an event as rare as this one",
            ),
            ("runs on each side", f"{report.samples:,}"),
            *list_failed(report),
        ),
        tables=(
            Table(
                name="The event that was judged",
                lines=(
                    ("input", "seen", "of"),
                    (likelier, f"{seen.hits:,}", f"{seen.samples:,}"),
                    (other, f"{seen.other_hits:,}", f"{seen.other_samples:,}"),
                ),
            ),
        ),
        outsider=_describe_outsider(report),
        paragraphs=(
            ("Verdict", flat(first)),
            *(_split(each) for each in rest),
        ),
    )


def _split(text: str) -> tuple[str, str]:
    """Split a paragraph of a report into its heading and the rest."""
    head, found, told = text.partition(". ")
    return (head, told) if found and head in _HEADS else split_paragraph(text)


def _describe_outsider(report: AuditReport) -> str:
    """Say what an outsider who sees an output can tell, as far as the audit has shown."""
    seen = report.witness.counts
    told = (
        "Somebody who sees an output of the mechanism can look whether "
        f"{flat(report.witness.event)}: that happened in {seen.hits:,} of {seen.samples:,} runs on "
        f"one input, and in {seen.other_hits:,} of {seen.other_samples:,} on its neighbour. "
    )
    if report.verdict == "violated":
        return told + "That tells the two apart by more than the claim allows."
    return told + (
        "An audit finds what is there to be found with so many runs, on the pairs that were tried; "
        "it shows no limit of what can be learned. If its inputs were made up or public, as they "
        "should be, it tells nothing of private rows."
    )


AUDITS = Kind(
    name="audit",
    schema=SCHEMA,
    takes=(AuditReport,),
    write=write_report,
    read=_read,
    write_again=lambda reading: write_report(reading.subject),
    checked="digests; verdict, bounds and what would have been caught follow from the counts, and "
    "the groups of outcomes add up to them",
    unchecked=_UNCHECKED,
    about="audited mechanism",
)
